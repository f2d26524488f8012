/*
 * Elementwise operators, one launch each: unary, binary, where, cast.             rules: NUM-1 .. NUM-9, OP-2
 *
 * Order   None: each element depends on its own operands only.
 * Shapes  out is contiguous, n elements. unary and cast: x contiguous. binary and where: operands have strides
 *         over the shape (common/cuda_places.h), 0 along what repeats.
 * Launch  Any one-dimensional launch; threads stride over the elements.
 * Twins   reference.py (definition), cpu.cpp, cpu_rows.h, cpu_cast.cpp. What a chain computes of the same
 *         operators comes from cuda/chain.py.
 */
#include "common/cuda_places.h"
#include "elementwise/cuda.h"

/* ---- unary ---------------------------------------------------------------------------------- */

#define IDN_UNARY(NAME, T)                                                                              \
  extern "C" __global__ void unary_##NAME(T* __restrict__ out, const T* __restrict__ x, long long n) {  \
    IDN_ROLLED                                                                                          \
    for (long long i = idn_thread(); i < n; i += idn_threads()) out[i] = idn_clean(of_##NAME(x[i]));    \
  }
IDN_UNARY(neg, float)
IDN_UNARY(abs, float)
IDN_UNARY(exp, float)
IDN_UNARY(log, float)
IDN_UNARY(tanh, float)
IDN_UNARY(erf, float)
IDN_UNARY(sigmoid, float)
IDN_UNARY(sqrt, float)
IDN_UNARY(rsqrt, float)
IDN_UNARY(sin, float)
IDN_UNARY(cos, float)
IDN_UNARY(not, Bool)

/* ---- binary --------------------------------------------------------------------------------- */

#define IDN_PLACES(OPERANDS)                                                                            \
  long long n, long long rank, const __grid_constant__ Words<IDN_AXES> lengths,                       \
      const __grid_constant__ Words<IDN_AXES> multipliers, const __grid_constant__ Words<IDN_AXES * OPERANDS> steps

/* Which operator, by its number among those of its kind; the same for all threads. */
template <class T>
IDN_INLINE T idn_number(long long op, T a, T b) {
  switch (op) {
    case 0: return of_add(a, b);
    case 1: return of_sub(a, b);
    case 2: return of_mul(a, b);
    case 3: return of_maximum(a, b);
    default: return of_minimum(a, b);
  }
}
IDN_INLINE float idn_number_of_floats(long long op, float a, float b) { return op == 5 ? of_div(a, b) : idn_number(op, a, b); }

template <class T>
IDN_INLINE Bool idn_comparison(long long op, T a, T b) {
  switch (op) {
    case 0: return of_eq(a, b);
    case 1: return of_ne(a, b);
    case 2: return of_lt(a, b);
    case 3: return of_le(a, b);
    case 4: return of_gt(a, b);
    default: return of_ge(a, b);
  }
}

IDN_INLINE Bool idn_logic(long long op, Bool a, Bool b) {
  switch (op) {
    case 0: return of_eq(a, b);
    case 1: return of_ne(a, b);
    case 2: return of_and(a, b);
    default: return of_or(a, b);
  }
}

#define IDN_BINARY(NAME, FUNCTION, T, OUT)                                                              \
  extern "C" __global__ void NAME(OUT* __restrict__ out, const T* __restrict__ a, const T* __restrict__ b, \
                                  long long op, IDN_PLACES(2)) {                                        \
    IDN_ROLLED                                                                                          \
    for (long long i = idn_thread(); i < n; i += idn_threads()) {                                       \
      long long at[2];                                                                                  \
      idn_offsets(i, rank, lengths, multipliers, steps, at);                                            \
      out[i] = idn_clean(FUNCTION(op, a[at[0]], b[at[1]]));                                             \
    }                                                                                                   \
  }
IDN_BINARY(number_f32, idn_number_of_floats, float, float)
IDN_BINARY(number_i64, idn_number, int64_t, int64_t)
IDN_BINARY(number_i32, idn_number, int32_t, int32_t)
IDN_BINARY(comparison_f32, idn_comparison, float, Bool)
IDN_BINARY(comparison_i64, idn_comparison, int64_t, Bool)
IDN_BINARY(comparison_i32, idn_comparison, int32_t, Bool)
IDN_BINARY(logic_bool, idn_logic, Bool, Bool)

/* ---- where ---------------------------------------------------------------------------------- */

#define IDN_WHERE(BYTES, T)                                                                              \
  extern "C" __global__ void where_##BYTES(T* __restrict__ out, const Bool* __restrict__ c,              \
                                           const T* __restrict__ a, const T* __restrict__ b, IDN_PLACES(3)) { \
    IDN_ROLLED                                                                                          \
    for (long long i = idn_thread(); i < n; i += idn_threads()) {                                        \
      long long at[3];                                                                                   \
      idn_offsets(i, rank, lengths, multipliers, steps, at);                                             \
      out[i] = of_where(c[at[0]], a[at[1]], b[at[2]]);                                                   \
    }                                                                                                    \
  }
IDN_WHERE(1, uint8_t)
IDN_WHERE(2, uint16_t)
IDN_WHERE(4, uint32_t)
IDN_WHERE(8, uint64_t)

/* ---- cast ----------------------------------------------------------------------------------- */

#define IDN_CAST(FROM, T, TO, OUT)                                                                      \
  extern "C" __global__ void cast_##FROM##_##TO(OUT* __restrict__ out, const T* __restrict__ x, long long n) { \
    IDN_ROLLED                                                                                          \
    for (long long i = idn_thread(); i < n; i += idn_threads()) out[i] = Conversion<OUT>::of(x[i]);     \
  }
#define IDN_CASTS(TO, OUT)          \
  IDN_CAST(f32, float, TO, OUT)     \
  IDN_CAST(i64, int64_t, TO, OUT)   \
  IDN_CAST(i32, int32_t, TO, OUT)   \
  IDN_CAST(u8, uint8_t, TO, OUT)    \
  IDN_CAST(bool, Bool, TO, OUT)     \
  IDN_CAST(bf16, Bfloat16, TO, OUT)
IDN_CASTS(f32, float)
IDN_CASTS(i64, int64_t)
IDN_CASTS(i32, int32_t)
IDN_CASTS(u8, uint8_t)
IDN_CASTS(bool, Bool)
IDN_CASTS(bf16, Bfloat16)
