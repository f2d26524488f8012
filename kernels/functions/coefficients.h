/*
 * Coefficients of the rounded functions, in hexadecimal binary64.                 rules: NUM-7
 *
 * Each polynomial interpolates its function at Chebyshev nodes, solved in 200-bit arithmetic and
 * rounded once. No table is trusted by itself: tests/kernels/native/exhaustive.cpp compares every
 * result of every path with a 113-bit evaluation.
 */

/* (exp(r) - 1 - r) / r^2 for |r| <= log(2) / 2, ascending powers of r. */
IDN_TABLE double EXP_TERMS[10] = {
    0x1.0000000000001p-1, 0x1.5555555555556p-3, 0x1.5555555553d63p-5,
    0x1.11111111109b3p-7, 0x1.6c16c1788bd90p-10, 0x1.a01a01a7c41d5p-13,
    0x1.a019b90d2ae7ap-16, 0x1.71de0dae63bb3p-19, 0x1.289185613a3d6p-22,
    0x1.af38a9b0ec855p-26,
};

/* (log((1 + s) / (1 - s)) - 2 s) / s^3 for |s| <= 3 - 2 sqrt(2), ascending powers of s^2. */
IDN_TABLE double LOG_TERMS[9] = {
    0x1.5555555555555p-1, 0x1.9999999999998p-2, 0x1.249249249296bp-2,
    0x1.c71c71c649fd9p-3, 0x1.745d17d4c7b78p-3, 0x1.3b137ac246adep-3,
    0x1.111d3a850cbadp-3, 0x1.debb7c9d90ac1p-4, 0x1.e6ce4e57aaee2p-4,
};

/* erf(x) / x around the middle of each eighth of [0, 4): row is the power, column the eighth. */
IDN_TABLE double ERF_TERMS[14][8] = {
    {0x1.1af54e232d609p+0, 0x1.e57b7477c132ap-1, 0x1.7a0517ad564cdp-1, 0x1.20ac0448e30d1p-1,
     0x1.c672068e64fbdp-2, 0x1.74537fc603cfbp-2, 0x1.3b135862188d2p-2, 0x1.11110f080c546p-2},
    {-0x1.73070406af8f7p-3, -0x1.a0cdd9ab35663p-2, -0x1.9b12df9c9f1cep-2, -0x1.2b07a606936a4p-2,
     -0x1.8d734c1fef1dcp-3, -0x1.0e5896d12aaf3p-3, -0x1.83bf9f6f554b0p-4, -0x1.234526458097ep-4},
    {-0x1.57664ffe806dep-2, -0x1.9a7d8dd5f75e2p-4, 0x1.5aa5390000029p-4, 0x1.d3549a3f1bd84p-4,
     0x1.4408c71d2d863p-4, 0x1.846d86b723ad0p-5, 0x1.dcc02f5d976bcp-6, 0x1.36ac76646eecbp-6},
    {0x1.acf0ba5b49104p-4, 0x1.5acfc2be8b55fp-3, 0x1.0faa3ba2d5879p-4, -0x1.c0361d5090e1ep-7,
     -0x1.a1de1a059621bp-6, -0x1.0a0c0d51b37e4p-6, -0x1.23692b411d709p-7, -0x1.4b3ef89efcd68p-8},
    {0x1.6cb169fee4c73p-4, -0x1.97842b84813b5p-6, -0x1.db07bcfddb37fp-5, -0x1.424946c7bf24ep-6,
     0x1.7610514e6ce17p-9, 0x1.355523835c9acp-8, 0x1.5b1a27bd1594dp-9, 0x1.605c898b85f06p-10},
    {-0x1.265cd08570e9cp-5, -0x1.35e003bdd5bd2p-5, 0x1.1b462fd4c5abap-7, 0x1.ec5d8e9152f45p-7,
     0x1.c69ab0b939834p-9, -0x1.767b30007b6c0p-11, -0x1.7894c29485fa9p-11, -0x1.72b720a33d9a1p-12},
    {-0x1.2d72a5b3ebe54p-6, 0x1.de96cfe0b0ceap-7, 0x1.4bc7dfe3e14d0p-7, -0x1.c6170d927af33p-9,
     -0x1.733cc63a7d402p-9, -0x1.6796ee22e2a09p-12, 0x1.256f761c72228p-13, 0x1.75df9f3b93b96p-14},
    {0x1.24caf7abbd879p-7, 0x1.4ea86531eeddcp-8, -0x1.54be48774685cp-8, -0x1.849ec20013627p-10,
     0x1.f7c0028899859p-11, 0x1.7918726996605p-12, 0x1.367612e3f4138p-17, -0x1.45fbe447c09e5p-16},
    {0x1.8ec05ec5b359fp-9, -0x1.ea2735e96c269p-9, -0x1.a20ce7248a784p-12, 0x1.4b6da6d9925e1p-10,
     0x1.20522f51fbb53p-16, -0x1.5621d1d5cb6dep-13, -0x1.d53ec7f44edcbp-16, 0x1.292362ae626f4p-19},
    {-0x1.caf1faa91982cp-10, -0x1.3fb8cc1427b2ep-12, 0x1.0ba9a47fe75b8p-10, -0x1.bb88f37dabc62p-13,
     -0x1.684e537adc3c8p-13, 0x1.186332f4baffcp-15, 0x1.16280aca1c09ap-16, 0x1.16d0f1994fad7p-20},
    {-0x1.b0c4450836138p-12, 0x1.571a71a5be624p-11, -0x1.7d7a3aac368ebp-13, -0x1.153998a954bb5p-13,
     0x1.2ae46b96d3942p-14, 0x1.076c2208da610p-17, -0x1.8689682aa17d4p-18, -0x1.04bacd912e8acp-20},
    {0x1.2929cb9c36124p-12, -0x1.55e2ce6b4629cp-15, -0x1.dc4177a21ae64p-14, 0x1.2fa1d6c977460p-14,
     -0x1.6c85cc9be94b4p-19, -0x1.211bf016b08f2p-17, 0x1.e7f4ec8dc6600p-21, 0x1.f43197fdb3e62p-22},
    {0x1.7f5cab80c1812p-15, -0x1.654d3cbc0c0c1p-14, 0x1.8b55e0c4990bbp-15, -0x1.af1f0a8b67e87p-20,
     -0x1.2969d08a415b1p-17, 0x1.6691b63070b76p-19, 0x1.5bf105a9a4d09p-22, -0x1.3bedcc3aa1accp-23},
    {-0x1.3fc881766dd57p-15, 0x1.ebe610bf599d9p-17, 0x1.889e01dd8b84ap-18, -0x1.276e1aead38d8p-17,
     0x1.b645a6f53f586p-19, 0x1.8565f1f5c5689p-28, -0x1.1b5bdfa86fd29p-22, 0x1.8d32d72779ac6p-26},
};

/* erf(x) / x for 0 <= x <= 1, ascending powers of x^2. */
IDN_TABLE double ERF_SMALL_TERMS[12] = {
    0x1.20dd750429b6dp+0, -0x1.812746b0379c1p-2, 0x1.ce2f21a040f66p-4,
    -0x1.b82ce31203772p-6, 0x1.565bccfa44156p-8, -0x1.c02db0665e53dp-11,
    0x1.f9a2be4f731a1p-14, -0x1.f4ca838adb73bp-17, 0x1.b981d78881a5dp-20,
    -0x1.5c131500d3f88p-23, 0x1.d76af6ca49787p-27, -0x1.ac9585a44fe29p-31,
};

/* e^(x^2) erfc(x) for 1 <= x <= 4, ascending powers of 1 / (x + 5/2) - 7/32. */
IDN_TABLE double ERFC_TERMS[13] = {
    0x1.fbda64037e156p-3, 0x1.0e4fe8f585843p+1, 0x1.ce6c07c86db52p+2,
    0x1.189e4f79221cep+4, 0x1.9e391ff110bdap+4, 0x1.d77c426075e04p+2,
    -0x1.8a159229ea7f6p+5, -0x1.a149c8bd3de1cp+5, 0x1.f624f26c489d7p+6,
    0x1.5cd3695b78cd0p+7, -0x1.d9dd36a96566dp+8, -0x1.ba3fedb2b2ab6p+8,
    0x1.0017f9d7949b2p+11,
};

/* log(2) in two parts; the first has 42 bits after the point, so that its product with an exponent is exact. */
constexpr double LOG2_HIGH = 0x1.62e42fefa3800p-1;
constexpr double LOG2_LOW = 0x1.ef35793c76730p-45;
constexpr double LOG2_INVERSE = 0x1.71547652b82fep+0;

/* 1.5 * 2^52: adding it rounds to an integer, which then stands in the low bits. */
constexpr double ROUNDER = 0x1.8p52;
