/*
 * matmul: out[b,m,n] = sum_k left[b,m,k] * right[b,k,n], binary32.            rules: NUM-10, NUM-11
 *
 * Every element is computed by one thread in the order of NUM-10; which thread, and in which block,
 * changes nothing. Small batched products are spread over the batch, large ones over blocks of the
 * result with both operands packed once by all threads.
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
constexpr int64_t PLAIN_COLUMNS = 128;       /* for so few, panels of the left operand are not worth making */
constexpr int64_t ALONE = 1 << 18;           /* products of fewer multiply-adds are not worth sharing */

enum Slot { SLOT_LEFT, SLOT_RIGHT, SLOT_GROUP };

int64_t round_up(int64_t x, int64_t to) { return (x + to - 1) / to * to; }

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

/* One group of k for a range of columns: the right operand's panels. */
struct Packed {
  Panels right;
  int64_t column0, columns, k0, k;
};

void pack_right(const Path& path, const Product& product, const Packed& packed, int64_t j, int64_t columns) {
  const Strides& s = product.right_strides;
  const float* from = product.right + packed.k0 * s.row + (packed.column0 + j) * s.column;
  path.matmul.pack_right(packed.right, j, from, s.row, s.column, columns, packed.k);
}

/* Room for lines, rounded up to whole panels, of k elements each. */
Panels room(Slot slot, int64_t lines, int64_t tile, int64_t k) {
  const int64_t rounded = round_up(lines, tile);
  return {buffer(slot, rounded * k), rounded};
}

/*
 * Rows [i, i + rows) by columns [j, j + columns) of the packed range, chunk by chunk: the left panels of a chunk are
 * made when it is their turn, and stay in a near cache for all columns.
 */
void multiply_rows(const Path& path, const Product& product, const Packed& packed, int64_t i, int64_t rows, int64_t j,
                   int64_t columns) {
  const Strides& s = product.left_strides;
  const float* left = product.left + i * s.row + packed.k0 * s.column;
  MatmulBlock block;
  block.out_stride = product.n;
  block.right = packed.right;
  block.row = 0;
  block.rows = rows;
  block.k = packed.k;
  block.first_group = packed.k0 == 0;
  block.last_group = packed.k0 + packed.k == product.k;
  block.group_stride = columns;
  float* group = block.first_group ? nullptr : buffer(SLOT_GROUP, rows * columns);
  const bool plain = s.column == 1 && columns <= PLAIN_COLUMNS;
  if (plain) {
    block.plain_left = left;
    block.left_row = s.row;
  }
  const int64_t block_columns = round_up(BLOCK_COLUMNS, path.matmul.tile_columns);
  for (block.begin = 0; block.begin < packed.k; block.begin = block.end) {
    block.end = std::min(block.begin + MATMUL_CHUNK, packed.k);
    if (!plain) {
      block.left = room(SLOT_LEFT, rows, path.matmul.tile_rows, block.end - block.begin);
      path.matmul.pack_left(block.left, 0, left + block.begin * s.column, s.row, s.column, rows, product.m - i,
                            block.end - block.begin);
    }
    for (int64_t part = 0; part < columns; part += block_columns) {
      block.column = j + part;
      block.columns = std::min(block_columns, columns - part);
      block.out = product.out + i * product.n + packed.column0 + block.column;
      block.group = group ? group + part : nullptr;
      path.matmul.multiply_block(block);
    }
  }
}

/* One product on the calling thread. */
void multiply_alone(const Path& path, const Product& product) {
  const int64_t block_rows = round_up(BLOCK_ROWS_TARGET, path.matmul.tile_rows);
  Packed packed{};
  for (packed.column0 = 0; packed.column0 < product.n; packed.column0 += packed.columns) {
    packed.columns = std::min(PACKED_COLUMNS, product.n - packed.column0);
    for (packed.k0 = 0; packed.k0 < product.k; packed.k0 += packed.k) {
      packed.k = std::min(MATMUL_GROUP, product.k - packed.k0);
      packed.right = room(SLOT_RIGHT, packed.columns, path.matmul.tile_columns, packed.k);
      pack_right(path, product, packed, 0, packed.columns);
      for (int64_t i = 0; i < product.m; i += block_rows) {
        multiply_rows(path, product, packed, i, std::min(block_rows, product.m - i), 0, packed.columns);
      }
    }
  }
}

/* All rows of a packed range; blocks are made smaller when there are too few for the threads. */
void multiply_packed(const Path& path, const Product& product, const Packed& packed) {
  const int64_t wanted = 4 * threads();
  int64_t block_rows = round_up(BLOCK_ROWS_TARGET, path.matmul.tile_rows);
  int64_t block_columns = round_up(BLOCK_COLUMNS, path.matmul.tile_columns);
  auto count = [](int64_t whole, int64_t part) { return (whole + part - 1) / part; };
  while (block_rows > 4 * path.matmul.tile_rows &&
         count(product.m, block_rows) * count(packed.columns, block_columns) < wanted) {
    block_rows = round_up(block_rows / 2, path.matmul.tile_rows);
  }
  while (block_columns > 4 * path.matmul.tile_columns &&
         count(product.m, block_rows) * count(packed.columns, block_columns) < wanted) {
    block_columns = round_up(block_columns / 2, path.matmul.tile_columns);
  }
  const int64_t across = count(packed.columns, block_columns);
  parallel_for(count(product.m, block_rows) * across, 1, [&](int64_t begin, int64_t end) {
    for (int64_t at = begin; at < end; ++at) {
      const int64_t i = at / across * block_rows, j = at % across * block_columns;
      multiply_rows(path, product, packed, i, std::min(block_rows, product.m - i), j,
                    std::min(block_columns, packed.columns - j));
    }
  });
}

/* One product on all threads. */
void multiply_together(const Path& path, const Product& product) {
  const int64_t tile_columns = path.matmul.tile_columns;
  Packed packed{};
  for (packed.column0 = 0; packed.column0 < product.n; packed.column0 += packed.columns) {
    packed.columns = std::min(PACKED_COLUMNS, product.n - packed.column0);
    for (packed.k0 = 0; packed.k0 < product.k; packed.k0 += packed.k) {
      packed.k = std::min(MATMUL_GROUP, product.k - packed.k0);
      packed.right = room(SLOT_RIGHT, packed.columns, tile_columns, packed.k);
      parallel_for((packed.columns + tile_columns - 1) / tile_columns, 4, [&](int64_t begin, int64_t end) {
        const int64_t j = begin * tile_columns;
        pack_right(path, product, packed, j, std::min(end * tile_columns, packed.columns) - j);
      });
      multiply_packed(path, product, packed);
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
      for (int64_t index = begin; index < end; ++index) multiply_alone(path, product(index));
    });
    return;
  }
  for (int64_t index = 0; index < batch; ++index) multiply_together(path, product(index));
}

}  // namespace identic
