/* Sorted positions on the CPU: entry points for native/module.cpp. */
#ifndef IDENTIC_SORT_CPU_H
#define IDENTIC_SORT_CPU_H

#include <cstdint>

namespace identic {

/*
 * out[r] = the positions of the first `count` elements of row r of x (rows, n) in the order of OP-31, equal ones
 * as they come; 0 <= count <= n. T is float, int64_t or int32_t.
 */
template <class T>
void argsort(int64_t* out, const T* x, int64_t rows, int64_t n, int64_t count, bool descending);

}  // namespace identic

#endif
