/*
 * matmul: out[b,m,n] = sum_k left[b,m,k] * right[b,k,n], binary32.            rules: NUM-10, NUM-11
 *
 * Every element is computed by one thread in the order of NUM-10; which thread, and in which block,
 * changes nothing. Small batched products are spread over the batch, large ones over rectangles of the
 * result.
 */
#include "matmul/cpu.h"

#include <algorithm>
#include <cstring>

#include "native/path.h"
#include "native/pool.h"

namespace identic {
namespace {

constexpr int64_t BLOCK_ROWS_TARGET = 192;   /* rows of a block: their chunk of 256 k fits a private cache */
constexpr int64_t BLOCK_COLUMNS = 512;
constexpr int64_t PACKED_COLUMNS = 4096;     /* most columns packed at a time */
constexpr int64_t PACKED_ROWS = 2048;        /* most rows whose panels all threads share */
constexpr int64_t GROUP_ROWS = 2048;         /* most rows, and most elements, whose later groups one thread sums at a time */
constexpr int64_t GROUP_ELEMENTS = 1 << 20;
constexpr int64_t PLAIN_COLUMNS = 128;       /* for so few, panels of the left operand are not worth making */
constexpr int64_t PLAIN_PANELS = 4;          /* the same where its rows lie side by side: each panel fetches every line again */
constexpr int64_t PLAIN_STEP = 256;          /* ... and k are no further apart: else its lines fight for one place of a cache */
constexpr int64_t ALONE = 1 << 18;           /* products of fewer multiply-adds are not worth sharing */
constexpr int FEW_THREADS = 2;               /* more would make the same panels more often */
constexpr int64_t PIECES = 16;               /* of a thread in a chunk: they even out unequal cores */
constexpr int64_t PACKED_PANELS = 8;         /* packed at a time */

enum Slot { SLOT_LEFT, SLOT_RIGHT, SLOT_GROUP };

int64_t round_up(int64_t x, int64_t to) { return (x + to - 1) / to * to; }
int64_t count_of(int64_t whole, int64_t part) { return (whole + part - 1) / part; }

float* buffer(Slot slot, int64_t elements) {
  /* One cache line more: a packed block may be read a vector past its end. */
  return static_cast<float*>(thread_buffer(slot, sizeof(float) * static_cast<uint64_t>(elements) + 64));
}

/* One product of the batch. */
struct Product {
  float* out;
  const float* left;
  const float* right;
  int64_t m, n, k;
  Strides left_strides, right_strides;
};

/* A rectangle of the result. */
struct Part {
  int64_t row, rows, column, columns;
};

/* Whether the left operand is taken as it is. */
bool is_plain(const Path& path, const Product& product, const Part& part) {
  const Strides& s = product.left_strides;
  if (s.column == 1) return part.columns <= PLAIN_COLUMNS;
  return s.row == 1 && s.column <= PLAIN_STEP && part.columns <= PLAIN_PANELS * path.matmul.tile_columns;
}

/* Room for lines, rounded up to whole panels, of k elements each. */
Panels room(Slot slot, int64_t lines, int64_t tile, int64_t k) {
  const int64_t rounded = round_up(lines, tile);
  return {buffer(slot, rounded * k), rounded};
}

/* Adds one chunk of k to a part, whose right panels are made: block after block of rows, each with its left panels. */
void add_chunk(const Path& path, const Product& product, const Part& part, int64_t k0, MatmulBlock block) {
  const Strides& s = product.left_strides;
  const int64_t block_rows = round_up(BLOCK_ROWS_TARGET, path.matmul.tile_rows);
  const int64_t block_columns = round_up(BLOCK_COLUMNS, path.matmul.tile_columns);
  const bool plain = is_plain(path, product, part);
  float* const group = block.group;
  for (int64_t i = 0; i < part.rows; i += block_rows) {
    const float* left = product.left + (part.row + i) * s.row + k0 * s.column;
    block.rows = std::min(block_rows, part.rows - i);
    if (plain) {
      block.plain_left = left;
      block.left_row = s.row;
      block.left_column = s.column;
    } else {
      const int64_t k = block.end - block.begin;
      block.left = room(SLOT_LEFT, block.rows, path.matmul.tile_rows, k);
      path.matmul.pack_left(block.left, 0, left + block.begin * s.column, s.row, s.column, block.rows,
                            product.m - part.row - i, k);
    }
    for (block.column = 0; block.column < part.columns; block.column += block_columns) {
      block.columns = std::min(block_columns, part.columns - block.column);
      block.out = product.out + (part.row + i) * product.n + part.column + block.column;
      block.group = group ? group + i * block.group_stride + block.column : nullptr;
      path.matmul.multiply_block(block);
    }
  }
}

/* A part that is packed at once: chunk after chunk of k, so that the panels of one stay near. */
void multiply_packed(const Path& path, const Product& product, const Part& part) {
  const Strides& s = product.right_strides;
  MatmulBlock block{};
  block.out_stride = product.n;
  block.group_stride = part.columns;
  for (int64_t k0 = 0; k0 < product.k; k0 += block.k) {
    block.k = std::min(MATMUL_GROUP, product.k - k0);
    block.first_group = k0 == 0;
    block.last_group = k0 + block.k == product.k;
    block.group = block.first_group ? nullptr : buffer(SLOT_GROUP, part.rows * part.columns);
    for (block.begin = 0; block.begin < block.k; block.begin = block.end) {
      block.end = std::min(block.begin + MATMUL_CHUNK, block.k);
      const int64_t k = block.end - block.begin;
      const float* right = product.right + (k0 + block.begin) * s.row + part.column * s.column;
      block.right = room(SLOT_RIGHT, part.columns, path.matmul.tile_columns, k);
      path.matmul.pack_right(block.right, 0, right, s.row, s.column, part.columns, k);
      add_chunk(path, product, part, k0, block);
    }
  }
}

/* A part on the calling thread. */
void multiply_part(const Path& path, const Product& product, const Part& part) {
  /* The sums of later groups need room for as many elements as are packed at once. */
  const bool grouped = product.k > MATMUL_GROUP;
  const int64_t rows = grouped ? std::min(part.rows, GROUP_ROWS) : part.rows;
  const int64_t columns = grouped ? std::min(PACKED_COLUMNS, GROUP_ELEMENTS / rows) : PACKED_COLUMNS;
  for (int64_t j = 0; j < part.columns; j += columns) {
    for (int64_t i = 0; i < part.rows; i += rows) {
      multiply_packed(path, product, {part.row + i, std::min(rows, part.rows - i), part.column + j,
                                      std::min(columns, part.columns - j)});
    }
  }
}

/* A chunk of k: [begin, end) of the group of `length` that starts at k0. */
struct Chunk {
  int64_t k0, length, begin, end;
};

/*
 * A rectangle of the result on all threads. While they multiply the panels of one chunk they make those of the next, so that
 * they wait for each other once a chunk. Each panel is made once.
 */
class Together {
 public:
  Together(const Path& path, const Product& product, const Part& part)
      : path_(path),
        product_(product),
        part_(part),
        plain_(is_plain(path, product, part)),
        rows_(round_up(part.rows, path.matmul.tile_rows)),
        columns_(round_up(part.columns, path.matmul.tile_columns)) {
    const int64_t k = std::min(MATMUL_CHUNK, product.k);
    if (!plain_) left_ = buffer(SLOT_LEFT, 2 * rows_ * k);
    right_ = buffer(SLOT_RIGHT, 2 * columns_ * k);
    group_ = product.k > MATMUL_GROUP ? buffer(SLOT_GROUP, part.rows * part.columns) : nullptr;
    cut();
  }

  void run() {
    Chunk now = first(0);
    parallel_each(packings(), [&](int64_t i) { pack(now, 0, i); });
    for (int half = 0;; half = 1 - half) {
      const bool ends = now.k0 + now.end == product_.k;
      const Chunk next = ends ? now : now.end == now.length ? first(now.k0 + now.length) : within(now.k0, now.length, now.end);
      parallel_each(down_ * across_ + (ends ? 0 : packings()), [&](int64_t i) {
        i < down_ * across_ ? multiply(now, half, i) : pack(next, 1 - half, i - down_ * across_);
      });
      if (ends) return;
      now = next;
    }
  }

 private:
  static Chunk within(int64_t k0, int64_t length, int64_t begin) {
    return {k0, length, begin, std::min(begin + MATMUL_CHUNK, length)};
  }
  Chunk first(int64_t k0) const { return within(k0, std::min(MATMUL_GROUP, product_.k - k0), 0); }

  /* Pieces as square as can be, of whole tiles. */
  void cut() {
    const int64_t tile_rows = path_.matmul.tile_rows, tile_columns = path_.matmul.tile_columns;
    const int64_t wanted = PIECES * threads();
    piece_rows_ = std::min(rows_, round_up(BLOCK_ROWS_TARGET, tile_rows));
    piece_columns_ = std::min(columns_, round_up(BLOCK_COLUMNS, tile_columns));
    while (count_of(rows_, piece_rows_) * count_of(columns_, piece_columns_) < wanted) {
      if (piece_columns_ > piece_rows_ && piece_columns_ > 2 * tile_columns) {
        piece_columns_ = round_up(piece_columns_ / 2, tile_columns);
      } else if (piece_rows_ > 4 * tile_rows) {
        piece_rows_ = round_up(piece_rows_ / 2, tile_rows);
      } else if (piece_columns_ > 2 * tile_columns) {
        piece_columns_ = round_up(piece_columns_ / 2, tile_columns);
      } else {
        break;
      }
    }
    down_ = count_of(rows_, piece_rows_);
    across_ = count_of(columns_, piece_columns_);
  }

  int64_t left_packings() const { return plain_ ? 0 : count_of(rows_ / path_.matmul.tile_rows, PACKED_PANELS); }
  int64_t packings() const {
    return left_packings() + count_of(columns_ / path_.matmul.tile_columns, PACKED_PANELS);
  }
  Panels left(int half) const { return {left_ + half * rows_ * std::min(MATMUL_CHUNK, product_.k), rows_}; }
  Panels right(int half) const { return {right_ + half * columns_ * std::min(MATMUL_CHUNK, product_.k), columns_}; }

  /* Some panels of a chunk: of the left operand, then of the right. */
  void pack(const Chunk& chunk, int half, int64_t index) const {
    const int64_t k = chunk.end - chunk.begin, k0 = chunk.k0 + chunk.begin;
    const int64_t lefts = left_packings();
    if (index < lefts) {
      const Strides& s = product_.left_strides;
      const int64_t i = index * PACKED_PANELS * path_.matmul.tile_rows, row = part_.row + i;
      const int64_t lines = std::min(PACKED_PANELS * path_.matmul.tile_rows, part_.rows - i);
      path_.matmul.pack_left(left(half), i, product_.left + row * s.row + k0 * s.column, s.row, s.column, lines,
                             product_.m - row, k);
      return;
    }
    const Strides& s = product_.right_strides;
    const int64_t j = (index - lefts) * PACKED_PANELS * path_.matmul.tile_columns;
    const int64_t lines = std::min(PACKED_PANELS * path_.matmul.tile_columns, part_.columns - j);
    path_.matmul.pack_right(right(half), j, product_.right + k0 * s.row + (part_.column + j) * s.column, s.row, s.column,
                            lines, k);
  }

  /* One piece of the rectangle. */
  void multiply(const Chunk& chunk, int half, int64_t index) const {
    const Strides& s = product_.left_strides;
    MatmulBlock block{};
    block.row = index / across_ * piece_rows_;
    block.column = index % across_ * piece_columns_;
    block.rows = std::min(piece_rows_, part_.rows - block.row);
    block.columns = std::min(piece_columns_, part_.columns - block.column);
    block.out = product_.out + (part_.row + block.row) * product_.n + part_.column + block.column;
    block.out_stride = product_.n;
    if (plain_) {
      block.plain_left = product_.left + part_.row * s.row + chunk.k0 * s.column;
      block.left_row = s.row;
      block.left_column = s.column;
    } else {
      block.left = left(half);
    }
    block.right = right(half);
    block.k = chunk.length;
    block.begin = chunk.begin;
    block.end = chunk.end;
    block.first_group = chunk.k0 == 0;
    block.last_group = chunk.k0 + chunk.length == product_.k;
    block.group = group_ ? group_ + block.row * part_.columns + block.column : nullptr;
    block.group_stride = part_.columns;
    path_.matmul.multiply_block(block);
  }

  const Path& path_;
  const Product& product_;
  const Part part_;
  const bool plain_;
  const int64_t rows_, columns_;        /* rounded up to whole tiles */
  float *left_ = nullptr, *right_, *group_;  /* panels of two chunks; sums of a later group */
  int64_t piece_rows_, piece_columns_, down_, across_;
};

/*
 * One product on a few threads, each with a strip across the longer side that shares no panels with the others: what threads
 * write for each other travels far where their processors have no cache in common, and costs more than a panel made twice.
 */
void multiply_apart(const Path& path, const Product& product) {
  const bool by_rows = product.m >= product.n;
  const int64_t side = by_rows ? product.m : product.n;
  const int64_t strip = round_up(count_of(side, threads()), by_rows ? path.matmul.tile_rows : path.matmul.tile_columns);
  parallel_each(count_of(side, strip), [&](int64_t i) {
    const int64_t at = i * strip, length = std::min(strip, side - at);
    multiply_part(path, product, by_rows ? Part{at, length, 0, product.n} : Part{0, product.m, at, length});
  });
}

/* One product on all threads. */
void multiply_together(const Path& path, const Product& product) {
  for (int64_t j = 0; j < product.n; j += PACKED_COLUMNS) {
    for (int64_t i = 0; i < product.m; i += PACKED_ROWS) {
      Together(path, product, {i, std::min(PACKED_ROWS, product.m - i), j, std::min(PACKED_COLUMNS, product.n - j)}).run();
    }
  }
}

}  // namespace

void matmul(float* out, const float* left, const float* right, int64_t batch, int64_t m, int64_t n, int64_t k,
            Strides left_strides, Strides right_strides) {
  if (batch == 0 || m == 0 || n == 0) return;
  if (k == 0) {
    /* NUM-10: an empty contraction is +0. */
    memset(out, 0, sizeof(float) * static_cast<size_t>(batch * m * n));
    return;
  }
  const Path& path = current_path();
  auto product = [&](int64_t index) {
    return Product{out + index * m * n, left + index * left_strides.batch, right + index * right_strides.batch,
                   m, n, k, left_strides, right_strides};
  };
  const double work = static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  const bool small = work < 16.0 * ALONE && batch > 1;
  if (threads() == 1 || small || work < ALONE || batch >= 4 * threads()) {
    const int64_t grain = std::max<int64_t>(1, static_cast<int64_t>(ALONE / work));
    parallel_for(batch, grain, [&](int64_t begin, int64_t end) {
      for (int64_t index = begin; index < end; ++index) multiply_part(path, product(index), {0, m, 0, n});
    });
    return;
  }
  const auto multiply = threads() <= FEW_THREADS ? multiply_apart : multiply_together;
  for (int64_t index = 0; index < batch; ++index) multiply(path, product(index));
}

}  // namespace identic
