/*
 * The rounded functions and NUM-4's choices on a CUDA device.              rules: NUM-2, NUM-4, NUM-7, NUM-8
 *
 * A thread is a path of one lane: the names of native/simd/ by intrinsics, and below them the same text
 * that the CPU's paths compile. Every function is computed in pairs of binary32; binary64, of which many devices have
 * little, decides one operand in some thousands. exp and erf in pairs are text of the CPU's too (pair_functions.h),
 * the others are a device's own. Proof, for every operand: tests/kernels/native/exhaustive.cpp, on path device.
 */
#ifndef IDENTIC_FUNCTIONS_CUDA_H
#define IDENTIC_FUNCTIONS_CUDA_H

#include "common/cuda.h"

namespace lane {

/* ---- the names of native/simd/ --------------------------------------------------------------------- */

struct F { float v; };
struct M { bool v; };
struct U { uint32_t v; };
struct D { double v; };
constexpr bool FAST_LOOK_UP = true;
#define IDN_FLOAT_TABLES

IDN_INLINE F splat(float a) { return {a}; }
IDN_INLINE F add(F a, F b) { return {idn_add(a.v, b.v)}; }
IDN_INLINE F sub(F a, F b) { return {idn_sub(a.v, b.v)}; }
IDN_INLINE F mul(F a, F b) { return {idn_mul(a.v, b.v)}; }
IDN_INLINE F div(F a, F b) { return {idn_div(a.v, b.v)}; }
IDN_INLINE F fma(F a, F b, F c) { return {idn_fma(a.v, b.v, c.v)}; }

IDN_INLINE U splat_bits(uint32_t a) { return {a}; }
IDN_INLINE U bits(F a) { return {idn_bits(a.v)}; }
IDN_INLINE F floats(U a) { return {idn_float(a.v)}; }
IDN_INLINE U operator+(U a, U b) { return {a.v + b.v}; }
IDN_INLINE U operator-(U a, U b) { return {a.v - b.v}; }
IDN_INLINE U operator&(U a, U b) { return {a.v & b.v}; }
IDN_INLINE U operator|(U a, U b) { return {a.v | b.v}; }
IDN_INLINE U operator^(U a, U b) { return {a.v ^ b.v}; }
template <int N> IDN_INLINE U shift_left(U a) { return {a.v << N}; }
template <int N> IDN_INLINE U shift_right(U a) { return {a.v >> N}; }
template <int N> IDN_INLINE U shift_sign(U a) { return {(uint32_t)((int32_t)a.v >> N)}; }

IDN_INLINE M lt(F a, F b) { return {a.v < b.v}; }
IDN_INLINE M le(F a, F b) { return {a.v <= b.v}; }
IDN_INLINE M eq(F a, F b) { return {a.v == b.v}; }
IDN_INLINE M unordered(F a, F b) { return {a.v != a.v || b.v != b.v}; }
IDN_INLINE M eq(U a, U b) { return {a.v == b.v}; }
IDN_INLINE M both(M a, M b) { return {a.v && b.v}; }
IDN_INLINE M either(M a, M b) { return {a.v || b.v}; }
IDN_INLINE M opposite(M a) { return {!a.v}; }
IDN_INLINE bool any(M a) { return a.v; }
IDN_INLINE F smaller(F a, F b) { return a.v < b.v ? a : b; }
IDN_INLINE F larger(F a, F b) { return a.v > b.v ? a : b; }
IDN_INLINE F select(M m, F yes, F no) { return m.v ? yes : no; }
IDN_INLINE U select(M m, U yes, U no) { return m.v ? yes : no; }

IDN_INLINE D splat64(double a) { return {a}; }
IDN_INLINE D widen(F a) { return {(double)a.v}; }
IDN_INLINE F narrow(D a) { return {idn_nearest(a.v)}; }
IDN_INLINE D widen_integers(U a) { return {(double)(int32_t)a.v}; }
IDN_INLINE D add(D a, D b) { return {idn_add64(a.v, b.v)}; }
IDN_INLINE D sub(D a, D b) { return {idn_sub64(a.v, b.v)}; }
IDN_INLINE D mul(D a, D b) { return {idn_mul64(a.v, b.v)}; }
IDN_INLINE D div(D a, D b) { return {idn_div64(a.v, b.v)}; }
IDN_INLINE D multiply_add(D a, D b, D c) { return {idn_fma64(a.v, b.v, c.v)}; }
IDN_INLINE D scale_by_low_bits(D a, D t) { return {idn_double(idn_bits64(a.v) + (idn_bits64(t.v) << 52))}; }
struct Lookup { uint32_t at; };
IDN_INLINE Lookup look_up_index(U index) { return {index.v}; }
IDN_INLINE D look_up8(const double* table, Lookup index) { return {table[index.at]}; }
IDN_INLINE F look_up8(const float* table, U index) { return {table[index.v & 7]}; }
IDN_INLINE void load_rows4(const float (*table)[4], U index, F columns[4]) {
  const float4 row = *(const float4*)table[index.v];
  columns[0].v = row.x;
  columns[1].v = row.y;
  columns[2].v = row.z;
  columns[3].v = row.w;
}

/* ---- the shared text ------------------------------------------------------------------------------------ */

#include "functions/functions.h"
#include "functions/pair_sigmoid.h"
#include "functions/pair_log.h"
#include "functions/circular.h"
#include "functions/pair_circular.h"

}  // namespace lane

IDN_INLINE float idn_exp(float x) { return lane::exp_of({x}).v; }
IDN_INLINE float idn_log(float x) { return lane::log_in_pairs(x); }
IDN_INLINE float idn_tanh(float x) { return lane::tanh_in_pairs({x}).v; }
/* Zeros are frequent, and no pair is sure of them. */
IDN_INLINE float idn_erf(float x) { return x == 0.0f ? x : lane::erf_of({x}).v; }
IDN_INLINE float idn_sigmoid(float x) { return lane::sigmoid_in_pairs({x}).v; }
IDN_INLINE float idn_sin(float x) { return lane::circular_in_pairs(false, x); }
IDN_INLINE float idn_cos(float x) { return lane::circular_in_pairs(true, x); }

#endif
