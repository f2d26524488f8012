/*
 * matmul, inside one path: packing and the block of register tiles.          rules: NUM-10, NUM-11
 *
 * Order    A chain of fma from +0 over 256 consecutive k stays in registers. Its result is stored
 *          (first of its group), added to what is there, or, at the end of a later group of 4,096,
 *          added to the group's sum and that to the element.
 * Panels   left: ROWS rows, k-major; right: COLUMNS columns, k-major. A panel's unused rows and
 *          columns are zeros that only reach tile cells nobody stores.
 * Twins    kernels/matmul/reference.py is the definition.
 *
 * Included by native/path_body.h inside the namespace of a path.
 */

/* ---- shape of the register tile -------------------------------------------------------------- */

constexpr int TILE_ROWS = W == 16 ? 14 : W == 8 ? 6 : W == 4 ? 8 : 4;
constexpr int TILE_VECTORS = W == 16 || W == 8 ? 2 : W == 4 ? 3 : 4;
constexpr int TILE_COLUMNS = TILE_VECTORS * W;

/* ---- packing --------------------------------------------------------------------------------- */

/* The block at s (rows ss apart) transposed to d (rows ds apart), rows in order. */
IDN_INLINE void transpose_block(const uint32_t* s, int64_t ss, uint32_t* d, int64_t ds) {
  transpose_rows([=](int i) { return s + i * ss; }, d, ds);
}

/* rows x k of the left operand into one panel. readable counts the rows that exist from here on. */
static void pack_left_panel(float* to, const float* from, int64_t row_stride, int64_t k_stride,
                            int64_t rows, int64_t readable, int64_t k) {
  int64_t done = 0;
  constexpr int64_t BLOCKS = (TILE_ROWS + TRANSPOSE - 1) / TRANSPOSE;
  if (k_stride == 1 && rows == TILE_ROWS && TRANSPOSE > 1 && readable >= BLOCKS * TRANSPOSE) {
    for (; done + TRANSPOSE <= k; done += TRANSPOSE) {
      /* A block may be wider than the panel: its surplus is overwritten by the next k, so the last goes by way of a copy. */
      const bool last = done + 2 * TRANSPOSE > k;
      uint32_t copy[TRANSPOSE * BLOCKS * TRANSPOSE];
      uint32_t* target = last ? copy : reinterpret_cast<uint32_t*>(to + done * TILE_ROWS);
      const int64_t stride = last ? BLOCKS * TRANSPOSE : TILE_ROWS;
      for (int64_t block = 0; block < BLOCKS; ++block) {
        transpose_block(reinterpret_cast<const uint32_t*>(from + block * TRANSPOSE * row_stride + done), row_stride,
                        target + block * TRANSPOSE, stride);
      }
      for (int64_t q = 0; last && q < TRANSPOSE; ++q) {
        memcpy(to + (done + q) * TILE_ROWS, copy + q * stride, sizeof(float) * TILE_ROWS);
      }
    }
  }
  for (; done < k; ++done) {
    for (int64_t i = 0; i < TILE_ROWS; ++i) {
      to[done * TILE_ROWS + i] = i < rows ? from[i * row_stride + done * k_stride] : 0.0f;
    }
  }
}

/*
 * Whole panels of a left operand whose rows lie next to each other: a few panels at a time, so that each line of memory is
 * read once. The surplus of a vector is overwritten by the next k; the last k goes without.
 */
static void pack_left_columns(float* to, const float* from, int64_t k_stride, int64_t panels, int64_t readable,
                              int64_t k) {
  constexpr int64_t GROUP = 8;
  constexpr int VECTORS = (TILE_ROWS + W - 1) / W;
  for (int64_t first = 0; first < panels; first += GROUP) {
    const int64_t stop = first + GROUP < panels ? first + GROUP : panels;
    const bool by_vectors = readable >= (stop - 1) * TILE_ROWS + VECTORS * W;
    for (int64_t q = 0; q < k; ++q) {
      for (int64_t panel = first; panel < stop; ++panel) {
        float* target = to + panel * TILE_ROWS * k + q * TILE_ROWS;
        const float* source = from + q * k_stride + panel * TILE_ROWS;
        if (by_vectors && q + 1 < k) {
#pragma GCC unroll 4
          for (int v = 0; v < VECTORS; ++v) store(target + v * W, load(source + v * W));
        } else {
          memcpy(target, source, sizeof(float) * TILE_ROWS);
        }
      }
    }
  }
}

/* k x columns of the right operand into one panel. */
static void pack_right_panel(float* to, const float* from, int64_t k_stride, int64_t column_stride,
                             int64_t columns, int64_t k) {
  int64_t done = 0;
  if (columns == TILE_COLUMNS && k_stride == 1 && TRANSPOSE > 1) {
    for (; done + TRANSPOSE <= k; done += TRANSPOSE) {
      for (int64_t j = 0; j < TILE_COLUMNS; j += TRANSPOSE) {
        transpose_block(reinterpret_cast<const uint32_t*>(from + j * column_stride + done), column_stride,
                        reinterpret_cast<uint32_t*>(to + done * TILE_COLUMNS + j), TILE_COLUMNS);
      }
    }
  }
  for (; done < k; ++done) {
    for (int64_t j = 0; j < TILE_COLUMNS; ++j) {
      to[done * TILE_COLUMNS + j] = j < columns ? from[done * k_stride + j * column_stride] : 0.0f;
    }
  }
}

static void pack_left(Panels to, int64_t first, const float* from, int64_t row_stride, int64_t k_stride, int64_t lines,
                      int64_t readable, int64_t k) {
  for (int64_t start = 0; start < k; start += MATMUL_CHUNK) {
    const int64_t part = k - start < MATMUL_CHUNK ? k - start : MATMUL_CHUNK;
    const int64_t whole = row_stride == 1 && k_stride != 1 ? lines / TILE_ROWS : 0;
    pack_left_columns(to.data + start * to.lines + first * part, from + start * k_stride, k_stride, whole, readable, part);
    for (int64_t i = whole * TILE_ROWS; i < lines; i += TILE_ROWS) {
      pack_left_panel(to.data + start * to.lines + (first + i) * part, from + i * row_stride + start * k_stride,
                      row_stride, k_stride, lines - i < TILE_ROWS ? lines - i : TILE_ROWS, readable - i, part);
    }
  }
}

/*
 * Whole panels of a right operand whose columns lie next to each other: a few panels at a time, so that each line of memory and
 * each page is visited once.
 */
static void pack_right_rows(float* to, const float* from, int64_t k_stride, int64_t panels, int64_t k) {
  constexpr int64_t GROUP = 8;
  for (int64_t first = 0; first < panels; first += GROUP) {
    const int64_t stop = first + GROUP < panels ? first + GROUP : panels;
    for (int64_t q = 0; q < k; ++q) {
      const float* source = from + q * k_stride + first * TILE_COLUMNS;
      float* target = to + first * TILE_COLUMNS * k + q * TILE_COLUMNS;
      for (int64_t panel = first; panel < stop; ++panel, source += TILE_COLUMNS, target += TILE_COLUMNS * k) {
#pragma GCC unroll 4
        for (int j = 0; j < TILE_VECTORS; ++j) store(target + j * W, load(source + j * W));
      }
    }
  }
}

static void pack_right(Panels to, int64_t first, const float* from, int64_t k_stride, int64_t column_stride,
                       int64_t lines, int64_t k) {
  for (int64_t start = 0; start < k; start += MATMUL_CHUNK) {
    const int64_t part = k - start < MATMUL_CHUNK ? k - start : MATMUL_CHUNK;
    float* target = to.data + start * to.lines + first * part;
    const float* source = from + start * k_stride;
    const int64_t whole = column_stride == 1 ? lines / TILE_COLUMNS : 0;
    pack_right_rows(target, source, k_stride, whole, part);
    for (int64_t j = whole * TILE_COLUMNS; j < lines; j += TILE_COLUMNS) {
      pack_right_panel(target + j * part, source + j * column_stride, k_stride, column_stride,
                       lines - j < TILE_COLUMNS ? lines - j : TILE_COLUMNS, part);
    }
  }
}

/* ---- register tile ----------------------------------------------------------------------------- */

/* What becomes of the sum of one chunk. */
enum class Into { store, add, add_to_group_then_out };

/*
 * How the left operand lies: in panels or, as it is, by columns, steps are left_stride apart and the rows at a step lie next to
 * each other; otherwise its rows are left_stride apart, and in a row steps lie next to each other or, where they are listed, at
 * left_step[0], [1], ...
 */
enum class Left { panels, columns, rows, listed };
constexpr bool by_columns(Left left) { return left == Left::panels || left == Left::columns; }

template <int ROWS, int VECTORS, Left LEFT>
static void tile(int64_t k, const float* __restrict left, int64_t left_stride, const int64_t* __restrict left_step,
                 const float* __restrict right, float* __restrict out, int64_t out_stride, const float* __restrict group,
                 int64_t group_stride, Into into, bool last) {
  F sum[ROWS][VECTORS];
#pragma GCC unroll 16
  for (int i = 0; i < ROWS; ++i) {
    __builtin_prefetch(out + i * out_stride, 1);
#pragma GCC unroll 4
    for (int j = 0; j < VECTORS; ++j) sum[i][j] = splat(0.0f);
  }
  const float* row[ROWS];
  for (int i = 0; i < ROWS; ++i) row[i] = left + i * left_stride;
  for (int64_t step = 0; step < k; ++step) {
    F b[VECTORS];
#pragma GCC unroll 4
    for (int j = 0; j < VECTORS; ++j) b[j] = load(right + j * W);
    const int64_t at = LEFT == Left::listed ? left_step[step] : step;
#pragma GCC unroll 16
    for (int i = 0; i < ROWS; ++i) {
      const F a = splat_from(by_columns(LEFT) ? left + i : row[i] + at);
#pragma GCC unroll 4
      for (int j = 0; j < VECTORS; ++j) sum[i][j] = fma(a, b[j], sum[i][j]);
    }
    if (by_columns(LEFT)) left += left_stride;
    right += TILE_COLUMNS;
  }
#pragma GCC unroll 16
  for (int i = 0; i < ROWS; ++i) {
#pragma GCC unroll 4
    for (int j = 0; j < VECTORS; ++j) {
      float* cell = out + i * out_stride + j * W;
      F x = sum[i][j];
      if (into == Into::add_to_group_then_out) x = add(load(group + i * group_stride + j * W), x);
      if (into != Into::store) x = add(load(cell), x);
      store(cell, last ? canonical(x) : x);
    }
  }
}

using Tile = void (*)(int64_t, const float*, int64_t, const int64_t*, const float*, float*, int64_t, const float*, int64_t, Into,
                      bool);

template <int ROWS, int VECTORS, Left LEFT>
constexpr Tile tile_of(int rows, int vectors) {
  if constexpr (ROWS > 1) {
    if (rows < ROWS) return tile_of<ROWS - 1, VECTORS, LEFT>(rows, vectors);
  }
  if constexpr (VECTORS > 1) {
    if (vectors < VECTORS) return tile_of<ROWS, VECTORS - 1, LEFT>(rows, vectors);
  }
  return tile<ROWS, VECTORS, LEFT>;
}

/* One tile of rows x columns cells, by way of a full one in local memory when columns is no whole vector. */
template <Left LEFT>
static void edge_tile(const MatmulBlock& block, int64_t k, const float* left, int64_t left_stride, const int64_t* left_step,
                      const float* right, int64_t rows, int64_t columns, float* out, int64_t out_stride, const float* group,
                      Into into, bool last) {
  const int vectors = static_cast<int>((columns + W - 1) / W);
  const Tile run = tile_of<TILE_ROWS, TILE_VECTORS, LEFT>(static_cast<int>(rows), vectors);
  if (columns == vectors * W) {
    run(k, left, left_stride, left_step, right, out, out_stride, group, block.group_stride, into, last);
    return;
  }
  alignas(64) float cells[TILE_ROWS * TILE_COLUMNS];
  alignas(64) float sums[TILE_ROWS * TILE_COLUMNS] = {};
  const size_t bytes = sizeof(float) * static_cast<size_t>(columns);
  for (int64_t i = 0; i < rows; ++i) {
    if (into != Into::store) memcpy(cells + i * TILE_COLUMNS, out + i * out_stride, bytes);
    if (into == Into::add_to_group_then_out) memcpy(sums + i * TILE_COLUMNS, group + i * block.group_stride, bytes);
  }
  run(k, left, left_stride, left_step, right, cells, TILE_COLUMNS, sums, TILE_COLUMNS, into, last);
  for (int64_t i = 0; i < rows; ++i) memcpy(out + i * out_stride, cells + i * TILE_COLUMNS, bytes);
}

/* ---- block ------------------------------------------------------------------------------------- */

constexpr int64_t NEAR = 1 << 15;  /* elements of panels that stay in a near cache beside a few rows */

constexpr int64_t LINE = 16;       /* elements of a line of memory */
constexpr int64_t NEAR_ROWS = 64;  /* rows of a listed left operand no further apart are brought near ahead of their turn */

/* Brings rows of a left operand near that lies as it is: k steps of each, from `from` on. By columns many come along at once. */
template <Left LEFT>
static void bring_near(const float* from, int64_t left_row, const int64_t* left_step, int64_t rows, int64_t k) {
  if (LEFT == Left::rows) {
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t at = 0; at < k; at += LINE) __builtin_prefetch(from + row * left_row + at);
    }
  } else if (LEFT == Left::listed && left_row <= NEAR_ROWS) {
    /* Steps come in runs shorter than a row is long, so that the rows of a run lie side by side. */
    int64_t passed = -1;
    for (int64_t q = 0; q < k; ++q) {
      if (left_step[q] <= passed) continue;
      passed = left_step[q] / left_row * left_row + left_row - 1;
      for (int64_t at = 0; at < rows * left_row; at += LINE) __builtin_prefetch(from + left_step[q] + at);
    }
  }
}

/* The left operand of a chunk: its first row, how far a tile's first row is from there for each row, and what a tile takes. */
struct LeftChunk {
  const float* first;
  int64_t row, stride;
  const int64_t* steps;
};

template <Left LEFT>
static LeftChunk left_chunk(const MatmulBlock& block, int64_t start, int64_t k) {
  if (LEFT == Left::panels) {
    const float* chunk = block.left.data + (start - block.begin) * block.left.lines;
    return {chunk + block.row * k, k, TILE_ROWS, nullptr};
  }
  const float* first = block.plain_left + block.row * block.left_row;
  if (LEFT == Left::listed) return {first, block.left_row, block.left_row, block.left_step + start};
  return {first + start * block.left_column, block.left_row, LEFT == Left::rows ? block.left_row : block.left_column, nullptr};
}

/* Adds a part of a group to a block of the result, chunk by chunk, so that the left panels stay near. */
template <Left LEFT>
static void multiply_chunks(const MatmulBlock& block) {
  int64_t start = block.begin;
  for (int64_t chunk = 0; start < block.k && start < block.end; ++chunk) {
    const int64_t whole = block.k - start < MATMUL_CHUNK ? block.k - start : MATMUL_CHUNK;
    const int64_t k = block.ends ? block.ends[chunk] - start : whole;
    const bool ends = start + k == block.k;
    float* target = block.out;
    int64_t stride = block.out_stride;
    Into into = start == 0 ? Into::store : Into::add;
    if (!block.first_group && !ends) {
      target = block.group;
      stride = block.group_stride;
    } else if (!block.first_group) {
      into = start == 0 ? Into::add : Into::add_to_group_then_out;
    }
    /* The tile reads columns as it does panels. */
    constexpr Left TILE = LEFT == Left::columns ? Left::panels : LEFT;
    const LeftChunk lefts = left_chunk<LEFT>(block, start, k);
    const auto one = [&](int64_t i, int64_t j, const float* right) {
      const int64_t rows = block.rows - i < TILE_ROWS ? block.rows - i : TILE_ROWS;
      const int64_t columns = block.columns - j < TILE_COLUMNS ? block.columns - j : TILE_COLUMNS;
      const float* left = lefts.first + i * lefts.row;
      const float* group = block.group + i * block.group_stride + j;
      float* out = target + i * stride + j;
      const bool last = block.last_group && ends;
      if (rows == TILE_ROWS && columns == TILE_COLUMNS) {
        tile<TILE_ROWS, TILE_VECTORS, TILE>(k, left, lefts.stride, lefts.steps, right, out, stride, group, block.group_stride,
                                            into, last);
      } else {
        edge_tile<TILE>(block, k, left, lefts.stride, lefts.steps, right, rows, columns, out, stride, group, into, last);
      }
    };
    const float* panels = block.right.data + (start - block.begin) * block.right.lines + block.column * k;
    if (LEFT != Left::panels && block.columns * k <= NEAR) {
      /* All panels stay near: the rows of the left operand are read once, the next ones coming near meanwhile. */
      for (int64_t i = 0; i < block.rows; i += TILE_ROWS) {
        const int64_t more = block.rows - i - TILE_ROWS < TILE_ROWS ? block.rows - i - TILE_ROWS : TILE_ROWS;
        bring_near<LEFT>(lefts.first + (i + TILE_ROWS) * lefts.row, lefts.row, lefts.steps, more, k);
        for (int64_t j = 0; j < block.columns; j += TILE_COLUMNS) one(i, j, panels + j * k);
      }
    } else {
      for (int64_t j = 0; j < block.columns; j += TILE_COLUMNS) {
        const float* right = panels + j * k;
        const float* next = right + k * TILE_COLUMNS;
        const float* next_end = next + (j + TILE_COLUMNS < block.columns ? k * TILE_COLUMNS : 0);
        for (int64_t i = 0; i < block.rows; i += TILE_ROWS) {
          /* The next panel comes near while this one is used: a part of it with each tile. */
          for (int part = 0; part < 10 && next < next_end; ++part, next += 16) __builtin_prefetch(next, 0, 2);
          one(i, j, right);
        }
      }
    }
    start += k;
  }
}

static void multiply_block(const MatmulBlock& block) {
  if (!block.plain_left) return multiply_chunks<Left::panels>(block);
  if (block.left_step) return multiply_chunks<Left::listed>(block);
  block.left_column == 1 ? multiply_chunks<Left::rows>(block) : multiply_chunks<Left::columns>(block);
}
