/* Python functions: unary, binary, where, cast. */
#include <nanobind/stl/optional.h>

#include <cstring>

#include "elementwise/cpu.h"
#include "native/arrays.h"

namespace identic {
namespace {

using Strides_ = std::optional<Sizes>;

template <size_t COUNT>
int code_of(const std::string& name, const char* const (&names)[COUNT]) {
  for (size_t i = 0; i < COUNT; ++i) {
    if (name == names[i]) return static_cast<int>(i);
  }
  throw nb::value_error(("unknown operator " + name).c_str());
}

Kind kind_of(const Array& array) {
  if (array.type() == TYPE_F32) return KIND_F32;
  if (array.type() == TYPE_I64) return KIND_I64;
  if (array.type() == TYPE_I32) return KIND_I32;
  if (array.type() == TYPE_BOOL) return KIND_BOOL;
  throw nb::value_error("operands must be float32, int64, int32 or bool");
}

/* Strides of an operand over the result's shape: as given, or those of a contiguous array of that shape. */
Sizes operand_strides(const Array& array, const Strides_& strides, const Sizes& shape) {
  if (strides) {
    array.reaches(0, *strides, shape);
    return *strides;
  }
  array.sized(element_count(shape));
  return contiguous_strides(shape);
}

Sizes result_shape(const Array& out, const std::optional<Sizes>& shape) {
  if (!shape) return out.shape();
  out.sized(element_count(*shape));
  return *shape;
}

void unary_(const std::string& name, nb::handle out_, nb::handle x_) {
  const Unary op = static_cast<Unary>(code_of(name, UNARY_NAMES));
  const Output out(out_);
  const Input x(x_, "x");
  const Type type = op == UNARY_NOT ? TYPE_BOOL : TYPE_F32;
  out.of(type);
  x.of(type).sized(out.size());
  nb::gil_scoped_release release;
  unary(op, out.data(), x.data(), out.size());
}

void binary_(const std::string& name, nb::handle out_, nb::handle a_, nb::handle b_, const std::optional<Sizes>& shape_,
             const Strides_& a_strides, const Strides_& b_strides) {
  const Binary op = static_cast<Binary>(code_of(name, BINARY_NAMES));
  const Output out(out_);
  const Input a(a_, "a"), b(b_, "b");
  const Kind kind = kind_of(a);
  if (a.type() != b.type()) throw nb::value_error("operands must have one type");
  if (!has_binary(op, kind)) throw nb::value_error((name + " is not defined on this type").c_str());
  out.of(op >= BINARY_EQ ? TYPE_BOOL : *a.type());
  const Sizes shape = result_shape(out, shape_);
  const Sizes a_steps = operand_strides(a, a_strides, shape), b_steps = operand_strides(b, b_strides, shape);
  nb::gil_scoped_release release;
  binary(op, kind, out.data(), shape, a.data(), a_steps, b.data(), b_steps);
}

void where_(nb::handle out_, nb::handle c_, nb::handle a_, nb::handle b_, const std::optional<Sizes>& shape_,
            const Strides_& c_strides, const Strides_& a_strides, const Strides_& b_strides) {
  const Output out(out_);
  const Input c(c_, "c"), a(a_, "a"), b(b_, "b");
  c.of(TYPE_BOOL);
  const int bytes = out.bytes();
  if (a.bytes() != bytes || b.bytes() != bytes || (bytes != 1 && bytes != 2 && bytes != 4 && bytes != 8)) {
    throw nb::value_error("out, a and b must have one element size of 1, 2, 4 or 8 bytes");
  }
  const Sizes shape = result_shape(out, shape_);
  const Sizes c_steps = operand_strides(c, c_strides, shape), a_steps = operand_strides(a, a_strides, shape),
              b_steps = operand_strides(b, b_strides, shape);
  nb::gil_scoped_release release;
  where(bytes, out.data(), shape, c.as<uint8_t>(), c_steps, a.data(), a_steps, b.data(), b_steps);
}

void cast_(nb::handle out_, nb::handle x_) {
  const Output out(out_);
  const Input x(x_, "x");
  x.sized(out.size());
  if (!out.type() || !x.type()) throw nb::value_error("cast is not defined on this type");
  nb::gil_scoped_release release;
  cast(out.data(), *out.type(), x.data(), *x.type(), out.size());
}

}  // namespace

void bind_elementwise(nb::module_& m) {
  const auto none = nb::none();
  m.def("unary", unary_, nb::arg("op"), nb::arg("out"), nb::arg("x"),
        "out = op(x), elementwise; float32, or bool for `not`. Both contiguous.");
  m.def("binary", binary_, nb::arg("op"), nb::arg("out"), nb::arg("a"), nb::arg("b"), nb::arg("shape") = none,
        nb::arg("a_strides") = none, nb::arg("b_strides") = none,
        "out = op(a, b) over `shape` (that of out by default). Strides are in elements, one an axis of the shape, 0 "
        "along a broadcast axis; an operand without strides is contiguous with the full shape.");
  m.def("where", where_, nb::arg("out"), nb::arg("c"), nb::arg("a"), nb::arg("b"), nb::arg("shape") = none,
        nb::arg("c_strides") = none, nb::arg("a_strides") = none, nb::arg("b_strides") = none,
        "out = a where c, else b; shape and strides as for `binary`. Any type of 1, 2, 4 or 8 bytes.");
  m.def("cast", cast_, nb::arg("out"), nb::arg("x"),
        "out = x converted to out's type; uint16 arrays hold bfloat16. Both contiguous.");
}

}  // namespace identic
