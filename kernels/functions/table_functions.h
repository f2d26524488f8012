/*
 * exp and erf in pairs of binary32, with tables of 32 numbers that a register instruction looks up.   rules: NUM-7, NUM-8
 *
 * Method   as in functions/pair_functions.h: a bound of the pair's error is added and taken away before rounding,
 *          and where the two disagree, binary64 decides. A step of the tables is so small that only the leading
 *          terms need a rest.
 * Proof    tests/kernels/native/exhaustive.cpp runs all 2^32 operands through each path.
 *
 * Included by functions/functions.h on paths with look_up32.
 */

/* 1.5 * 2^20: adding it rounds to a multiple of 1 / 8. */
constexpr float ROUNDER_TO_8THS = 0x1.8p20f;

/* log(2) / 32 as a number of 21 bits and the rest, and its inverse. */
constexpr float EXP_STEP = 0x1.62e43p-6f;
constexpr float EXP_STEP_REST = -0x1.05c61p-34f;
constexpr float EXP_STEP_INVERSE = 0x1.715476p+5f;

/* t = 2^(j/32) rounded once from 200 bits, as its bits less j 2^18; and j log(2) / 32 - log(t). */
alignas(64) IDN_TABLE uint32_t EXP_POWERS[32] = {
    0x3f800000u, 0x3f7ecd87u, 0x3f7daac3u, 0x3f7c980fu, 0x3f7b95c2u, 0x3f7aa43au,
    0x3f79c3d3u, 0x3f78f4f0u, 0x3f7837f0u, 0x3f778d3au, 0x3f76f532u, 0x3f767043u,
    0x3f75fed7u, 0x3f75a15bu, 0x3f75583fu, 0x3f7523f6u, 0x3f7504f3u, 0x3f74fbafu,
    0x3f7508a4u, 0x3f752c4du, 0x3f75672au, 0x3f75b9beu, 0x3f76248cu, 0x3f76a81eu,
    0x3f7744fdu, 0x3f77fbb8u, 0x3f78ccdfu, 0x3f79b907u, 0x3f7ac0c7u, 0x3f7be4bau,
    0x3f7d257du, 0x3f7e83b3u,
};
alignas(64) IDN_TABLE float EXP_RESTS[32] = {
    0.0f, -0x1.947416p-25f, 0x1.8d96d4p-25f, -0x1.dda2fep-25f, -0x1.9c0c22p-27f, -0x1.a2fbb4p-25f,
    0x1.964902p-25f, -0x1.2b0dbcp-25f, 0x1.125002p-25f, -0x1.cde8cep-26f, 0x1.370be4p-25f, 0x1.336de2p-30f,
    -0x1.0a3552p-25f, -0x1.c541b6p-26f, -0x1.00d8acp-27f, -0x1.6cb284p-25f, 0x1.26055cp-26f, 0x1.8b2bb8p-26f,
    -0x1.05cb44p-25f, -0x1.1c2142p-26f, 0x1.67a1cap-28f, -0x1.348e56p-25f, 0x1.a3b5e4p-28f, -0x1.0b7ec8p-25f,
    -0x1.f9c306p-27f, -0x1.e4c886p-26f, -0x1.6961b4p-28f, -0x1.b5151ep-28f, -0x1.a5217cp-28f, -0x1.ab7132p-26f,
    0x1.61428ep-28f, -0x1.2ad5f8p-27f,
};

/*
 * Around r = j/8: erf(r) and c = 2 / sqrt(pi) e^(-r^2), each as the nearest number and the rest, and the polynomial h, ascending,
 * in erf(r + d) = erf(r) + c (d - r d^2 + d^3 h(d)). Interpolated at Chebyshev nodes of |d| <= 1/16.
 */
alignas(64) IDN_TABLE float ERF_VALUES[32] = {
    0.0f, 0x1.1f5e1ap-3f, 0x1.1af54ep-2f, 0x1.9dd0d2p-2f, 0x1.0a7ef6p-1f, 0x1.3f196ep-1f,
    0x1.6c1c98p-1f, 0x1.91724ap-1f, 0x1.af767ap-1f, 0x1.c6dad2p-1f, 0x1.d8865ep-1f, 0x1.e5768cp-1f,
    0x1.eea556p-1f, 0x1.f4f694p-1f, 0x1.f92d08p-1f, 0x1.fbe61ep-1f, 0x1.fd9ae2p-1f, 0x1.fea422p-1f,
    0x1.ff4048p-1f, 0x1.ff996p-1f, 0x1.ffcaa8p-1f, 0x1.ffe514p-1f, 0x1.fff2dp-1f, 0x1.fff9bap-1f,
    0x1.fffd1ap-1f, 0x1.fffeb4p-1f, 0x1.ffff7p-1f, 0x1.ffffc4p-1f, 0x1.ffffe8p-1f, 0x1.fffff6p-1f,
    0x1.fffffcp-1f, 0x1.fffffep-1f,
};
alignas(64) IDN_TABLE float ERF_VALUE_RESTS[32] = {
    0.0f, 0x1.ae1dc4p-30f, 0x1.196b04p-29f, 0x1.6e43e8p-27f, -0x1.f38916p-28f, -0x1.978766p-28f,
    -0x1.4c5e34p-26f, -0x1.5c8e08p-26f, 0x1.d04222p-27f, 0x1.053d8cp-26f, -0x1.9d508p-27f, 0x1.da51fep-28f,
    -0x1.1d90a4p-26f, -0x1.2610a2p-27f, -0x1.00e552p-26f, 0x1.de99eep-26f, -0x1.7b0d44p-26f, -0x1.ca69aep-27f,
    -0x1.3f9ccap-26f, 0x1.e7d664p-26f, 0x1.e9937ep-26f, 0x1.77b832p-26f, -0x1.3eeb0ap-27f, 0x1.083a0ep-27f,
    0x1.8826cp-26f, -0x1.44d984p-29f, -0x1.82606ap-27f, -0x1.d24c26p-26f, -0x1.de5534p-26f, 0x1.8c3da6p-29f,
    0x1.78b8f2p-28f, 0x1.259db2p-26f,
};
alignas(64) IDN_TABLE float ERF_SLOPES[32] = {
    0x1.20dd76p+0f, 0x1.1c62fap+0f, 0x1.0f5d16p+0f, 0x1.f5f0cep-1f, 0x1.c1efcap-1f, 0x1.86e96ap-1f,
    0x1.492e42p-1f, 0x1.0cab62p-1f, 0x1.a911fp-2f, 0x1.45e99cp-2f, 0x1.e4653p-3f, 0x1.5ce596p-3f,
    0x1.e72372p-4f, 0x1.499d48p-4f, 0x1.b0553p-5f, 0x1.12ceb4p-5f, 0x1.529b9ep-6f, 0x1.94624ep-7f,
    0x1.d4143ap-8f, 0x1.06918cp-8f, 0x1.1d8318p-9f, 0x1.2ce898p-10f, 0x1.3360ccp-11f, 0x1.30539p-12f,
    0x1.2408eap-13f, 0x1.0f9e1cp-14f, 0x1.e9b5e8p-16f, 0x1.abe09ep-17f, 0x1.6a5972p-18f, 0x1.296a7p-19f,
    0x1.d9371ep-21f, 0x1.6ce1aap-22f,
};
alignas(64) IDN_TABLE float ERF_SLOPE_RESTS[32] = {
    -0x1.f7ac92p-25f, 0x1.e869b6p-28f, 0x1.7bf206p-31f, -0x1.43ab3cp-27f, 0x1.269404p-27f, -0x1.7d968cp-26f,
    0x1.af1a58p-26f, -0x1.ef68dap-30f, 0x1.2df784p-27f, -0x1.a24376p-29f, -0x1.48d254p-29f, -0x1.dd527ap-30f,
    0x1.ae092ap-30f, -0x1.d0d632p-30f, 0x1.91080ap-32f, -0x1.000c88p-30f, 0x1.19f344p-31f, 0x1.e383ecp-33f,
    0x1.3bfd2cp-33f, -0x1.39553cp-33f, -0x1.e0812p-34f, 0x1.01248ap-35f, 0x1.a47b68p-36f, -0x1.12204cp-38f,
    -0x1.17336p-39f, -0x1.645924p-39f, 0x1.a019cep-41f, 0x1.22896cp-42f, 0x1.9a93dap-46f, 0x1.e8280ap-44f,
    0x1.7fbe1ap-48f, 0x1.febdeep-49f,
};
alignas(64) IDN_TABLE float ERF_CUBIC[4][32] = {
    {
     -0x1.555556p-2f, -0x1.4aaaa8p-2f, -0x1.2aaaa8p-2f, -0x1.eaaaaap-3f, -0x1.555556p-3f, -0x1.2aaab4p-4f, 0x1.555538p-5f, 0x1.6aaaa2p-3f,
     0x1.55555p-2f, 0x1.055554p-1f, 0x1.6aaaaap-1f, 0x1.daaaacp-1f, 0x1.2aaaacp+0f, 0x1.6d5558p+0f, 0x1.b5555ap+0f, 0x1.015558p+1f,
     0x1.2aaaaep+1f, 0x1.56aaaep+1f, 0x1.855556p+1f, 0x1.b6aaaap+1f, 0x1.eaaaa6p+1f, 0x1.10aaa6p+2f, 0x1.2d554cp+2f, 0x1.4b5546p+2f,
     0x1.6aaa94p+2f, 0x1.8b5534p+2f, 0x1.ad5526p+2f, 0x1.d0aa6ap+2f, 0x1.f555p+2f, 0x1.0daa72p+3f, 0x1.21550cp+3f, 0x1.35aa4cp+3f,
    },
    {
     -0x1.854cb2p-20f, 0x1.faaaa6p-5f, 0x1.eaaaa6p-4f, 0x1.5bfffep-3f, 0x1.aaaaa8p-3f, 0x1.d95554p-3f, 0x1.ep-3f, 0x1.b6aaacp-3f,
     0x1.555558p-3f, 0x1.68000ap-4f, -0x1.aaaa7ap-6f, -0x1.6eaaa4p-3f, -0x1.7ffffep-2f, -0x1.3c5554p-1f, -0x1.d2aaacp-1f, -0x1.428002p+0f,
     -0x1.aaaaaep+0f, -0x1.116aacp+1f, -0x1.560002p+1f, -0x1.a39558p+1f, -0x1.faaaacp+1f, -0x1.2dep+2f, -0x1.63aaaap+2f, -0x1.9ef552p+2f,
     -0x1.dffff8p+2f, -0x1.13854ep+3f, -0x1.3a2aap+3f, -0x1.640feep+3f, -0x1.91553cp+3f, -0x1.c21a86p+3f, -0x1.f67fcep+3f, -0x1.175288p+4f,
    },
    {
     0x1.9a134ap-4f, 0x1.7fc9b6p-4f, 0x1.3516e8p-4f, 0x1.7bd264p-5f, 0x1.11da58p-7f, -0x1.258d04p-5f, -0x1.52bdd6p-4f, -0x1.060cccp-3f,
     -0x1.550a98p-3f, -0x1.8a5bcap-3f, -0x1.98691cp-3f, -0x1.6fffeep-3f, -0x1.005194p-3f, -0x1.b794cap-6f, 0x1.002612p-3f, 0x1.5d5p-2f,
     0x1.43f08ep-1f, 0x1.030e8ap+0f, 0x1.7de7ecp+0f, 0x1.0b04f8p+1f, 0x1.67974ap+1f, 0x1.d6a244p+1f, 0x1.2d1bd4p+2f, 0x1.7a41e2p+2f,
     0x1.d3e6bap+2f, 0x1.1d9d96p+3f, 0x1.58bebap+3f, 0x1.9bfc9ep+3f, 0x1.e803dcp+3f, 0x1.1ec3eep+4f, 0x1.4ea16ap+4f, 0x1.83faecp+4f,
    },
    {
     -0x1.859d36p-9f, -0x1.4debf4p-6f, -0x1.38f3b2p-5f, -0x1.a25542p-5f, -0x1.d21f8ap-5f, -0x1.bb54bcp-5f, -0x1.56491p-5f, -0x1.43ef98p-6f,
     0x1.6a9dfep-7f, 0x1.8f4b44p-5f, 0x1.7080eep-4f, 0x1.0a36bep-3f, 0x1.4ca41cp-3f, 0x1.6ecb9cp-3f, 0x1.5beec2p-3f, 0x1.f5ee8p-4f,
     0x1.71035ap-6f, -0x1.2d5f7ap-3f, -0x1.9fd71cp-2f, -0x1.8da936p-1f, -0x1.48c4e4p+0f, -0x1.f50f6ap+0f, -0x1.69ea26p+1f, -0x1.f70bp+1f,
     -0x1.53711ep+2f, -0x1.bf720ep+2f, -0x1.2141b2p+3f, -0x1.6ff1fap+3f, -0x1.cd8c8ep+3f, -0x1.1dfc6ap+4f, -0x1.5ea22ap+4f, -0x1.a9d20ep+4f,
    },
};

/*
 * e^x = 2^(n/32) e^r e^rest, r = x - n EXP_STEP exactly and |r| <= log(2) / 64. With b = e^r - 1 - r < 2^-13.9, the
 * roundings of b and of rest are below 2^-37 of the result, and so is r^5 / 120, which the series leaves out.
 */
IDN_INLINE Settled exp_by_pairs(F x) {
  const F t = fma(x, splat(EXP_STEP_INVERSE), splat(ROUNDER_TO_ONES));
  const F n = sub(t, splat(ROUNDER_TO_ONES));
  const U at = bits(t);
  const F r = fnma(n, splat(EXP_STEP), x);
  const F rest = fnma(n, splat(EXP_STEP_REST), look_up32(EXP_RESTS, at));
  /* The table lacks what the low five bits of n add to the exponent field and below it. */
  const F power = floats(look_up32(EXP_POWERS, at) + shift_left<18>(at));
  const F series = fma(r, fma(r, splat(0x1.555556p-5f), splat(0x1.555562p-3f)), splat(0.5f));
  const F b = fma(mul(r, r), series, fma(r, rest, rest));
  const F high = fma(power, r, power);
  const F low = fma(power, b, fma(power, r, sub(power, high)));
  const F error = floats(bits(power) - splat_bits(36u << 23));
  const F value = add(high, add(low, error));
  const M same = eq(value, add(high, sub(low, error)));
  return {value, both(same, le(absolute(x), splat(60.0f)))};
}

/*
 * erf(r + d), r the nearest multiple of 1/8: r d is exact. The cubic part has six roundings, so its error is below 2^-21
 * of it; those of the other parts, and what the series leaves out, are below 2^-36 of the result. From 3.93 on erf is 1.
 */
IDN_INLINE Settled erf_by_pairs(F x) {
  /* A NaN stays one, and makes no lane sure. */
  const F a = smaller(splat(3.93f), absolute(x));
  const F t = add(a, splat(ROUNDER_TO_8THS));
  const F r = sub(t, splat(ROUNDER_TO_8THS));
  const F d = sub(a, r);
  const U at = bits(t);
  F h = look_up32(ERF_CUBIC[3], at);
IDN_UNROLL(4)
  for (int i = 2; i >= 0; --i) h = fma(d, h, look_up32(ERF_CUBIC[i], at));
  /* linear + linear_rest = d - r d^2 exactly. */
  const F bend = mul(r, d);
  const F linear = fnma(bend, d, d), linear_rest = fnma(bend, d, sub(d, linear));
  const F slope = look_up32(ERF_SLOPES, at), start = look_up32(ERF_VALUES, at);
  const F high = fma(slope, linear, start);
  const F cubic = mul(slope, fma(mul(d, d), mul(d, h), linear_rest));
  const F rests = fma(look_up32(ERF_SLOPE_RESTS, at), linear, look_up32(ERF_VALUE_RESTS, at));
  const F low = add(fma(slope, linear, sub(start, high)), add(cubic, rests));
  const F error = fma(absolute(cubic), splat(0x1p-21f), fma(high, splat(0x1p-36f), splat(0x1p-120f)));
  const F value = add(high, add(low, error));
  return {with_sign_of(value, x), eq(value, add(high, sub(low, error)))};
}
