/*
 * Walks over a result of any rank row by row, with operands that step by their own strides.
 *
 * Neighbouring axes over which every operand steps evenly are merged first, so that a contiguous
 * call is one row. A walk over a range of flat positions of the result touches each once.
 */
#ifndef IDENTIC_NATIVE_STRIDED_H
#define IDENTIC_NATIVE_STRIDED_H

#include <algorithm>
#include <cstdint>
#include <vector>

namespace identic {

/* Shape and, for each of OPERANDS operands, one stride an axis, in elements. */
template <int OPERANDS>
struct Walk {
  std::vector<int64_t> shape;
  std::vector<int64_t> strides[OPERANDS];

  int64_t elements() const {
    int64_t total = 1;
    for (int64_t size : shape) total *= size;
    return total;
  }

  /* Drops axes of one element and merges axes that are one axis to every operand. */
  void merge() {
    size_t kept = 0;
    for (size_t axis = 0; axis < shape.size(); ++axis) {
      if (shape[axis] == 1) continue;
      bool merges = kept > 0;
      for (int o = 0; merges && o < OPERANDS; ++o) {
        merges = strides[o][kept - 1] == strides[o][axis] * shape[axis];
      }
      if (merges) {
        shape[kept - 1] *= shape[axis];
      } else {
        shape[kept] = shape[axis];
        ++kept;
      }
      for (int o = 0; o < OPERANDS; ++o) strides[o][kept - 1] = strides[o][axis];
    }
    shape.resize(kept);
    for (auto& one : strides) one.resize(kept);
    if (kept == 0) {
      shape.assign(1, 1);
      for (auto& one : strides) one.assign(1, 0);
    }
  }

  /*
   * Calls row(position, offsets, n) for pieces of [begin, end): n results from flat position on, in
   * one row, whose operands start at the given offsets. The last axis is the row. Call merge first.
   */
  template <class Row>
  void run(int64_t begin, int64_t end, Row row) const {
    if (begin >= end) return;
    const size_t last = shape.size() - 1;
    const int64_t length = shape[last];
    std::vector<int64_t> index(shape.size());
    int64_t rest = begin;
    for (size_t axis = shape.size(); axis-- > 0;) {
      index[axis] = rest % shape[axis];
      rest /= shape[axis];
    }
    int64_t offsets[OPERANDS] = {};
    for (int o = 0; o < OPERANDS; ++o) {
      for (size_t axis = 0; axis < last; ++axis) offsets[o] += index[axis] * strides[o][axis];
    }
    int64_t inner = index[last];
    for (int64_t at = begin; at < end;) {
      const int64_t n = std::min(length - inner, end - at);
      int64_t starts[OPERANDS];
      for (int o = 0; o < OPERANDS; ++o) starts[o] = offsets[o] + inner * strides[o][last];
      row(at, starts, n);
      at += n;
      inner = 0;
      for (size_t axis = last; axis-- > 0;) {
        for (int o = 0; o < OPERANDS; ++o) offsets[o] += strides[o][axis];
        if (++index[axis] < shape[axis]) break;
        for (int o = 0; o < OPERANDS; ++o) offsets[o] -= strides[o][axis] * shape[axis];
        index[axis] = 0;
      }
    }
  }
};

}  // namespace identic

#endif
