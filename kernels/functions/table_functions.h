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
 * in erf(r + d) = erf(r) + c (d - r d^2) + d^3 h(d). Interpolated at Chebyshev nodes of |d| <= 1/16.
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
     -0x1.812746p-2f, -0x1.6f552ap-2f, -0x1.3c9742p-2f, -0x1.e106c4p-3f, -0x1.2bf532p-3f, -0x1.c8105ep-5f,
     0x1.b6e834p-6f, 0x1.7c9d6cp-4f, 0x1.1b6148p-3f, 0x1.4cb3ccp-3f, 0x1.571dp-3f, 0x1.4374d8p-3f,
     0x1.1c2a04p-3f, 0x1.d66322p-4f, 0x1.7148c6p-4f, 0x1.143d1ep-4f, 0x1.8b0ae8p-5f, 0x1.0ea478p-5f,
     0x1.63ef64p-6f, 0x1.c1ec1p-7f, 0x1.119d9ep-7f, 0x1.407fb8p-8f, 0x1.69cf3cp-9f, 0x1.89e16ap-10f,
     0x1.9db732p-11f, 0x1.a3735cp-12f, 0x1.9aa45ep-13f, 0x1.8451fap-14f, 0x1.62ccaep-15f, 0x1.394adep-16f,
     0x1.0b6a36p-17f, 0x1.b95f1cp-19f,
    },
    {
     -0x1.b7470ep-20f, 0x1.196c9ap-4f, 0x1.040e88p-3f, 0x1.5529a8p-3f, 0x1.76f27cp-3f, 0x1.6963c6p-3f,
     0x1.349b5ep-3f, 0x1.cc6058p-4f, 0x1.1b614ep-4f, 0x1.ca509p-6f, -0x1.93a97ap-8f, -0x1.f3b8ccp-6f,
     -0x1.6d5a94p-5f, -0x1.974c02p-5f, -0x1.8a0da6p-5f, -0x1.5a3166p-5f, -0x1.1a2c5cp-5f, -0x1.afe556p-6f,
     -0x1.38a986p-6f, -0x1.ae5964p-7f, -0x1.1a89bap-7f, -0x1.62d4c8p-8f, -0x1.ab0c26p-9f, -0x1.ed4ac4p-10f,
     -0x1.11c856p-10f, -0x1.245448p-11f, -0x1.2c7d54p-12f, -0x1.298f7ep-13f, -0x1.1c076p-14f, -0x1.0575f6p-15f,
     -0x1.d06f2ap-17f, -0x1.8e1f92p-18f,
    },
    {
     0x1.ceb87p-4f, 0x1.aa582ap-4f, 0x1.47a3a2p-4f, 0x1.745c02p-5f, 0x1.e15076p-8f, -0x1.c0407cp-6f,
     -0x1.b3933p-5f, -0x1.1304d6p-4f, -0x1.1b233ep-4f, -0x1.f60e66p-5f, -0x1.826414p-5f, -0x1.f589eep-6f,
     -0x1.e7beaep-7f, -0x1.1afe24p-9f, 0x1.b0957ap-8f, 0x1.76f9aap-7f, 0x1.ac7886p-7f, 0x1.99366cp-7f,
     0x1.5d2514p-7f, 0x1.11dee4p-7f, 0x1.910b9p-8f, 0x1.1498e2p-8f, 0x1.698a3cp-9f, 0x1.c1a9b4p-10f,
     0x1.0ae1bcp-10f, 0x1.2f0a38p-11f, 0x1.49bca4p-12f, 0x1.584becp-13f, 0x1.595ffcp-14f, 0x1.4d288ap-15f,
     0x1.354824p-16f, 0x1.147f64p-17f,
    },
    {
     -0x1.b7a1e8p-9f, -0x1.72f2dcp-6f, -0x1.4bbbc4p-5f, -0x1.9a1d2ep-5f, -0x1.999ef8p-5f, -0x1.527ba6p-5f,
     -0x1.b821cp-6f, -0x1.53f7bp-7f, 0x1.2d0cdap-8f, 0x1.fc56ecp-7f, 0x1.5ca2b6p-6f, 0x1.6ad12ap-6f,
     0x1.3c7d2p-6f, 0x1.d84504p-7f, 0x1.25cb58p-7f, 0x1.0d6746p-8f, 0x1.e816bep-12f, -0x1.dc0e68p-10f,
     -0x1.7c2b0ep-9f, -0x1.97dd42p-9f, -0x1.6eab8cp-9f, -0x1.267aa8p-9f, -0x1.b28ca4p-10f, -0x1.2b00a2p-10f,
     -0x1.8338d8p-11f, -0x1.dabe16p-12f, -0x1.14aa04p-12f, -0x1.337dbap-13f, -0x1.46a502p-14f, -0x1.4c40cp-15f,
     -0x1.44128ep-16f, -0x1.2f7704p-17f,
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
 * erf(r + d), r the nearest multiple of 1/8: r d is exact. The cubic part has seven roundings, those of its sum with the
 * others among them: 2^-21.5 of it was met, beside 2^-36.1 of the result for the other parts and what the series leaves
 * out. From 3.93 on erf is 1.
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
  const F cubic = mul(mul(d, d), mul(d, h));
  const F rests = fma(slope, linear_rest, fma(look_up32(ERF_SLOPE_RESTS, at), linear, look_up32(ERF_VALUE_RESTS, at)));
  const F low = add(fma(slope, linear, sub(start, high)), add(cubic, rests));
  const F error = fma(absolute(cubic), splat(0x1.8p-22f), fma(high, splat(0x1p-36f), splat(0x1p-120f)));
  const F value = add(high, add(low, error));
  return {with_sign_of(value, x), eq(value, add(high, sub(low, error)))};
}
