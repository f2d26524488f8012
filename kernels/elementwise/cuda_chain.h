/*
 * What generated kernels of chains are made of (cuda/chain_text.py).                 rules: NUM-4, NUM-12
 *
 * Order   A warp owns a row: thread t adds up lanes t and t + 32 of NUM-12's 64, from +0 with stride 64; then
 *         the lanes fold by 32, 16, 8, 4, 2, 1. Maxima take any order (NUM-4).
 */
#ifndef IDENTIC_ELEMENTWISE_CUDA_CHAIN_H
#define IDENTIC_ELEMENTWISE_CUDA_CHAIN_H

#include "common/cuda_places.h"
#include "elementwise/cuda.h"

#define IDN_WARP 32
#define IDN_ALL 0xffffffffu

/* The sum of a row of at most 4,096 elements in every thread of its warp. */
IDN_INLINE float idn_row_sum(const float (&lanes)[2]) {
  float sum = idn_add(lanes[0], lanes[1]);
  IDN_UNROLL(8)
  for (int by = IDN_WARP / 2; by; by /= 2) sum = idn_add(sum, __shfl_down_sync(IDN_ALL, sum, by));
  return idn_canon(__shfl_sync(IDN_ALL, sum, 0));
}

IDN_INLINE float idn_row_maximum(const float (&lanes)[2]) {
  float most = idn_max(lanes[0], lanes[1]);
  IDN_UNROLL(8)
  for (int by = IDN_WARP / 2; by; by /= 2) most = idn_max(most, __shfl_xor_sync(IDN_ALL, most, by));
  return most;
}

#endif
