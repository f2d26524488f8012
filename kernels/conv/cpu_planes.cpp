/* Copies tensors into planes with their padding; see planes.h.                 rules: OP-40, OP-41 */
#include <algorithm>
#include <cstring>

#include "conv/planes.h"
#include "conv/product.h"
#include "native/pool.h"

namespace identic {
namespace {

constexpr int64_t PIECE = 1 << 15; /* floats worth a hand-over */

int64_t count_of(int64_t whole, int64_t part) { return (whole + part - 1) / part; }

/* Most rows are too short to be worth a call. */
inline void copy_short(float* to, const float* from, int64_t n) {
  constexpr int64_t SOME = 8;
  for (; n >= SOME; n -= SOME, to += SOME, from += SOME) memcpy(to, from, sizeof(float) * SOME);
  for (int64_t i = 0; i < n && i < SOME; ++i) to[i] = from[i];
}

inline void clear_short(float* to, int64_t n) {
  constexpr int64_t SHORT = 8;
  if (n > SHORT) {
    memset(to, 0, sizeof(float) * static_cast<size_t>(n));
    return;
  }
#pragma GCC unroll 8
  for (int64_t i = 0; i < SHORT; ++i) {
    if (i >= n) return;
    to[i] = 0.0f;
  }
}

/* The rows of planes. Divisions are made once for all of them: one takes as long as a short row. */
class Rows {
 public:
  Rows(const Spread& down, const Spread& across, int64_t phases, int64_t length)
      : down_(down), across_(across), phases_(phases), length_(length), apart_(phases * across.every) {
    first_ = std::min(length, across.first < 0 ? count_of(-across.first, apart_) : 0);
    stop_ = across.first < across.size ? std::min(length, count_of(across.size - across.first, apart_)) : 0;
  }

  /* One plane from one of the tensor. */
  void fill(float* to, const float* from) const {
    const int64_t row = length_ * phases_;
    for (int64_t i = 0; i < down_.length; ++i, to += row) {
      const int64_t place = i * down_.every + down_.first, p = down_.step == 1 ? place : place / down_.step;
      if (place < 0 || p * down_.step != place || p >= down_.size) {
        memset(to, 0, sizeof(float) * static_cast<size_t>(row));
      } else {
        across_.step == 1 ? fill_row(to, from + p * across_.size) : spread_row(to, from + p * across_.size, row);
      }
    }
  }

 private:
  /* Column q of a phase is place q * apart + shift; columns that are no place are zeros. */
  void fill_row(float* to, const float* from) const {
    int64_t first = first_, stop = stop_, shift = across_.first;
    for (int64_t r = 0; r < phases_; ++r, to += length_, shift += across_.every) {
      /* Columns [first, stop) are places. From one phase to the next both fall by one at most. */
      if (first > 0 && (first - 1) * apart_ + shift >= 0) --first;
      if (stop > 0 && (stop - 1) * apart_ + shift >= across_.size) --stop;
      clear_short(to, first);
      if (apart_ == 1) {
        if (stop > first) copy_short(to + first, from + first + shift, stop - first);
      } else {
        for (int64_t q = first; q < stop; ++q) to[q] = from[q * apart_ + shift];
      }
      clear_short(to + std::max(first, stop), length_ - std::max(first, stop));
    }
  }

  /* With zeros between places there is one phase. */
  void spread_row(float* to, const float* from, int64_t row) const {
    memset(to, 0, sizeof(float) * static_cast<size_t>(row));
    for (int64_t p = 0; p < across_.size; ++p) {
      const int64_t at = p * across_.step - across_.first;
      if (at >= 0 && at < row) to[at] = from[p];
    }
  }

  const Spread &down_, &across_;
  int64_t phases_, length_, apart_;
  int64_t first_, stop_; /* of phase 0 */
};

}  // namespace

bool fits(const Spread& down, const Spread& across, int64_t phases, int64_t count, int64_t most) {
  const __int128 row = static_cast<__int128>(count_of(across.length, phases)) * phases;
  const __int128 plane = row * down.length;
  return plane <= most && plane * count <= most;
}

Planes make_planes(const float* x, int64_t count, const Spread& down, const Spread& across, int64_t phases) {
  const int64_t length = count_of(across.length, phases), row = length * phases, plane = row * down.length;
  if (down.plain() && across.plain() && phases == 1) return {x, plane, row, 1, length};
  float* data = conv_buffer(SLOT_PLANES, plane * count);
  const Rows rows(down, across, phases, length);
  parallel_for(count, std::max<int64_t>(1, PIECE / std::max<int64_t>(1, plane)), [&](int64_t begin, int64_t end) {
    for (int64_t at = begin; at < end; ++at) rows.fill(data + at * plane, x + at * down.size * across.size);
  });
  return {data, plane, row, phases, length};
}

}  // namespace identic
