/* Movement of elements on the CPU: entry points for native/module.cpp. Bits stay as they are (NUM-2). */
#ifndef IDENTIC_LAYOUT_CPU_H
#define IDENTIC_LAYOUT_CPU_H

#include <cstdint>
#include <vector>

namespace identic {

using Sizes = std::vector<int64_t>;

/* out[sum i*out_strides] = x[sum i*x_strides] over the shape; pointers are at index 0. 1, 2, 4 or 8 bytes an element. */
void copy_strided(int bytes, void* out, const Sizes& out_strides, const void* x, const Sizes& x_strides,
                  const Sizes& shape);

/* n elements of the given pattern. */
void full(int bytes, void* out, uint64_t pattern, int64_t n);

}  // namespace identic

#endif
