/*
 * binary32 arithmetic that is the same on every machine.                     rules: NUM-1, NUM-2
 *
 * Plain C++ without vectors: bit views, the canonical NaN, the ordered maximum and minimum, and a
 * fused multiply-add that never calls a libm (some are wrong for subnormal results). Where the
 * target has the instruction it is used; elsewhere idn_fma_exact computes the same bits from
 * binary64 operations and one correction to odd.
 *
 * common/cuda.h includes this text for kernels of a CUDA device, with IDN_CUDA defined.
 */
#ifndef IDENTIC_COMMON_FP32_H
#define IDENTIC_COMMON_FP32_H

#define IDN_PRAGMA(words) _Pragma(#words)

#ifdef IDN_CUDA

#define IDN_INLINE static __device__ __forceinline__
#define IDN_NOINLINE static __device__ __noinline__
#define IDN_MEMBER __device__ __forceinline__
#define IDN_TABLE __device__ constexpr
#define IDN_UNROLL(times) IDN_PRAGMA(unroll)

/* ---- bits ---------------------------------------------------------------------------------- */

IDN_INLINE uint32_t idn_bits(float x) { return __float_as_uint(x); }
IDN_INLINE float idn_float(uint32_t u) { return __uint_as_float(u); }
IDN_INLINE uint64_t idn_bits64(double x) { return (uint64_t)__double_as_longlong(x); }
IDN_INLINE double idn_double(uint64_t u) { return __longlong_as_double((long long)u); }

/* ---- fused multiply-add -------------------------------------------------------------------- */

IDN_INLINE float idn_fma(float a, float b, float c) { return __fmaf_rn(a, b, c); }

/* ---- inside rounded functions -------------------------------------------------------------- */

IDN_INLINE double idn_add64(double a, double b) { return __dadd_rn(a, b); }
IDN_INLINE double idn_sub64(double a, double b) { return __dsub_rn(a, b); }
IDN_INLINE double idn_mul64(double a, double b) { return __dmul_rn(a, b); }
IDN_INLINE float idn_nearest(double a) { return __double2float_rn(a); }
IDN_INLINE float idn_nearest(uint64_t a) { return __ull2float_rn(a); }
IDN_INLINE int idn_leading_zeros(uint64_t a) { return __clzll((long long)a); }

#else

#include <cfloat>
#include <cstdint>
#include <cstring>

#if defined(FLT_EVAL_METHOD) && FLT_EVAL_METHOD != 0
#error "binary32 operations must round to binary32: compile with SSE2 or newer"
#endif
#ifdef __FAST_MATH__
#error "fast math changes bits"
#endif

#define IDN_INLINE static inline __attribute__((always_inline))
#define IDN_NOINLINE static __attribute__((noinline))
#define IDN_MEMBER inline __attribute__((always_inline))
#define IDN_TABLE constexpr
#define IDN_UNROLL(times) IDN_PRAGMA(GCC unroll times)

/* ---- bits ---------------------------------------------------------------------------------- */

IDN_INLINE uint32_t idn_bits(float x) {
  uint32_t u;
  memcpy(&u, &x, sizeof u);
  return u;
}

IDN_INLINE float idn_float(uint32_t u) {
  float x;
  memcpy(&x, &u, sizeof x);
  return x;
}

IDN_INLINE uint64_t idn_bits64(double x) {
  uint64_t u;
  memcpy(&u, &x, sizeof u);
  return u;
}

IDN_INLINE double idn_double(uint64_t u) {
  double x;
  memcpy(&x, &u, sizeof x);
  return x;
}

/* ---- fused multiply-add -------------------------------------------------------------------- */

/*
 * a * b + c rounded once, from binary64 arithmetic alone.
 *
 * The product of two 24-bit significands is exact in binary64. The sum is rounded to nearest, its
 * error is recovered exactly (two-sum), and the last bit is then set whenever the sum was inexact
 * (rounding to odd). 53 bits rounded to odd, rounded again to at most 24, give the single rounding
 * of the exact value, subnormal results included. Every intermediate is a multiple of 2^-298, so
 * neither the error nor its product with the sum can underflow. Infinities and NaN make the error
 * NaN, both comparisons false, and the sum passes as it is.
 */
IDN_INLINE float idn_fma_exact(float a, float b, float c) {
  const double product = (double)a * (double)b;
  const double addend = (double)c;
  const double sum = product + addend;
  const double rest = sum - product;
  const double error = (product - (sum - rest)) + (addend - rest);
  const double direction = error * sum;
  uint64_t bits = idn_bits64(sum);
  bits -= (uint64_t)(direction < 0.0);
  bits |= (uint64_t)((direction < 0.0) | (direction > 0.0));
  return (float)idn_double(bits);
}

#if defined(__FMA__) || defined(__aarch64__)
#define IDN_HAS_FMA 1
#else
#define IDN_HAS_FMA 0
#endif

IDN_INLINE float idn_fma(float a, float b, float c) {
#if IDN_HAS_FMA
  return __builtin_fmaf(a, b, c);
#else
  return idn_fma_exact(a, b, c);
#endif
}

/* ---- inside rounded functions -------------------------------------------------------------- */

IDN_INLINE double idn_add64(double a, double b) { return a + b; }
IDN_INLINE double idn_sub64(double a, double b) { return a - b; }
IDN_INLINE double idn_mul64(double a, double b) { return a * b; }
IDN_INLINE float idn_nearest(double a) { return static_cast<float>(a); }
IDN_INLINE float idn_nearest(uint64_t a) { return static_cast<float>(a); }
/* Of a number that is not 0. */
IDN_INLINE int idn_leading_zeros(uint64_t a) { return __builtin_clzll(a); }

#endif

/* NUM-2: the only NaN an operator stores. */
#define IDN_NAN_BITS 0x7fc00000u

/*
 * x, or the NaN of NUM-2. Compared and chosen as integers: a compiler may take one NaN for another when it sees floats.
 */
IDN_INLINE float idn_canon(float x) {
  const uint32_t u = idn_bits(x);
  return idn_float((u & 0x7fffffffu) > 0x7f800000u ? IDN_NAN_BITS : u);
}

/* ---- ordered selection --------------------------------------------------------------------- */

/* The larger operand; NaN if either is NaN; +0 is larger than -0. */
IDN_INLINE float idn_max(float a, float b) {
  if (a != a || b != b) return idn_float(IDN_NAN_BITS);
  if (a == b) return idn_float(idn_bits(a) & idn_bits(b));
  return a < b ? b : a;
}

/* The smaller operand; NaN if either is NaN; -0 is smaller than +0. */
IDN_INLINE float idn_min(float a, float b) {
  if (a != a || b != b) return idn_float(IDN_NAN_BITS);
  if (a == b) return idn_float(idn_bits(a) | idn_bits(b));
  return b < a ? b : a;
}

#endif
