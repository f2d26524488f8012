/*
 * sum_last, sum_first, amax, argmax: cuts rows, columns and chunks between threads.
 *                                                              rules: NUM-4, NUM-9, NUM-12, NUM-13
 * A row is summed by one thread. A column sum's chunks of 256 rows are independent: where there
 * are few columns, threads share the chunks and the results are added in order afterwards.
 */
#include "reduce/cpu.h"

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <vector>

#include "common/fp32.h"
#include "native/path.h"
#include "native/pool.h"

namespace identic {
namespace {

constexpr int64_t PIECE = 1 << 15;      /* elements worth a hand-over */
constexpr int64_t CHUNK_ROWS = 256;     /* NUM-13 */
constexpr int64_t COLUMN_BLOCK = 512;   /* columns summed at a time by one thread */

int64_t rows_of(int64_t n) { return std::max<int64_t>(1, PIECE / std::max<int64_t>(n, 1)); }

/* Chunks of columns [j, j + columns) in order; room has that many elements. */
void sum_column_block(const ReducePath& path, float* out, const float* x, int64_t n, int64_t inner, int64_t columns,
                      float* room) {
  for (int64_t row = 0; row < n; row += CHUNK_ROWS) {
    const int64_t rows = std::min(CHUNK_ROWS, n - row);
    const bool last = row + rows == n;
    path.sum_chunk(row == 0 ? out : room, x + row * inner, rows, inner, columns);
    if (row > 0) path.add_row(out, room, columns, last);
  }
  if (n <= CHUNK_ROWS) {
    for (int64_t j = 0; j < columns; ++j) out[j] = idn_canon(out[j]);
  }
}

/* All chunks apart, then their results added in order. */
void sum_few_columns(const ReducePath& path, float* out, const float* x, int64_t n, int64_t inner) {
  const int64_t chunks = (n + CHUNK_ROWS - 1) / CHUNK_ROWS;
  std::vector<float> results(static_cast<size_t>(chunks * inner));
  parallel_for(chunks, std::max<int64_t>(1, PIECE / (CHUNK_ROWS * inner)), [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; ++c) {
      const int64_t row = c * CHUNK_ROWS;
      path.sum_chunk(results.data() + c * inner, x + row * inner, std::min(CHUNK_ROWS, n - row), inner, inner);
    }
  });
  memcpy(out, results.data(), sizeof(float) * static_cast<size_t>(inner));
  for (int64_t c = 1; c < chunks; ++c) path.add_row(out, results.data() + c * inner, inner, false);
  for (int64_t j = 0; j < inner; ++j) out[j] = idn_canon(out[j]);
}

/* NUM-4: all NaNs rank equal and above everything else; -0 ranks just below +0. */
int64_t rank(float x) {
  if (x != x) return INT64_MAX;
  const uint32_t u = idn_bits(x);
  return u >> 31 ? -static_cast<int64_t>(u & 0x7fffffffu) - 1 : static_cast<int64_t>(u);
}

int64_t rank(int64_t x) { return x; }
int64_t rank(int32_t x) { return x; }

template <class T>
void first_of_largest(int64_t* out, const T* x, int64_t rows, int64_t n) {
  parallel_for(rows, rows_of(n), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const T* row = x + r * n;
      int64_t best = 0, best_rank = rank(row[0]);
      for (int64_t i = 1; i < n; ++i) {
        const int64_t here = rank(row[i]);
        if (here > best_rank) {
          best = i;
          best_rank = here;
        }
      }
      out[r] = best;
    }
  });
}

}  // namespace

void sum_last(float* out, const float* x, int64_t rows, int64_t n) {
  const ReducePath& path = current_path().reduce;
  parallel_for(rows, rows_of(n), [&](int64_t begin, int64_t end) {
    path.sum_rows(out + begin, x + begin * n, end - begin, n);
  });
}

void sum_first(float* out, const float* x, int64_t n, int64_t inner) {
  if (inner == 0) return;
  if (n == 0) {
    memset(out, 0, sizeof(float) * static_cast<size_t>(inner));
    return;
  }
  const ReducePath& path = current_path().reduce;
  const int64_t blocks = (inner + COLUMN_BLOCK - 1) / COLUMN_BLOCK;
  if (blocks < 2 * threads() && n > 4 * CHUNK_ROWS && threads() > 1) {
    sum_few_columns(path, out, x, n, inner);
    return;
  }
  parallel_for(blocks, std::max<int64_t>(1, PIECE / (COLUMN_BLOCK * n)), [&](int64_t begin, int64_t end) {
    float room[COLUMN_BLOCK];
    for (int64_t b = begin; b < end; ++b) {
      const int64_t j = b * COLUMN_BLOCK;
      sum_column_block(path, out + j, x + j, n, inner, std::min(COLUMN_BLOCK, inner - j), room);
    }
  });
}

void amax(float* out, const float* x, int64_t rows, int64_t n) {
  const ReducePath& path = current_path().reduce;
  parallel_for(rows, rows_of(n), [&](int64_t begin, int64_t end) {
    path.maximum_rows(out + begin, x + begin * n, end - begin, n);
  });
}

void argmax(int64_t* out, const float* x, int64_t rows, int64_t n) { first_of_largest(out, x, rows, n); }

template <class T>
void sum_last_integers(T* out, const T* x, int64_t rows, int64_t n) {
  using N = std::make_unsigned_t<T>;
  parallel_for(rows, rows_of(n), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      N sum = 0;
      for (int64_t i = 0; i < n; ++i) sum += static_cast<N>(x[r * n + i]);
      out[r] = static_cast<T>(sum);
    }
  });
}

template <class T>
void sum_first_integers(T* out, const T* x, int64_t n, int64_t inner) {
  using N = std::make_unsigned_t<T>;
  parallel_for(inner, rows_of(n), [&](int64_t begin, int64_t end) {
    for (int64_t j = begin; j < end; ++j) {
      N sum = 0;
      for (int64_t r = 0; r < n; ++r) sum += static_cast<N>(x[r * inner + j]);
      out[j] = static_cast<T>(sum);
    }
  });
}

template <class T>
void amax_integers(T* out, const T* x, int64_t rows, int64_t n) {
  parallel_for(rows, rows_of(n), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) out[r] = *std::max_element(x + r * n, x + (r + 1) * n);
  });
}

template <class T>
void argmax_integers(int64_t* out, const T* x, int64_t rows, int64_t n) { first_of_largest(out, x, rows, n); }

#define IDN_INSTANTIATE(T)                                                     \
  template void sum_last_integers<T>(T*, const T*, int64_t, int64_t);          \
  template void sum_first_integers<T>(T*, const T*, int64_t, int64_t);         \
  template void amax_integers<T>(T*, const T*, int64_t, int64_t);              \
  template void argmax_integers<T>(int64_t*, const T*, int64_t, int64_t);
IDN_INSTANTIATE(int64_t)
IDN_INSTANTIATE(int32_t)

}  // namespace identic
