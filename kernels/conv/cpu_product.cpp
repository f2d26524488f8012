/* Products of packed panels; see product.h.                                          rules: NUM-10 */
#include "conv/product.h"

#include <algorithm>
#include <cstring>

#include "native/pool.h"

namespace identic {
namespace {

constexpr int64_t BLOCK_ROWS_TARGET = 192; /* rows of a block: their chunk of 256 k fits a private cache */
constexpr int64_t BLOCK_FLOATS = 1 << 16;  /* of the right operand, packed by one thread at a time */
constexpr int64_t BLOCK_COLUMNS = 512;
constexpr int64_t SHARED_FLOATS = 1 << 22; /* most of it that all threads share */
constexpr int64_t PLAIN_COLUMNS = 128;     /* for so few, panels of the left operand are not worth making */
constexpr int64_t PIECES = 16;             /* of a thread: they even out unequal cores */
constexpr int64_t PASSES = 4;              /* of a thread over all right panels, where these are shared by few columns */
constexpr int64_t PIECE = 1 << 15;
constexpr int64_t MOST_ROWS = 64;          /* of a register tile, on any path */
constexpr int64_t MOST_CHAINS = MATMUL_GROUP / MATMUL_CHUNK;

int64_t round_up(int64_t x, int64_t to) { return (x + to - 1) / to * to; }
int64_t count_of(int64_t whole, int64_t part) { return (whole + part - 1) / part; }

/* One group of k, and the left operand's panels for it unless it is taken as it is. */
struct Part {
  int64_t k0, k;
  bool first, last;
  int64_t chains;
  int64_t ends[MOST_CHAINS]; /* of each chain, counted from k0 */
  Panels left;
};

/* Calls run(start, k) for every chain of a part. */
template <class Run>
void each_chain(const Part& part, Run run) {
  int64_t start = 0;
  for (int64_t chain = 0; chain < part.chains; ++chain) {
    run(start, part.ends[chain] - start);
    start = part.ends[chain];
  }
}

void pack_left(const Path& path, const Product& p, const Part& part, int64_t i, int64_t rows) {
  if (!p.left_step) {
    const float* from = p.left + i * p.left_row + part.k0;
    path.matmul.pack_left(part.left, i, from, p.left_row, 1, rows, p.rows - i, part.k);
    return;
  }
  int64_t lines[MOST_ROWS];
  for (int64_t r = 0; r < rows; ++r) lines[r] = (i + r) * p.left_row;
  each_chain(part, [&](int64_t start, int64_t k) {
    float* to = part.left.data + start * part.left.lines + i * k;
    path.conv.pack_left_steps(to, p.left, lines, rows, p.left_step + part.k0 + start, k);
  });
}

/* Panels [first, first + count) of the right operand, of one chain; panel `first` lies at line `at` of the packed ones. */
void pack_right(const Path& path, const Product& p, const Part& part, Panels to, int64_t at, int64_t first, int64_t count,
                int64_t start, int64_t k) {
  const auto pack = p.near == Near::lines ? path.conv.pack_right_lines : path.conv.pack_right_steps;
  const int64_t tile = path.matmul.tile_columns, all = p.images * p.columns;
  for (int64_t panel = first; panel < first + count; ++panel, at += tile) {
    const int64_t j = panel * tile;
    pack(to.data + start * to.lines + at * k, p.right, p.line + j, std::min(tile, all - j), p.step + part.k0 + start, k);
  }
}

/* A rectangle of the result, and the column that its right panels begin at. */
struct Piece {
  int64_t row, rows, column, columns, origin;
};

/* A piece whose columns are of one image. */
void run_block(const Path& path, const Product& p, const Part& part, Panels right, const Piece& piece) {
  const int64_t image = piece.column / p.columns, j = piece.column % p.columns;
  MatmulBlock block;
  block.out = p.out + image * p.image_stride + piece.row * p.columns + j;
  block.out_stride = p.columns;
  if (part.left.data) {
    block.left = part.left;
  } else {
    block.plain_left = p.left + (p.left_step ? 0 : part.k0);
    block.left_row = p.left_row;
    block.left_step = p.left_step ? p.left_step + part.k0 : nullptr;
  }
  block.right = right;
  block.row = piece.row;
  block.column = piece.column - piece.origin;
  block.rows = piece.rows;
  block.columns = piece.columns;
  block.k = part.k;
  block.ends = part.ends;
  block.first_group = part.first;
  block.last_group = part.last;
  block.group_stride = piece.columns;
  block.group = block.first_group ? nullptr : conv_buffer(SLOT_GROUP, piece.rows * piece.columns);
  path.matmul.multiply_block(block);
}

/* A piece: with panels of the left operand so many rows at a time that they stay near, and image by image. */
void run_piece(const Path& path, const Product& p, const Part& part, Panels right, const Piece& piece) {
  const int64_t most = part.left.data ? round_up(BLOCK_ROWS_TARGET, path.matmul.tile_rows) : piece.rows;
  for (int64_t i = 0; i < piece.rows; i += most) {
    for (int64_t j = 0; j < piece.columns;) {
      const int64_t column = piece.column + j, width = std::min(piece.columns - j, p.columns - column % p.columns);
      run_block(path, p, part, right, {piece.row + i, std::min(most, piece.rows - i), column, width, piece.origin});
      j += width;
    }
  }
}

/*
 * Panels that all pieces share, made by all threads: those of the left operand, if any, and of the right operand, if it is
 * shared. The smaller come last.
 */
Panels make_panels(const Path& path, const Product& p, Part& part, bool left, bool right) {
  const int64_t rows = path.matmul.tile_rows, columns = path.matmul.tile_columns;
  const int64_t lefts = left ? count_of(p.rows, rows) : 0, across = right ? count_of(p.images * p.columns, columns) : 0;
  if (left) part.left = {conv_buffer(SLOT_LEFT, lefts * rows * part.k), lefts * rows};
  const Panels made = right ? Panels{conv_buffer(SLOT_RIGHT, across * columns * part.k), across * columns} : Panels{};
  const int64_t some = std::max<int64_t>(1, PIECE / (columns * MATMUL_CHUNK)), rights = across * part.chains;
  parallel_each(lefts + count_of(rights, some), [&](int64_t index) {
    if (index < lefts) return pack_left(path, p, part, index * rows, std::min(rows, p.rows - index * rows));
    const int64_t first = (index - lefts) * some;
    for (int64_t at = first; at < std::min(first + some, rights); ++at) {
      const int64_t chain = at / across, panel = at % across, start = chain > 0 ? part.ends[chain - 1] : 0;
      pack_right(path, p, part, made, panel * columns, panel, 1, start, part.ends[chain] - start);
    }
  });
  return made;
}

/* Those of a piece, made by the thread that computes it. */
Panels make_right_of(const Path& path, const Product& p, const Part& part, const Piece& piece) {
  const int64_t tile = path.matmul.tile_columns, panels = count_of(piece.columns, tile);
  const Panels right = {conv_buffer(SLOT_RIGHT, panels * tile * part.k), panels * tile};
  each_chain(part, [&](int64_t start, int64_t k) {
    pack_right(path, p, part, right, 0, piece.column / tile, panels, start, k);
  });
  return right;
}

/*
 * One group. With few columns the left operand is taken as it is, in one pass over it. Where pieces share columns, so do they
 * the right panels.
 */
void run_part(const Path& path, const Product& p, Part& part) {
  const int64_t tile_rows = path.matmul.tile_rows, tile_columns = path.matmul.tile_columns;
  const int64_t all = p.images * p.columns;
  const bool plain = all <= PLAIN_COLUMNS;
  /* Pieces are made smaller when there are too few for the threads. */
  const int64_t wanted = threads() == 1 ? 1 : (plain ? PASSES : PIECES) * threads();
  int64_t width = std::min(BLOCK_COLUMNS, BLOCK_FLOATS / part.k) / tile_columns * tile_columns;
  width = std::min(round_up(count_of(all, wanted), tile_columns), std::max(width, 2 * tile_columns));
  if (plain) width = round_up(all, tile_columns);
  const int64_t across = count_of(all, width);
  const int64_t down = std::min(count_of(p.rows, plain ? tile_rows : 2 * tile_rows), count_of(wanted, across));
  const int64_t height = round_up(count_of(p.rows, down), tile_rows);
  const bool shared = plain || (down > 1 && all * part.k <= SHARED_FLOATS);
  const Panels right = make_panels(path, p, part, !plain, shared);
  parallel_each(across * down, [&](int64_t at) {
    const int64_t column = at % across * width, row = at / across * height;
    if (row >= p.rows) return;
    const Piece piece = {row, std::min(height, p.rows - row), column, std::min(width, all - column), shared ? 0 : column};
    run_piece(path, p, part, shared ? right : make_right_of(path, p, part, piece), piece);
  });
}

/* Group after group; images, if there are several, have whole tiles of columns. */
void run_parts(const Path& path, const Product& p) {
  const Chains& chains = *p.chains;
  const size_t groups = chains.groups.size() - 1;
  for (size_t group = 0; group < groups; ++group) {
    Part part{};
    const int64_t begin = chains.groups[group], end = chains.groups[group + 1];
    part.first = group == 0;
    part.last = group + 1 == groups;
    part.k0 = chains.starts[static_cast<size_t>(begin)];
    part.k = chains.starts[static_cast<size_t>(end)] - part.k0;
    part.chains = end - begin;
    for (int64_t chain = 0; chain < part.chains; ++chain) {
      part.ends[chain] = chains.starts[static_cast<size_t>(begin + chain + 1)] - part.k0;
    }
    run_part(path, p, part);
  }
}

}  // namespace

float* conv_buffer(ConvSlot slot, int64_t elements) {
  /* One cache line more: a packed block may be read a vector past its end. */
  return static_cast<float*>(thread_buffer(slot, sizeof(float) * static_cast<uint64_t>(elements) + 64));
}

Offsets grid(int64_t n, int64_t n_stride, int64_t rows, int64_t row_stride, int64_t columns, int64_t column_stride) {
  Offsets found;
  found.reserve(static_cast<size_t>(n * rows * columns));
  for (int64_t a = 0; a < n; ++a) {
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < columns; ++j) found.push_back(a * n_stride + i * row_stride + j * column_stride);
    }
  }
  return found;
}

Chains Chains::every(int64_t k) {
  Chains made;
  for (int64_t start = 0; start < k; start += MATMUL_CHUNK) {
    if (start % MATMUL_GROUP == 0) made.groups.push_back(start / MATMUL_CHUNK);
    made.starts.push_back(start);
  }
  made.groups.push_back(static_cast<int64_t>(made.starts.size()));
  made.starts.push_back(k);
  return made;
}

double work_of(const Product& p) {
  return static_cast<double>(p.rows) * static_cast<double>(p.images * p.columns) * static_cast<double>(p.chains->k());
}

/* Images that are no whole tiles are computed side by side and taken apart after. */
void multiply(const Path& path, const Product& p) {
  if (p.images == 1 || p.columns % path.matmul.tile_columns == 0) return run_parts(path, p);
  Product joined = p;
  joined.images = 1;
  joined.columns = p.images * p.columns;
  joined.out = conv_buffer(SLOT_RESULT, p.rows * joined.columns);
  run_parts(path, joined);
  parallel_for(p.images * p.rows, std::max<int64_t>(1, PIECE / p.columns), [&](int64_t begin, int64_t end) {
    for (int64_t at = begin; at < end; ++at) {
      const int64_t image = at / p.rows, row = at % p.rows;
      memcpy(p.out + image * p.image_stride + row * p.columns, joined.out + row * joined.columns + image * p.columns,
             sizeof(float) * static_cast<size_t>(p.columns));
    }
  });
}

}  // namespace identic
