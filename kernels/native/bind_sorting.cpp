/* Python functions that sort, sum up to each element, and write at indexed places. */
#include <type_traits>

#include "native/arrays.h"
#include "scan/cpu.h"
#include "scatter/cpu.h"
#include "sort/cpu.h"

namespace identic {
namespace {

/* Calls run with a null pointer to the array's element type: float, int64 or int32. */
template <class Run>
void by_number(const Array& x, Run run) {
  const auto type = x.type();
  if (type == TYPE_F32) return run(static_cast<float*>(nullptr));
  if (type == TYPE_I64) return run(static_cast<int64_t*>(nullptr));
  if (type == TYPE_I32) return run(static_cast<int32_t*>(nullptr));
  throw nb::value_error("x must be float32, int64 or int32");
}

void cumsum_(nb::handle out_, nb::handle x_, int64_t rows, int64_t n) {
  const Output out(out_);
  const Input x(x_, "x");
  x.sized(element_count({rows, n}));
  out.sized(x.size());
  by_number(x, [&](auto* null) {
    using T = std::remove_pointer_t<decltype(null)>;
    out.of(*x.type());
    nb::gil_scoped_release release;
    if constexpr (std::is_same_v<T, float>) {
      cumsum(out.as<T>(), x.as<T>(), rows, n);
    } else {
      cumsum_integers(out.as<T>(), x.as<T>(), rows, n);
    }
  });
}

void argsort_(nb::handle out_, nb::handle x_, int64_t rows, int64_t n, int64_t count, bool descending) {
  const Output out(out_);
  const Input x(x_, "x");
  x.sized(element_count({rows, n}));
  if (count < 0 || count > n) throw nb::value_error("count must be in [0, n]");
  out.of(TYPE_I64).sized(element_count({rows, count}));
  by_number(x, [&](auto* null) {
    using T = std::remove_pointer_t<decltype(null)>;
    nb::gil_scoped_release release;
    argsort(out.as<int64_t>(), x.as<T>(), rows, n, count, descending);
  });
}

void check_equal_sizes(const Array& out, const Array& x, const Array& src) {
  const int bytes = out.bytes();
  if (bytes != 1 && bytes != 2 && bytes != 4 && bytes != 8) {
    throw nb::value_error("elements must have 1, 2, 4 or 8 bytes");
  }
  if (x.bytes() != bytes || src.bytes() != bytes) throw nb::value_error("arrays must have one element size");
}

void set_rows_(nb::handle out_, nb::handle init_, nb::handle index_, nb::handle src_, int64_t rows, int64_t inner) {
  const Output out(out_);
  const Input init(init_, "init"), index(index_, "index"), src(src_, "src");
  const Indices indices = indices_of(index);
  check_equal_sizes(out, init, src);
  out.sized(element_count({rows, inner}));
  init.sized(out.size());
  src.sized(element_count({index.size(), inner}));
  nb::gil_scoped_release release;
  set_rows(out.data(), init.data(), rows, inner * out.bytes(), indices, src.data(), index.size());
}

/* Shapes of a scatter's operands, after checking that every place of the index lies inside x. */
void check_scatter(const Output& out, const Input& x, const Input& index, const Input& src, int64_t axis) {
  check_equal_sizes(out, x, src);
  x.contiguous();
  index.contiguous();
  out.sized(x.size());
  src.sized(index.size());
  const Sizes x_shape = x.shape(), shape = index.shape();
  if (x_shape.size() != shape.size() || axis < 0 || axis >= static_cast<int64_t>(shape.size())) {
    throw nb::value_error("x and index must have one rank, and axis lie below it");
  }
  for (size_t a = 0; a < shape.size(); ++a) {
    if (a != static_cast<size_t>(axis) && shape[a] > x_shape[a]) throw nb::value_error("index is larger than x");
  }
}

void scatter_(nb::handle out_, nb::handle x_, nb::handle index_, nb::handle src_, int64_t axis) {
  const Output out(out_);
  const Input x(x_, "x"), index(index_, "index"), src(src_, "src");
  const Indices indices = indices_of(index);
  check_scatter(out, x, index, src, axis);
  const Sizes x_shape = x.shape(), shape = index.shape();
  nb::gil_scoped_release release;
  scatter(out.bytes(), out.data(), x.data(), x_shape, indices, src.data(), shape, static_cast<size_t>(axis));
}

void scatter_add_(nb::handle out_, nb::handle x_, nb::handle index_, nb::handle src_, int64_t axis) {
  const Output out(out_);
  const Input x(x_, "x"), index(index_, "index"), src(src_, "src");
  const Indices indices = indices_of(index);
  for (const Array* one : {static_cast<const Array*>(&out), static_cast<const Array*>(&x),
                           static_cast<const Array*>(&src)}) {
    one->of(TYPE_F32);
  }
  check_scatter(out, x, index, src, axis);
  const Sizes x_shape = x.shape(), shape = index.shape();
  nb::gil_scoped_release release;
  scatter_add(out.as<float>(), x.as<float>(), x_shape, indices, src.as<float>(), shape, static_cast<size_t>(axis));
}

}  // namespace

void bind_sorting(nb::module_& m) {
  using nb::arg;
  m.def("cumsum", cumsum_, arg("out"), arg("x"), arg("rows"), arg("n"),
        "Running sums of each row of x (rows, n): float32 in the order of NUM-13, integers modulo their width.");
  m.def("argsort", argsort_, arg("out"), arg("x"), arg("rows"), arg("n"), arg("count"), arg("descending"),
        "Positions (int64) of the first `count` elements of each row of x (rows, n) in the order of OP-31.");
  m.def("set_rows", set_rows_, arg("out"), arg("init"), arg("index"), arg("src"), arg("rows"), arg("inner"),
        "out = init (rows, inner), then out[index[t]] = src[t] for t ascending; an index outside writes nothing.");
  m.def("scatter", scatter_, arg("out"), arg("x"), arg("index"), arg("src"), arg("axis"),
        "out = x, then out[.., index[.., j, ..], ..] = src[.., j, ..] along the axis for j ascending.");
  m.def("scatter_add", scatter_add_, arg("out"), arg("x"), arg("index"), arg("src"), arg("axis"),
        "The same with additions, in the order of NUM-14.");
}

}  // namespace identic
