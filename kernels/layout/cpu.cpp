/*
 * copy_strided and full: slices, concatenations, paddings, permutations and expansions are one copy
 * between two strided views.
 *
 * Axes are walked in the order of the destination. Where the source runs along another axis than
 * the destination, blocks of the two axes are transposed, so that both sides touch whole lines.
 */
#include "layout/cpu.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "native/path.h"
#include "native/pool.h"
#include "native/strided.h"

namespace identic {
namespace {

constexpr int64_t PIECE = 1 << 15;
constexpr int64_t BLOCK = 64;  /* side of a transposed block: two of them fit the first cache */

template <class T>
void copy_row(T* out, int64_t out_stride, const T* x, int64_t x_stride, int64_t n) {
  if (out_stride == 1 && x_stride == 1) {
    memcpy(out, x, sizeof(T) * static_cast<size_t>(n));
  } else if (out_stride == 1 && x_stride == 0) {
    std::fill(out, out + n, *x);
  } else if (out_stride == 1) {
    for (int64_t i = 0; i < n; ++i) out[i] = x[i * x_stride];
  } else {
    for (int64_t i = 0; i < n; ++i) out[i * out_stride] = x[i * x_stride];
  }
}

template <class T>
void transpose_block(T* out, int64_t out_stride, const T* x, int64_t x_stride, int64_t rows, int64_t columns) {
  if constexpr (sizeof(T) == 4) {
    current_path().layout.transpose(out, out_stride, x, x_stride, rows, columns);
  } else {
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < columns; ++j) out[i * out_stride + j] = x[j * x_stride + i];
    }
  }
}

/* Axes of more than one element, those with the longest steps of the destination first, merged. */
Walk<2> ordered(const Sizes& out_strides, const Sizes& x_strides, const Sizes& shape) {
  std::vector<size_t> order(shape.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return out_strides[a] > out_strides[b]; });
  Walk<2> walk;
  for (size_t axis : order) {
    walk.shape.push_back(shape[axis]);
    walk.strides[0].push_back(out_strides[axis]);
    walk.strides[1].push_back(x_strides[axis]);
  }
  walk.merge();
  return walk;
}

/* The axis along which the source runs, when it is worth transposing with the last; otherwise the last. */
size_t source_axis(const Walk<2>& walk) {
  const size_t last = walk.shape.size() - 1;
  if (walk.strides[0][last] != 1 || walk.strides[1][last] <= 1 || walk.shape[last] < 4) return last;
  for (size_t axis = 0; axis < last; ++axis) {
    if (walk.strides[1][axis] == 1 && walk.shape[axis] >= 4) return axis;
  }
  return last;
}

template <class T>
void copy_rows(T* out, const T* x, const Walk<2>& walk) {
  const int64_t out_stride = walk.strides[0].back(), x_stride = walk.strides[1].back();
  parallel_for(walk.elements(), PIECE, [&](int64_t begin, int64_t end) {
    walk.run(begin, end, [&](int64_t, const int64_t* starts, int64_t n) {
      copy_row(out + starts[0], out_stride, x + starts[1], x_stride, n);
    });
  });
}

/* The last axis of the destination against the given axis of the source, in blocks; other axes around. */
template <class T>
void copy_transposed(T* out, const T* x, const Walk<2>& walk, size_t axis) {
  const size_t last = walk.shape.size() - 1;
  const int64_t rows = walk.shape[axis], columns = walk.shape[last];
  const int64_t out_stride = walk.strides[0][axis], x_stride = walk.strides[1][last];
  Walk<2> around;
  for (size_t other = 0; other < last; ++other) {
    if (other == axis) continue;
    around.shape.push_back(walk.shape[other]);
    for (int o = 0; o < 2; ++o) around.strides[o].push_back(walk.strides[o][other]);
  }
  /* Blocks of the two axes are one more axis of the walk; it steps by counting only. */
  const int64_t row_blocks = (rows + BLOCK - 1) / BLOCK, column_blocks = (columns + BLOCK - 1) / BLOCK;
  const int64_t blocks = row_blocks * column_blocks;
  around.merge();
  parallel_for(around.elements() * blocks, std::max<int64_t>(1, PIECE / (BLOCK * BLOCK)), [&](int64_t begin, int64_t end) {
    for (int64_t outer = begin / blocks; outer * blocks < end; ++outer) {
      around.run(outer, outer + 1, [&](int64_t, const int64_t* starts, int64_t) {
        const int64_t first = std::max(begin, outer * blocks) - outer * blocks;
        const int64_t stop = std::min(end, (outer + 1) * blocks) - outer * blocks;
        for (int64_t b = first; b < stop; ++b) {
          const int64_t i = b / column_blocks * BLOCK, j = b % column_blocks * BLOCK;
          transpose_block(out + starts[0] + i * out_stride + j, out_stride, x + starts[1] + j * x_stride + i, x_stride,
                          std::min(BLOCK, rows - i), std::min(BLOCK, columns - j));
        }
      });
    }
  });
}

template <class T>
void copy_elements(void* out, const void* x, const Walk<2>& walk) {
  const size_t axis = source_axis(walk);
  if (axis + 1 == walk.shape.size()) {
    copy_rows(static_cast<T*>(out), static_cast<const T*>(x), walk);
  } else {
    copy_transposed(static_cast<T*>(out), static_cast<const T*>(x), walk, axis);
  }
}

template <class T>
void fill(void* out, uint64_t pattern, int64_t n) {
  T* to = static_cast<T*>(out);
  parallel_for(n, PIECE, [&](int64_t begin, int64_t end) { std::fill(to + begin, to + end, static_cast<T>(pattern)); });
}

}  // namespace

void copy_strided(int bytes, void* out, const Sizes& out_strides, const void* x, const Sizes& x_strides,
                  const Sizes& shape) {
  for (int64_t size : shape) {
    if (size == 0) return;
  }
  const Walk<2> walk = ordered(out_strides, x_strides, shape);
  switch (bytes) {
    case 1: return copy_elements<uint8_t>(out, x, walk);
    case 2: return copy_elements<uint16_t>(out, x, walk);
    case 4: return copy_elements<uint32_t>(out, x, walk);
    default: return copy_elements<uint64_t>(out, x, walk);
  }
}

void full(int bytes, void* out, uint64_t pattern, int64_t n) {
  switch (bytes) {
    case 1: return fill<uint8_t>(out, pattern, n);
    case 2: return fill<uint16_t>(out, pattern, n);
    case 4: return fill<uint32_t>(out, pattern, n);
    default: return fill<uint64_t>(out, pattern, n);
  }
}

}  // namespace identic
