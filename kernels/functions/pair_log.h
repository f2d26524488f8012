/*
 * log in pairs of binary32, for devices with little binary64.                               rules: NUM-7, NUM-8
 *
 * Method   as in functions/pair_functions.h: a pair, a bound of its error added and taken away, and binary64
 *          where the two disagree: one positive operand in 5,900.
 *          x = 2^e m; for m in a cell of width 1/128 or 1/256, a factor r of 8 bits such that u = r m - 1 is exact
 *          and |u| < 2^-7, and log x = e log(2) - log(r) + log(1 + u). Beside 1, r is 1: nothing is cancelled there.
 * Error    relative to the result, where it is largest: beside 1, u = 2^-7 and r = 1. The product
 *          u^3 (1/3 - u/4 ...) is 2^-15.6 of the result; its four roundings of at most 2^-24 make 2^-37.6. What the
 *          series leaves out is u^6 / 7 < 2^-44, and the sum of rests rounds to 2^-40. Elsewhere the product is
 *          smaller, and second rounds to 2^-42 where the result is at least 1/3. Together below 2^-37;
 *          2^-37.8 was met.
 * Check    tests/kernels/native/exhaustive.cpp runs all 2^32 operands.
 *
 * Included by functions/cuda.h after functions/functions.h.
 */

/* log(2): 14 bits, so that its product with an exponent is exact, and two rests. */
constexpr float LOG2_FIRST = 0x1.62e4p-1f;
constexpr float LOG2_SECOND = 0x1.7f7d1cp-20f;

/* sqrt(1/2) with its last 16 bits cleared: where the first cell of m begins. */
constexpr uint32_t LOG_FIRST_CELL = 0x3f350000u;

/*
 * For each cell: r, and -log(r) in three parts, the first a multiple of 2^-17. It adds exactly to an exponent's
 * product, and is at least |u| where it is not 0. Rounded once from 200-bit values.
 */
alignas(64) IDN_TABLE float LOG_ROWS[128][4] = {
    {0x1.6ap+0f, -0x1.62c8p-2f, -0x1.795ce4p-21f, 0x1.ab4242p-48f}, {0x1.68p+0f, -0x1.5d1cp-2f, 0x1.2053fcp-21f, -0x1.ca508ep-46f},
    {0x1.66p+0f, -0x1.5768p-2f, 0x1.1d1754p-19f, 0x1.64eadap-44f}, {0x1.64p+0f, -0x1.51aap-2f, -0x1.b0e5cp-19f, 0x1.f4bd8ep-44f},
    {0x1.62p+0f, -0x1.4be6p-2f, 0x1.aa221ep-24f, -0x1.06da64p-49f}, {0x1.6p+0f, -0x1.4618p-2f, -0x1.78438cp-19f, 0x1.3d82f4p-46f},
    {0x1.5ep+0f, -0x1.4044p-2f, 0x1.ef2f2cp-19f, -0x1.f8ef44p-44f}, {0x1.5cp+0f, -0x1.3a64p-2f, -0x1.8aad28p-19f, -0x1.7a71ccp-44f},
    {0x1.5ap+0f, -0x1.347ep-2f, 0x1.32b3c2p-21f, -0x1.54d646p-46f}, {0x1.58p+0f, -0x1.2e8ep-2f, -0x1.5d708ep-21f, -0x1.309c2cp-46f},
    {0x1.56p+0f, -0x1.2896p-2f, 0x1.7b085ep-20f, 0x1.5ca14cp-46f}, {0x1.54p+0f, -0x1.2294p-2f, -0x1.fbcf7ap-22f, 0x1.34bb7ap-47f},
    {0x1.52p+0f, -0x1.1c8ap-2f, 0x1.cfa59ap-20f, -0x1.fafbc6p-46f}, {0x1.5p+0f, -0x1.1676p-2f, 0x1.aa2a2cp-21f, 0x1.f1fc64p-46f},
    {0x1.5p+0f, -0x1.1676p-2f, 0x1.aa2a2cp-21f, 0x1.f1fc64p-46f}, {0x1.4ep+0f, -0x1.1058p-2f, -0x1.7f35cap-19f, 0x1.4ab9d8p-44f},
    {0x1.4cp+0f, -0x1.0a32p-2f, -0x1.389ce4p-20f, -0x1.c6bee8p-47f}, {0x1.4ap+0f, -0x1.0402p-2f, -0x1.652d34p-20f, -0x1.036b8ap-48f},
    {0x1.48p+0f, -0x1.fb9p-3f, -0x1.86d5e4p-19f, 0x1.d572aap-47f}, {0x1.46p+0f, -0x1.ef0cp-3f, 0x1.23423ap-19f, 0x1.b26b7ap-45f},
    {0x1.46p+0f, -0x1.ef0cp-3f, 0x1.23423ap-19f, 0x1.b26b7ap-45f}, {0x1.44p+0f, -0x1.e27p-3f, -0x1.db8abcp-21f, -0x1.72f4f6p-46f},
    {0x1.42p+0f, -0x1.d5c4p-3f, 0x1.e94b04p-19f, 0x1.1ba91cp-45f}, {0x1.4p+0f, -0x1.c9p-3f, 0x1.070cacp-20f, 0x1.7794f6p-45f},
    {0x1.3ep+0f, -0x1.bc28p-3f, -0x1.9d0b64p-21f, 0x1.94eb04p-46f}, {0x1.3ep+0f, -0x1.bc28p-3f, -0x1.9d0b64p-21f, 0x1.94eb04p-46f},
    {0x1.3cp+0f, -0x1.af3cp-3f, -0x1.29d018p-20f, 0x1.a4e634p-52f}, {0x1.3ap+0f, -0x1.a23cp-3f, 0x1.f00ea6p-22f, -0x1.631938p-47f},
    {0x1.38p+0f, -0x1.9524p-3f, -0x1.a9cf46p-19f, 0x1.297138p-44f}, {0x1.38p+0f, -0x1.9524p-3f, -0x1.a9cf46p-19f, 0x1.297138p-44f},
    {0x1.36p+0f, -0x1.87fcp-3f, 0x1.f9adf4p-19f, -0x1.221204p-44f}, {0x1.34p+0f, -0x1.7ab8p-3f, -0x1.20421cp-20f, 0x1.bdb908p-45f},
    {0x1.32p+0f, -0x1.6d6p-3f, -0x1.fce33ap-20f, -0x1.0e46aap-46f}, {0x1.32p+0f, -0x1.6d6p-3f, -0x1.fce33ap-20f, -0x1.0e46aap-46f},
    {0x1.3p+0f, -0x1.5ff4p-3f, 0x1.f1eb0ep-20f, -0x1.e9e43ap-46f}, {0x1.2ep+0f, -0x1.527p-3f, 0x1.a1c5e4p-19f, 0x1.790ba4p-44f},
    {0x1.2ep+0f, -0x1.527p-3f, 0x1.a1c5e4p-19f, 0x1.790ba4p-44f}, {0x1.2cp+0f, -0x1.44d4p-3f, 0x1.493348p-19f, 0x1.70cc16p-46f},
    {0x1.2ap+0f, -0x1.372p-3f, 0x1.eff0b8p-22f, 0x1.178864p-48f}, {0x1.2ap+0f, -0x1.372p-3f, 0x1.eff0b8p-22f, 0x1.178864p-48f},
    {0x1.28p+0f, -0x1.2954p-3f, -0x1.2f82p-19f, 0x1.5b968p-44f}, {0x1.26p+0f, -0x1.1b74p-3f, 0x1.52ad0ap-19f, -0x1.e80a42p-45f},
    {0x1.26p+0f, -0x1.1b74p-3f, 0x1.52ad0ap-19f, -0x1.e80a42p-45f}, {0x1.24p+0f, -0x1.0d78p-3f, 0x1.832f72p-23f, -0x1.659a5ep-49f},
    {0x1.22p+0f, -0x1.fec8p-4f, -0x1.131dbep-20f, -0x1.575546p-45f}, {0x1.22p+0f, -0x1.fec8p-4f, -0x1.131dbep-20f, -0x1.575546p-45f},
    {0x1.2p+0f, -0x1.e27p-4f, -0x1.db8abcp-22f, -0x1.72f4f6p-47f}, {0x1.1ep+0f, -0x1.c5e8p-4f, 0x1.5b8522p-19f, -0x1.d0c576p-46f},
    {0x1.1ep+0f, -0x1.c5e8p-4f, 0x1.5b8522p-19f, -0x1.d0c576p-46f}, {0x1.1cp+0f, -0x1.a928p-4f, 0x1.2c5b52p-20f, 0x1.53935ep-45f},
    {0x1.1cp+0f, -0x1.a928p-4f, 0x1.2c5b52p-20f, 0x1.53935ep-45f}, {0x1.1ap+0f, -0x1.8c38p-4f, 0x1.d14e74p-19f, -0x1.b20f5ap-44f},
    {0x1.18p+0f, -0x1.6f1p-4f, 0x1.6ba8d4p-19f, 0x1.4b4642p-44f}, {0x1.18p+0f, -0x1.6f1p-4f, 0x1.6ba8d4p-19f, 0x1.4b4642p-44f},
    {0x1.16p+0f, -0x1.51bp-4f, -0x1.cfc186p-22f, -0x1.fb493cp-51f}, {0x1.16p+0f, -0x1.51bp-4f, -0x1.cfc186p-22f, -0x1.fb493cp-51f},
    {0x1.14p+0f, -0x1.342p-4f, 0x1.434f22p-19f, -0x1.1d092ap-44f}, {0x1.12p+0f, -0x1.165p-4f, -0x1.b7751cp-19f, 0x1.47c5e8p-46f},
    {0x1.12p+0f, -0x1.165p-4f, -0x1.b7751cp-19f, 0x1.47c5e8p-46f}, {0x1.1p+0f, -0x1.f0ap-5f, -0x1.86008cp-20f, 0x1.d599e8p-45f},
    {0x1.1p+0f, -0x1.f0ap-5f, -0x1.86008cp-20f, 0x1.d599e8p-45f}, {0x1.0ep+0f, -0x1.b43p-5f, 0x1.147734p-20f, 0x1.c827aep-46f},
    {0x1.0ep+0f, -0x1.b43p-5f, 0x1.147734p-20f, 0x1.c827aep-46f}, {0x1.0cp+0f, -0x1.774p-5f, -0x1.63d8ccp-19f, 0x1.181dcep-44f},
    {0x1.0ap+0f, -0x1.39fp-5f, 0x1.e11806p-19f, -0x1.eafd48p-44f}, {0x1.0ap+0f, -0x1.39fp-5f, 0x1.e11806p-19f, -0x1.eafd48p-44f},
    {0x1.08p+0f, -0x1.f82p-6f, -0x1.361cfp-19f, -0x1.980268p-45f}, {0x1.08p+0f, -0x1.f82p-6f, -0x1.361cfp-19f, -0x1.980268p-45f},
    {0x1.06p+0f, -0x1.7bap-6f, 0x1.c9f054p-19f, 0x1.3b955cp-44f}, {0x1.06p+0f, -0x1.7bap-6f, 0x1.c9f054p-19f, 0x1.3b955cp-44f},
    {0x1.04p+0f, -0x1.fcp-7f, -0x1.5161f8p-20f, -0x1.f1e7dp-50f}, {0x1.04p+0f, -0x1.fcp-7f, -0x1.5161f8p-20f, -0x1.f1e7dp-50f},
    {0x1.02p+0f, -0x1.fep-8f, -0x1.535884p-23f, 0x1.87703cp-48f}, {0x1.02p+0f, -0x1.fep-8f, -0x1.535884p-23f, 0x1.87703cp-48f},
    {0x1p+0f, 0.0f, 0.0f, 0.0f}, {0x1p+0f, 0.0f, 0.0f, 0.0f},
    {0x1.fcp-1f, 0x1.01p-7f, 0x1.57588ep-23f, -0x1.8ed734p-51f}, {0x1.f8p-1f, 0x1.02p-6f, 0x1.59624ep-20f, -0x1.3dc5bp-45f},
    {0x1.f4p-1f, 0x1.84ap-6f, -0x1.b5ae6ep-19f, -0x1.aa0ba4p-45f}, {0x1.fp-1f, 0x1.041p-5f, 0x1.76279ep-19f, -0x1.dddc8p-44f},
    {0x1.ecp-1f, 0x1.467p-5f, -0x1.44af48p-19f, -0x1.c16738p-45f}, {0x1.e8p-1f, 0x1.895p-5f, -0x1.57ad82p-19f, 0x1.9a19a8p-44f},
    {0x1.e4p-1f, 0x1.ccbp-5f, 0x1.cf3776p-19f, 0x1.965c36p-44f}, {0x1.ep-1f, 0x1.0858p-4f, 0x1.8b59e4p-20f, -0x1.7e5dd8p-46f},
    {0x1.dcp-1f, 0x1.2aap-4f, 0x1.2911c6p-22f, -0x1.6dd15ep-50f}, {0x1.d8p-1f, 0x1.4d3p-4f, 0x1.15d208p-20f, -0x1.53a258p-48f},
    {0x1.d4p-1f, 0x1.701p-4f, -0x1.67a8aap-19f, 0x1.c1e8dap-49f}, {0x1.d4p-1f, 0x1.701p-4f, -0x1.67a8aap-19f, 0x1.c1e8dap-49f},
    {0x1.dp-1f, 0x1.9338p-4f, -0x1.0d1536p-19f, 0x1.3115c4p-45f}, {0x1.ccp-1f, 0x1.b6bp-4f, -0x1.bb9296p-19f, 0x1.b1bep-44f},
    {0x1.c8p-1f, 0x1.da7p-4f, 0x1.3b1c22p-19f, 0x1.a89402p-46f}, {0x1.c4p-1f, 0x1.fe88p-4f, 0x1.139dbep-20f, -0x1.534d64p-45f},
    {0x1.c4p-1f, 0x1.fe88p-4f, 0x1.139dbep-20f, -0x1.534d64p-45f}, {0x1.cp-1f, 0x1.1178p-3f, 0x1.d044fcp-20f, 0x1.1ef78cp-45f},
    {0x1.bcp-1f, 0x1.23d8p-3f, -0x1.dab6c8p-20f, 0x1.00d238p-46f}, {0x1.b8p-1f, 0x1.366p-3f, -0x1.a7f538p-22f, 0x1.62fa82p-51f},
    {0x1.b8p-1f, 0x1.366p-3f, -0x1.a7f538p-22f, 0x1.62fa82p-51f}, {0x1.b4p-1f, 0x1.4914p-3f, -0x1.3e6626p-22f, 0x1.60de56p-47f},
    {0x1.bp-1f, 0x1.5bf4p-3f, 0x1.ad50f6p-25f, 0x1.8fdc14p-50f}, {0x1.acp-1f, 0x1.6fp-3f, 0x1.28b756p-19f, 0x1.57739p-44f},
    {0x1.acp-1f, 0x1.6fp-3f, 0x1.28b756p-19f, 0x1.57739p-44f}, {0x1.a8p-1f, 0x1.823cp-3f, 0x1.6551a4p-23f, -0x1.f22466p-50f},
    {0x1.a4p-1f, 0x1.95a4p-3f, 0x1.adcf7p-19f, 0x1.7f2286p-47f}, {0x1.a4p-1f, 0x1.95a4p-3f, 0x1.adcf7p-19f, 0x1.7f2286p-47f},
    {0x1.ap-1f, 0x1.a94p-3f, -0x1.2c3752p-19f, -0x1.872436p-45f}, {0x1.9cp-1f, 0x1.bd08p-3f, 0x1.ce0ef6p-21f, 0x1.5a1dd4p-48f},
    {0x1.9cp-1f, 0x1.bd08p-3f, 0x1.ce0ef6p-21f, 0x1.5a1dd4p-48f}, {0x1.98p-1f, 0x1.d104p-3f, -0x1.01b354p-20f, -0x1.84a7e8p-47f},
    {0x1.94p-1f, 0x1.e53p-3f, 0x1.dffce2p-20f, 0x1.212276p-51f}, {0x1.94p-1f, 0x1.e53p-3f, 0x1.dffce2p-20f, 0x1.212276p-51f},
    {0x1.9p-1f, 0x1.f99p-3f, 0x1.c6cb3cp-19f, -0x1.90d04cp-44f}, {0x1.9p-1f, 0x1.f99p-3f, 0x1.c6cb3cp-19f, -0x1.90d04cp-44f},
    {0x1.8cp-1f, 0x1.0714p-2f, -0x1.e7ecaap-20f, 0x1.89cdb2p-48f}, {0x1.88p-1f, 0x1.1178p-2f, 0x1.d044fcp-19f, 0x1.1ef78cp-44f},
    {0x1.88p-1f, 0x1.1178p-2f, 0x1.d044fcp-19f, 0x1.1ef78cp-44f}, {0x1.84p-1f, 0x1.1bfap-2f, -0x1.a72966p-20f, 0x1.ca6ed6p-45f},
    {0x1.84p-1f, 0x1.1bfap-2f, -0x1.a72966p-20f, 0x1.ca6ed6p-45f}, {0x1.8p-1f, 0x1.2696p-2f, 0x1.089a6ep-21f, -0x1.b61f1p-48f},
    {0x1.8p-1f, 0x1.2696p-2f, 0x1.089a6ep-21f, -0x1.b61f1p-48f}, {0x1.7cp-1f, 0x1.315p-2f, -0x1.c3c594p-19f, -0x1.8e27aep-45f},
    {0x1.78p-1f, 0x1.3c26p-2f, -0x1.b1199ap-19f, 0x1.83b54cp-46f}, {0x1.78p-1f, 0x1.3c26p-2f, -0x1.b1199ap-19f, 0x1.83b54cp-46f},
    {0x1.74p-1f, 0x1.4718p-2f, 0x1.b84e38p-19f, 0x1.06c19p-44f}, {0x1.74p-1f, 0x1.4718p-2f, 0x1.b84e38p-19f, 0x1.06c19p-44f},
    {0x1.7p-1f, 0x1.522ap-2f, 0x1.c0e714p-19f, 0x1.ebe708p-45f}, {0x1.7p-1f, 0x1.522ap-2f, 0x1.c0e714p-19f, 0x1.ebe708p-45f},
    {0x1.6cp-1f, 0x1.5d5cp-2f, -0x1.10535p-21f, -0x1.a0b2ap-47f}, {0x1.6cp-1f, 0x1.5d5cp-2f, -0x1.10535p-21f, -0x1.a0b2ap-47f},
};

IDN_NOINLINE float log_with_care(float x) {
  /* NUM-8: the values for zeros and below need no binary64. */
  if (!(x > 0.0f)) return idn_float(x == 0.0f ? 0xff800000u : IDN_NAN_BITS);
  return log_of({x}).v;
}

IDN_INLINE float log_in_pairs(float x) {
  const bool subnormal = x < 0x1p-126f;
  const uint32_t shifted = idn_bits(subnormal ? idn_mul(x, 0x1p23f) : x) - LOG_FIRST_CELL;
  const float e = (float)(((int32_t)shifted >> 23) - (subnormal ? 23 : 0));
  const float m = idn_float((shifted & 0x7fffffu) + LOG_FIRST_CELL);
  F row[4];
  load_rows4(LOG_ROWS, {shifted >> 16 & 127}, row);
  const float u = idn_fma(row[0].v, m, -1.0f);
  /* e log(2) - log(r) = first + second + third; the sum of the first parts is exact. */
  const float first = idn_fma(e, LOG2_FIRST, row[1].v);
  const float second = idn_fma(e, LOG2_SECOND, row[2].v);
  const float third = row[3].v;
  /* u^2 / 2 = half_square + half_rest exactly. */
  const float half = idn_mul(u, 0.5f);
  const float half_square = idn_mul(half, u), half_rest = idn_fma(half, u, -half_square);
  const float series = idn_fma(u, idn_fma(u, idn_fma(u, -0x1.555556p-3f, 0x1.99999ap-3f), -0.25f), 0x1.555556p-2f);
  const float cube = idn_mul(idn_mul(idn_mul(u, u), u), series);
  /* first + u - half_square + second = high + rests exactly: each is smaller than the sum before it. */
  const float linear = idn_add(first, u), linear_rest = idn_sub(u, idn_sub(linear, first));
  const float bent = idn_sub(linear, half_square), bent_rest = idn_sub(idn_sub(linear, bent), half_square);
  const float high = idn_add(bent, second), high_rest = idn_sub(second, idn_sub(high, bent));
  const float rests = idn_add(idn_add(linear_rest, bent_rest), idn_add(high_rest, idn_sub(third, half_rest)));
  const float low = idn_add(rests, cube);
  const float error = idn_mul(high, 0x1p-37f);
  const float value = idn_add(high, idn_add(low, error));
  const bool is_sure = value == idn_add(high, idn_sub(low, error));
  /* Zeros, numbers below zero, infinity and NaN are not sure. */
  return is_sure && idn_bits(x) - 1u < 0x7f7fffffu ? value : log_with_care(x);
}
