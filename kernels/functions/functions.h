/*
 * exp, log, tanh, erf, sigmoid: the binary32 number nearest to the true value.   rules: NUM-2, NUM-7, NUM-8
 *
 * Method   reduction and polynomial in binary64 (relative error below 2^-51), rounded once. Where a
 *          true value lies so near the middle between two binary32 numbers that this goes wrong, the
 *          operand stands in a table here. Fused or not, the result is the same for every operand.
 * Proof    tests/kernels/native/exhaustive.cpp runs all 2^32 operands through each path.
 *
 * Included by native/path_body.h inside the namespace of a path, and by functions/cuda.h for a thread's one lane.
 */

#include "functions/coefficients.h"

IDN_INLINE F absolute(F x) { return floats(bits(x) & splat_bits(0x7fffffffu)); }
IDN_INLINE F with_sign_of(F magnitude, F x) { return floats(bits(magnitude) | (bits(x) & splat_bits(0x80000000u))); }
IDN_INLINE F not_a_number() { return floats(splat_bits(IDN_NAN_BITS)); }
/* x where it is at most high (or NaN: high); x where it is at least low. */
IDN_INLINE F at_most(F x, float high) { return smaller(x, splat(high)); }
IDN_INLINE F at_least(F x, float low) { return larger(x, splat(low)); }

/* e^x = 2^n (1 + p) for |x| < 200: fills n as a binary64 whose low bits hold it, and p in (-0.3, 0.42). */
struct Exponential { D scale, p; };

IDN_INLINE Exponential exponential(D x) {
  const D t = multiply_add(x, splat64(LOG2_INVERSE), splat64(ROUNDER));
  const D n = sub(t, splat64(ROUNDER));
  const D r = multiply_add(n, splat64(-LOG2_LOW), multiply_add(n, splat64(-LOG2_HIGH), x));
  D q = splat64(EXP_TERMS[9]);
IDN_UNROLL(16)
  for (int i = 8; i >= 0; --i) q = multiply_add(q, r, splat64(EXP_TERMS[i]));
  return {t, multiply_add(mul(r, r), q, r)};
}

IDN_INLINE F exp_by_doubles(F x) {
  const Exponential e = exponential(widen(at_least(at_most(x, 89.0f), -105.0f)));
  const F y = narrow(scale_by_low_bits(add(e.p, splat64(1.0)), e.scale));
  return select(unordered(x, x), not_a_number(), y);
}

IDN_INLINE F log_of(F x) {
  const M subnormal = lt(x, splat(0x1p-126f));
  const F scaled = select(subnormal, mul(x, splat(0x1p23f)), x);
  /* x = 2^e m with m in [sqrt(1/2), sqrt(2)). */
  const U shifted = bits(scaled) - splat_bits(0x3f3504f3u);
  const U e = shift_sign<23>(shifted) - select(subnormal, splat_bits(23), splat_bits(0));
  const F m = floats((shifted & splat_bits(0x7fffffu)) + splat_bits(0x3f3504f3u));
  const D f = widen(sub(m, splat(1.0f)));
  const D s = div(f, add(f, splat64(2.0)));
  const D z = mul(s, s);
  D q = splat64(LOG_TERMS[8]);
IDN_UNROLL(16)
  for (int i = 7; i >= 0; --i) q = multiply_add(q, z, splat64(LOG_TERMS[i]));
  const D l = multiply_add(mul(s, z), q, add(s, s));
  const D n = widen_integers(e);
  U y = bits(narrow(multiply_add(n, splat64(LOG2_HIGH), multiply_add(n, splat64(LOG2_LOW), l))));
  /* NUM-7: the operands whose logarithm binary64 rounds onto the middle of two binary32 numbers. */
  constexpr uint32_t HARD[5][2] = {{0x3c413d3au, 0xc08e158fu}, {0x41178febu, 0x400fe5e7u}, {0x4c5d65a5u, 0x418f034bu},
                                   {0x65d890d3u, 0x4254d1f9u}, {0x6f31a8ecu, 0x42845a89u}};
IDN_UNROLL(8)
  for (int i = 0; i < 5; ++i) y = select(eq(bits(x), splat_bits(HARD[i][0])), splat_bits(HARD[i][1]), y);
  /* NUM-8: log(+-0) = -inf, log(+inf) = +inf, below zero NaN. */
  const F infinity = floats(splat_bits(0x7f800000u));
  F result = select(eq(x, splat(0.0f)), floats(splat_bits(0xff800000u)), floats(y));
  result = select(eq(x, infinity), infinity, result);
  return select(either(lt(x, splat(0.0f)), unordered(x, x)), not_a_number(), result);
}

/* tanh x = y / (y + 2) with y = e^(2|x|) - 1. */
IDN_INLINE F tanh_of(F x) {
  const D a = widen(at_most(absolute(x), 10.0f));
  const Exponential e = exponential(add(a, a));
  const D scale = scale_by_low_bits(splat64(1.0), e.scale);
  const D y = multiply_add(scale, e.p, sub(scale, splat64(1.0)));
  const F v = with_sign_of(narrow(div(y, add(y, splat64(2.0)))), x);
  return select(unordered(x, x), not_a_number(), v);
}

/* erf(a) for 0 <= a < 4 where a table is cheap: a g(a), g by one of eight polynomials. */
IDN_INLINE F erf_by_eighths(F a) {
  /* floor(2 a): the integer stands in the low bits of 2 a - 1/2 + 1.5 * 2^23, and which side of a border does not matter. */
  const F t = add(sub(add(a, a), splat(0.5f)), splat(0x1.8p23f));
  const U eighth = bits(t) & splat_bits(7);
  const D middle = widen(add(mul(sub(t, splat(0x1.8p23f)), splat(0.5f)), splat(0.25f)));
  const D d = widen(a);
  const D u = sub(d, middle);
  const Lookup at = look_up_index(eighth);
  D q = look_up8(ERF_TERMS[13], at);
IDN_UNROLL(16)
  for (int i = 12; i >= 0; --i) q = multiply_add(q, u, look_up8(ERF_TERMS[i], at));
  return narrow(mul(q, d));
}

/* The same where it is not: a polynomial below 1, and 1 - e^(-a^2) (e^(a^2) erfc a) from there on. */
IDN_INLINE F erf_by_halves(F a) {
  const D d = widen(a);
  const D z = mul(d, d);
  D p = splat64(ERF_SMALL_TERMS[11]);
IDN_UNROLL(16)
  for (int i = 10; i >= 0; --i) p = multiply_add(p, z, splat64(ERF_SMALL_TERMS[i]));
  const D w = sub(div(splat64(1.0), add(d, splat64(2.5))), splat64(0.21875));
  D q = splat64(ERFC_TERMS[12]);
IDN_UNROLL(16)
  for (int i = 11; i >= 0; --i) q = multiply_add(q, w, splat64(ERFC_TERMS[i]));
  const Exponential e = exponential(sub(splat64(0.0), z));
  const D power = scale_by_low_bits(add(e.p, splat64(1.0)), e.scale);
  const F far = narrow(sub(splat64(1.0), mul(power, q)));
  return select(lt(a, splat(1.0f)), narrow(mul(p, d)), far);
}

/* 1 from 3.999 on. */
IDN_INLINE F erf_by_doubles(F x) {
  const F a = absolute(x);
  const F inside = at_most(a, 3.999f);
  F v;
  if constexpr (FAST_LOOK_UP) {
    v = erf_by_eighths(inside);
  } else {
    v = erf_by_halves(inside);
  }
  v = with_sign_of(select(lt(a, splat(3.999f)), v, splat(1.0f)), x);
  return select(unordered(x, x), not_a_number(), v);
}

#if defined(IDN_FLOAT_TABLES) || defined(IDN_TABLES_OF_32)

/* A result and the lanes in which it is known to be rounded right. */
struct Settled { F value; M is_sure; };

/* 1.5 * 2^23: adding it rounds to an integer, which then stands in the low bits. */
constexpr float ROUNDER_TO_ONES = 0x1.8p23f;

#ifdef IDN_FLOAT_TABLES
#include "functions/pair_functions.h"
#else
#include "functions/table_functions.h"
#endif

/* e^x where a lane was not sure; many lanes are -inf where attention is masked. */
IDN_NOINLINE F exp_with_care(F x) {
  const M vanishes = lt(x, splat(-104.0f));
  if (!any(vanishes)) return exp_by_doubles(x);
  if (!any(opposite(vanishes))) return splat(0.0f);
  const Settled found = exp_by_pairs(select(vanishes, splat(0.0f), x));
  if (any(opposite(found.is_sure))) return exp_by_doubles(x);
  return select(vanishes, splat(0.0f), found.value);
}

IDN_INLINE F exp_of(F x) {
  const Settled found = exp_by_pairs(x);
  if (__builtin_expect(any(opposite(found.is_sure)), 0)) return exp_with_care(x);
  return found.value;
}

IDN_NOINLINE F erf_with_care(F x) { return erf_by_doubles(x); }

IDN_INLINE F erf_of(F x) {
  const Settled found = erf_by_pairs(x);
  if (__builtin_expect(any(opposite(found.is_sure)), 0)) return erf_with_care(x);
  return found.value;
}

#else
IDN_INLINE F exp_of(F x) { return exp_by_doubles(x); }
IDN_INLINE F erf_of(F x) { return erf_by_doubles(x); }
#endif

/*
 * sigmoid x = 1 / (1 + e^-x). Near zero it is 1/2 + x/4 - x^3/48: the cube is too small for binary64
 * but decides where 1/2 + x/4 is a middle, so it is kept at least as large as one last place.
 */
IDN_INLINE F sigmoid_of(F x) {
  const D d = widen(at_least(at_most(x, 60.0f), -110.0f));
  const Exponential e = exponential(sub(splat64(0.0), d));
  const D power = scale_by_low_bits(add(e.p, splat64(1.0)), e.scale);
  F y = narrow(div(splat64(1.0), add(splat64(1.0), power)));
  const M small = lt(absolute(x), splat(0x1p-13f));
  if (any(small)) {
    const F least = with_sign_of(splat(0x1p-53f), x);
    const F cube = mul(mul(x, x), mul(x, splat(0x1.555556p-6f)));
    const F bend = select(lt(absolute(cube), splat(0x1p-53f)), least, cube);
    const F near = narrow(sub(multiply_add(widen(x), splat64(0.25), splat64(0.5)), widen(bend)));
    y = select(small, near, y);
  }
  /* NUM-7: the one operand whose sigmoid binary64 rounds to the wrong side of the middle. */
  y = select(eq(bits(x), splat_bits(0xba928601u)), floats(splat_bits(0x3effdb5fu)), y);
  return select(unordered(x, x), not_a_number(), y);
}
