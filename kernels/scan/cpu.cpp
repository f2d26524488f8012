/*
 * cumsum: rows are shared between threads; a row is one chain after another.         rules: OP-30, NUM-13
 *
 * A block's chain does not depend on the blocks before it, so four blocks of a row advance together and
 * the totals before each of them are added when all four are there.
 */
#include "scan/cpu.h"

#include <algorithm>
#include <type_traits>

#include "common/fp32.h"
#include "native/pool.h"

namespace identic {
namespace {

constexpr int64_t CHAIN = 256; /* NUM-13 */
constexpr int64_t ABREAST = 4;
constexpr int64_t PIECE = 1 << 14;

int64_t rows_of(int64_t n) { return std::max<int64_t>(1, PIECE / std::max<int64_t>(n, 1)); }

/* The chains of ABREAST whole blocks, one beside the other. */
void chain_blocks(float* out, const float* x) {
  float sum[ABREAST] = {};
  for (int64_t i = 0; i < CHAIN; ++i) {
    for (int64_t b = 0; b < ABREAST; ++b) {
      sum[b] = sum[b] + x[b * CHAIN + i];
      out[b * CHAIN + i] = sum[b];
    }
  }
}

void chain_block(float* out, const float* x, int64_t n) {
  float sum = 0.0f;
  for (int64_t i = 0; i < n; ++i) out[i] = sum = sum + x[i];
}

void sum_row(float* out, const float* x, int64_t n) {
  int64_t first = 0;
  for (; first + ABREAST * CHAIN <= n; first += ABREAST * CHAIN) chain_blocks(out + first, x + first);
  for (; first < n; first += CHAIN) chain_block(out + first, x + first, std::min(CHAIN, n - first));
  /* `before` is what the chain's last element was before it became a result. */
  float before = 0.0f;
  for (int64_t block = 0; block < n; block += CHAIN) {
    const int64_t end = std::min(block + CHAIN, n);
    const float total = out[end - 1];
    for (int64_t i = block; i < end; ++i) out[i] = idn_canon(block ? before + out[i] : out[i]);
    before = block ? before + total : total;
  }
}

}  // namespace

void cumsum(float* out, const float* x, int64_t rows, int64_t n) {
  parallel_for(rows, rows_of(n), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) sum_row(out + r * n, x + r * n, n);
  });
}

template <class T>
void cumsum_integers(T* out, const T* x, int64_t rows, int64_t n) {
  using N = std::make_unsigned_t<T>;
  parallel_for(rows, rows_of(n), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      N sum = 0;
      for (int64_t i = r * n; i < (r + 1) * n; ++i) out[i] = static_cast<T>(sum += static_cast<N>(x[i]));
    }
  });
}

template void cumsum_integers<int64_t>(int64_t*, const int64_t*, int64_t, int64_t);
template void cumsum_integers<int32_t>(int32_t*, const int32_t*, int64_t, int64_t);

}  // namespace identic
