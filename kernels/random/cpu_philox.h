/*
 * Philox4x32-10 in vectors: lane l computes block first + l.              rules: NUM-15, NUM-16, NUM-17
 *
 * Included by native/path_body.h inside the namespace of a path.
 */

static void uniform(float* out, uint64_t first, int64_t blocks, const uint32_t key[2], const uint32_t fixed[2]) {
  for (int64_t done = 0; done < blocks; done += W) {
    uint32_t low[W], high[W];
    for (int l = 0; l < W; ++l) {
      const uint64_t block = first + static_cast<uint64_t>(done) + static_cast<uint64_t>(l);
      low[l] = static_cast<uint32_t>(block);
      high[l] = static_cast<uint32_t>(block >> 32);
    }
    U c0 = load(low), c1 = load(high), c2 = splat_bits(fixed[0]), c3 = splat_bits(fixed[1]);
    uint32_t k0 = key[0], k1 = key[1];
    for (int round = 0; round < 10; ++round) {
      U high0, low0, high1, low1;
      multiply_wide(splat_bits(0xd2511f53u), c0, high0, low0);
      multiply_wide(splat_bits(0xcd9e8d57u), c2, high1, low1);
      c0 = high1 ^ c1 ^ splat_bits(k0);
      c2 = high0 ^ c3 ^ splat_bits(k1);
      c1 = low1;
      c3 = low0;
      k0 += 0x9e3779b9u;
      k1 += 0xbb67ae85u;
    }
    /* NUM-16: the top 24 bits as a fraction, exact. */
    const D unit = splat64(0x1p-24);
    float words[4][W];
    store(words[0], narrow(mul(widen_integers(shift_right<8>(c0)), unit)));
    store(words[1], narrow(mul(widen_integers(shift_right<8>(c1)), unit)));
    store(words[2], narrow(mul(widen_integers(shift_right<8>(c2)), unit)));
    store(words[3], narrow(mul(widen_integers(shift_right<8>(c3)), unit)));
    const int64_t lanes = blocks - done < W ? blocks - done : W;
    for (int64_t l = 0; l < lanes; ++l) {
      for (int w = 0; w < 4; ++w) out[4 * (done + l) + w] = words[w][l];
    }
  }
}
