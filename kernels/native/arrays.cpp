#include "native/arrays.h"

#include <cstring>

namespace identic {
namespace {

std::optional<Type> type_of(const Py_buffer& view) {
  const char* format = view.format ? view.format : "B";
  if (*format == '<' || *format == '=' || *format == '@' || *format == '|') ++format;
  if (std::strlen(format) != 1) return std::nullopt;
  switch (*format) {
    case 'f': return TYPE_F32;
    case 'q': return TYPE_I64;
    case 'l': return view.itemsize == 8 ? TYPE_I64 : TYPE_I32;
    case 'i': return TYPE_I32;
    case 'B': return TYPE_U8;
    case '?': return TYPE_BOOL;
    case 'H': return TYPE_BF16;
    default: return std::nullopt;
  }
}

constexpr int64_t LARGEST = int64_t{1} << 62;

}  // namespace

Array::Array(nb::handle object, const char* name, bool writable) : name_(name) {
  const int flags = PyBUF_STRIDES | PyBUF_FORMAT | (writable ? PyBUF_WRITABLE : 0);
  if (PyObject_GetBuffer(object.ptr(), &view_, flags) != 0) {
    PyErr_Clear();
    view_.obj = nullptr;
    throw nb::value_error((std::string(name) + " is not a " + (writable ? "writable " : "") + "array").c_str());
  }
  type_ = type_of(view_);
  bool empty = false;
  int64_t reach = 0;
  for (int axis = 0; axis < view_.ndim; ++axis) {
    const int64_t length = view_.shape[axis], stride = view_.strides[axis];
    size_ *= length;
    empty |= length == 0;
    if (length > 1 && (stride < 0 || stride % view_.itemsize != 0)) {
      PyBuffer_Release(&view_);
      throw nb::value_error((std::string(name) + " has a stride that kernels cannot follow").c_str());
    }
    if (length > 1) reach += (length - 1) * (stride / view_.itemsize);
  }
  extent_ = empty ? 0 : reach + 1;
}

Sizes Array::shape() const { return Sizes(view_.shape, view_.shape + view_.ndim); }

void Array::refuse(const std::string& problem) const {
  throw nb::value_error((std::string(name_) + " " + problem).c_str());
}

const Array& Array::of(Type type) const {
  static const char* const NAMES[TYPE_COUNT] = {"float32", "int64", "int32", "uint8", "bool", "uint16 (bfloat16)"};
  if (type_ != type) refuse(std::string("must be ") + NAMES[type]);
  return *this;
}

const Array& Array::contiguous() const {
  if (!PyBuffer_IsContiguous(&view_, 'C')) refuse("must be contiguous");
  return *this;
}

const Array& Array::sized(int64_t elements) const {
  contiguous();
  if (size_ != elements) {
    refuse("has " + std::to_string(size_) + " elements, not " + std::to_string(elements));
  }
  return *this;
}

const Array& Array::reaches(int64_t offset, const Sizes& strides, const Sizes& shape) const {
  if (strides.size() != shape.size()) refuse("needs one stride an axis");
  /* In 128 bits no sum of products of 64-bit numbers here overflows. */
  __int128 low = offset, high = offset;
  bool empty = false;
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    empty |= shape[axis] == 0;
    const __int128 reach = static_cast<__int128>(shape[axis] - 1) * strides[axis];
    (reach < 0 ? low : high) += reach;
  }
  if (!empty && (low < 0 || high >= extent_)) refuse("is left by these strides");
  return *this;
}

int64_t element_count(const Sizes& shape) {
  __int128 total = 1;
  for (int64_t size : shape) {
    if (size < 0) throw nb::value_error("a shape has a negative size");
    total *= size;
    if (total > LARGEST) throw nb::value_error("a shape has too many elements");
  }
  return static_cast<int64_t>(total);
}

Indices indices_of(const Array& array) {
  array.contiguous();
  if (array.type() != TYPE_I64 && array.type() != TYPE_I32) throw nb::value_error("indices must be int64 or int32");
  return {array.data(), array.type() == TYPE_I64};
}

Sizes contiguous_strides(const Sizes& shape) {
  Sizes strides(shape.size());
  int64_t stride = 1;
  for (size_t axis = shape.size(); axis-- > 0;) {
    strides[axis] = stride;
    stride *= shape[axis];
  }
  return strides;
}

}  // namespace identic
