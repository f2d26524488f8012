/* Python functions: matmul, sum_last, sum_first, amax, argmax. */
#include <array>

#include <nanobind/stl/array.h>

#include "matmul/cpu.h"
#include "native/arrays.h"
#include "reduce/cpu.h"

namespace identic {
namespace {

using Three = std::array<int64_t, 3>;

void matmul_(nb::handle out_, nb::handle a_, nb::handle b_, int64_t batch, int64_t m, int64_t n, int64_t k,
             const Three& a_strides, const Three& b_strides) {
  const Output out(out_);
  const Input a(a_, "a"), b(b_, "b");
  out.of(TYPE_F32).sized(element_count({batch, m, n}));
  a.of(TYPE_F32).reaches(0, {a_strides[0], a_strides[1], a_strides[2]}, {batch, m, k});
  b.of(TYPE_F32).reaches(0, {b_strides[0], b_strides[1], b_strides[2]}, {batch, k, n});
  element_count({batch, m, k});
  element_count({batch, k, n});
  nb::gil_scoped_release release;
  matmul(out.as<float>(), a.as<float>(), b.as<float>(), batch, m, n, k, {a_strides[0], a_strides[1], a_strides[2]},
         {b_strides[0], b_strides[1], b_strides[2]});
}

/* Calls run with a null pointer of the element type of the arrays. */
template <class Run>
void by_type(const Array& array, Run run) {
  if (array.type() == TYPE_F32) return run(static_cast<float*>(nullptr));
  if (array.type() == TYPE_I64) return run(static_cast<int64_t*>(nullptr));
  if (array.type() == TYPE_I32) return run(static_cast<int32_t*>(nullptr));
  throw nb::value_error("x must be float32, int64 or int32");
}

void sum_last_(nb::handle out_, nb::handle x_, int64_t rows, int64_t n) {
  const Output out(out_);
  const Input x(x_, "x");
  x.sized(element_count({rows, n}));
  out.sized(rows);
  by_type(x, [&](auto* null) {
    using T = std::remove_pointer_t<decltype(null)>;
    out.of(*x.type());
    nb::gil_scoped_release release;
    if constexpr (std::is_same_v<T, float>) {
      sum_last(out.as<T>(), x.as<T>(), rows, n);
    } else {
      sum_last_integers(out.as<T>(), x.as<T>(), rows, n);
    }
  });
}

void sum_first_(nb::handle out_, nb::handle x_, int64_t n, int64_t inner) {
  const Output out(out_);
  const Input x(x_, "x");
  x.sized(element_count({n, inner}));
  out.sized(inner);
  by_type(x, [&](auto* null) {
    using T = std::remove_pointer_t<decltype(null)>;
    out.of(*x.type());
    nb::gil_scoped_release release;
    if constexpr (std::is_same_v<T, float>) {
      sum_first(out.as<T>(), x.as<T>(), n, inner);
    } else {
      sum_first_integers(out.as<T>(), x.as<T>(), n, inner);
    }
  });
}

void amax_(nb::handle out_, nb::handle x_, int64_t rows, int64_t n) {
  const Output out(out_);
  const Input x(x_, "x");
  x.sized(element_count({rows, n}));
  out.sized(rows);
  if (n < 1) throw nb::value_error("amax needs at least one element");
  by_type(x, [&](auto* null) {
    using T = std::remove_pointer_t<decltype(null)>;
    out.of(*x.type());
    nb::gil_scoped_release release;
    if constexpr (std::is_same_v<T, float>) {
      amax(out.as<T>(), x.as<T>(), rows, n);
    } else {
      amax_integers(out.as<T>(), x.as<T>(), rows, n);
    }
  });
}

void argmax_(nb::handle out_, nb::handle x_, int64_t rows, int64_t n) {
  const Output out(out_);
  const Input x(x_, "x");
  x.sized(element_count({rows, n}));
  out.of(TYPE_I64).sized(rows);
  if (n < 1) throw nb::value_error("argmax needs at least one element");
  by_type(x, [&](auto* null) {
    using T = std::remove_pointer_t<decltype(null)>;
    nb::gil_scoped_release release;
    if constexpr (std::is_same_v<T, float>) {
      argmax(out.as<int64_t>(), x.as<T>(), rows, n);
    } else {
      argmax_integers(out.as<int64_t>(), x.as<T>(), rows, n);
    }
  });
}

}  // namespace

void bind_matmul(nb::module_& m) {
  m.def("matmul", matmul_, nb::arg("out"), nb::arg("a"), nb::arg("b"), nb::arg("batch"), nb::arg("m"), nb::arg("n"),
        nb::arg("k"), nb::arg("a_strides"), nb::arg("b_strides"),
        "out[b,i,j] = sum over k of a[b,i,k] * b[b,k,j] in the order of NUM-10. Strides (batch, row, column) are in "
        "elements; a batch stride of 0 broadcasts.");
  m.def("sum_last", sum_last_, nb::arg("out"), nb::arg("x"), nb::arg("rows"), nb::arg("n"),
        "Row sums of x (rows, n): float32 in the order of NUM-12, integers modulo their width.");
  m.def("sum_first", sum_first_, nb::arg("out"), nb::arg("x"), nb::arg("n"), nb::arg("inner"),
        "Column sums of x (n, inner): float32 in the order of NUM-13, integers modulo their width.");
  m.def("amax", amax_, nb::arg("out"), nb::arg("x"), nb::arg("rows"), nb::arg("n"),
        "Largest of each row of x (rows, n), n >= 1, in the order of NUM-4.");
  m.def("argmax", argmax_, nb::arg("out"), nb::arg("x"), nb::arg("rows"), nb::arg("n"),
        "Position (int64) of the first of the largest of each row of x (rows, n), n >= 1.");
}

}  // namespace identic
