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
constexpr int64_t PACKED_ROWS = 4096;        /* most rows or columns packed at a time */
constexpr int64_t PACKED_COLUMNS = 4096;
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

/* The panels of one group of k for a range of rows and one of columns. */
struct Packed {
  Panels left, right;
  int64_t row0, rows, column0, columns, k0, k;
};

void run_block(const Path& path, const Product& product, const Packed& packed, int64_t i, int64_t rows, int64_t j,
               int64_t columns) {
  const bool first = packed.k0 == 0;
  MatmulBlock block;
  block.out = product.out + (packed.row0 + i) * product.n + packed.column0 + j;
  block.out_stride = product.n;
  block.left = packed.left;
  block.right = packed.right;
  block.row = i;
  block.column = j;
  block.rows = rows;
  block.columns = columns;
  block.k = packed.k;
  block.first_group = first;
  block.last_group = packed.k0 + packed.k == product.k;
  block.group_stride = columns;
  block.group = first ? nullptr : buffer(SLOT_GROUP, rows * columns);
  path.matmul.multiply_block(block);
}

/* Packs rows [i, i + rows) of the packed range; i is a multiple of the tile's rows. */
void pack_left(const Path& path, const Product& product, const Packed& packed, int64_t i, int64_t rows) {
  const Strides& s = product.left_strides;
  const float* from = product.left + (packed.row0 + i) * s.row + packed.k0 * s.column;
  path.matmul.pack_left(packed.left, i, from, s.row, s.column, rows, product.m - packed.row0 - i, packed.k);
}

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

/* One product on the calling thread. */
void multiply_alone(const Path& path, const Product& product) {
  const int64_t tile_rows = path.matmul.tile_rows;
  const int64_t block_rows = round_up(BLOCK_ROWS_TARGET, tile_rows);
  const int64_t block_columns = round_up(BLOCK_COLUMNS, path.matmul.tile_columns);
  Packed packed{};
  for (packed.column0 = 0; packed.column0 < product.n; packed.column0 += packed.columns) {
    packed.columns = std::min(PACKED_COLUMNS, product.n - packed.column0);
    for (packed.k0 = 0; packed.k0 < product.k; packed.k0 += packed.k) {
      packed.k = std::min(MATMUL_GROUP, product.k - packed.k0);
      packed.right = room(SLOT_RIGHT, packed.columns, path.matmul.tile_columns, packed.k);
      pack_right(path, product, packed, 0, packed.columns);
      for (packed.row0 = 0; packed.row0 < product.m; packed.row0 += block_rows) {
        packed.rows = std::min(block_rows, product.m - packed.row0);
        packed.left = room(SLOT_LEFT, packed.rows, tile_rows, packed.k);
        pack_left(path, product, packed, 0, packed.rows);
        for (int64_t j = 0; j < packed.columns; j += block_columns) {
          run_block(path, product, packed, 0, packed.rows, j, std::min(block_columns, packed.columns - j));
        }
      }
    }
  }
}

/* Multiplies one packed range; blocks are made smaller when there are too few for the threads. */
void multiply_packed(const Path& path, const Product& product, const Packed& packed) {
  const int64_t wanted = 4 * threads();
  int64_t block_rows = round_up(BLOCK_ROWS_TARGET, path.matmul.tile_rows);
  int64_t block_columns = round_up(BLOCK_COLUMNS, path.matmul.tile_columns);
  auto count = [](int64_t whole, int64_t part) { return (whole + part - 1) / part; };
  while (block_columns > 4 * path.matmul.tile_columns &&
         count(packed.rows, block_rows) * count(packed.columns, block_columns) < wanted) {
    block_columns = round_up(block_columns / 2, path.matmul.tile_columns);
  }
  while (block_rows > 2 * path.matmul.tile_rows &&
         count(packed.rows, block_rows) * count(packed.columns, block_columns) < wanted) {
    block_rows = round_up(block_rows / 2, path.matmul.tile_rows);
  }
  const int64_t across = count(packed.columns, block_columns);
  parallel_for(count(packed.rows, block_rows) * across, 1, [&](int64_t begin, int64_t end) {
    for (int64_t at = begin; at < end; ++at) {
      const int64_t i = at / across * block_rows, j = at % across * block_columns;
      run_block(path, product, packed, i, std::min(block_rows, packed.rows - i), j,
                std::min(block_columns, packed.columns - j));
    }
  });
}

/* One product on all threads. */
void multiply_together(const Path& path, const Product& product) {
  const int64_t tile_rows = path.matmul.tile_rows, tile_columns = path.matmul.tile_columns;
  const int64_t packed_rows = round_up(PACKED_ROWS, tile_rows);
  Packed packed{};
  for (packed.column0 = 0; packed.column0 < product.n; packed.column0 += packed.columns) {
    packed.columns = std::min(PACKED_COLUMNS, product.n - packed.column0);
    for (packed.k0 = 0; packed.k0 < product.k; packed.k0 += packed.k) {
      packed.k = std::min(MATMUL_GROUP, product.k - packed.k0);
      packed.right = room(SLOT_RIGHT, packed.columns, tile_columns, packed.k);
      const int64_t right_panels = (packed.columns + tile_columns - 1) / tile_columns;
      for (packed.row0 = 0; packed.row0 < product.m; packed.row0 += packed.rows) {
        packed.rows = std::min(packed_rows, product.m - packed.row0);
        packed.left = room(SLOT_LEFT, packed.rows, tile_rows, packed.k);
        const int64_t left_panels = (packed.rows + tile_rows - 1) / tile_rows;
        const int64_t rights = packed.row0 == 0 ? right_panels : 0;
        parallel_for(rights + left_panels, 4, [&](int64_t begin, int64_t end) {
          for (int64_t at = begin; at < end; ++at) {
            if (at < rights) {
              const int64_t j = at * tile_columns;
              pack_right(path, product, packed, j, std::min(tile_columns, packed.columns - j));
            } else {
              const int64_t i = (at - rights) * tile_rows;
              pack_left(path, product, packed, i, std::min(tile_rows, packed.rows - i));
            }
          }
        });
        multiply_packed(path, product, packed);
      }
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
