/*
 * argsort, argtopk, and the sorting of pairs that ordered sums begin with               rule: OP-31
 *
 * Order   An element becomes an unsigned key that grows in sorting order. Short rows are sorted by key and
 *         position, which are all different together; long rows by digits of eight bits from the lowest
 *         on, each pass keeping the order of equal digits. Both give the one order there is.
 * Shapes  out (rows, count) int64; x (rows, n) of the kind that is told, n below 2^32; keys and places (rows, n);
 *         before (rows, tiles, 256); base (rows, 256).
 * Launch  THREADS a block. sort_short: a block owns as many rows as fit its span. The passes: a block
 *         owns a tile of ITEMS * THREADS neighbours of one row, and a warp ITEMS * 32 of them.
 *         THREADS and ITEMS tune speed only.
 * Macros  KEY is uint32_t or uint64_t, wide enough for the keys.
 * Twins   reference.py (definition), cpu.cpp.
 */
#include "common/cuda.h"

#ifndef KEY
#define KEY uint32_t
#endif
#ifndef ITEMS
#define ITEMS 8
#endif
#define THREADS 256
#define WARPS (THREADS / 32)
#define DIGITS 256 /* a thread owns a digit, so no more than THREADS */

/* ---- keys ------------------------------------------------------------------------------------ */

/* OP-31: -0 is equal to +0, and every NaN is equal and above all numbers. */
IDN_INLINE uint32_t idn_float_key(uint32_t u) {
  const uint32_t magnitude = u & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return ~0u;
  if (magnitude == 0) return 0x80000000u;
  return u >> 31 ? ~u : u | 0x80000000u;
}

/* What elements are. */
enum { IS_FLOAT32, IS_INT32, IS_INT64 };

IDN_INLINE KEY idn_order_key(const void* __restrict__ x, long long kind, long long i, bool descending) {
  if (kind == IS_INT64) {
    const uint64_t key = ((const uint64_t*)x)[i] ^ 1ull << 63;
    return (KEY)(descending ? ~key : key);
  }
  const uint32_t u = ((const uint32_t*)x)[i];
  const uint32_t key = kind == IS_FLOAT32 ? idn_float_key(u) : u ^ 0x80000000u;
  return descending ? ~key : key;
}

extern "C" __global__ void order_keys(KEY* __restrict__ keys, const void* __restrict__ x, long long kind,
                                      long long n, long long descending) {
  for (long long i = idn_thread(); i < n; i += idn_threads()) keys[i] = idn_order_key(x, kind, i, descending != 0);
}

/* ---- short rows ------------------------------------------------------------------------------ */

/*
 * A bitonic network over `span` pairs in shared memory, which hold span / width rows side by side: the
 * stages end at the width, a power of two. What fills a row up has the greatest key and a later position.
 */
extern "C" __global__ void __launch_bounds__(THREADS)
    sort_short(long long* __restrict__ out, const void* __restrict__ x, long long kind, long long rows,
               long long n, long long count, long long descending, long long width_bits, long long span) {
  extern __shared__ KEY keys[];
  uint32_t* places = (uint32_t*)(keys + span);
  const long long width = 1ll << width_bits, group = span >> width_bits;
  for (long long first = blockIdx.x * group; first < rows; first += gridDim.x * group) {
    for (long long i = threadIdx.x; i < span; i += THREADS) {
      const long long row = first + (i >> width_bits), place = i & (width - 1);
      const bool real = row < rows && place < n;
      keys[i] = real ? idn_order_key(x, kind, row * n + place, descending != 0) : (KEY)~(KEY)0;
      places[i] = (uint32_t)place;
    }
    __syncthreads();
    for (long long size = 2; size <= width; size *= 2) {
      for (long long step = size / 2; step > 0; step /= 2) {
        for (long long pair = threadIdx.x; pair < span / 2; pair += THREADS) {
          const long long low = 2 * pair - (pair & (step - 1)), high = low + step;
          const KEY a = keys[low], b = keys[high];
          const uint32_t a_place = places[low], b_place = places[high];
          const bool greater = a != b ? a > b : a_place > b_place;
          const bool ascending = (low & (width - 1) & size) == 0;
          if (greater == ascending) {
            keys[low] = b;
            keys[high] = a;
            places[low] = b_place;
            places[high] = a_place;
          }
        }
        __syncthreads();
      }
    }
    for (long long i = threadIdx.x; i < span; i += THREADS) {
      const long long row = first + (i >> width_bits), rank = i & (width - 1);
      if (row < rows && rank < count) out[row * count + rank] = places[i];
    }
    __syncthreads();
  }
}

/* ---- one pass over a digit ------------------------------------------------------------------- */

IDN_INLINE int idn_digit(KEY key, long long shift) { return (int)(key >> shift) & (DIGITS - 1); }

/* How often each digit comes in each tile. */
extern "C" __global__ void __launch_bounds__(THREADS)
    count_digits(uint32_t* __restrict__ before, const KEY* __restrict__ keys, long long n, long long tiles,
                 long long shift) {
  __shared__ unsigned count[DIGITS];
  const long long row = blockIdx.x / tiles, start = (blockIdx.x % tiles) * (ITEMS * THREADS);
  for (int digit = threadIdx.x; digit < DIGITS; digit += THREADS) count[digit] = 0;
  __syncthreads();
  for (int k = 0; k < ITEMS; ++k) {
    const long long at = start + k * THREADS + threadIdx.x;
    if (at < n) atomicAdd(&count[idn_digit(keys[row * n + at], shift)], 1u);
  }
  __syncthreads();
  for (int digit = threadIdx.x; digit < DIGITS; digit += THREADS) {
    before[(long long)blockIdx.x * DIGITS + digit] = count[digit];
  }
}

/* Counts become how often the digit comes in earlier tiles; base is how many smaller digits the row has. */
extern "C" __global__ void __launch_bounds__(THREADS)
    digit_offsets(uint32_t* __restrict__ base, uint32_t* __restrict__ before, long long tiles) {
  __shared__ uint32_t totals[DIGITS];
  const int digit = threadIdx.x;
  uint32_t* mine = before + (long long)blockIdx.x * tiles * DIGITS + digit;
  uint32_t total = 0;
  for (long long tile = 0; tile < tiles; tile += 8) {
    uint32_t found[8];
#pragma unroll
    for (int k = 0; k < 8; ++k) found[k] = tile + k < tiles ? mine[(tile + k) * DIGITS] : 0;
#pragma unroll
    for (int k = 0; k < 8; ++k) {
      if (tile + k < tiles) mine[(tile + k) * DIGITS] = total;
      total += found[k];
    }
  }
  totals[digit] = total;
  __syncthreads();
  for (int by = 1; by < DIGITS; by *= 2) {
    const uint32_t lower = digit >= by ? totals[digit - by] : 0;
    __syncthreads();
    totals[digit] += lower;
    __syncthreads();
  }
  base[(long long)blockIdx.x * DIGITS + digit] = totals[digit] - total;
}

/* Moves each pair behind those of a smaller digit, and those of the same digit before it. */
extern "C" __global__ void __launch_bounds__(THREADS)
    move_by_digit(KEY* __restrict__ to_keys, uint32_t* __restrict__ to_places, const KEY* __restrict__ keys,
                  const uint32_t* __restrict__ places, const uint32_t* __restrict__ before, const uint32_t* __restrict__ base,
                  long long n, long long tiles, long long shift, long long first) {
  __shared__ uint32_t next[WARPS][DIGITS];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const long long row = blockIdx.x / tiles, begin = row * n;
  const long long start = (blockIdx.x % tiles) * (ITEMS * THREADS) + warp * (ITEMS * 32) + lane;
  KEY key[ITEMS];
  uint32_t rank[ITEMS];
  for (int digit = threadIdx.x; digit < DIGITS; digit += THREADS) {
    for (int w = 0; w < WARPS; ++w) next[w][digit] = 0;
  }
  __syncthreads();
#pragma unroll
  for (int k = 0; k < ITEMS; ++k) {
    const long long at = start + k * 32;
    const bool here = at < n;
    key[k] = here ? keys[begin + at] : 0;
    const int digit = idn_digit(key[k], shift);
    unsigned peers = __ballot_sync(0xffffffffu, here);
#pragma unroll
    for (int bit = 0; bit < 8; ++bit) {
      const int set = digit >> bit & 1;
      const unsigned votes = __ballot_sync(0xffffffffu, set);
      peers &= set ? votes : ~votes;
    }
    const unsigned earlier = peers & ((1u << lane) - 1);
    if (here) rank[k] = next[warp][digit] + (uint32_t)__popc(earlier);
    __syncwarp();
    if (here && earlier == 0) next[warp][digit] += (uint32_t)__popc(peers);
    __syncwarp();
  }
  __syncthreads();
  for (int digit = threadIdx.x; digit < DIGITS; digit += THREADS) {
    uint32_t at = base[row * DIGITS + digit] + before[(long long)blockIdx.x * DIGITS + digit];
    for (int w = 0; w < WARPS; ++w) {
      const uint32_t count = next[w][digit];
      next[w][digit] = at;
      at += count;
    }
  }
  __syncthreads();
#pragma unroll
  for (int k = 0; k < ITEMS; ++k) {
    const long long at = start + k * 32;
    if (at < n) {
      const long long to = begin + (long long)(next[warp][idn_digit(key[k], shift)] + rank[k]);
      to_keys[to] = key[k];
      to_places[to] = first ? (uint32_t)at : places[begin + at];
    }
  }
}

/* out (rows, count): the first positions of each row. */
extern "C" __global__ void first_places(long long* __restrict__ out, const uint32_t* __restrict__ places,
                                        long long rows, long long n, long long count) {
  for (long long i = idn_thread(); i < rows * count; i += idn_threads()) {
    out[i] = (long long)places[i / count * n + i % count];
  }
}
