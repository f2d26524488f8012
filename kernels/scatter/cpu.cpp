/*
 * set_rows, scatter, scatter_add.                                                rules: OP-4, OP-32, NUM-14
 *
 * A line is the places along the axis that share all other coordinates. A line belongs to one thread,
 * which goes through its indices in order; set_rows writes only the last source row of each row.
 */
#include "scatter/cpu.h"

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>

#include "common/fp32.h"
#include "native/pool.h"
#include "native/strided.h"

namespace identic {
namespace {

constexpr int64_t PIECE_BYTES = 1 << 17;
constexpr int64_t PIECE = 1 << 14;
constexpr int64_t CHUNK = 256; /* NUM-14 */

/* OP-4: an index outside the axis writes nothing. */
bool inside(int64_t index, int64_t size) { return index >= 0 && index < size; }

void copy_all(void* out, const void* x, int64_t bytes) {
  parallel_for(bytes, PIECE_BYTES, [&](int64_t begin, int64_t end) {
    memcpy(static_cast<uint8_t*>(out) + begin, static_cast<const uint8_t*>(x) + begin,
           static_cast<size_t>(end - begin));
  });
}

/* The lines of an index of some shape: where each starts in x and in the index, and the steps along it. */
struct Lines {
  Walk<2> walk;
  int64_t size;     /* places of x along the axis */
  int64_t indices;  /* indices of a line */
  int64_t x_step = 1, step = 1;

  Lines(const Sizes& x_shape, const Sizes& shape, size_t axis) : size(x_shape[axis]), indices(shape[axis]) {
    walk.shape = shape;
    walk.shape[axis] = 1;
    for (Sizes* strides : {&walk.strides[0], &walk.strides[1]}) strides->resize(shape.size());
    int64_t x_stride = 1, stride = 1;
    for (size_t a = shape.size(); a-- > 0;) {
      walk.strides[0][a] = x_stride;
      walk.strides[1][a] = stride;
      if (a == axis) {
        x_step = x_stride;
        step = stride;
      }
      x_stride *= x_shape[a];
      stride *= shape[a];
    }
  }

  /* Calls line(start in x, start in the index) for every line; `line` is made anew for each thread's piece. */
  template <class Make>
  void each(Make make) {
    const int64_t count = walk.elements();
    if (count == 0 || indices == 0) return;
    walk.merge();
    parallel_for(count, std::max<int64_t>(1, PIECE / indices), [&](int64_t begin, int64_t end) {
      auto line = make();
      walk.run(begin, end, [&](int64_t, const int64_t* starts, int64_t n) {
        for (int64_t i = 0; i < n; ++i) {
          line(starts[0] + i * walk.strides[0].back(), starts[1] + i * walk.strides[1].back());
        }
      });
    });
  }
};

template <class T>
void scatter_elements(T* out, const Sizes& x_shape, Indices index, const T* src, const Sizes& shape, size_t axis) {
  Lines lines(x_shape, shape, axis);
  lines.each([&] {
    return [&](int64_t there, int64_t here) {
      for (int64_t j = 0; j < lines.indices; ++j, here += lines.step) {
        const int64_t at = index[here];
        if (inside(at, lines.size)) out[there + at * lines.x_step] = src[here];
      }
    };
  });
}

}  // namespace

void set_rows(void* out, const void* init, int64_t rows, int64_t row_bytes, Indices index, const void* src,
              int64_t count) {
  copy_all(out, init, rows * row_bytes);
  if (rows * row_bytes == 0) return;
  /* OP-32: the last write to a row stays. */
  std::vector<int64_t> last(static_cast<size_t>(rows), -1);
  std::vector<int64_t> hit;
  for (int64_t t = 0; t < count; ++t) {
    if (!inside(index[t], rows)) continue;
    int64_t& one = last[static_cast<size_t>(index[t])];
    if (one < 0) hit.push_back(index[t]);
    one = t;
  }
  const int64_t grain = std::max<int64_t>(1, PIECE_BYTES / row_bytes);
  parallel_for(static_cast<int64_t>(hit.size()), grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t row = hit[static_cast<size_t>(i)];
      memcpy(static_cast<uint8_t*>(out) + row * row_bytes,
             static_cast<const uint8_t*>(src) + last[static_cast<size_t>(row)] * row_bytes,
             static_cast<size_t>(row_bytes));
    }
  });
}

void scatter(int bytes, void* out, const void* x, const Sizes& x_shape, Indices index, const void* src,
             const Sizes& shape, size_t axis) {
  int64_t all = bytes;
  for (int64_t n : x_shape) all *= n;
  copy_all(out, x, all);
  const auto write = [&](auto* null) {
    using T = std::remove_pointer_t<decltype(null)>;
    scatter_elements(static_cast<T*>(out), x_shape, index, static_cast<const T*>(src), shape, axis);
  };
  switch (bytes) {
    case 1: return write(static_cast<uint8_t*>(nullptr));
    case 2: return write(static_cast<uint16_t*>(nullptr));
    case 4: return write(static_cast<uint32_t*>(nullptr));
    default: return write(static_cast<uint64_t*>(nullptr));
  }
}

void scatter_add(float* out, const float* x, const Sizes& x_shape, Indices index, const float* src,
                 const Sizes& shape, size_t axis) {
  int64_t all = sizeof(float);
  for (int64_t n : x_shape) all *= n;
  copy_all(out, x, all);
  Lines lines(x_shape, shape, axis);
  lines.each([&] {
    /* Indices of a line as (place, position), so that each place's are next to each other and ascending. */
    std::vector<std::pair<int64_t, int64_t>> found;
    return [&, found](int64_t there, int64_t here) mutable {
      /* NUM-14: partials of +0 change a -0 and NaN bits only, so one addition stands for all empty chunks. */
      for (int64_t p = 0; p < lines.size; ++p) {
        float& one = out[there + p * lines.x_step];
        one = idn_canon(one + 0.0f);
      }
      found.clear();
      for (int64_t j = 0; j < lines.indices; ++j) {
        const int64_t at = index[here + j * lines.step];
        if (inside(at, lines.size)) found.emplace_back(at, j);
      }
      std::sort(found.begin(), found.end());
      for (size_t i = 0; i < found.size();) {
        const auto [place, first] = found[i];
        float partial = 0.0f;
        for (; i < found.size() && found[i].first == place && found[i].second / CHUNK == first / CHUNK; ++i) {
          partial = partial + src[here + found[i].second * lines.step];
        }
        float& one = out[there + place * lines.x_step];
        one = idn_canon(one + partial);
      }
    };
  });
}

}  // namespace identic
