/* Reductions on the CPU: entry points for native/module.cpp. All arrays are contiguous. */
#ifndef IDENTIC_REDUCE_CPU_H
#define IDENTIC_REDUCE_CPU_H

#include <cstdint>

namespace identic {

/* out[r] = row sum of x[r, 0..n) (NUM-12). */
void sum_last(float* out, const float* x, int64_t rows, int64_t n);

/* out[j] = column sum of x[0..n, j] (NUM-13). */
void sum_first(float* out, const float* x, int64_t n, int64_t inner);

/* out[r] = largest of x[r, 0..n), n >= 1 (NUM-4). */
void amax(float* out, const float* x, int64_t rows, int64_t n);

/* out[r] = position of the first of the largest, n >= 1 (NUM-4). */
void argmax(int64_t* out, const float* x, int64_t rows, int64_t n);

/* The same on integers: sums wrap (NUM-9). T is int64_t or int32_t. */
template <class T> void sum_last_integers(T* out, const T* x, int64_t rows, int64_t n);
template <class T> void sum_first_integers(T* out, const T* x, int64_t n, int64_t inner);
template <class T> void amax_integers(T* out, const T* x, int64_t rows, int64_t n);
template <class T> void argmax_integers(int64_t* out, const T* x, int64_t rows, int64_t n);

}  // namespace identic

#endif
