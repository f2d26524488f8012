/*
 * tanh and sigmoid in pairs of binary32, for devices with little binary64.                  rules: NUM-7, NUM-8
 *
 * Method   as in functions/pair_functions.h: a pair, a bound of its error added and taken away, and binary64
 *          where the two disagree: one operand in 2,600 between 1/100 and 10, fewer elsewhere.
 * Check    tests/kernels/native/exhaustive.cpp runs all 2^32 operands.
 *
 * Included by functions/cuda.h after functions/functions.h.
 */

struct Pair { F high, low; };

/* 1 / (1 + e^z) for |z| <= 60, off by less than 2^-36 of itself. */
IDN_INLINE Pair share(F z) {
  const ExponentialPair e = exponential_pair(z);
  const F scale = floats(splat_bits(0x3f800000u) + shift_left<23>(shift_right<3>(e.at)));
  const F whole = add(e.high, e.low);
  const F high = mul(whole, scale), low = mul(sub(e.low, sub(whole, e.high)), scale);
  const F one = splat(1.0f);
  const F sum = add(one, high);
  const F rest = add(sub(smaller(high, one), sub(sum, larger(high, one))), low);
  /* 1 / (sum + rest) = q (1 + bend), with the square of bend left out. */
  const F q = div(one, sum);
  const F bend = fma(opposite(q), rest, fma(opposite(q), sum, one));
  return {q, mul(q, bend)};
}

IDN_INLINE Settled settled(F high, F low, F error) {
  const F value = add(high, add(low, error));
  return {value, eq(value, add(high, sub(low, error)))};
}

/* From 60 on it is 1, as at 60. Below -60, and a NaN, are not sure. */
IDN_INLINE Settled sigmoid_by_pairs(F x) {
  const Pair s = share(opposite(at_most(x, 60.0f)));
  const Settled found = settled(s.high, s.low, mul(s.high, splat(0x1p-36f)));
  return {found.value, both(found.is_sure, le(splat(-60.0f), x))};
}

/* a - a^3 / 3 + 2 a^5 / 15 ... for 0 <= a < 1/8; all but the first two terms need binary32 only. */
IDN_INLINE Settled small_tanh_by_pairs(F a) {
  const F z = mul(a, a);
  const F z_rest = fma(a, a, opposite(z));
  const F tail = fma(z, fma(z, fma(z, splat(-0x1.226e36p-7f), splat(0x1.664f48p-6f)), splat(-0x1.ba1ba2p-5f)), splat(0x1.111112p-3f));
  const F t = mul(z, tail);
  const F third = splat(-0x1.555556p-2f);
  const F g = add(third, t);
  const F g_rest = add(sub(t, sub(g, third)), splat(0x1.555556p-27f));
  const F w = mul(z, g);
  const F w_rest = add(fma(z, g, opposite(w)), fma(z, g_rest, mul(z_rest, g)));
  const F c = mul(a, w);
  const F c_rest = fma(a, w_rest, fma(a, w, opposite(c)));
  const F high = add(a, c);
  return settled(high, add(sub(c, sub(high, a)), c_rest), mul(high, splat(0x1p-36f)));
}

/* 1 - 2 / (1 + e^(2a)) for 1/8 <= a <= 10, and 1 from there on. */
IDN_INLINE Settled large_tanh_by_pairs(F a) {
  const F inside = smaller(splat(10.0f), a);
  const Pair s = share(add(inside, inside));
  const F twice = add(s.high, s.high);
  const F high = sub(splat(1.0f), twice);
  const F low = sub(sub(sub(splat(1.0f), high), twice), add(s.low, s.low));
  return settled(high, low, splat(0x1p-37f));
}

IDN_NOINLINE F tanh_with_care(F x) { return tanh_of(x); }
IDN_NOINLINE F sigmoid_with_care(F x) {
  if (any(lt(x, splat(-104.0f)))) return splat(0.0f);
  return sigmoid_of(x);
}

IDN_INLINE F tanh_in_pairs(F x) {
  const F a = absolute(x);
  const Settled found = any(lt(a, splat(0.125f))) ? small_tanh_by_pairs(a) : large_tanh_by_pairs(a);
  return any(found.is_sure) ? with_sign_of(found.value, x) : tanh_with_care(x);
}

IDN_INLINE F sigmoid_in_pairs(F x) {
  const Settled found = sigmoid_by_pairs(x);
  return any(found.is_sure) ? found.value : sigmoid_with_care(x);
}
