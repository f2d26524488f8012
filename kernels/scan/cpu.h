/* Running sums on the CPU: entry points for native/module.cpp. */
#ifndef IDENTIC_SCAN_CPU_H
#define IDENTIC_SCAN_CPU_H

#include <cstdint>

namespace identic {

/* out[r, i] = the sum of x[r, 0] to x[r, i] in the order of NUM-13; both are (rows, n). */
void cumsum(float* out, const float* x, int64_t rows, int64_t n);

/* The same modulo the width. T is int64_t or int32_t. */
template <class T>
void cumsum_integers(T* out, const T* x, int64_t rows, int64_t n);

}  // namespace identic

#endif
