/*
 * sin and cos in pairs of binary32, for devices with little binary64.                       rules: NUM-7, NUM-8
 *
 * Method     as in functions/pair_functions.h: a pair, a bound of its error added and taken away, and
 *            functions/circular.h where the two disagree: one operand in 10,000.
 * Reduction  |x| = quadrant pi/2 + angle. Up to 2^17 in binary32 with fused multiply-adds, from there on in
 *            integers by 96 bits of 2/pi.
 * Value      angle = a + d with a a multiple of 1/128 and |d| <= 1/256, and sines and cosines of the a in a table:
 *            sin(a + d) = sin(a) cos(d) + cos(a) sin(d), and cos(a + d) alike.
 * Error      relative to the result, without the reduction's. p (cos(d) - 1) is at most 2^-17 of p, and p at most twice
 *            the result: rounded to 2^-24 in its square and once more, 2^-39, and in the last sum, 2^-41. q (sin(d) - d)
 *            is at most 2^-18.6 of q d, its roundings 2^-41. What the products with the rest of the angle
 *            leave out: 2^-41. Together below 2^-38; 2^-38.8 was met.
 * Check      tests/kernels/native/exhaustive.cpp runs all 2^32 operands.
 *
 * Included by functions/cuda.h after functions/circular.h.
 */

/* sin and cos of k / 128, each as the nearest number and the rest. Rounded once from 200-bit values. */
alignas(64) IDN_TABLE float CIRCLE_ROWS[102][4] = {
    {0.0f, 0.0f, 0x1p+0f, 0.0f}, {0x1.fffeaap-8f, 0x1.55dddep-33f, 0x1.fffcp-1f, 0x1.555528p-33f},
    {0x1.fffaaap-7f, 0x1.5ddddap-32f, 0x1.fffp-1f, 0x1.5554ap-29f}, {0x1.7ff7p-6f, 0x1.033256p-34f, 0x1.ffdcp-1f, 0x1.affdfap-27f},
    {0x1.ffeaaap-6f, 0x1.dddd0ep-31f, 0x1.ffc002p-1f, -0x1.555b06p-26f}, {0x1.3feb2cp-5f, -0x1.da5746p-30f, 0x1.ff9c04p-1f, -0x1.7d6b08p-26f},
    {0x1.7fdc02p-5f, -0x1.f9a08ap-30f, 0x1.ff7006p-1f, 0x1.7fbf34p-26f}, {0x1.bfc6d8p-5f, -0x1.e9e494p-31f, 0x1.ff3c0cp-1f, 0x1.020746p-26f},
    {0x1.ffaaaep-5f, 0x1.dda9dcp-30f, 0x1.ff0016p-1f, -0x1.56c166p-26f}, {0x1.1fc344p-4f, -0x1.3fba08p-31f, 0x1.febc22p-1f, 0x1.5477dp-28f},
    {0x1.3facb2p-4f, -0x1.a5d154p-29f, 0x1.fe7034p-1f, 0x1.29ef6ep-29f}, {0x1.5f912p-4f, -0x1.77a464p-31f, 0x1.fe1c4cp-1f, 0x1.e439f6p-28f},
    {0x1.7f701p-4f, 0x1.92a872p-31f, 0x1.fdc06cp-1f, -0x1.0328cap-30f}, {0x1.9f4902p-4f, 0x1.aaba4p-29f, 0x1.fd5c94p-1f, 0x1.687cp-26f},
    {0x1.bf1b78p-4f, 0x1.5a0e48p-30f, 0x1.fcf0c8p-1f, 0x1.d33624p-34f}, {0x1.dee6f2p-4f, -0x1.27c664p-29f, 0x1.fc7d08p-1f, -0x1.cb90dep-27f},
    {0x1.feaaeep-4f, 0x1.d0ddc6p-29f, 0x1.fc0156p-1f, -0x1.b05486p-26f}, {0x1.0f3378p-3f, 0x1.bbae3ap-28f, 0x1.fb7db2p-1f, 0x1.7fc0d2p-26f},
    {0x1.1f0d3ep-3f, -0x1.0a062ap-28f, 0x1.faf222p-1f, 0x1.8f12f4p-27f}, {0x1.2ee286p-3f, -0x1.b54772p-31f, 0x1.fa5ea6p-1f, 0x1.070dbcp-27f},
    {0x1.3eb312p-3f, 0x1.8bacdap-28f, 0x1.f9c34p-1f, 0x1.4f9886p-26f}, {0x1.4e7ea4p-3f, 0x1.b8be5p-28f, 0x1.f91ff4p-1f, 0x1.ba6808p-32f},
    {0x1.5e44fcp-3f, 0x1.f424dep-28f, 0x1.f874c2p-1f, 0x1.c3dd9ep-26f}, {0x1.6e05dcp-3f, 0x1.69353p-33f, 0x1.f7c1bp-1f, -0x1.0021dcp-29f},
    {0x1.7dc102p-3f, 0x1.f75e56p-28f, 0x1.f706bep-1f, -0x1.84c792p-31f}, {0x1.8d7632p-3f, 0x1.df5528p-28f, 0x1.f643fp-1f, -0x1.47d532p-29f},
    {0x1.9d252ep-3f, -0x1.e6279ep-28f, 0x1.f57948p-1f, 0x1.9fecf2p-26f}, {0x1.accdb2p-3f, 0x1.2f40ecp-28f, 0x1.f4a6ccp-1f, -0x1.70e2c4p-28f},
    {0x1.bc6f84p-3f, 0x1.db8c34p-28f, 0x1.f3cc7cp-1f, 0x1.d9e8b6p-28f}, {0x1.cc0a66p-3f, -0x1.df5d98p-29f, 0x1.f2ea5ep-1f, -0x1.158002p-26f},
    {0x1.db9e16p-3f, -0x1.2968c2p-33f, 0x1.f20074p-1f, -0x1.ef336cp-26f}, {0x1.eb2a58p-3f, -0x1.d46976p-33f, 0x1.f10ecp-1f, 0x1.38b0e8p-26f},
    {0x1.faaeeep-3f, -0x1.619d52p-28f, 0x1.f0154ap-1f, -0x1.0422bep-30f}, {0x1.0515ccp-2f, -0x1.35d548p-31f, 0x1.ef1414p-1f, -0x1.fe5a1cp-26f},
    {0x1.0cd00cp-2f, 0x1.de6c86p-27f, 0x1.ee0b2p-1f, -0x1.0fc3bap-27f}, {0x1.14861ap-2f, 0x1.529bbep-27f, 0x1.ecfa74p-1f, 0x1.357be8p-27f},
    {0x1.1c37d6p-2f, 0x1.31ae1ep-28f, 0x1.ebe214p-1f, 0x1.eeddf4p-26f}, {0x1.23e522p-2f, -0x1.dcaa1ap-27f, 0x1.eac206p-1f, 0x1.bbaf5p-29f},
    {0x1.2b8ddcp-2f, 0x1.0fad28p-28f, 0x1.e99a4cp-1f, 0x1.d3e6c2p-28f}, {0x1.3331eap-2f, -0x1.7f6c1p-27f, 0x1.e86aecp-1f, -0x1.acac26p-30f},
    {0x1.3ad12ap-2f, -0x1.12c584p-27f, 0x1.e733eap-1f, 0x1.93d3fap-33f}, {0x1.426b7ep-2f, 0x1.a7b9a6p-28f, 0x1.e5f54cp-1f, -0x1.7922c6p-26f},
    {0x1.4a00cap-2f, -0x1.3c30b8p-28f, 0x1.e4af14p-1f, 0x1.654894p-26f}, {0x1.5190ecp-2f, 0x1.ed14fp-27f, 0x1.e3614cp-1f, -0x1.2fe52cp-26f},
    {0x1.591bcap-2f, -0x1.7429a4p-32f, 0x1.e20bf4p-1f, 0x1.359ad8p-26f}, {0x1.60a142p-2f, 0x1.20f0eep-27f, 0x1.e0af16p-1f, -0x1.7f090cp-27f},
    {0x1.682138p-2f, 0x1.471afep-27f, 0x1.df4ab4p-1f, -0x1.4278a2p-29f}, {0x1.6f9b8ep-2f, 0x1.9d012ap-29f, 0x1.ddded6p-1f, -0x1.e1bae6p-26f},
    {0x1.771026p-2f, -0x1.5137bep-27f, 0x1.dc6b7ep-1f, 0x1.732b22p-26f}, {0x1.7e7eep-2f, 0x1.e436a6p-29f, 0x1.daf0b6p-1f, 0x1.7111dp-26f},
    {0x1.85e7a2p-2f, -0x1.afb2d6p-27f, 0x1.d96e82p-1f, 0x1.ee353cp-26f}, {0x1.8d4a4ap-2f, 0x1.dd264cp-28f, 0x1.d7e4eap-1f, -0x1.03d096p-26f},
    {0x1.94a6bep-2f, 0x1.3ea8d8p-27f, 0x1.d653fp-1f, 0x1.cf901p-27f}, {0x1.9bfcep-2f, 0x1.740288p-29f, 0x1.d4bb9ep-1f, 0x1.c619ep-29f},
    {0x1.a34c92p-2f, -0x1.9d799cp-29f, 0x1.d31bf8p-1f, 0x1.b1af8p-26f}, {0x1.aa95b6p-2f, 0x1.d0493cp-29f, 0x1.d17508p-1f, -0x1.b04d62p-26f},
    {0x1.b1d83p-2f, 0x1.4c8586p-28f, 0x1.cfc6dp-1f, -0x1.6b5498p-27f}, {0x1.b913e4p-2f, -0x1.e48a78p-27f, 0x1.ce115ap-1f, -0x1.ecafa4p-26f},
    {0x1.c048b2p-2f, -0x1.09d7ecp-27f, 0x1.cc54aap-1f, 0x1.594b98p-28f}, {0x1.c7767ep-2f, 0x1.8ffa34p-27f, 0x1.ca90cap-1f, -0x1.cc17a8p-32f},
    {0x1.ce9d2ep-2f, 0x1.ea529p-29f, 0x1.c8c5cp-1f, -0x1.cc795ep-27f}, {0x1.d5bca4p-2f, -0x1.7f7134p-27f, 0x1.c6f392p-1f, 0x1.17ca76p-30f},
    {0x1.dcd4c2p-2f, -0x1.59ac6cp-27f, 0x1.c51a48p-1f, 0x1.7162ecp-26f}, {0x1.e3e56cp-2f, 0x1.582a68p-30f, 0x1.c339ecp-1f, -0x1.fc445p-26f},
    {0x1.eaee88p-2f, -0x1.769f42p-27f, 0x1.c1528p-1f, 0x1.96df54p-27f}, {0x1.f1eff6p-2f, 0x1.789f3p-27f, 0x1.bf641p-1f, 0x1.03cea6p-26f},
    {0x1.f8e99ep-2f, 0x1.daaf26p-28f, 0x1.bd6ea4p-1f, -0x1.dfad62p-26f}, {0x1.ffdb62p-2f, 0x1.1a5ebp-27f, 0x1.bb724p-1f, -0x1.9cf0cep-29f},
    {0x1.036294p-1f, -0x1.8e59aap-27f, 0x1.b96eeep-1f, 0x1.eb1082p-26f}, {0x1.06d368p-1f, 0x1.a51b96p-27f, 0x1.b764b8p-1f, 0x1.2dc13p-27f},
    {0x1.0a4022p-1f, -0x1.61fp-29f, 0x1.b553a4p-1f, 0x1.0c104ep-29f}, {0x1.0da8b2p-1f, 0x1.ad59ccp-27f, 0x1.b33bbap-1f, 0x1.13912ap-26f},
    {0x1.110d0cp-1f, 0x1.2da70ep-27f, 0x1.b11d04p-1f, 0x1.62a4c6p-29f}, {0x1.146d22p-1f, -0x1.d201f8p-31f, 0x1.aef78ap-1f, -0x1.9e85b2p-26f},
    {0x1.17c8e6p-1f, -0x1.a224ap-30f, 0x1.accb52p-1f, 0x1.bda77ap-27f}, {0x1.1b204ap-1f, 0x1.9605fcp-26f, 0x1.aa9868p-1f, 0x1.061122p-26f},
    {0x1.1e7344p-1f, -0x1.b93516p-26f, 0x1.a85ed4p-1f, 0x1.b9f016p-28f}, {0x1.21c1c2p-1f, -0x1.3f1accp-27f, 0x1.a61e9ep-1f, 0x1.c961acp-27f},
    {0x1.250bbap-1f, -0x1.90ee88p-26f, 0x1.a3d7dp-1f, 0x1.a95ee8p-28f}, {0x1.28511cp-1f, 0x1.22f40cp-26f, 0x1.a18a72p-1f, 0x1.35dc88p-26f},
    {0x1.2b91dep-1f, 0x1.510844p-26f, 0x1.9f368ep-1f, 0x1.b225fp-26f}, {0x1.2ecdf2p-1f, 0x1.e68c2p-27f, 0x1.9cdc2ep-1f, 0x1.f92f2ep-28f},
    {0x1.32054cp-1f, -0x1.d6e876p-26f, 0x1.9a7b5ap-1f, 0x1.b5328ap-28f}, {0x1.3537dcp-1f, -0x1.907f26p-27f, 0x1.98141cp-1f, 0x1.0b84c4p-27f},
    {0x1.386598p-1f, -0x1.753afap-26f, 0x1.95a67ep-1f, 0x1.963f98p-34f}, {0x1.3b8e72p-1f, -0x1.4baf7ep-26f, 0x1.93328ap-1f, -0x1.b24c2ep-26f},
    {0x1.3eb25ep-1f, -0x1.926558p-26f, 0x1.90b848p-1f, -0x1.ec8942p-27f}, {0x1.41d14ep-1f, 0x1.2e99e4p-27f, 0x1.8e37c4p-1f, -0x1.f84ca6p-26f},
    {0x1.44eb38p-1f, 0x1.cf386ap-29f, 0x1.8bb106p-1f, -0x1.688dcp-27f}, {0x1.48000ep-1f, 0x1.0c4568p-27f, 0x1.89241ap-1f, -0x1.e89e38p-27f},
    {0x1.4b0fc4p-1f, 0x1.aaadd8p-27f, 0x1.869108p-1f, 0x1.aef4d8p-26f}, {0x1.4e1a4ep-1f, 0x1.53b546p-27f, 0x1.83f7dep-1f, -0x1.8fe36p-29f},
    {0x1.511fap-1f, -0x1.426572p-28f, 0x1.8158a4p-1f, -0x1.cdd254p-26f}, {0x1.541facp-1f, 0x1.bb76e4p-26f, 0x1.7eb362p-1f, 0x1.d54292p-26f},
    {0x1.571a6ap-1f, -0x1.3254cap-26f, 0x1.7c0828p-1f, -0x1.ec3562p-30f}, {0x1.5a0fcap-1f, -0x1.dfb17cp-27f, 0x1.7956fcp-1f, 0x1.afeca8p-26f},
    {0x1.5cffc2p-1f, -0x1.280e1ep-26f, 0x1.769fecp-1f, 0x1.954848p-27f}, {0x1.5fea46p-1f, -0x1.5aac36p-26f, 0x1.73e302p-1f, -0x1.16208cp-26f},
    {0x1.62cf4ap-1f, -0x1.b794e2p-27f, 0x1.712046p-1f, 0x1.f4eedp-26f}, {0x1.65aec2p-1f, 0x1.2c7ceap-26f, 0x1.6e57c8p-1f, 0x1.9eabccp-34f},
    {0x1.6888a4p-1f, 0x1.c26966p-26f, 0x1.6b899p-1f, -0x1.584128p-27f}, {0x1.6b5ce6p-1f, -0x1.e90fbcp-26f, 0x1.68b5aap-1f, -0x1.a293b6p-26f},
};

/* Bits of 2/pi in words of 32, most significant first, behind one of zeros. */
IDN_TABLE uint32_t TWO_OVER_PI_WORDS[8] = {0x00000000u, 0xa2f9836eu, 0x4e441529u, 0xfc2757d1u, 0xf534ddc0u,
                                           0xdb629599u, 0x3c439041u, 0xfe5163abu};

/* quadrant pi/2 + high + low, off by less than slack and 2^-47 of high; |high| < 0.79. */
struct Angle {
  uint32_t quadrant;
  float high, low, slack;
};

/* 2/pi and three parts of pi/2, each the nearest number to what is left. */
constexpr float QUADRANT_INVERSE = 0x1.45f306p-1f;
constexpr float QUADRANT[3] = {0x1.921fb6p+0f, -0x1.777a5cp-25f, -0x1.ee59dap-50f};

/* Of 0 <= x < 2^17. What is rounded beside high is at most n 2^-49, and four times. */
IDN_INLINE Angle angle_of_moderate(float x) {
  const float t = idn_fma(x, QUADRANT_INVERSE, ROUNDER_TO_ONES);
  const float n = idn_sub(t, ROUNDER_TO_ONES);
  /* Exact: a multiple of 2^-24 if n is not 0, and below 1. */
  const float first = idn_fma(-n, QUADRANT[0], x);
  const float second = idn_mul(n, QUADRANT[1]), second_rest = idn_fma(n, QUADRANT[1], -second);
  const float high = idn_sub(first, second);
  const float step = idn_sub(high, first);
  const float high_rest = idn_sub(idn_sub(first, idn_sub(high, step)), idn_add(second, step));
  const float low = idn_fma(-n, QUADRANT[2], idn_sub(high_rest, second_rest));
  return {idn_bits(t), high, low, idn_mul(n, 0x1p-71f)};
}

/*
 * Of numbers from 2^17 on, by their bits. A quadrant is 2^62 units of turns; 2/pi beyond the 96 bits is less than one
 * unit, and so are the bits of the lower product that are cut off, and the lowest bit that is set.
 */
IDN_INLINE Angle angle_of_large(uint32_t magnitude) {
  const uint32_t significand = (magnitude & 0x7fffffu) | 0x800000u;
  const uint32_t before = (magnitude >> 23) - 120; /* bits of the words that count whole turns */
  const uint32_t word = before >> 5, shift = before & 31;
  const uint64_t upper = (uint64_t)TWO_OVER_PI_WORDS[word] << 32 | TWO_OVER_PI_WORDS[word + 1];
  const uint64_t lower = (uint64_t)TWO_OVER_PI_WORDS[word + 2] << 32 | TWO_OVER_PI_WORDS[word + 3];
  const uint64_t window = upper << shift | (lower >> 1) >> (63 - shift);
  const uint64_t turns = window * significand + (((lower << shift) >> 32) * significand >> 32);
  const uint64_t nearest = turns + (1ull << 61);
  const uint64_t rest = turns - (nearest >> 62 << 62);
  const uint32_t sign = (uint32_t)(rest >> 32) & 0x80000000u;
  const uint64_t fraction = (sign ? 0 - rest : rest) | 1;
  const int zeros = idn_leading_zeros(fraction);
  const uint64_t leading = fraction << zeros;
  /* 48 bits of the fraction of a quadrant, in two numbers of 24. */
  const float one = idn_float((uint32_t)(127 - 22 - zeros) << 23 | sign);
  const float upper_bits = idn_mul((float)(uint32_t)(leading >> 40), one);
  const float lower_bits = idn_mul((float)((uint32_t)(leading >> 16) & 0xffffffu), idn_mul(one, 0x1p-24f));
  const float product = idn_mul(upper_bits, QUADRANT[0]);
  const float tail = idn_fma(upper_bits, QUADRANT[1], idn_mul(lower_bits, QUADRANT[0]));
  const float product_rest = idn_add(idn_fma(upper_bits, QUADRANT[0], -product), tail);
  const float high = idn_add(product, product_rest);
  return {(uint32_t)(nearest >> 62), high, idn_sub(product_rest, idn_sub(high, product)), 0x1p-59f};
}

IDN_NOINLINE float circular_with_care(bool cosine, float x) { return circular_of(cosine, x); }

IDN_INLINE float circular_in_pairs(bool cosine, float x) {
  const uint32_t magnitude = idn_bits(x) & 0x7fffffffu;
  const Angle angle = magnitude < 0x48000000u ? angle_of_moderate(idn_float(magnitude)) : angle_of_large(magnitude);
  const bool use_cosine = cosine != (angle.quadrant % 2 != 0);
  const uint32_t below = idn_bits(angle.high) & 0x80000000u;
  uint32_t sign = (angle.quadrant + (cosine ? 1 : 0)) << 30 & 0x80000000u;
  if (!use_cosine) sign ^= below;
  if (!cosine) sign ^= idn_bits(x) & 0x80000000u;
  const float t = idn_add(idn_float(idn_bits(angle.high) ^ below), ROUNDER_TO_128THS);
  const float d = idn_sub(idn_float(idn_bits(angle.high) ^ below), idn_sub(t, ROUNDER_TO_128THS));
  const float d_rest = idn_float(idn_bits(angle.low) ^ below);
  F row[4];
  load_rows4(CIRCLE_ROWS, {idn_bits(t) & 127}, row);
  /* The result is p cos(d + d_rest) + q sin(d + d_rest). */
  const float p = use_cosine ? row[2].v : row[0].v, p_rest = use_cosine ? row[3].v : row[1].v;
  const float q = use_cosine ? -row[0].v : row[2].v, q_rest = use_cosine ? -row[1].v : row[3].v;
  const float square = idn_mul(d, d);
  const float bend = idn_mul(idn_mul(d, square), idn_fma(square, 0x1.111112p-7f, -0x1.555556p-3f));
  const float drop = idn_fma(idn_mul(square, square), 0x1.555556p-5f, idn_mul(square, -0.5f));
  const float sine_rest = idn_add(bend, d_rest), cosine_rest = idn_fma(-d, d_rest, drop);
  /* p + q d = high + high_rest + product_rest exactly. */
  const float product = idn_mul(q, d), product_rest = idn_fma(q, d, -product);
  const float high = idn_add(p, product), high_rest = idn_sub(product, idn_sub(high, p));
  const float rests = idn_add(idn_add(high_rest, product_rest), idn_fma(q_rest, d, p_rest));
  const float low = idn_fma(p, cosine_rest, idn_fma(q, sine_rest, rests));
  const float error = idn_fma(high, 0x1p-38f, angle.slack);
  const float value = idn_add(high, idn_add(low, error));
  const bool is_sure = value == idn_add(high, idn_sub(low, error));
  /* An infinity and a NaN are not sure. */
  return is_sure && magnitude < 0x7f800000u ? idn_float(idn_bits(value) | sign) : circular_with_care(cosine, x);
}
