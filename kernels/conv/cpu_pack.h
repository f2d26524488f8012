/*
 * Packing of panels whose elements are found by sums of offsets, inside one path.
 *
 * The element of a panel for line i and step k is from[line[i] + step[k]]. A convolution's operands
 * are such panels: their places have one offset for the window and one for the tap.
 *
 * Included by native/path_body.h inside the namespace of a path, after matmul/cpu_tile.h.
 */

/* Copies ROOM / PIECE pieces of PIECE neighbours for every step. */
template <int PIECE>
static void pack_pieces(float* to, const float* from, const int64_t* line, const int64_t* step, int64_t k) {
  constexpr int COUNT = TILE_COLUMNS / PIECE;
  const float* starts[COUNT];
  for (int p = 0; p < COUNT; ++p) starts[p] = from + line[p * PIECE];
  for (int64_t q = 0; q < k; ++q, to += TILE_COLUMNS) {
#pragma GCC unroll 32
    for (int p = 0; p < COUNT; ++p) memcpy(to + p * PIECE, starts[p] + step[q], sizeof(float) * PIECE);
  }
}

/* Whether the lines of every piece of PIECE are neighbours. */
template <int PIECE>
static bool pieces(const int64_t* line) {
  for (int p = 0; p < TILE_COLUMNS; p += PIECE) {
    for (int i = 1; i < PIECE; ++i) {
      if (line[p + i] != line[p] + i) return false;
    }
  }
  return true;
}

/* A right panel, lines that are often neighbours: a convolution's windows. */
static void pack_near_lines(float* to, const float* from, const int64_t* line, int64_t lines, const int64_t* step,
                            int64_t k) {
  if (lines == TILE_COLUMNS) {
    if (pieces<TILE_COLUMNS>(line)) return pack_pieces<TILE_COLUMNS>(to, from, line, step, k);
    if constexpr (TILE_COLUMNS % 8 == 0) {
      if (pieces<8>(line)) return pack_pieces<8>(to, from, line, step, k);
    }
    if (pieces<4>(line)) return pack_pieces<4>(to, from, line, step, k);
    if (pieces<2>(line)) return pack_pieces<2>(to, from, line, step, k);
    return pack_pieces<1>(to, from, line, step, k);
  }
  for (int64_t q = 0; q < k; ++q, to += TILE_COLUMNS) {
    for (int64_t i = 0; i < TILE_COLUMNS; ++i) to[i] = i < lines ? from[line[i] + step[q]] : 0.0f;
  }
}

/* A panel of TILE lines, steps that are often neighbours; steps ascend. */
template <int TILE>
static void pack_near_steps(float* to, const float* from, const int64_t* line, int64_t lines, const int64_t* step,
                            int64_t k) {
  constexpr int BLOCKS = (TILE + TRANSPOSE - 1) / TRANSPOSE;
  int64_t q = 0;
  while (q < k) {
    float* target = to + q * TILE;
    if (TRANSPOSE > 1 && q + TRANSPOSE <= k && step[q + TRANSPOSE - 1] - step[q] == TRANSPOSE - 1) {
      for (int b = 0; b < BLOCKS; ++b) {
        uint32_t rows[TRANSPOSE * TRANSPOSE], turned[TRANSPOSE * TRANSPOSE];
        const int first = b * TRANSPOSE;
        for (int i = 0; i < TRANSPOSE; ++i) {
          if (first + i < lines) {
            memcpy(rows + i * TRANSPOSE, from + line[first + i] + step[q], sizeof(float) * TRANSPOSE);
          } else {
            memset(rows + i * TRANSPOSE, 0, sizeof(float) * TRANSPOSE);
          }
        }
        if (first + TRANSPOSE <= TILE) {
          transpose_block(rows, TRANSPOSE, reinterpret_cast<uint32_t*>(target + first), TILE);
        } else {
          transpose_block(rows, TRANSPOSE, turned, TRANSPOSE);
          constexpr int REST = TILE % TRANSPOSE == 0 ? TRANSPOSE : TILE % TRANSPOSE;
          for (int i = 0; i < TRANSPOSE; ++i) {
            memcpy(target + i * TILE + first, turned + i * TRANSPOSE, sizeof(float) * REST);
          }
        }
      }
      q += TRANSPOSE;
    } else {
      for (int64_t i = 0; i < TILE; ++i) target[i] = i < lines ? from[line[i] + step[q]] : 0.0f;
      ++q;
    }
  }
}
