/*
 * Elements as integers in the order of NUM-4: all NaNs equal and on top, -0 just below +0.     rules: NUM-4
 */
#ifndef IDENTIC_COMMON_CUDA_RANK_H
#define IDENTIC_COMMON_CUDA_RANK_H

#include "common/cuda.h"

IDN_INLINE int idn_rank(float x) {
  const int u = (int)idn_bits(x);
  return (u & 0x7fffffff) > 0x7f800000 ? 0x7fffffff : u ^ (u >> 31 & 0x7fffffff);
}
IDN_INLINE int idn_rank(int x) { return x; }
IDN_INLINE long long idn_rank(long long x) { return x; }

/* The element of a rank; of a float the NaN that the rules know. */
IDN_INLINE void idn_unrank(float* x, int rank) {
  *x = idn_float(rank == 0x7fffffff ? IDN_NAN_BITS : (uint32_t)(rank ^ (rank >> 31 & 0x7fffffff)));
}
IDN_INLINE void idn_unrank(int* x, int rank) { *x = rank; }
IDN_INLINE void idn_unrank(long long* x, long long rank) { *x = rank; }

#endif
