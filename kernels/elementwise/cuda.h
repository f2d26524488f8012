/*
 * Elementwise operators on one element, by name and type of the operands.       rules: NUM-1 .. NUM-9
 *
 * of_add(a, b) and so on. What arithmetic makes of NaNs may be any NaN; idn_clean makes it the one of
 * NUM-2, before a value is stored or moved.
 */
#ifndef IDENTIC_ELEMENTWISE_CUDA_H
#define IDENTIC_ELEMENTWISE_CUDA_H

#include "functions/cuda.h"
#include "elementwise/convert.h"

template <class T> IDN_INLINE T idn_clean(T x) { return x; }
IDN_INLINE float idn_clean(float x) { return idn_canon(x); }

/* ---- float32 -------------------------------------------------------------------------------- */

IDN_INLINE float of_neg(float x) { return idn_float(idn_bits(x) ^ 0x80000000u); }
IDN_INLINE float of_abs(float x) { return idn_float(idn_bits(x) & 0x7fffffffu); }
IDN_INLINE float of_sqrt(float x) { return idn_sqrt(x); }
IDN_INLINE float of_rsqrt(float x) { return idn_div(1.0f, idn_sqrt(x)); }
IDN_INLINE float of_exp(float x) { return idn_exp(x); }
IDN_INLINE float of_log(float x) { return idn_log(x); }
IDN_INLINE float of_tanh(float x) { return idn_tanh(x); }
IDN_INLINE float of_erf(float x) { return idn_erf(x); }
IDN_INLINE float of_sigmoid(float x) { return idn_sigmoid(x); }
IDN_INLINE float of_sin(float x) { return idn_sin(x); }
IDN_INLINE float of_cos(float x) { return idn_cos(x); }

IDN_INLINE float of_add(float a, float b) { return idn_add(a, b); }
IDN_INLINE float of_sub(float a, float b) { return idn_sub(a, b); }
IDN_INLINE float of_mul(float a, float b) { return idn_mul(a, b); }
IDN_INLINE float of_div(float a, float b) { return idn_div(a, b); }
IDN_INLINE float of_maximum(float a, float b) { return idn_max(a, b); }
IDN_INLINE float of_minimum(float a, float b) { return idn_min(a, b); }

/* ---- integers, modulo a power of two -------------------------------------------------------- */

template <class T> using Bits = typename Limits<T>::Unsigned;

template <class T> IDN_INLINE T of_add(T a, T b) { return static_cast<T>(static_cast<Bits<T>>(a) + static_cast<Bits<T>>(b)); }
template <class T> IDN_INLINE T of_sub(T a, T b) { return static_cast<T>(static_cast<Bits<T>>(a) - static_cast<Bits<T>>(b)); }
template <class T> IDN_INLINE T of_mul(T a, T b) { return static_cast<T>(static_cast<Bits<T>>(a) * static_cast<Bits<T>>(b)); }
template <class T> IDN_INLINE T of_maximum(T a, T b) { return a < b ? b : a; }
template <class T> IDN_INLINE T of_minimum(T a, T b) { return b < a ? b : a; }

/* ---- comparisons and truth values ----------------------------------------------------------- */

IDN_INLINE Bool idn_truth(bool yes) { return {static_cast<uint8_t>(yes)}; }

template <class T> IDN_INLINE Bool of_eq(T a, T b) { return idn_truth(a == b); }
template <class T> IDN_INLINE Bool of_ne(T a, T b) { return idn_truth(a != b); }
template <class T> IDN_INLINE Bool of_lt(T a, T b) { return idn_truth(a < b); }
template <class T> IDN_INLINE Bool of_le(T a, T b) { return idn_truth(a <= b); }
template <class T> IDN_INLINE Bool of_gt(T a, T b) { return idn_truth(a > b); }
template <class T> IDN_INLINE Bool of_ge(T a, T b) { return idn_truth(a >= b); }
IDN_INLINE Bool of_eq(Bool a, Bool b) { return idn_truth(a.byte == b.byte); }
IDN_INLINE Bool of_ne(Bool a, Bool b) { return idn_truth(a.byte != b.byte); }
IDN_INLINE Bool of_and(Bool a, Bool b) { return idn_truth((a.byte & b.byte) != 0); }
IDN_INLINE Bool of_or(Bool a, Bool b) { return idn_truth((a.byte | b.byte) != 0); }
IDN_INLINE Bool of_not(Bool a) { return idn_truth(a.byte == 0); }

/* Words move as they are (NUM-2). */
template <class T> IDN_INLINE T of_where(Bool condition, T a, T b) { return condition.byte ? a : b; }

#endif
