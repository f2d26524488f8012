/*
 * copy_strided, full, iota: elements move as words of their size                     rules: NUM-2, NUM-9
 *
 * Order   None.
 * Shapes  copy: n elements, both sides with strides over one shape (common/cuda_places.h). turn: one axis along
 *         which the source runs, rows, against one along which the destination runs, columns, and axes around.
 * Launch  copy, full, iota: any one-dimensional launch. turn: blocks of (TILE, a divisor of TILE) threads, any
 *         one-dimensional grid; a block turns tiles in shared memory, so that both sides touch whole lines.
 * Twins   reference.py (definition), cpu.cpp.
 */
#include "common/cuda_places.h"

#define TILE 32

template <class T>
IDN_INLINE void idn_copy(T* __restrict__ out, const T* __restrict__ x, long long n, long long rank,
                         const Words<IDN_AXES>& lengths, const Words<IDN_AXES>& multipliers,
                         const Words<IDN_AXES * 2>& steps) {
  IDN_ROLLED
  for (long long i = idn_thread(); i < n; i += idn_threads()) {
    long long at[2];
    idn_offsets(i, rank, lengths, multipliers, steps, at);
    out[at[0]] = x[at[1]];
  }
}

template <class T>
IDN_INLINE void idn_turn(T (&tile)[TILE][TILE + 1], T* __restrict__ out, const T* __restrict__ x, long long rows,
                         long long columns, long long out_step, long long x_step, long long around, long long rank,
                         const Words<IDN_AXES>& lengths, const Words<IDN_AXES>& multipliers,
                         const Words<IDN_AXES * 2>& steps) {
  const long long across = (columns + TILE - 1) / TILE, down = (rows + TILE - 1) / TILE;
  const long long tx = threadIdx.x;
  IDN_ROLLED
  for (long long t = blockIdx.x; t < around * down * across; t += gridDim.x) {
    const long long column = t % across * TILE, row = t / across % down * TILE;
    long long at[2];
    idn_offsets(t / across / down, rank, lengths, multipliers, steps, at);
    __syncthreads();
    IDN_ROLLED
    for (int ty = threadIdx.y; ty < TILE; ty += blockDim.y) {
      if (row + tx < rows && column + ty < columns) tile[ty][tx] = x[at[1] + (column + ty) * x_step + row + tx];
    }
    __syncthreads();
    IDN_ROLLED
    for (int ty = threadIdx.y; ty < TILE; ty += blockDim.y) {
      if (row + ty < rows && column + tx < columns) out[at[0] + (row + ty) * out_step + column + tx] = tile[tx][ty];
    }
  }
}

#define IDN_PLACES                                                                                        \
  long long rank, const __grid_constant__ Words<IDN_AXES> lengths,                                        \
      const __grid_constant__ Words<IDN_AXES> multipliers, const __grid_constant__ Words<IDN_AXES * 2> steps

#define IDN_MOVES(BYTES, T)                                                                               \
  extern "C" __global__ void copy_##BYTES(T* out, const T* x, long long n, IDN_PLACES) {                  \
    idn_copy(out, x, n, rank, lengths, multipliers, steps);                                               \
  }                                                                                                       \
  extern "C" __global__ void turn_##BYTES(T* out, const T* x, long long rows, long long columns,          \
                                          long long out_step, long long x_step, long long around, IDN_PLACES) { \
    __shared__ T tile[TILE][TILE + 1];                                                                    \
    idn_turn(tile, out, x, rows, columns, out_step, x_step, around, rank, lengths, multipliers, steps);   \
  }                                                                                                       \
  extern "C" __global__ void full_##BYTES(T* out, long long pattern, long long n) {                       \
    IDN_ROLLED                                                                                            \
    for (long long i = idn_thread(); i < n; i += idn_threads()) out[i] = (T)pattern;                      \
  }
IDN_MOVES(1, uint8_t)
IDN_MOVES(2, uint16_t)
IDN_MOVES(4, uint32_t)
IDN_MOVES(8, uint64_t)

/* NUM-9: start + i * step modulo the width. */
#define IDN_IOTA(BYTES, T)                                                                                \
  extern "C" __global__ void iota_##BYTES(T* out, long long start, long long step, long long n) {         \
    IDN_ROLLED                                                                                            \
    for (long long i = idn_thread(); i < n; i += idn_threads()) out[i] = (T)start + (T)i * (T)step;       \
  }
IDN_IOTA(4, uint32_t)
IDN_IOTA(8, uint64_t)
