/*
 * What generated kernels of chains are made of (cuda/chain_text.py, cuda/chain_rows.py).  rules: NUM-4, NUM-12
 *
 * Order   A warp sums at most 4,096 elements: thread t adds up lanes t and t + 32 of NUM-12's 64, from +0 with
 *         stride 64; then the lanes fold by 32, 16, 8, 4, 2, 1. Of a longer row each warp of a block does so for
 *         every so-manieth piece; the sums of the pieces are a row again. Maxima take any order (NUM-4).
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

/* ---- rows of several pieces --------------------------------------------------------------------- */

/* Leaves what a warp has found of a piece for the others of its block. */
IDN_INLINE void idn_leave(float& place, int lane, float found) {
  if (lane == 0) place = found;
}

/* A row's sum in every thread, from the sums of its pieces, which are fewer than 4,096. */
IDN_INLINE float idn_pieces_sum(const float* pieces, int lane, long long number) {
  float lanes[2] = {0.0f, 0.0f};
  for (long long i = lane; i < number; i += 2 * IDN_WARP) {
    lanes[0] = idn_add(lanes[0], pieces[i]);
    if (i + IDN_WARP < number) lanes[1] = idn_add(lanes[1], pieces[i + IDN_WARP]);
  }
  return idn_row_sum(lanes);
}

IDN_INLINE float idn_pieces_maximum(const float* pieces, int lane, long long number) {
  float most[2] = {pieces[0], pieces[0]};
  for (long long i = lane; i < number; i += IDN_WARP) most[0] = idn_max(most[0], pieces[i]);
  return idn_row_maximum(most);
}

#endif
