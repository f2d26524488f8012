/*
 * conv_dx with a stride: the places of one phase of the stride at a time.    rules: NUM-10, OP-41
 *
 * Of a place's taps only those of its phase meet a window; the others are products with +0. They
 * are left out here. That gives the same bits, for finite kernels, except where a result is -0:
 *
 *   A product of +0 with a finite number is +0 or -0. Added to a chain that is not zero it changes
 *   nothing, to +0 neither. To -0 it gives +0 or -0. From there on the two chains can differ in
 *   the sign of a zero only, the one with all products having +0 where they differ. So do the
 *   chains' sums. A result other than -0 is therefore that of the rule.
 *
 * A chain is -0 only after an underflow. Such results are computed again with every product, and
 * where they are many, everything is.
 */
#include "conv/phases.h"

#include <atomic>
#include <cstring>

#include "common/fp32.h"
#include "conv/planes.h"
#include "conv/product.h"
#include "native/pool.h"

namespace identic {
namespace {

constexpr int64_t PIECE = 1 << 15;
constexpr int64_t MOST_PHASES = 1024; /* of both axes together */
constexpr int64_t ONE_IN = 1024;      /* of the results may be computed again one by one */
constexpr uint32_t MINUS_ZERO = 0x80000000u;

int64_t floor_of(int64_t x, int64_t by) { return x >= 0 ? x / by : -((-x + by - 1) / by); }

bool all_finite(const float* x, int64_t n) {
  std::atomic<bool> finite{true};
  parallel_for(n, PIECE, [&](int64_t begin, int64_t end) {
    uint32_t most = 0;
    for (int64_t i = begin; i < end; ++i) most = std::max(most, idn_bits(x[i]) & 0x7fffffffu);
    if (most >= 0x7f800000u) finite = false;
  });
  return finite;
}

/* Windows as a place sees them: results of neighbouring windows are neighbours in the planes. */
Spread met(const WindowAxis& a) {
  const int64_t first = floor_of(a.before - a.span() + 1, a.stride);
  return {a.count, 1, first, floor_of(a.size - 1 + a.before, a.stride) - first + 1};
}

/* The places of one axis from `first` on, every stride-th, and what they meet. */
struct Phase {
  int64_t first, count;
  int64_t window;      /* in the planes, that the first place and a tap at distance 0 would meet */
  Offsets taps, steps; /* taps of this phase, and where they meet a window, from there */

  Phase(const WindowAxis& a, const Spread& planes, int64_t first_place) : first(first_place) {
    count = (a.size - 1 - first) / a.stride + 1;
    const int64_t rest = (first + a.before) % a.stride;
    window = (first + a.before) / a.stride - planes.first;
    for (int64_t tap = 0; tap < a.window; ++tap) {
      const int64_t at = rest - tap * a.dilation;
      if (at % a.stride != 0) continue;
      taps.push_back(tap);
      steps.push_back(at / a.stride);
    }
  }
};

/* The products of a phase: chains, and the offsets of both operands. */
struct Products {
  Chains chains;
  Offsets kernel, grad;

  Products(const ConvShape& s, const Planes& planes, const Phase& down, const Phase& across) {
    int64_t chain = -1, group = -1;
    for (int64_t o = 0; o < s.outputs; ++o) {
      for (size_t i = 0; i < down.taps.size(); ++i) {
        for (size_t j = 0; j < across.taps.size(); ++j) {
          const int64_t tap = down.taps[i] * s.across.window + across.taps[j], k = o * s.taps() + tap;
          if (k / MATMUL_GROUP != group) chains.groups.push_back(static_cast<int64_t>(chains.starts.size()));
          if (k / MATMUL_CHUNK != chain) chains.starts.push_back(static_cast<int64_t>(kernel.size()));
          group = k / MATMUL_GROUP;
          chain = k / MATMUL_CHUNK;
          kernel.push_back(o * s.channels * s.taps() + tap);
          grad.push_back(o * planes.plane + down.steps[i] * planes.row + across.steps[j]);
        }
      }
    }
    chains.groups.push_back(static_cast<int64_t>(chains.starts.size()));
    chains.starts.push_back(static_cast<int64_t>(kernel.size()));
  }
};

class ByPhases {
 public:
  ByPhases(float* out, const float* w, const ConvShape& s, const Planes& planes, const Spread& down, const Spread& across)
      : out_(out), w_(w), s_(s), planes_(planes), down_(down), across_(across) {}

  void run() {
    for (int64_t h = 0; h < std::min(s_.down.stride, s_.down.size); ++h) {
      for (int64_t v = 0; v < std::min(s_.across.stride, s_.across.size); ++v) {
        run_phase(Phase(s_.down, down_, h), Phase(s_.across, across_, v));
      }
    }
  }

  int64_t minus_zeros() const { return minus_zeros_; }

 private:
  void run_phase(const Phase& down, const Phase& across) {
    const int64_t in = s_.groups * s_.outputs, places = down.count * across.count;
    const Products products(s_, planes_, down, across);
    Offsets lines = grid(s_.batch, in * planes_.plane, down.count, planes_.row, across.count, 1);
    for (int64_t& line : lines) line += down.window * planes_.row + across.window;
    Product p{};
    p.images = 1;
    p.rows = s_.channels;
    p.columns = s_.batch * places;
    p.chains = &products.chains;
    p.left_row = s_.taps();
    p.left_step = products.kernel.data();
    p.line = lines.data();
    p.step = products.grad.data();
    p.near = Near::lines;
    for (int64_t group = 0; group < s_.groups; ++group) {
      p.out = conv_buffer(SLOT_RESULT, p.rows * p.columns);
      p.left = w_ + group * s_.outputs * s_.channels * s_.taps();
      p.right = planes_.data + group * s_.outputs * planes_.plane;
      if (products.kernel.empty()) {
        memset(p.out, 0, sizeof(float) * static_cast<size_t>(p.rows * p.columns));
      } else {
        multiply(current_path(), p);
      }
      put(p.out, group, down, across);
    }
  }

  /* The phase's results to their places. */
  void put(const float* results, int64_t group, const Phase& down, const Phase& across) {
    const int64_t places = down.count * across.count, columns = s_.batch * places;
    parallel_for(s_.batch * s_.channels, std::max<int64_t>(1, PIECE / places), [&](int64_t begin, int64_t end) {
      int64_t found = 0;
      for (int64_t at = begin; at < end; ++at) {
        const int64_t n = at / s_.channels, c = at % s_.channels;
        const float* from = results + c * columns + n * places;
        float* to = out_ + ((n * s_.groups + group) * s_.channels + c) * s_.plane();
        for (int64_t i = 0; i < down.count; ++i) {
          float* row = to + (down.first + i * s_.down.stride) * s_.across.size + across.first;
          for (int64_t j = 0; j < across.count; ++j, ++from) {
            found += idn_bits(*from) == MINUS_ZERO;
            row[j * s_.across.stride] = *from;
          }
        }
      }
      minus_zeros_ += found;
    });
  }

  float* out_;
  const float* w_;
  const ConvShape& s_;
  const Planes& planes_;
  const Spread &down_, &across_;
  std::atomic<int64_t> minus_zeros_{0};
};

}  // namespace

bool conv_dx_by_phases(float* out, const float* grad, const float* w, const ConvShape& s) {
  if (s.down.stride == 1 && s.across.stride == 1) return false;
  if (std::min(s.down.stride, s.down.size) > MOST_PHASES || std::min(s.across.stride, s.across.size) > MOST_PHASES ||
      std::min(s.down.stride, s.down.size) * std::min(s.across.stride, s.across.size) > MOST_PHASES) {
    return false;
  }
  const int64_t kernels = s.groups * s.outputs * s.channels * s.taps(), in = s.batch * s.groups * s.outputs;
  const int64_t results = s.batch * s.groups * s.channels * s.plane();
  const Spread down = met(s.down), across = met(s.across);
  if (!fits(down, across, 1, in, most_beside(in * s.windows() + results + kernels))) return false;
  if (!all_finite(w, kernels)) return false;
  const Planes planes = make_planes(grad, in, down, across, 1);
  ByPhases phases(out, w, s, planes, down, across);
  phases.run();
  if (phases.minus_zeros() > results / ONE_IN) return false;
  if (phases.minus_zeros() > 0) {
    parallel_for(results, PIECE, [&](int64_t begin, int64_t end) {
      for (int64_t at = begin; at < end; ++at) {
        if (idn_bits(out[at]) == MINUS_ZERO) out[at] = conv_dx_element(grad, w, s, at);
      }
    });
  }
  return true;
}

}  // namespace identic
