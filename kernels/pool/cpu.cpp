/*
 * max_pool, max_pool_indices, max_pool_dx, sum_pool, sum_pool_dx.
 *                                                           rules: NUM-4, OP-40, OP-42, OP-43
 * Threads share pieces of rows of windows on the way forward, planes on the way back. A piece is
 * computed tap by tap, so that an element's taps come in their order and neighbouring windows make
 * one loop.
 */
#include "pool/cpu.h"

#include <cstring>
#include <vector>

#include "common/fp32.h"
#include "native/path.h"
#include "native/pool.h"

namespace identic {
namespace {

constexpr int64_t WORTH = 1 << 14;  /* steps worth a hand-over */
constexpr int64_t LENGTH = POOL_LENGTH;

int64_t grain_of(int64_t steps) { return std::max<int64_t>(1, WORTH / std::max<int64_t>(1, steps)); }

/* Orders as NUM-4 does: all NaNs equal and on top, -0 just below +0. Without branches, for vectors. */
int32_t rank(float x) {
  const int32_t u = static_cast<int32_t>(idn_bits(x));
  const int32_t ordered = u ^ ((u >> 31) & INT32_MAX);
  return (u & INT32_MAX) > 0x7f800000 ? INT32_MAX : ordered;
}

/* The number of a rank. */
float of_rank(int32_t r) {
  if (r == INT32_MAX) return idn_float(IDN_NAN_BITS);
  return idn_float(r < 0 ? ~static_cast<uint32_t>(r) | 0x80000000u : static_cast<uint32_t>(r));
}

constexpr int32_t LOWEST = INT32_MIN + 0x007fffff; /* rank of -inf */
constexpr int32_t NOTHING = INT32_MIN;             /* below every rank */

/* Some windows of one row: [first, first + count) of row `oh` of a plane. */
struct Piece {
  int64_t plane, oh, first, count, result;
};

/* Calls run(piece) for every row of windows, cut into pieces. */
template <class Run>
void each_piece(const PoolShape& s, Run run) {
  const int64_t steps = std::min(s.down.window, s.down.size) * std::min(s.across.window, s.across.size);
  const int64_t pieces = (s.across.count + LENGTH - 1) / LENGTH, length = std::min(LENGTH, s.across.count);
  parallel_for(s.planes * s.down.count * pieces, grain_of(length * steps), [&](int64_t begin, int64_t end) {
    for (int64_t at = begin; at < end; ++at) {
      const int64_t row = at / pieces, first = at % pieces * LENGTH;
      run(Piece{row / s.down.count, row % s.down.count, first, std::min(LENGTH, s.across.count - first),
                row * s.across.count + first});
    }
  });
}

/* Windows [first, stop) of a row whose tap is inside, and the place of the first; for the taps of a window. */
struct Reach {
  int64_t first, stop, place;
};

constexpr int64_t MOST_REACHES = 1 << 12;

class Reaches {
 public:
  explicit Reaches(const WindowAxis& axis) : axis_(axis) {
    /* Taps from this one on are inside for no window. */
    count_ = std::min(axis.window, (axis.before + axis.size + axis.dilation - 1) / axis.dilation);
    for (int64_t tap = 0; tap < std::min(count_, MOST_REACHES); ++tap) kept_.push_back(made(tap));
  }

  int64_t count() const { return count_; }
  Reach operator[](int64_t tap) const { return tap < MOST_REACHES ? kept_[static_cast<size_t>(tap)] : made(tap); }

 private:
  Reach made(int64_t tap) const {
    const int64_t first = axis_.first_window(tap);
    return {first, axis_.stop_window(tap), axis_.place(first, tap)};
  }

  const WindowAxis& axis_;
  int64_t count_;
  std::vector<Reach> kept_;
};

/*
 * Taps of a piece that lie inside, in order. Calls tap(begin, end, place): windows [begin, end) of the piece read
 * place, place + stride, ... of the plane.
 */
template <class Tap>
void each_tap(const PoolShape& s, const Reaches& reaches, const Piece& piece, Tap tap) {
  for (int64_t i = s.down.first_tap(piece.oh); i < s.down.stop_tap(piece.oh); ++i) {
    const int64_t row = s.down.place(piece.oh, i) * s.across.size;
    for (int64_t j = 0; j < reaches.count(); ++j) {
      const Reach reach = reaches[j];
      const int64_t first = std::max(piece.first, reach.first);
      const int64_t stop = std::min(piece.first + piece.count, reach.stop);
      if (first >= stop) continue;
      tap(first - piece.first, stop - piece.first, row + reach.place + (first - reach.first) * s.across.stride);
    }
  }
}

/* Places [begin, end) of one axis that the span of a window covers. */
struct Covered {
  int64_t begin, end;
  Covered(const WindowAxis& axis, int64_t number)
      : begin(std::max<int64_t>(0, axis.start(number))), end(std::min(axis.size, axis.start(number) + axis.span())) {}
};

/* position % size for positions below `most`: looked up where there are few, since a division takes longer. */
class Columns {
 public:
  Columns(int64_t most, int64_t size) : size_(size) {
    for (int64_t at = 0; most <= MOST_KEPT && at < most; ++at) kept_.push_back(static_cast<int32_t>(at % size));
  }

  int64_t of(int64_t position) const { return kept_.empty() ? position % size_ : kept_[static_cast<size_t>(position)]; }

 private:
  static constexpr int64_t MOST_KEPT = 1 << 14;
  int64_t size_;
  std::vector<int32_t> kept_;
};

bool all_finite(const float* x, int64_t n) {
  uint32_t most = 0;
  for (int64_t i = 0; i < n; ++i) most = std::max(most, idn_bits(x[i]) & 0x7fffffffu);
  return most < 0x7f800000u;
}

template <class Plane>
void each_plane(const PoolShape& s, int64_t steps, Plane run) {
  parallel_for(s.planes, grain_of(s.plane() + steps), [&](int64_t begin, int64_t end) {
    for (int64_t plane = begin; plane < end; ++plane) run(plane);
  });
}

void make_canonical(float* x, int64_t n) {
  for (int64_t i = 0; i < n; ++i) x[i] = idn_canon(x[i]);
}

void read_line(float* line, const float* from, int64_t stride, int64_t n) {
  if (stride == 1) {
    memcpy(line, from, sizeof(float) * static_cast<size_t>(n));
  } else {
    for (int64_t i = 0; i < n; ++i) line[i] = from[i * stride];
  }
}

/* Positions in planes of any size. */
void find_far_maxima(int64_t* out, const float* x, const PoolShape& s) {
  const Reaches reaches(s.across);
  each_piece(s, [&](const Piece& piece) {
    const float* from = x + piece.plane * s.plane();
    int64_t* at = out + piece.result;
    int32_t best[LENGTH];
    std::fill(best, best + piece.count, NOTHING);
    std::fill(at, at + piece.count, -1);
    each_tap(s, reaches, piece, [&](int64_t begin, int64_t end, int64_t place) {
      for (int64_t w = begin; w < end; ++w, place += s.across.stride) {
        const int32_t here = rank(from[place]);
        if (here > best[w]) at[w] = place;
        best[w] = std::max(here, best[w]);
      }
    });
  });
}

}  // namespace

void max_pool(float* out, const float* x, const PoolShape& s) {
  const PoolPath& path = current_path().pool;
  const Reaches reaches(s.across);
  each_piece(s, [&](const Piece& piece) {
    const float* from = x + piece.plane * s.plane();
    int32_t best[LENGTH];
    std::fill(best, best + piece.count, LOWEST);
    each_tap(s, reaches, piece, [&](int64_t begin, int64_t end, int64_t place) {
      path.raise_maxima(best + begin, from + place, s.across.stride, static_cast<int>(end - begin));
    });
    for (int64_t w = 0; w < piece.count; ++w) out[piece.result + w] = of_rank(best[w]);
  });
}

void max_pool_indices(int64_t* out, const float* x, const PoolShape& s, bool far) {
  if (far || s.plane() >= INT32_MAX) return find_far_maxima(out, x, s);
  const PoolPath& path = current_path().pool;
  const Reaches reaches(s.across);
  int32_t steps[LENGTH];
  /* Where a tap is inside for several windows, their distance is below the size of the plane. */
  for (int32_t w = 0; w < LENGTH; ++w) steps[w] = static_cast<int32_t>(static_cast<uint32_t>(w * s.across.stride));
  each_piece(s, [&](const Piece& piece) {
    const float* from = x + piece.plane * s.plane();
    int32_t best[LENGTH], at[LENGTH];
    std::fill(best, best + piece.count, NOTHING);
    std::fill(at, at + piece.count, -1);
    each_tap(s, reaches, piece, [&](int64_t begin, int64_t end, int64_t place) {
      path.find_maxima(best + begin, at + begin, from + place, s.across.stride, static_cast<int>(end - begin),
                       static_cast<int32_t>(place), steps);
    });
    std::copy(at, at + piece.count, out + piece.result);
  });
}

void max_pool_dx(float* out, const float* grad, const int64_t* indices, const PoolShape& s) {
  const Columns columns(std::min(s.down.span(), s.down.size) * s.across.size, s.across.size);
  each_plane(s, s.windows(), [&](int64_t plane) {
    const int64_t size = s.across.size, stride = s.across.stride, span = s.across.span(), count = s.across.count;
    float* to = out + plane * s.plane();
    memset(to, 0, sizeof(float) * static_cast<size_t>(s.plane()));
    const float* given = grad + plane * s.windows();
    const int64_t* index = indices + plane * s.windows();
    for (int64_t oh = 0; oh < s.down.count; ++oh) {
      const Covered rows(s.down, oh);
      const uint64_t first = static_cast<uint64_t>(rows.begin * size), places = static_cast<uint64_t>(rows.end * size) - first;
      if (rows.end <= rows.begin) continue;
      int64_t start = s.across.start(0);
      for (int64_t ow = 0; ow < count; ++ow, start += stride) {
        const uint64_t place = static_cast<uint64_t>(index[oh * count + ow]) - first;
        if (place >= places) continue;
        const int64_t column = columns.of(static_cast<int64_t>(place));
        if (column >= start && column < start + span) to[first + place] = to[first + place] + given[oh * count + ow];
      }
    }
    /* Sums of finite numbers from +0 on may overflow, but are no NaN. */
    if (!all_finite(given, s.windows())) make_canonical(to, s.plane());
  });
}

void sum_pool(float* out, const float* x, const PoolShape& s) {
  const Reaches reaches(s.across);
  each_piece(s, [&](const Piece& piece) {
    const float* from = x + piece.plane * s.plane();
    float sum[LENGTH];
    std::fill(sum, sum + piece.count, 0.0f);
    each_tap(s, reaches, piece, [&](int64_t begin, int64_t end, int64_t place) {
      float line[LENGTH];
      read_line(line, from + place, s.across.stride, end - begin);
      for (int64_t w = begin; w < end; ++w) sum[w] = sum[w] + line[w - begin];
    });
    for (int64_t w = 0; w < piece.count; ++w) out[piece.result + w] = idn_canon(sum[w]);
  });
}

void sum_pool_dx(float* out, const float* grad, const PoolShape& s) {
  const int64_t taps = std::min(s.down.window, s.down.size) * std::min(s.across.window, s.across.size);
  each_plane(s, s.windows() * taps, [&](int64_t plane) {
    float* to = out + plane * s.plane();
    memset(to, 0, sizeof(float) * static_cast<size_t>(s.plane()));
    const float* given = grad + plane * s.windows();
    for (int64_t oh = 0; oh < s.down.count; ++oh) {
      const Covered rows(s.down, oh);
      for (int64_t ow = 0; ow < s.across.count; ++ow, ++given) {
        const Covered columns(s.across, ow);
        for (int64_t i = rows.begin; i < rows.end; ++i) {
          float* row = to + i * s.across.size;
          for (int64_t j = columns.begin; j < columns.end; ++j) row[j] = row[j] + *given;
        }
      }
    }
    make_canonical(to, s.plane());
  });
}

}  // namespace identic
