/*
 * Sums and maxima of rows and columns, inside one path.                    rules: NUM-4, NUM-12, NUM-13
 *
 * Order    row sum: 64 lanes from +0 with stride 64, then folds of 32, 16, 8, 4, 2, 1; rows longer
 *          than 4,096 in blocks whose sums are a row again. Column sum: down the rows of a chunk.
 * Vectors  the 64 lanes are 64 / W registers, so a fold of at least W lanes adds whole registers.
 *
 * Included by native/path_body.h inside the namespace of a path.
 */

constexpr int LANES = 64;
constexpr int LANE_VECTORS = LANES / W;
constexpr int64_t ROW_BLOCK = 4096;

/* A load, and of what a chain comes to later: in a chain a reduction is often the first to read an operand. */
IDN_INLINE F load_ahead(const float* x) {
  __builtin_prefetch(x + 512);
  return load(x);
}

/* One row of at most 4,096 elements. */
static float sum_short_row(const float* x, int64_t n) {
  F lanes[LANE_VECTORS];
#pragma GCC unroll 64
  for (int v = 0; v < LANE_VECTORS; ++v) lanes[v] = splat(0.0f);
  int64_t i = 0;
  for (; i + LANES <= n; i += LANES) {
#pragma GCC unroll 64
    for (int v = 0; v < LANE_VECTORS; ++v) lanes[v] = add(lanes[v], load_ahead(x + i + v * W));
  }
  if (i < n) {
    /* A lane without an element takes +0: a lane that starts at +0 is never -0, so nothing changes. */
    alignas(64) float rest[LANES] = {};
    memcpy(rest, x + i, sizeof(float) * static_cast<size_t>(n - i));
#pragma GCC unroll 64
    for (int v = 0; v < LANE_VECTORS; ++v) lanes[v] = add(lanes[v], load(rest + v * W));
  }
#pragma GCC unroll 8
  for (int half = LANE_VECTORS / 2; half > 0; half /= 2) {
#pragma GCC unroll 32
    for (int v = 0; v < half; ++v) lanes[v] = add(lanes[v], lanes[v + half]);
  }
  return sum_of_lanes(lanes[0]);
}

static float sum_row(const float* x, int64_t n) {
  if (n <= ROW_BLOCK) return sum_short_row(x, n);
  const int64_t blocks = (n + ROW_BLOCK - 1) / ROW_BLOCK;
  /* Block sums in order, themselves summed 4,096 at a time while they come. */
  float sums[ROW_BLOCK];
  float* more = nullptr;
  float* all = sums;
  if (blocks > ROW_BLOCK) all = more = static_cast<float*>(malloc(sizeof(float) * static_cast<size_t>(blocks)));
  for (int64_t b = 0; b < blocks; ++b) {
    const int64_t start = b * ROW_BLOCK;
    all[b] = sum_short_row(x + start, n - start < ROW_BLOCK ? n - start : ROW_BLOCK);
  }
  const float result = sum_row(all, blocks);
  free(more);
  return result;
}

static void sum_rows(float* out, const float* x, int64_t rows, int64_t n) {
  for (int64_t r = 0; r < rows; ++r) out[r] = idn_canon(sum_row(x + r * n, n));
}

/* VECTORS * W columns of one chunk. */
template <int VECTORS>
IDN_INLINE void sum_columns(float* out, const float* x, int64_t rows, int64_t stride) {
  F sum[VECTORS];
#pragma GCC unroll 8
  for (int v = 0; v < VECTORS; ++v) sum[v] = splat(0.0f);
  for (int64_t r = 0; r < rows; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < VECTORS; ++v) sum[v] = add(sum[v], load(x + r * stride + v * W));
  }
#pragma GCC unroll 8
  for (int v = 0; v < VECTORS; ++v) store(out + v * W, sum[v]);
}

static void sum_chunk(float* out, const float* x, int64_t rows, int64_t stride, int64_t columns) {
  int64_t j = 0;
  for (; j + 8 * W <= columns; j += 8 * W) sum_columns<8>(out + j, x + j, rows, stride);
  for (; j + W <= columns; j += W) sum_columns<1>(out + j, x + j, rows, stride);
  for (; j < columns; ++j) {
    float sum = 0.0f;
    for (int64_t r = 0; r < rows; ++r) sum = sum + x[r * stride + j];
    out[j] = sum;
  }
}

static void add_row(float* out, const float* x, int64_t columns, bool last) {
  int64_t j = 0;
  for (; j + W <= columns; j += W) {
    const F sum = add(load(out + j), load(x + j));
    store(out + j, last ? canonical(sum) : sum);
  }
  for (; j < columns; ++j) {
    const float sum = out[j] + x[j];
    out[j] = last ? idn_canon(sum) : sum;
  }
}

/* One row in the order of NUM-4, element by element. */
static float maximum_slowly(const float* x, int64_t n) {
  float best = idn_max(x[0], x[0]);
  for (int64_t i = 1; i < n; ++i) best = idn_max(best, x[i]);
  return best;
}

/*
 * NUM-4 is associative and commutative, so lanes may be taken in any order. Without NaNs and zeros the order
 * is that of plain comparisons.
 */
static void maximum_rows(float* out, const float* x, int64_t rows, int64_t n) {
  constexpr int VECTORS = 4;
  for (int64_t r = 0; r < rows; ++r) {
    const float* row = x + r * n;
    if (n < VECTORS * W) {
      out[r] = maximum_slowly(row, n);
      continue;
    }
    F most[VECTORS];
    M none[VECTORS / 2];
#pragma GCC unroll 4
    for (int v = 0; v < VECTORS; ++v) most[v] = load_ahead(row + v * W);
#pragma GCC unroll 2
    for (int v = 0; v < VECTORS / 2; ++v) none[v] = unordered(most[2 * v], most[2 * v + 1]);
    for (int64_t i = VECTORS * W; i < n; i += VECTORS * W) {
      /* The last vectors may overlap those before them. */
      const float* from = row + (i + VECTORS * W <= n ? i : n - VECTORS * W);
      F next[VECTORS];
#pragma GCC unroll 4
      for (int v = 0; v < VECTORS; ++v) next[v] = load_ahead(from + v * W);
#pragma GCC unroll 4
      for (int v = 0; v < VECTORS; ++v) most[v] = larger(next[v], most[v]);
#pragma GCC unroll 2
      for (int v = 0; v < VECTORS / 2; ++v) none[v] = either(none[v], unordered(next[2 * v], next[2 * v + 1]));
    }
    const float best = largest_of_lanes(larger(larger(most[0], most[1]), larger(most[2], most[3])));
    out[r] = best == 0.0f ? maximum_slowly(row, n) : any(either(none[0], none[1])) ? idn_float(IDN_NAN_BITS) : best;
  }
}
