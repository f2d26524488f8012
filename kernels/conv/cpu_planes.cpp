/* Copies tensors into planes with their padding; see planes.h.                 rules: OP-40, OP-41 */
#include <cstring>

#include "conv/planes.h"
#include "conv/product.h"
#include "native/pool.h"

namespace identic {
namespace {

constexpr int64_t PIECE = 1 << 15; /* floats worth a hand-over */

int64_t count_of(int64_t whole, int64_t part) { return (whole + part - 1) / part; }

/* One row of length floats a phase, the first phase's columns 0, phases, 2 * phases, ... */
void fill_row(float* to, const float* from, const Spread& across, int64_t phases, int64_t length) {
  for (int64_t r = 0; r < phases; ++r, to += length) {
    if (across.step == 1) {
      /* Column q of the phase is place q * apart + shift. */
      const int64_t apart = phases * across.every, shift = r * across.every + across.first;
      const int64_t first = std::min(length, shift < 0 ? count_of(-shift, apart) : 0);
      const int64_t stop = shift < across.size ? std::min(length, count_of(across.size - shift, apart)) : 0;
      memset(to, 0, sizeof(float) * static_cast<size_t>(first));
      if (apart == 1) {
        if (stop > first) memcpy(to + first, from + first + shift, sizeof(float) * static_cast<size_t>(stop - first));
      } else {
        for (int64_t q = first; q < stop; ++q) to[q] = from[q * apart + shift];
      }
      const int64_t end = std::max(first, stop);
      memset(to + end, 0, sizeof(float) * static_cast<size_t>(length - end));
    } else {
      memset(to, 0, sizeof(float) * static_cast<size_t>(length));
      for (int64_t p = 0; p < across.size; ++p) {
        const int64_t at = p * across.step - across.first;
        if (at >= 0 && at < length) to[at] = from[p];
      }
    }
  }
}

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
  parallel_for(count, std::max<int64_t>(1, PIECE / std::max<int64_t>(1, plane)), [&](int64_t begin, int64_t end) {
    for (int64_t at = begin; at < end; ++at) {
      const float* from = x + at * down.size * across.size;
      float* to = data + at * plane;
      for (int64_t i = 0; i < down.length; ++i, to += row) {
        const int64_t place = i * down.every + down.first, p = place / down.step;
        if (place < 0 || place % down.step != 0 || p >= down.size) {
          memset(to, 0, sizeof(float) * static_cast<size_t>(row));
        } else {
          fill_row(to, from + p * across.size, across, phases, length);
        }
      }
    }
  });
  return {data, plane, row, phases, length};
}

}  // namespace identic
