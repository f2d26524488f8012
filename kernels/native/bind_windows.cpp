/* Python functions: convolutions and pools. */
#include <array>

#include <nanobind/stl/array.h>

#include "conv/cpu.h"
#include "native/arrays.h"
#include "pool/cpu.h"

namespace identic {
namespace {

/* size, window, stride, dilation, before, count */
using Six = std::array<int64_t, 6>;
/* batch, groups, channels of a group, outputs of a group */
using Four = std::array<int64_t, 4>;

constexpr int64_t MOST = int64_t{1} << 46;

/* Numbers whose products stay inside 64 bits, and windows whose first and last taps do. */
WindowAxis axis_of(const Six& six) {
  const auto [size, window, stride, dilation, before, count] = six;
  const bool low = size < 0 || window < 1 || stride < 1 || dilation < 1 || before < 0 || count < 0;
  for (int64_t value : six) {
    if (low || value >= 4 * MOST) throw nb::value_error("windows have a number out of range");
  }
  const __int128 reach = static_cast<__int128>(count) * stride + static_cast<__int128>(window) * dilation;
  if (reach >= 16 * MOST) throw nb::value_error("windows reach too far");
  return {size, window, stride, dilation, before, count};
}

struct Conv {
  ConvShape shape;
  int64_t x, y, w; /* elements of the operand, of the windows' results and of the kernels */
};

Conv conv_of(const Four& sizes, const Six& down, const Six& across) {
  const auto [batch, groups, channels, outputs] = sizes;
  const ConvShape shape{batch, groups, channels, outputs, axis_of(down), axis_of(across)};
  return {shape, element_count({batch, groups, channels, shape.down.size, shape.across.size}),
          element_count({batch, groups, outputs, shape.down.count, shape.across.count}),
          element_count({groups, outputs, channels, shape.down.window, shape.across.window})};
}

using ConvFunction = void (*)(float*, const float*, const float*, const ConvShape&);

/* Sizes of out, a and b by what they are. */
template <int64_t Conv::*OUT, int64_t Conv::*A, int64_t Conv::*B>
void convolve(ConvFunction function, nb::handle out_, nb::handle a_, nb::handle b_, const Four& sizes, const Six& down,
              const Six& across) {
  const Output out(out_);
  const Input a(a_, "a"), b(b_, "b");
  const Conv conv = conv_of(sizes, down, across);
  out.of(TYPE_F32).sized(conv.*OUT);
  a.of(TYPE_F32).sized(conv.*A);
  b.of(TYPE_F32).sized(conv.*B);
  nb::gil_scoped_release release;
  function(out.as<float>(), a.as<float>(), b.as<float>(), conv.shape);
}

void conv_(nb::handle out, nb::handle x, nb::handle w, const Four& sizes, const Six& down, const Six& across,
           bool plain) {
  convolve<&Conv::y, &Conv::x, &Conv::w>(plain ? conv_plain : conv, out, x, w, sizes, down, across);
}

void conv_dx_(nb::handle out, nb::handle grad, nb::handle w, const Four& sizes, const Six& down, const Six& across,
              bool plain) {
  convolve<&Conv::x, &Conv::y, &Conv::w>(plain ? conv_dx_plain : conv_dx, out, grad, w, sizes, down, across);
}

void conv_dw_(nb::handle out, nb::handle grad, nb::handle x, const Four& sizes, const Six& down, const Six& across,
              bool plain) {
  convolve<&Conv::w, &Conv::y, &Conv::x>(plain ? conv_dw_plain : conv_dw, out, grad, x, sizes, down, across);
}

struct Pool {
  PoolShape shape;
  int64_t places, windows;
};

Pool pool_of(int64_t planes, const Six& down, const Six& across) {
  const PoolShape shape{planes, axis_of(down), axis_of(across)};
  return {shape, element_count({planes, shape.down.size, shape.across.size}),
          element_count({planes, shape.down.count, shape.across.count})};
}

void max_pool_(nb::handle out_, nb::handle x_, int64_t planes, const Six& down, const Six& across) {
  const Output out(out_);
  const Input x(x_, "x");
  const Pool pool = pool_of(planes, down, across);
  out.of(TYPE_F32).sized(pool.windows);
  x.of(TYPE_F32).sized(pool.places);
  nb::gil_scoped_release release;
  max_pool(out.as<float>(), x.as<float>(), pool.shape);
}

void max_pool_indices_(nb::handle out_, nb::handle x_, int64_t planes, const Six& down, const Six& across, bool far) {
  const Output out(out_);
  const Input x(x_, "x");
  const Pool pool = pool_of(planes, down, across);
  out.of(TYPE_I64).sized(pool.windows);
  x.of(TYPE_F32).sized(pool.places);
  nb::gil_scoped_release release;
  max_pool_indices(out.as<int64_t>(), x.as<float>(), pool.shape, far);
}

void max_pool_dx_(nb::handle out_, nb::handle grad_, nb::handle indices_, int64_t planes, const Six& down,
                  const Six& across) {
  const Output out(out_);
  const Input grad(grad_, "grad"), indices(indices_, "indices");
  const Pool pool = pool_of(planes, down, across);
  out.of(TYPE_F32).sized(pool.places);
  grad.of(TYPE_F32).sized(pool.windows);
  indices.of(TYPE_I64).sized(pool.windows);
  nb::gil_scoped_release release;
  max_pool_dx(out.as<float>(), grad.as<float>(), indices.as<int64_t>(), pool.shape);
}

void sum_pool_(nb::handle out_, nb::handle x_, int64_t planes, const Six& down, const Six& across) {
  const Output out(out_);
  const Input x(x_, "x");
  const Pool pool = pool_of(planes, down, across);
  out.of(TYPE_F32).sized(pool.windows);
  x.of(TYPE_F32).sized(pool.places);
  nb::gil_scoped_release release;
  sum_pool(out.as<float>(), x.as<float>(), pool.shape);
}

void sum_pool_dx_(nb::handle out_, nb::handle grad_, int64_t planes, const Six& down, const Six& across) {
  const Output out(out_);
  const Input grad(grad_, "grad");
  const Pool pool = pool_of(planes, down, across);
  out.of(TYPE_F32).sized(pool.places);
  grad.of(TYPE_F32).sized(pool.windows);
  nb::gil_scoped_release release;
  sum_pool_dx(out.as<float>(), grad.as<float>(), pool.shape);
}

}  // namespace

void bind_windows(nb::module_& m) {
  using nb::arg;
  m.def("conv", conv_, arg("out"), arg("x"), arg("w"), arg("sizes"), arg("down"), arg("across"), arg("plain") = false,
        "Windows of x times kernels w in the order of NUM-10. sizes: batch, groups, channels and outputs of a group; an "
        "axis: size, window, stride, dilation, before, count. plain: element by element.");
  m.def("conv_dx", conv_dx_, arg("out"), arg("grad"), arg("w"), arg("sizes"), arg("down"), arg("across"),
        arg("plain") = false, "The gradient of conv in x.");
  m.def("conv_dw", conv_dw_, arg("out"), arg("grad"), arg("x"), arg("sizes"), arg("down"), arg("across"),
        arg("plain") = false, "The gradient of conv in w.");
  m.def("max_pool", max_pool_, arg("out"), arg("x"), arg("planes"), arg("down"), arg("across"),
        "Largest of each window in the order of NUM-4, -inf for none.");
  m.def("max_pool_indices", max_pool_indices_, arg("out"), arg("x"), arg("planes"), arg("down"), arg("across"),
        arg("far") = false,
        "Position in the plane of the first of the largest of each window, -1 for none. far: as in planes of 2^31 places.");
  m.def("max_pool_dx", max_pool_dx_, arg("out"), arg("grad"), arg("indices"), arg("planes"), arg("down"),
        arg("across"), "Gradients added, windows in order, to the places of their indices.");
  m.def("sum_pool", sum_pool_, arg("out"), arg("x"), arg("planes"), arg("down"), arg("across"),
        "Sum of each window in order, from +0.");
  m.def("sum_pool_dx", sum_pool_dx_, arg("out"), arg("grad"), arg("planes"), arg("down"), arg("across"),
        "Gradients added, windows in order, to all places of their windows.");
}

}  // namespace identic
