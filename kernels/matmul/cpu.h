/* matmul on the CPU: entry point for native/module.cpp. */
#ifndef IDENTIC_MATMUL_CPU_H
#define IDENTIC_MATMUL_CPU_H

#include <cstdint>

namespace identic {

/* Distances between neighbours, in elements. */
struct Strides {
  int64_t batch, row, column;
};

/* out is contiguous (batch, m, n). The caller has checked that every address read lies in its buffer. */
void matmul(float* out, const float* left, const float* right, int64_t batch, int64_t m, int64_t n, int64_t k,
            Strides left_strides, Strides right_strides);

}  // namespace identic

#endif
