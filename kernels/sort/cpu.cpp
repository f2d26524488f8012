/*
 * argsort, argtopk: rows are shared between threads.                                             rule: OP-31
 *
 * An element becomes an unsigned key that grows in sorting order. Keys with their positions are all
 * different, so any way of sorting them gives the one order: a comparison sort for short rows and for
 * the few largest, digits of eight bits from the lowest on for long rows.
 */
#include "sort/cpu.h"

#include <algorithm>
#include <vector>

#include "common/fp32.h"
#include "native/pool.h"

namespace identic {
namespace {

constexpr int64_t PIECE = 1 << 12;
constexpr int64_t SHORT_ROW = 512;
constexpr int DIGIT_BITS = 8;
constexpr int DIGITS = 1 << DIGIT_BITS;

/* OP-31: -0 is equal to +0, and every NaN is equal and above all numbers. */
uint32_t key_of(float x) {
  if (x != x) return ~0u;
  const uint32_t u = x == 0.0f ? 0 : idn_bits(x);
  return u >> 31 ? ~u : u | 1u << 31;
}
uint64_t key_of(int64_t x) { return static_cast<uint64_t>(x) ^ 1ull << 63; }
uint32_t key_of(int32_t x) { return static_cast<uint32_t>(x) ^ 1u << 31; }

template <class K>
struct Keyed {
  K key;
  int64_t position;
  bool operator<(const Keyed& other) const {
    return key != other.key ? key < other.key : position < other.position;
  }
};

/* Sorts by digits; `all` has positions in ascending order, and `room` as many elements. */
template <class K>
void sort_by_digits(std::vector<Keyed<K>>& all, std::vector<Keyed<K>>& room) {
  for (int shift = 0; shift < static_cast<int>(8 * sizeof(K)); shift += DIGIT_BITS) {
    int64_t next[DIGITS] = {};
    for (const auto& one : all) ++next[(one.key >> shift) % DIGITS];
    if (*std::max_element(next, next + DIGITS) == static_cast<int64_t>(all.size())) continue;
    int64_t total = 0;
    for (int64_t& place : next) {
      const int64_t count = place;
      place = total;
      total += count;
    }
    for (const auto& one : all) room[static_cast<size_t>(next[(one.key >> shift) % DIGITS]++)] = one;
    all.swap(room);
  }
}

}  // namespace

template <class T>
void argsort(int64_t* out, const T* x, int64_t rows, int64_t n, int64_t count, bool descending) {
  using K = decltype(key_of(T{}));
  if (count == 0) return;
  parallel_for(rows, std::max<int64_t>(1, PIECE / n), [&](int64_t begin, int64_t end) {
    std::vector<Keyed<K>> all(static_cast<size_t>(n)), room;
    const bool few = count < n / 8;
    if (n > SHORT_ROW && !few) room.resize(all.size());
    for (int64_t r = begin; r < end; ++r) {
      for (int64_t i = 0; i < n; ++i) {
        const K key = key_of(x[r * n + i]);
        all[static_cast<size_t>(i)] = {descending ? static_cast<K>(~key) : key, i};
      }
      if (few) {
        std::partial_sort(all.begin(), all.begin() + count, all.end());
      } else if (room.empty()) {
        std::sort(all.begin(), all.end());
      } else {
        sort_by_digits(all, room);
      }
      for (int64_t i = 0; i < count; ++i) out[r * count + i] = all[static_cast<size_t>(i)].position;
    }
  });
}

template void argsort<float>(int64_t*, const float*, int64_t, int64_t, int64_t, bool);
template void argsort<int64_t>(int64_t*, const int64_t*, int64_t, int64_t, int64_t, bool);
template void argsort<int32_t>(int64_t*, const int32_t*, int64_t, int64_t, int64_t, bool);

}  // namespace identic
