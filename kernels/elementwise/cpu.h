/* Elementwise operators on the CPU: entry points for native/module.cpp. Addresses are checked by the caller. */
#ifndef IDENTIC_ELEMENTWISE_CPU_H
#define IDENTIC_ELEMENTWISE_CPU_H

#include <cstdint>
#include <vector>

#include "native/codes.h"

namespace identic {

using Sizes = std::vector<int64_t>;

/* Whether the operator is defined on elements of this kind. */
bool has_binary(Binary op, Kind kind);

/* n contiguous elements. */
void unary(Unary op, void* out, const void* x, int64_t n);

/* out is contiguous with the given shape; strides are in elements, 0 along a broadcast axis. */
void binary(Binary op, Kind kind, void* out, const Sizes& shape, const void* a, const Sizes& a_strides, const void* b,
            const Sizes& b_strides);
void where(int element_bytes, void* out, const Sizes& shape, const uint8_t* c, const Sizes& c_strides, const void* a,
           const Sizes& a_strides, const void* b, const Sizes& b_strides);

/* Element types of a conversion. */
enum Type : int { TYPE_F32, TYPE_I64, TYPE_I32, TYPE_U8, TYPE_BOOL, TYPE_BF16, TYPE_COUNT };
void cast(void* out, Type to, const void* x, Type from, int64_t n);

/* The conversion of n contiguous elements on the calling thread. */
using CastRow = void (*)(void* out, const void* x, int64_t n);
CastRow cast_row(Type to, Type from);

}  // namespace identic

#endif
