/*
 * The most multiply-adds that a core's vector units do: independent chains, enough of them to fill the
 * pipelines, all in registers. WIDTH is the length of a vector in bytes.
 */
typedef float Vector __attribute__((vector_size(WIDTH)));

enum { CHAINS = 12 };

/* Returns how many multiply-adds of single numbers were done in `rounds` rounds; *sink keeps them alive. */
double fma_rounds(long rounds, float* sink) {
  Vector sums[CHAINS];
  Vector scale, step;
  for (unsigned i = 0; i < WIDTH / sizeof(float); ++i) {
    scale[i] = 0.999f;
    step[i] = 0.5f;
  }
  for (int c = 0; c < CHAINS; ++c) sums[c] = step * (float)c;
  for (long r = 0; r < rounds; ++r) {
#pragma GCC unroll 12
    for (int c = 0; c < CHAINS; ++c) sums[c] = sums[c] * scale + step;
  }
  for (int c = 0; c < CHAINS; ++c) *sink += sums[c][0];
  return (double)rounds * CHAINS * (WIDTH / sizeof(float));
}
