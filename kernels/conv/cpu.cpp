/*
 * conv, conv_dx, conv_dw as matrix products of panels packed from planes.
 *                                                               rules: NUM-10, OP-40, OP-41
 * The tensor that windows move over is copied once into planes with its padding in place, for
 * conv_dx with the zeros between windows too. The zeros of the padding are elements of the
 * panels, as the rule has it. Threads share the planes, the panels of the left operand, then blocks
 * of the result; every element is computed by one of them.
 */
#include "conv/cpu.h"

#include <cstring>

#include "conv/phases.h"
#include "conv/planes.h"
#include "conv/product.h"
#include "native/pool.h"

namespace identic {
namespace {

/* Runs a product for every group: many small ones apart, else one after the other on all threads. */
template <class OfGroup>
void multiply_groups(const Product& p, int64_t groups, OfGroup of_group) {
  const Path& path = current_path();
  const double work = work_of(p);
  const bool apart = work < ALONE || groups >= 4 * threads();
  auto one = [&](int64_t group) {
    Product mine = p;
    of_group(mine, group);
    multiply(path, mine);
  };
  if (!apart) {
    for (int64_t group = 0; group < groups; ++group) one(group);
    return;
  }
  const int64_t grain = std::max<int64_t>(1, static_cast<int64_t>(ALONE / work));
  parallel_for(groups, grain, [&](int64_t begin, int64_t end) {
    for (int64_t group = begin; group < end; ++group) one(group);
  });
}

/* Of what windows read with each tap, (channel, i, j), in planes with phases of the stride. */
Offsets taps_of(const ConvShape& s, const Planes& planes) {
  Offsets found;
  found.reserve(static_cast<size_t>(s.channels * s.taps()));
  for (int64_t c = 0; c < s.channels; ++c) {
    for (int64_t i = 0; i < s.down.window; ++i) {
      for (int64_t j = 0; j < s.across.window; ++j) {
        const int64_t at = j * s.across.dilation;
        found.push_back(c * planes.plane + i * s.down.dilation * planes.row + at % planes.phases * planes.phase +
                        at / planes.phases);
      }
    }
  }
  return found;
}

bool empty(float* out, int64_t elements, int64_t k) {
  if (elements == 0) return true;
  if (k > 0) return false;
  /* NUM-10: an empty contraction is +0. */
  memset(out, 0, sizeof(float) * static_cast<size_t>(elements));
  return true;
}

/* What conv and conv_dw share: the planes of x. */
struct Read {
  Spread down, across;
  int64_t phases; /* a single window a row needs no others */
  explicit Read(const ConvShape& s)
      : down(padded(s.down)), across(padded(s.across)), phases(s.across.count == 1 ? 1 : apart(s.across)) {}
};

}  // namespace

void conv(float* out, const float* x, const float* w, const ConvShape& s) {
  const int64_t k = s.channels * s.taps(), images = s.batch, columns = s.windows();
  const int64_t in = s.groups * s.channels, results = s.groups * s.outputs;
  if (empty(out, images * results * columns, k)) return;
  const Read read(s);
  const int64_t most = most_beside(images * (in * s.plane() + results * columns) + results * k);
  if (!fits(read.down, read.across, read.phases, images * in, most)) return conv_plain(out, x, w, s);
  const Planes planes = make_planes(x, images * in, read.down, read.across, read.phases);
  const Offsets lines = grid(images, in * planes.plane, s.down.count, apart(s.down) * planes.row, s.across.count, 1);
  const Offsets steps = taps_of(s, planes);
  const Chains chains = Chains::every(k);
  Product p{};
  p.image_stride = results * columns;
  p.images = images;
  p.rows = s.outputs;
  p.columns = columns;
  p.chains = &chains;
  p.left_row = k;
  p.line = lines.data();
  p.step = steps.data();
  p.near = Near::lines;
  multiply_groups(p, s.groups, [&](Product& mine, int64_t group) {
    mine.out = out + group * s.outputs * columns;
    mine.left = w + group * s.outputs * k;
    mine.right = planes.data + group * s.channels * planes.plane;
  });
}

void conv_dx(float* out, const float* grad, const float* w, const ConvShape& s) {
  const int64_t k = s.outputs * s.taps(), images = s.batch, columns = s.plane();
  const int64_t in = s.groups * s.outputs, results = s.groups * s.channels;
  if (empty(out, images * results * columns, k)) return;
  if (conv_dx_by_phases(out, grad, w, s)) return;
  const Spread down = between(s.down), across = between(s.across);
  const int64_t most = most_beside(images * (in * s.windows() + results * columns) + results * k);
  if (!fits(down, across, 1, images * in, most)) return conv_dx_plain(out, grad, w, s);
  const Planes planes = make_planes(grad, images * in, down, across, 1);
  const Offsets lines = grid(images, in * planes.plane, s.down.size, planes.row, s.across.size, 1);
  /* Taps run backwards: the last one reads the window that starts furthest before. */
  Offsets steps = grid(s.outputs, planes.plane, s.down.window, -s.down.dilation * planes.row, s.across.window, -s.across.dilation);
  for (int64_t& step : steps) step += (s.down.span() - 1) * planes.row + s.across.span() - 1;
  const Offsets kernel = grid(s.outputs, s.channels * s.taps(), 1, 0, s.taps(), 1);
  const Chains chains = Chains::every(k);
  Product p{};
  p.image_stride = results * columns;
  p.images = images;
  p.rows = s.channels;
  p.columns = columns;
  p.chains = &chains;
  p.left_row = s.taps();
  p.left_step = kernel.data();
  p.line = lines.data();
  p.step = steps.data();
  p.near = Near::lines;
  multiply_groups(p, s.groups, [&](Product& mine, int64_t group) {
    mine.out = out + group * s.channels * columns;
    mine.left = w + group * s.outputs * s.channels * s.taps();
    mine.right = planes.data + group * s.outputs * planes.plane;
  });
}

void conv_dw(float* out, const float* grad, const float* x, const ConvShape& s) {
  const int64_t k = s.batch * s.windows(), columns = s.channels * s.taps();
  const int64_t in = s.groups * s.channels, results = s.groups * s.outputs;
  if (empty(out, results * columns, k)) return;
  const Read read(s);
  const int64_t most = most_beside(s.batch * (in * s.plane() + results * s.windows()) + results * columns);
  if (!fits(read.down, read.across, read.phases, s.batch * in, most)) return conv_dw_plain(out, grad, x, s);
  const Planes planes = make_planes(x, s.batch * in, read.down, read.across, read.phases);
  const Offsets lines = taps_of(s, planes);
  const Offsets steps = grid(s.batch, in * planes.plane, s.down.count, apart(s.down) * planes.row, s.across.count, 1);
  const Offsets given = grid(s.batch, results * s.windows(), 1, 0, s.windows(), 1);
  const Chains chains = Chains::every(k);
  Product p{};
  p.images = 1;
  p.rows = s.outputs;
  p.columns = columns;
  p.chains = &chains;
  p.left_row = s.windows();
  p.left_step = given.data();
  p.line = lines.data();
  p.step = steps.data();
  p.near = Near::steps;
  multiply_groups(p, s.groups, [&](Product& mine, int64_t group) {
    mine.out = out + group * s.outputs * columns;
    mine.left = grad + group * s.outputs * s.windows();
    mine.right = planes.data + group * s.channels * planes.plane;
  });
}

}  // namespace identic
