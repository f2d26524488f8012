/*
 * take_rows, take_windows, gather, add_rows.                                      rules: NUM-14, OP-4
 *
 * add_rows sorts the source positions by row, keeping their order, so that each row is summed by
 * one thread in ascending position whatever the indices are.
 */
#include "index/cpu.h"

#include <algorithm>
#include <cstring>

#include "native/path.h"
#include "native/pool.h"
#include "native/strided.h"

namespace identic {
namespace {

constexpr int64_t PIECE_BYTES = 1 << 17;
constexpr int64_t PIECE = 1 << 14;
constexpr int64_t CHUNK = 256;         /* NUM-14 */
constexpr int64_t COLUMN_BLOCK = 1024; /* columns of a row that one thread sums at a time */

int64_t pieces_of(int64_t bytes) { return std::max<int64_t>(1, PIECE_BYTES / std::max<int64_t>(bytes, 1)); }

/* OP-4: an index outside the table reads zeros. */
bool inside(int64_t index, int64_t size) { return index >= 0 && index < size; }

template <class T>
void gather_elements(T* out, const T* x, const Sizes& x_shape, Indices index, const Sizes& shape, size_t axis) {
  Walk<1> walk{shape, {Sizes(shape.size())}};
  int64_t stride = 1, along = 1;
  for (size_t a = shape.size(); a-- > 0;) {
    walk.strides[0][a] = a == axis ? 0 : stride;
    if (a == axis) along = stride;
    stride *= x_shape[a];
  }
  const int64_t size = x_shape[axis];
  const int64_t n = walk.elements();
  if (n == 0) return;
  walk.merge();
  const int64_t step = walk.strides[0].back();
  parallel_for(n, PIECE, [&](int64_t begin, int64_t end) {
    walk.run(begin, end, [&](int64_t position, const int64_t* starts, int64_t count) {
      for (int64_t i = 0; i < count; ++i) {
        const int64_t at = index[position + i];
        out[position + i] = inside(at, size) ? x[starts[0] + i * step + at * along] : T{0};
      }
    });
  });
}

/* Source positions grouped by row, ascending within a row. */
struct Grouped {
  std::vector<int64_t> positions;  /* all positions with an index inside, by row */
  std::vector<int64_t> rows;       /* rows that are hit */
  std::vector<int64_t> starts;     /* where each of them starts in positions, and the end */
};

Grouped group_by_row(Indices index, int64_t count, int64_t rows) {
  std::vector<int64_t> next(static_cast<size_t>(rows) + 1, 0);
  for (int64_t t = 0; t < count; ++t) {
    if (inside(index[t], rows)) ++next[static_cast<size_t>(index[t]) + 1];
  }
  Grouped grouped;
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t hits = next[static_cast<size_t>(r) + 1];
    if (hits) {
      grouped.rows.push_back(r);
      grouped.starts.push_back(next[static_cast<size_t>(r)]);
    }
    next[static_cast<size_t>(r) + 1] += next[static_cast<size_t>(r)];
  }
  grouped.starts.push_back(next[static_cast<size_t>(rows)]);
  grouped.positions.resize(static_cast<size_t>(next[static_cast<size_t>(rows)]));
  for (int64_t t = 0; t < count; ++t) {
    if (inside(index[t], rows)) grouped.positions[static_cast<size_t>(next[static_cast<size_t>(index[t])]++)] = t;
  }
  return grouped;
}

/* out += the partial sums of one row's sources, chunk by chunk. */
void add_sources(const ReducePath& path, float* out, const float* src, int64_t inner, const int64_t* positions,
                 int64_t count, int64_t columns) {
  float partial[COLUMN_BLOCK];
  for (int64_t first = 0; first < count;) {
    const int64_t chunk = positions[first] / CHUNK;
    memset(partial, 0, sizeof(float) * static_cast<size_t>(columns));
    for (; first < count && positions[first] / CHUNK == chunk; ++first) {
      path.add_row(partial, src + positions[first] * inner, columns, false);
    }
    path.add_row(out, partial, columns, true);
  }
}

}  // namespace

void take_rows(void* out, const void* table, Indices index, int64_t count, int64_t rows, int64_t row_bytes) {
  if (row_bytes == 0) return;
  const size_t bytes = static_cast<size_t>(row_bytes);
  parallel_for(count, pieces_of(row_bytes), [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      uint8_t* to = static_cast<uint8_t*>(out) + t * row_bytes;
      const int64_t at = index[t];
      if (inside(at, rows)) {
        memcpy(to, static_cast<const uint8_t*>(table) + at * row_bytes, bytes);
      } else {
        memset(to, 0, bytes);
      }
    }
  });
}

void take_windows(int bytes, void* out, const void* tokens, int64_t size, Indices starts, int64_t count,
                  int64_t length) {
  if (length == 0) return;
  parallel_for(count, pieces_of(length * bytes), [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      uint8_t* to = static_cast<uint8_t*>(out) + b * length * bytes;
      const int64_t start = starts[b];
      /* OP-4: a negative start reads zeros all along. Differences only, so that nothing overflows. */
      const int64_t kept = inside(start, size) ? std::min(length, size - start) : 0;
      if (kept) memcpy(to, static_cast<const uint8_t*>(tokens) + start * bytes, static_cast<size_t>(kept * bytes));
      memset(to + kept * bytes, 0, static_cast<size_t>((length - kept) * bytes));
    }
  });
}

void gather(int bytes, void* out, const void* x, const Sizes& x_shape, Indices index, const Sizes& shape, size_t axis) {
  switch (bytes) {
    case 1: return gather_elements(static_cast<uint8_t*>(out), static_cast<const uint8_t*>(x), x_shape, index, shape, axis);
    case 2: return gather_elements(static_cast<uint16_t*>(out), static_cast<const uint16_t*>(x), x_shape, index, shape, axis);
    case 4: return gather_elements(static_cast<uint32_t*>(out), static_cast<const uint32_t*>(x), x_shape, index, shape, axis);
    default: return gather_elements(static_cast<uint64_t*>(out), static_cast<const uint64_t*>(x), x_shape, index, shape, axis);
  }
}

void add_rows(float* out, const float* init, int64_t rows, int64_t inner, Indices index, const float* src,
              int64_t count) {
  const ReducePath& path = current_path().reduce;
  const int64_t total = rows * inner;
  static const float ZEROS[COLUMN_BLOCK] = {};
  parallel_for(total, PIECE, [&](int64_t begin, int64_t end) {
    memcpy(out + begin, init + begin, sizeof(float) * static_cast<size_t>(end - begin));
    if (count == 0) return;
    /* NUM-14: partials of +0 change a -0 and NaN bits only, so one addition stands for all empty chunks. */
    for (int64_t j = begin; j < end; j += COLUMN_BLOCK) {
      path.add_row(out + j, ZEROS, std::min(COLUMN_BLOCK, end - j), true);
    }
  });
  if (count == 0 || total == 0) return;
  const Grouped grouped = group_by_row(index, count, rows);
  const int64_t blocks = (inner + COLUMN_BLOCK - 1) / COLUMN_BLOCK;
  const int64_t tasks = static_cast<int64_t>(grouped.rows.size()) * blocks;
  parallel_for(tasks, pieces_of(8 * std::min(inner, COLUMN_BLOCK)), [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const size_t which = static_cast<size_t>(task / blocks);
      const int64_t j = task % blocks * COLUMN_BLOCK;
      const int64_t first = grouped.starts[which], stop = grouped.starts[which + 1];
      add_sources(path, out + grouped.rows[which] * inner + j, src + j, inner, grouped.positions.data() + first,
                  stop - first, std::min(COLUMN_BLOCK, inner - j));
    }
  });
}

}  // namespace identic
