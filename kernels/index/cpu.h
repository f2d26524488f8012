/* Look-ups and scatter-add on the CPU: entry points for native/module.cpp. */
#ifndef IDENTIC_INDEX_CPU_H
#define IDENTIC_INDEX_CPU_H

#include <cstddef>
#include <cstdint>
#include <vector>

namespace identic {

using Sizes = std::vector<int64_t>;

/* int32 or int64 indices. */
struct Indices {
  const void* data;
  bool wide;
  int64_t operator[](int64_t i) const {
    return wide ? static_cast<const int64_t*>(data)[i] : static_cast<const int32_t*>(data)[i];
  }
};

/* out[t] = table[index[t]], rows of row_bytes; zeros where the index is outside [0, rows). */
void take_rows(void* out, const void* table, Indices index, int64_t count, int64_t rows, int64_t row_bytes);

/* out[b, i] = tokens[starts[b] + i]; zero from a negative start and beyond the end. */
void take_windows(int bytes, void* out, const void* tokens, int64_t size, Indices starts, int64_t count,
                  int64_t length);

/* out has the shape of index; out[.., i, ..] = x[.., index, ..] along axis; zero outside the axis. */
void gather(int bytes, void* out, const void* x, const Sizes& x_shape, Indices index, const Sizes& shape, size_t axis);

/* Scatter-add along axis 0 in the order of NUM-14; out and init are (rows, inner), src is (count, inner). */
void add_rows(float* out, const float* init, int64_t rows, int64_t inner, Indices index, const float* src,
              int64_t count);

}  // namespace identic

#endif
