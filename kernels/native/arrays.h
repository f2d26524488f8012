/*
 * Arrays of Python as the kernels see them, through the buffer protocol.
 *
 * The caller in Python has checked types and shapes by the operators' rules; what is checked again
 * here is what could make a kernel touch memory that is not its own: element type, contiguity,
 * counts, and the range of addresses that strides reach. Failures raise ValueError.
 */
#ifndef IDENTIC_NATIVE_ARRAYS_H
#define IDENTIC_NATIVE_ARRAYS_H

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "elementwise/cpu.h"
#include "index/cpu.h"

namespace identic {

namespace nb = nanobind;

/* A held buffer. Types that kernels compute with are Type; others only move, by their size. */
class Array {
 public:
  /* name is what error messages call it. */
  Array(nb::handle object, const char* name, bool writable);
  ~Array() { PyBuffer_Release(&view_); }
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;

  /* Elements, when they lie next to each other; ValueError otherwise. */
  int64_t size() const { return size_; }
  int bytes() const { return static_cast<int>(view_.itemsize); }
  std::optional<Type> type() const { return type_; }
  Sizes shape() const;

  void* data() const { return view_.buf; }
  template <class T> T* as() const { return static_cast<T*>(view_.buf); }

  /* This array, after checking that its elements have the type. */
  const Array& of(Type type) const;
  /* ... that it lies in memory without gaps, in row-major order. */
  const Array& contiguous() const;
  /* ... that it is contiguous and has so many elements. */
  const Array& sized(int64_t elements) const;
  /* ... that offset plus any index times strides, over a shape, stays inside its memory. */
  const Array& reaches(int64_t offset, const Sizes& strides, const Sizes& shape) const;

 private:
  [[noreturn]] void refuse(const std::string& problem) const;

  const char* name_;
  Py_buffer view_;
  int64_t size_ = 1;
  /* Elements from the first to the last one in memory; negative strides are refused. */
  int64_t extent_ = 0;
  std::optional<Type> type_;
};

/* An input (any buffer) and a result (a writable contiguous one). */
struct Input : Array {
  Input(nb::handle object, const char* name) : Array(object, name, false) {}
};
struct Output : Array {
  explicit Output(nb::handle object) : Array(object, "out", true) { contiguous(); }
};

/* Product of sizes; ValueError when negative or beyond 2^62. */
int64_t element_count(const Sizes& shape);

/* An index array. */
Indices indices_of(const Array& array);

/* Strides of a contiguous array of this shape. */
Sizes contiguous_strides(const Sizes& shape);

/* Adders of the module's functions, one a file. */
void bind_elementwise(nb::module_& m);
void bind_matmul(nb::module_& m);
void bind_movement(nb::module_& m);
void bind_sorting(nb::module_& m);
void bind_windows(nb::module_& m);
void bind_hashing(nb::module_& m);
void bind_chain(nb::module_& m);

}  // namespace identic

#endif
