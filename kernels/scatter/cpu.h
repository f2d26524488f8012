/* Writes and additions at indexed places on the CPU: entry points for native/module.cpp. */
#ifndef IDENTIC_SCATTER_CPU_H
#define IDENTIC_SCATTER_CPU_H

#include "index/cpu.h"

namespace identic {

/* out = init, then out[index[t]] = src[t] for t ascending; rows of row_bytes. */
void set_rows(void* out, const void* init, int64_t rows, int64_t row_bytes, Indices index, const void* src,
              int64_t count);

/* out = x, then out[.., index, ..] = src[.., j, ..] along axis for j ascending; src has the index's shape. */
void scatter(int bytes, void* out, const void* x, const Sizes& x_shape, Indices index, const void* src,
             const Sizes& shape, size_t axis);

/* The same with additions in the order of NUM-14. */
void scatter_add(float* out, const float* x, const Sizes& x_shape, Indices index, const float* src,
                 const Sizes& shape, size_t axis);

}  // namespace identic

#endif
