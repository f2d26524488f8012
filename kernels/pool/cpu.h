/* Pools on the CPU: entry points for native/module.cpp. All arrays are contiguous. */
#ifndef IDENTIC_POOL_CPU_H
#define IDENTIC_POOL_CPU_H

#include <cstdint>

#include "common/windows.h"

namespace identic {

/* `planes` planes of down.size x across.size places, each with down.count x across.count windows. */
struct PoolShape {
  int64_t planes;
  WindowAxis down, across;

  int64_t windows() const { return down.count * across.count; }
  int64_t plane() const { return down.size * across.size; }
};

/* Largest of each window, -inf for none (NUM-4). */
void max_pool(float* out, const float* x, const PoolShape& shape);

/* Position in the plane of the first of the largest of each window, -1 for none (NUM-4). far: as in planes of 2^31. */
void max_pool_indices(int64_t* out, const float* x, const PoolShape& shape, bool far = false);

/* Each window's gradient added to the place its index names, if its span covers it. */
void max_pool_dx(float* out, const float* grad, const int64_t* indices, const PoolShape& shape);

/* Sum of each window in order, from +0. */
void sum_pool(float* out, const float* x, const PoolShape& shape);

/* Each window's gradient added to all of its places, windows in order. */
void sum_pool_dx(float* out, const float* grad, const PoolShape& shape);

}  // namespace identic

#endif
