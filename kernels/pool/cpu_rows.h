/*
 * Maxima of a row of windows, one tap at a time, inside one path.                    rules: NUM-4
 *
 * Numbers are compared by ranks: all NaNs equal and on top, -0 just below +0. Plain loops without
 * branches, which the compiler makes vectors of.
 *
 * Included by native/path_body.h inside the namespace of a path.
 */

IDN_INLINE int32_t rank_of(float x) {
  const int32_t u = static_cast<int32_t>(idn_bits(x));
  const int32_t ordered = u ^ ((u >> 31) & 0x7fffffff);
  return (u & 0x7fffffff) > 0x7f800000 ? 0x7fffffff : ordered;
}

/* x for n windows whose taps are `stride` apart, next to each other. */
IDN_INLINE const float* line_of(float* room, const float* x, int64_t stride, int n) {
  if (stride == 1) return x;
  if (stride == 2) {
    for (int i = 0; i < n; ++i) room[i] = x[2 * i];
  } else {
    for (int i = 0; i < n; ++i) room[i] = x[i * stride];
  }
  return room;
}

static void raise_maxima(int32_t* __restrict best, const float* x, int64_t stride, int n) {
  float room[POOL_LENGTH];
  const float* __restrict line = line_of(room, x, stride, n);
  for (int i = 0; i < n; ++i) {
    const int32_t here = rank_of(line[i]);
    best[i] = here > best[i] ? here : best[i];
  }
}

static void find_maxima(int32_t* __restrict best, int32_t* __restrict at, const float* x, int64_t stride, int n,
                        int32_t place, const int32_t* __restrict steps) {
  float room[POOL_LENGTH];
  const float* __restrict line = line_of(room, x, stride, n);
  for (int i = 0; i < n; ++i) {
    const int32_t here = rank_of(line[i]), most = best[i];
    at[i] = here > most ? place + steps[i] : at[i];
    best[i] = here > most ? here : most;
  }
}
