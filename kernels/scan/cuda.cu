/*
 * cumsum:  out[r, i] = x[r, 0] + ... + x[r, i].                              rules: OP-30, NUM-9, NUM-13
 *
 * Order    The chain of an element's own block of 256, behind the totals of the blocks before it, which are added
 *          left to right. Chains of different blocks do not depend on each other: their totals come first, then
 *          the totals before each block, then the chains again with these in front.
 * Shapes   x, out (rows, n), row-major; totals, before (rows, blocks), blocks = ceil(n / 256); IDN_TYPE.
 * Launch   chain_*: THREADS threads; a warp owns 32 blocks at a time, one a lane. They are read 32 places at a
 *          time through shared memory, so that a warp reads and writes neighbours and each lane has its own chain.
 *          sum_before: whole warps; a warp owns a row.
 * Twins    reference.py (definition), cpu.cpp. Vectors: tests/vectors/ops
 */
#include "common/cuda_sum.h"

#ifndef IDN_WARPS
#define IDN_WARPS 4
#endif

constexpr int WARPS = IDN_WARPS, THREADS = 32 * WARPS;
constexpr long long CHAIN = 256; /* NUM-13 */
constexpr unsigned WARP = 0xffffffffu;

/*
 * The chains of all blocks: with STORED each element is written behind `before` of its block, the first of a row
 * apart; else the chains' last sums are, to out (rows, blocks).
 */
template <bool STORED>
IDN_INLINE void idn_chain(Type* __restrict__ out, const Type* __restrict__ x, const Type* __restrict__ before,
                          long long rows, long long n) {
  __shared__ Type room[WARPS][32][33]; /* a lane's 32 places lie in 32 banks, as do a place's 32 lanes */
  Type(&tile)[32][33] = room[threadIdx.x / 32];
  const int lane = threadIdx.x % 32, longest = (int)min(CHAIN, n);
  const long long blocks = (n + CHAIN - 1) / CHAIN, total = rows * blocks;
  for (long long first = idn_thread() / 32 * 32; first < total; first += idn_threads()) {
    const long long number = min(first + lane, total - 1), row = number / blocks, block = number - row * blocks;
    const long long start = row * n + block * CHAIN;
    const int length = first + lane < total ? (int)min(CHAIN, n - block * CHAIN) : 0;
    const bool behind = STORED && block > 0;
    const Type front = behind ? before[number] : Type(0);
    Type sum = 0;
    for (int slab = 0; slab < longest; slab += 32) {
      for (int i = 0; i < 32; ++i) {
        const long long from = __shfl_sync(WARP, start, i);
        const int rest = __shfl_sync(WARP, length, i) - slab;
        if (lane < rest) tile[i][lane] = x[from + slab + lane];
      }
      __syncwarp();
      for (int i = 0; i < min(32, length - slab); ++i) {
        sum = idn_sum(sum, tile[lane][i]);
        if (STORED) tile[lane][i] = idn_result(behind ? idn_sum(front, sum) : sum);
      }
      __syncwarp();
      if (!STORED) continue;
      for (int i = 0; i < 32; ++i) {
        const long long to = __shfl_sync(WARP, start, i);
        const int rest = __shfl_sync(WARP, length, i) - slab;
        if (lane < rest) out[to + slab + lane] = tile[i][lane];
      }
      __syncwarp();
    }
    if (!STORED && length) out[number] = sum;
  }
}

extern "C" __global__ void __launch_bounds__(THREADS) chain_totals(Type* __restrict__ totals,
                                                                   const Type* __restrict__ x, long long rows,
                                                                   long long n) {
  idn_chain<false>(totals, x, nullptr, rows, n);
}

/* `before` is read where a row has more than one block. */
extern "C" __global__ void __launch_bounds__(THREADS) chain_sums(Type* __restrict__ out, const Type* __restrict__ x,
                                                                 const Type* __restrict__ before, long long rows,
                                                                 long long n) {
  idn_chain<true>(out, x, before, rows, n);
}

/* before[r, b] = totals[r, 0] + ... + totals[r, b - 1]. */
extern "C" __global__ void sum_before(Type* __restrict__ before, const Type* __restrict__ totals, long long rows,
                                      long long blocks) {
  const int lane = threadIdx.x % 32;
  for (long long row = idn_thread() / 32; row < rows; row += idn_threads() / 32) {
    const Type* from = totals + row * blocks;
    Type sum = 0;
    for (long long first = 0; first < blocks; first += 32) {
      const Type mine = first + lane < blocks ? from[first + lane] : Type(0);
      Type kept = 0;
      for (int i = 0; i < 32; ++i) {
        if (lane == i) kept = sum;
        const Type next = __shfl_sync(WARP, mine, i);
        sum = first + i ? idn_sum(sum, next) : next;
      }
      if (first + lane < blocks) before[row * blocks + first + lane] = kept;
    }
  }
}
