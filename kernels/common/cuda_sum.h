/*
 * Sums of the element types that have them: IDN_TYPE is float, int or long long.        rules: NUM-1, NUM-9
 */
#ifndef IDENTIC_COMMON_CUDA_SUM_H
#define IDENTIC_COMMON_CUDA_SUM_H

#include "common/cuda.h"

#ifndef IDN_TYPE
#define IDN_TYPE float
#endif

typedef IDN_TYPE Type;

IDN_INLINE float idn_sum(float a, float b) { return idn_add(a, b); }
IDN_INLINE int idn_sum(int a, int b) { return (int)((unsigned)a + (unsigned)b); }
IDN_INLINE long long idn_sum(long long a, long long b) {
  return (long long)((unsigned long long)a + (unsigned long long)b);
}

/* A result as it is stored: of a float the NaN that the rules know. */
IDN_INLINE float idn_result(float a) { return idn_canon(a); }
IDN_INLINE int idn_result(int a) { return a; }
IDN_INLINE long long idn_result(long long a) { return a; }

#endif
