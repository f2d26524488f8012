/* Python functions that move, look up, fill and draw elements. */
#include "index/cpu.h"
#include "layout/cpu.h"
#include "native/arrays.h"
#include "random/cpu.h"

namespace identic {
namespace {

void check_movable(const Array& array) {
  const int bytes = array.bytes();
  if (bytes != 1 && bytes != 2 && bytes != 4 && bytes != 8) {
    throw nb::value_error("elements must have 1, 2, 4 or 8 bytes");
  }
}

void check_same_size(const Array& a, const Array& b) {
  check_movable(a);
  if (a.bytes() != b.bytes()) throw nb::value_error("arrays must have one element size");
}

void copy_strided_(nb::handle out_, int64_t out_offset, const Sizes& out_strides, nb::handle x_, int64_t x_offset,
                   const Sizes& x_strides, const Sizes& shape) {
  const Array out(out_, "out", true);
  const Input x(x_, "x");
  check_same_size(out, x);
  element_count(shape);
  out.reaches(out_offset, out_strides, shape);
  x.reaches(x_offset, x_strides, shape);
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    if (shape[axis] > 1 && out_strides[axis] == 0) throw nb::value_error("out has a stride of 0");
  }
  nb::gil_scoped_release release;
  const int bytes = out.bytes();
  copy_strided(bytes, out.as<uint8_t>() + out_offset * bytes, out_strides, x.as<uint8_t>() + x_offset * bytes,
               x_strides, shape);
}

void full_(nb::handle out_, uint64_t pattern) {
  const Output out(out_);
  check_movable(out);
  nb::gil_scoped_release release;
  full(out.bytes(), out.data(), pattern, out.size());
}

template <class T>
void count_up(const Output& out, uint64_t start, uint64_t step) {
  T* to = out.as<T>();
  for (int64_t i = 0; i < out.size(); ++i) to[i] = static_cast<T>(start + static_cast<uint64_t>(i) * step);
}

void iota_(nb::handle out_, int64_t start, int64_t step) {
  const Output out(out_);
  const uint64_t first = static_cast<uint64_t>(start), by = static_cast<uint64_t>(step);
  if (out.type() == TYPE_I64) return count_up<uint64_t>(out, first, by);
  if (out.type() == TYPE_I32) return count_up<uint32_t>(out, first, by);
  throw nb::value_error("out must be int64 or int32");
}

void take_rows_(nb::handle out_, nb::handle table_, nb::handle index_, int64_t rows, int64_t row_bytes) {
  const Output out(out_);
  const Input table(table_, "table"), index(index_, "index");
  const Indices indices = indices_of(index);
  const int64_t bytes = element_count({index.size(), row_bytes});
  table.contiguous();
  if (table.size() * table.bytes() != element_count({rows, row_bytes})) throw nb::value_error("table is not rows of row_bytes");
  if (out.size() * out.bytes() != bytes) throw nb::value_error("out is not one row an index");
  nb::gil_scoped_release release;
  take_rows(out.data(), table.data(), indices, index.size(), rows, row_bytes);
}

void take_windows_(nb::handle out_, nb::handle tokens_, nb::handle starts_, int64_t length) {
  const Output out(out_);
  const Input tokens(tokens_, "tokens"), starts(starts_, "starts");
  check_same_size(out, tokens);
  tokens.contiguous();
  const Indices indices = indices_of(starts);
  out.sized(element_count({starts.size(), length}));
  nb::gil_scoped_release release;
  take_windows(out.bytes(), out.data(), tokens.data(), tokens.size(), indices, starts.size(), length);
}

void gather_(nb::handle out_, nb::handle x_, nb::handle index_, int64_t axis) {
  const Output out(out_);
  const Input x(x_, "x"), index(index_, "index");
  check_same_size(out, x);
  x.contiguous();
  const Indices indices = indices_of(index);
  const Sizes x_shape = x.shape(), shape = index.shape();
  out.sized(index.size());
  if (x_shape.size() != shape.size() || axis < 0 || axis >= static_cast<int64_t>(shape.size())) {
    throw nb::value_error("x and index must have one rank, and axis lie below it");
  }
  for (size_t a = 0; a < shape.size(); ++a) {
    if (a != static_cast<size_t>(axis) && shape[a] > x_shape[a]) throw nb::value_error("index is larger than x");
  }
  nb::gil_scoped_release release;
  gather(out.bytes(), out.data(), x.data(), x_shape, indices, shape, static_cast<size_t>(axis));
}

void add_rows_(nb::handle out_, nb::handle init_, nb::handle index_, nb::handle src_, int64_t rows, int64_t inner) {
  const Output out(out_);
  const Input init(init_, "init"), index(index_, "index"), src(src_, "src");
  const Indices indices = indices_of(index);
  out.of(TYPE_F32).sized(element_count({rows, inner}));
  init.of(TYPE_F32).sized(out.size());
  src.of(TYPE_F32).sized(element_count({index.size(), inner}));
  nb::gil_scoped_release release;
  add_rows(out.as<float>(), init.as<float>(), rows, inner, indices, src.as<float>(), index.size());
}

void philox_uniform_(nb::handle out_, uint32_t key0, uint32_t key1, uint32_t stream, uint32_t shard) {
  const Output out(out_);
  out.of(TYPE_F32);
  nb::gil_scoped_release release;
  philox_uniform(out.as<float>(), out.size(), {{key0, key1}}, stream, shard);
}

void check_bound(uint64_t bound) {
  if (bound == 0 || bound >> 63) throw nb::value_error("bound must be in [1, 2^63)");
}

void philox_index_(nb::handle out_, uint32_t key0, uint32_t key1, uint64_t bound, uint32_t stream, uint32_t shard) {
  const Output out(out_);
  out.of(TYPE_I64);
  check_bound(bound);
  nb::gil_scoped_release release;
  philox_index(out.as<int64_t>(), out.size(), {{key0, key1}}, bound, stream, shard);
}

void shuffled_index_(nb::handle out_, uint32_t key0, uint32_t key1, uint64_t bound, uint64_t step, uint64_t shards,
                     uint64_t shard) {
  const Output out(out_);
  out.of(TYPE_I64);
  check_bound(bound);
  if (step >> 62 || shards >> 32 || shard >= shards) throw nb::value_error("step or shard out of range");
  const unsigned __int128 position = static_cast<unsigned __int128>(step) * shards + shard;
  const uint64_t count = static_cast<uint64_t>(out.size());
  if (count >> 31 && position >> 96) throw nb::value_error("position out of range");
  nb::gil_scoped_release release;
  shuffled_index(out.as<int64_t>(), out.size(), {{key0, key1}}, bound, position * count);
}

}  // namespace

void bind_movement(nb::module_& m) {
  using nb::arg;
  m.def("copy_strided", copy_strided_, arg("out"), arg("out_offset"), arg("out_strides"), arg("x"), arg("x_offset"),
        arg("x_strides"), arg("shape"),
        "out[out_offset + i * out_strides] = x[x_offset + i * x_strides] for every index i of the shape; offsets and "
        "strides in elements. Bits stay as they are.");
  m.def("full", full_, arg("out"), arg("pattern"), "Every element of out gets the bit pattern.");
  m.def("iota", iota_, arg("out"), arg("start"), arg("step"), "out[i] = start + i * step, modulo the width.");
  m.def("take_rows", take_rows_, arg("out"), arg("table"), arg("index"), arg("rows"), arg("row_bytes"),
        "out[t] = table[index[t]]; zeros where the index is outside [0, rows).");
  m.def("take_windows", take_windows_, arg("out"), arg("tokens"), arg("starts"), arg("length"),
        "out[b, i] = tokens[starts[b] + i]; zero from a negative start and beyond the end.");
  m.def("gather", gather_, arg("out"), arg("x"), arg("index"), arg("axis"),
        "out[.., i, ..] = x[.., index[.., i, ..], ..]; zero where the index is outside the axis.");
  m.def("add_rows", add_rows_, arg("out"), arg("init"), arg("index"), arg("src"), arg("rows"), arg("inner"),
        "Scatter-add of src (len(index), inner) into init (rows, inner) in the order of NUM-14.");
  m.def("philox_uniform", philox_uniform_, arg("out"), arg("key0"), arg("key1"), arg("stream"), arg("shard"),
        "Uniform float32 in [0, 1) (NUM-16, NUM-17).");
  m.def("philox_index", philox_index_, arg("out"), arg("key0"), arg("key1"), arg("bound"), arg("stream"), arg("shard"),
        "Indices (int64) below bound (NUM-16, NUM-17).");
  m.def("shuffled_index", shuffled_index_, arg("out"), arg("key0"), arg("key1"), arg("bound"), arg("step"),
        arg("shards"), arg("shard"),
        "Images of the positions (step * shards + shard) * len(out) + i under the keyed permutation (NUM-18).");
}

}  // namespace identic
