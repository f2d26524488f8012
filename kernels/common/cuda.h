/*
 * What every CUDA kernel includes: binary32 and binary64 by intrinsics, and thread numbers.
 *                                                                             rules: NUM-1, NUM-2
 * An operation is spelled by the intrinsic that rounds to nearest, so that no contraction can be put in
 * its place. An intrinsic flushes subnormals where --ftz is on: the options are cuda/source.py's.
 * No libm, no atomics on floats. Integers that count or address elements are 64 bits long.
 *
 * The text that does not differ from the CPU's is common/fp32.h.
 */
#ifndef IDENTIC_COMMON_CUDA_H
#define IDENTIC_COMMON_CUDA_H

#define IDN_CUDA 1

#ifdef __CUDACC_RTC__
typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long long int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long long uint64_t;
#endif

#include "common/fp32.h"

/* ---- binary32 ------------------------------------------------------------------------------ */

IDN_INLINE float idn_add(float a, float b) { return __fadd_rn(a, b); }
IDN_INLINE float idn_sub(float a, float b) { return __fsub_rn(a, b); }
IDN_INLINE float idn_mul(float a, float b) { return __fmul_rn(a, b); }
IDN_INLINE float idn_div(float a, float b) { return __fdiv_rn(a, b); }
IDN_INLINE float idn_sqrt(float a) { return __fsqrt_rn(a); }

/* ---- binary64, inside rounded functions ------------------------------------------------------ */

IDN_INLINE double idn_div64(double a, double b) { return __ddiv_rn(a, b); }
IDN_INLINE double idn_fma64(double a, double b, double c) { return __fma_rn(a, b, c); }

/* ---- threads ------------------------------------------------------------------------------- */

/* The number of this thread in a one-dimensional launch, and of how many. */
IDN_INLINE long long idn_thread() { return (long long)blockIdx.x * blockDim.x + threadIdx.x; }
IDN_INLINE long long idn_threads() { return (long long)gridDim.x * blockDim.x; }

/* Before a loop whose body stands once in the code. */
#define IDN_ROLLED IDN_PRAGMA(unroll 1)

/* ---- arguments ----------------------------------------------------------------------------- */

/* Integers passed by value, e.g. shapes and strides; the size must be the launch's. */
template <int N>
struct Words { long long v[N]; };

#endif
