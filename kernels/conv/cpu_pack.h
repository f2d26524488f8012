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

/* Whether the steps of every piece of PIECE of a block are neighbours; steps ascend. */
template <int PIECE>
static bool runs(const int64_t* step) {
  for (int q = 0; q < TRANSPOSE; q += PIECE) {
    if (step[q + PIECE - 1] - step[q] != PIECE - 1) return false;
  }
  return true;
}

/* A block of TRANSPOSE steps to a panel of TILE lines, from pieces of PIECE neighbours; see pack_near_steps. */
template <int TILE, int PIECE>
static void pack_block(float* to, const float* from, const int64_t* line, int64_t lines, const int64_t* step, bool ends) {
  constexpr int BLOCKS = (TILE + TRANSPOSE - 1) / TRANSPOSE, REST = TILE - (BLOCKS - 1) * TRANSPOSE;
  static const uint32_t zeros[TRANSPOSE] = {};
  for (int b = 0; b < BLOCKS; ++b) {
    const int first = b * TRANSPOSE;
    uint32_t rows[TRANSPOSE * TRANSPOSE], turned[TRANSPOSE * TRANSPOSE];
    const auto row = [&](int i) -> const uint32_t* {
      if (first + i >= lines) return zeros;
      return PIECE < TRANSPOSE ? rows + i * TRANSPOSE : reinterpret_cast<const uint32_t*>(from + line[first + i] + step[0]);
    };
    for (int i = 0; PIECE < TRANSPOSE && i < TRANSPOSE && first + i < lines; ++i) {
      const float* source = from + line[first + i];
#pragma GCC unroll 16
      for (int q = 0; q < TRANSPOSE; q += PIECE) memcpy(rows + i * TRANSPOSE + q, source + step[q], sizeof(float) * PIECE);
    }
    const bool surplus = first + TRANSPOSE > TILE;
    if (!surplus || !ends) {
      transpose_rows(row, reinterpret_cast<uint32_t*>(to + first), TILE);
    } else {
      transpose_rows(row, turned, TRANSPOSE);
      for (int i = 0; i < TRANSPOSE; ++i) memcpy(to + i * TILE + first, turned + i * TRANSPOSE, sizeof(float) * REST);
    }
  }
}

/*
 * A panel of TILE lines, steps that are often neighbours; steps ascend. A block may be wider than the panel: its surplus is
 * overwritten by the next step, so the last block of all goes by way of a copy.
 */
template <int TILE>
static void pack_near_steps(float* to, const float* from, const int64_t* line, int64_t lines, const int64_t* step,
                            int64_t k) {
  int64_t q = 0;
  while (q < k) {
    float* target = to + q * TILE;
    const bool ends = q + TRANSPOSE == k;
    if constexpr (TRANSPOSE > 1) {
      const auto pack = q + TRANSPOSE > k                                   ? nullptr
                        : runs<TRANSPOSE>(step + q)                         ? pack_block<TILE, TRANSPOSE>
                        : TRANSPOSE > 4 && runs<TRANSPOSE / 2>(step + q)    ? pack_block<TILE, TRANSPOSE / 2>
                        : TRANSPOSE > 8 && runs<TRANSPOSE / 4>(step + q)    ? pack_block<TILE, TRANSPOSE / 4>
                                                                            : nullptr;
      if (pack) {
        pack(target, from, line, lines, step + q, ends);
        q += TRANSPOSE;
        continue;
      }
    }
    for (int64_t i = 0; i < TILE; ++i) target[i] = i < lines ? from[line[i] + step[q]] : 0.0f;
    ++q;
  }
}
