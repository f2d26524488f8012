/*
 * exp and erf in pairs of binary32: a nearest number and a rest, eight lanes at a time.   rules: NUM-7, NUM-8
 *
 * Method   The error of a pair is far below half a last place of the result, and a bound of it is added
 *          and taken away before rounding. Where both ways round to one number, that is the nearest
 *          number to the true value. Elsewhere, a vector in about a thousand, and for operands outside the
 *          usual range, the function of binary64 decides.
 * Proof    tests/kernels/native/exhaustive.cpp runs all 2^32 operands through each path.
 *
 * Included by functions/functions.h on paths with tables of binary32.
 */

#include "functions/pairs.h"

/* 1.5 * 2^16: adding it rounds to a multiple of 1 / 128. */
constexpr float ROUNDER_TO_128THS = 0x1.8p16f;

IDN_INLINE F opposite(F x) { return floats(bits(x) ^ splat_bits(0x80000000u)); }

/* e^x as 2^(n >> 3) (high + low), n in the low bits of at; the sum is in (0.95, 2) and off by less than 2^-37. */
struct ExponentialPair { F high, low; U at; };

/*
 * e^x = 2^(n/8) e^(r + rest), r = x - n EXP_STEP exactly and |r| <= log(2) / 16; the rest has what EXP_STEP
 * and the table's power lack. For |x| <= 87.
 */
IDN_INLINE ExponentialPair exponential_pair(F x) {
  const F t = fma(x, splat(EXP_STEP_INVERSE), splat(ROUNDER_TO_ONES));
  const F n = sub(t, splat(ROUNDER_TO_ONES));
  const U at = bits(t);
  const F r = fma(n, splat(-EXP_STEP), x);
  const F rest = fma(n, splat(-EXP_STEP_REST), look_up8(EXP_RESTS, at));
  const F power = look_up8(EXP_POWERS, at);
  /* u + v = e^r - 1, of which r^2 / 2 = p + q exactly. */
  const F square = mul(r, r), half = mul(r, splat(0.5f));
  const F tail = fma(square, splat(EXP_TAIL[2]), fma(r, splat(EXP_TAIL[1]), splat(EXP_TAIL[0])));
  const F p = mul(half, r);
  const F q = fma(half, r, opposite(p));
  const F u = add(r, p);
  const F v = add(sub(p, sub(u, r)), fma(mul(r, square), tail, q));
  /* high + low = 2^(n mod 8 / 8) (1 + u + v) (1 + rest). */
  const F high = fma(power, u, power);
  return {high, add(fma(power, u, sub(power, high)), fma(power, v, mul(rest, high))), at};
}

IDN_INLINE Settled exp_by_pairs(F x) {
  const ExponentialPair e = exponential_pair(x);
  constexpr float ERROR = 0x1p-37f;
  const F value = add(e.high, add(e.low, splat(ERROR)));
  const M same = eq(value, add(e.high, sub(e.low, splat(ERROR))));
  const F scaled = floats(bits(value) + shift_left<23>(shift_right<3>(e.at)));
  return {scaled, both(same, le(absolute(x), splat(87.0f)))};
}

/*
 * erf(r + d) = erf(r) + s (d - r d^2 + (2 r^2 - 1) / 3 d^3 + (r / 2 - r^3 / 3) d^4 + d^5 / 10 ...)
 * with s = 2 / sqrt(pi) e^(-r^2) and r the nearest multiple of 1/128. A number so small that the rests of its pairs are subnormal is never sure.
 */
IDN_INLINE Settled erf_by_pairs(F x) {
  /* A NaN stays one, and makes no lane sure. */
  const F a = smaller(splat(3.99f), absolute(x));
  const F t = add(a, splat(ROUNDER_TO_128THS));
  const F r = sub(t, splat(ROUNDER_TO_128THS));
  const F d = sub(a, r);
  F row[4];
  load_rows4(ERF_ROWS, bits(t) & splat_bits(511), row);
  const F square = mul(r, r);
  const F fourth = fma(r, fma(square, splat(-0x1.555556p-2f), splat(0.5f)), mul(d, splat(0.1f)));
  const F third = fma(square, splat(0x1.555556p-1f), splat(-0x1.555556p-2f));
  const F bend = mul(mul(d, d), sub(mul(d, fma(d, fourth, third)), r));
  const F high = fma(row[2], d, row[0]);
  const F rest = fma(row[2], d, sub(row[0], high));
  const F low = fma(row[2], bend, add(rest, fma(row[3], d, row[1])));
  const F error = fma(high, splat(0x1.8p-38f), splat(0x1p-120f));
  const F value = add(high, add(low, error));
  return {with_sign_of(value, x), eq(value, add(high, sub(low, error)))};
}
