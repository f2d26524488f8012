/*
 * conv, conv_dx, conv_dw one element at a time.                       rules: NUM-10, OP-40, OP-41
 *
 * No memory is needed besides the result, whatever the shapes are.
 */
#include "common/fp32.h"
#include "conv/cpu.h"
#include "native/path.h"
#include "native/pool.h"

namespace identic {
namespace {

constexpr int64_t PIECE = 1 << 12; /* products worth a hand-over */

/* NUM-10 over products that come one by one. */
class Contraction {
 public:
  void product(float a, float b) {
    if (k_ % MATMUL_CHUNK == 0 && k_ > 0) close_chunk();
    chain_ = idn_fma(a, b, chain_);
    ++k_;
  }

  float result() {
    if (k_ == 0) return 0.0f;
    close_chunk();
    if (group_started_) close_group();
    return idn_canon(total_);
  }

 private:
  void close_chunk() {
    group_ = group_started_ ? group_ + chain_ : chain_;
    group_started_ = true;
    chain_ = 0.0f;
    if (k_ % MATMUL_GROUP == 0) close_group();
  }

  void close_group() {
    total_ = total_started_ ? total_ + group_ : group_;
    total_started_ = true;
    group_started_ = false;
  }

  float chain_ = 0.0f, group_ = 0.0f, total_ = 0.0f;
  bool group_started_ = false, total_started_ = false;
  int64_t k_ = 0;
};

/* Calls compute(position) for every element of out. */
template <class Compute>
void each(float* out, int64_t elements, int64_t products, Compute compute) {
  const int64_t grain = std::max<int64_t>(1, PIECE / std::max<int64_t>(1, products));
  parallel_for(elements, grain, [&](int64_t begin, int64_t end) {
    for (int64_t at = begin; at < end; ++at) out[at] = compute(at);
  });
}

/* Window that reads `place` with its tap, or -1. */
int64_t meeting(const WindowAxis& axis, int64_t place, int64_t tap) {
  const int64_t from = place + axis.before - tap * axis.dilation;
  return from >= 0 && from % axis.stride == 0 && from / axis.stride < axis.count ? from / axis.stride : -1;
}

}  // namespace

void conv_plain(float* out, const float* x, const float* w, const ConvShape& s) {
  const WindowAxis &down = s.down, &across = s.across;
  const int64_t products = s.channels * s.taps();
  each(out, s.batch * s.groups * s.outputs * s.windows(), products, [&](int64_t at) {
    const int64_t ow = at % across.count, oh = at / across.count % down.count;
    const int64_t o = at / s.windows() % (s.groups * s.outputs), n = at / s.windows() / (s.groups * s.outputs);
    const float* plane = x + (n * s.groups + o / s.outputs) * s.channels * s.plane();
    const float* kernel = w + o * products;
    Contraction sum;
    for (int64_t c = 0; c < s.channels; ++c, plane += s.plane()) {
      for (int64_t i = 0; i < down.window; ++i) {
        for (int64_t j = 0; j < across.window; ++j) {
          const int64_t h = down.place(oh, i), v = across.place(ow, j);
          const bool inside = down.inside(h) && across.inside(v);
          /* OP-41: +0 stands for an element in the padding. */
          sum.product(inside ? plane[h * across.size + v] : 0.0f, *kernel++);
        }
      }
    }
    return sum.result();
  });
}

float conv_dx_element(const float* grad, const float* w, const ConvShape& s, int64_t at) {
  const WindowAxis &down = s.down, &across = s.across;
  const int64_t v = at % across.size, h = at / across.size % down.size;
  const int64_t c = at / s.plane() % (s.groups * s.channels), n = at / s.plane() / (s.groups * s.channels);
  const int64_t group = c / s.channels;
  const float* plane = grad + (n * s.groups + group) * s.outputs * s.windows();
  Contraction sum;
  for (int64_t o = 0; o < s.outputs; ++o, plane += s.windows()) {
    const float* kernel = w + ((group * s.outputs + o) * s.channels + c % s.channels) * s.taps();
    for (int64_t i = 0; i < down.window; ++i) {
      for (int64_t j = 0; j < across.window; ++j) {
        const int64_t oh = meeting(down, h, i), ow = meeting(across, v, j);
        /* OP-41: +0 stands for an element between two windows. */
        sum.product(oh >= 0 && ow >= 0 ? plane[oh * across.count + ow] : 0.0f, *kernel++);
      }
    }
  }
  return sum.result();
}

void conv_dx_plain(float* out, const float* grad, const float* w, const ConvShape& s) {
  each(out, s.batch * s.groups * s.channels * s.plane(), s.outputs * s.taps(),
       [&](int64_t at) { return conv_dx_element(grad, w, s, at); });
}

void conv_dw_plain(float* out, const float* grad, const float* x, const ConvShape& s) {
  const WindowAxis &down = s.down, &across = s.across;
  const int64_t products = s.batch * s.windows();
  each(out, s.groups * s.outputs * s.channels * s.taps(), products, [&](int64_t at) {
    const int64_t j = at % across.window, i = at / across.window % down.window;
    const int64_t c = at / s.taps() % s.channels, o = at / s.taps() / s.channels;
    Contraction sum;
    for (int64_t n = 0; n < s.batch; ++n) {
      const float* given = grad + (n * s.groups * s.outputs + o) * s.windows();
      const float* plane = x + ((n * s.groups + o / s.outputs) * s.channels + c) * s.plane();
      for (int64_t oh = 0; oh < down.count; ++oh) {
        for (int64_t ow = 0; ow < across.count; ++ow) {
          const int64_t h = down.place(oh, i), v = across.place(ow, j);
          const bool inside = down.inside(h) && across.inside(v);
          /* OP-41: +0 stands for an element in the padding. */
          sum.product(*given++, inside ? plane[h * across.size + v] : 0.0f);
        }
      }
    }
    return sum.result();
  });
}

}  // namespace identic
