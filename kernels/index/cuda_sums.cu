/*
 * add_rows, scatter_add:  out[key] = init[key] + sums of src[place], chunk by chunk    rules: NUM-14, OP-4
 *
 * Order   Source places are sorted by the row they are added to and keep their order (sort/cuda.cu), so
 *         the places of a row are a run, in ascending order. Within a chunk of 256 positions a chain of
 *         additions from +0; the chunks' sums are added to the result left to right. Partials of +0 change
 *         a -0 and NaN bits only, so one addition of +0 before all others stands for all empty chunks.
 *         No atomics.
 * Shapes  out (rows, inner), src (n, inner). For scatter_add inner is 1, and place e of the index is
 *         position e / step mod length of its line; for add_rows step is 1 and length n.
 * Launch  add_short_runs: the 2^lane_bits lanes of a sorted place own its run, if it is the run's first.
 *         add_long_runs: a block owns 32 columns of a run of more than LONG places; its warps sum
 *         chunks side by side, and the first warp adds them up. Elsewhere a thread owns an element or a line.
 *         LONG and WARPS tune speed only.
 * Twins   reference.py (definition), cpu.cpp.
 */
#include "index/cuda.h"

typedef uint64_t Key;
typedef uint32_t Place;

#ifndef LONG
#define LONG 64
#endif
#define WARPS 8

/* ---- before the sums ------------------------------------------------------------------------- */

/* out = x + 0 at the places of a shape. */
extern "C" __global__ void add_zero(float* __restrict__ out, const float* __restrict__ x, long long n, long long rank,
                                    Words<IDN_AXES> lengths, Words<IDN_AXES> multipliers, Words<IDN_AXES> steps) {
  for (long long i = idn_thread(); i < n; i += idn_threads()) {
    const long long at = rank == 1 ? i * steps.v[0] : idn_offset(i, rank, lengths, multipliers, steps);
    out[at] = idn_canon(idn_add(x[at], 0.0f));
  }
}

/* The place of out that each index adds to; `none`, above all places, for an index outside. */
extern "C" __global__ void target_keys(Key* __restrict__ keys, const void* __restrict__ index, long long wide,
                                       long long n, long long size, long long along, long long none, long long rank,
                                       Words<IDN_AXES> lengths, Words<IDN_AXES> multipliers, Words<IDN_AXES> steps) {
  for (long long i = idn_thread(); i < n; i += idn_threads()) {
    const long long at = idn_index(index, wide, i);
    const long long there = idn_offset(i, rank, lengths, multipliers, steps);
    keys[i] = (Key)(idn_inside(at, size) ? there + at * along : none);
  }
}

/* ---- runs ------------------------------------------------------------------------------------ */

/* NUM-14: the chunk of a source place within its line. */
IDN_INLINE Place idn_chunk(Place place, long long step, long long length) {
  return place / (Place)step % (Place)length / IDN_CHUNK;
}

/* Whether the run that holds place `first` goes on for more than LONG places from there. */
IDN_INLINE bool idn_is_long(const Key* __restrict__ keys, long long first, long long n) {
  return first + LONG < n && keys[first + LONG] == keys[first];
}

extern "C" __global__ void add_short_runs(float* __restrict__ out, const float* __restrict__ src,
                                          const Key* __restrict__ keys, const Place* __restrict__ places, long long n,
                                          long long none, long long inner, long long step, long long length,
                                          long long lane_bits) {
  const long long lanes = 1ll << lane_bits, lane = idn_thread() & (lanes - 1);
  for (long long first = idn_thread() >> lane_bits; first < n; first += idn_threads() >> lane_bits) {
    const Key key = keys[first];
    if (key == (Key)none || (first > 0 && keys[first - 1] == key) || idn_is_long(keys, first, n)) continue;
    for (long long column = lane; column < inner; column += lanes) {
      float result = out[(long long)key * inner + column];
      for (long long at = first; at < n && keys[at] == key;) {
        const Place chunk = idn_chunk(places[at], step, length);
        float partial = 0.0f;
        do {
          partial = idn_add(partial, src[(long long)places[at] * inner + column]);
          ++at;
        } while (at < n && keys[at] == key && idn_chunk(places[at], step, length) == chunk);
        result = idn_add(result, partial);
      }
      out[(long long)key * inner + column] = idn_canon(result);
    }
  }
}

/* The first place in [low, high) of a key above `key`. */
IDN_INLINE long long idn_end_of_run(const Key* __restrict__ keys, Key key, long long low, long long high) {
  while (low < high) {
    const long long middle = low + (high - low) / 2;
    if (keys[middle] > key) high = middle; else low = middle + 1;
  }
  return low;
}

/* The first place of a run [low, high) whose chunk is `chunk` or later. */
IDN_INLINE long long idn_start_of_chunk(const Place* __restrict__ places, Place chunk, long long step,
                                        long long length, long long low, long long high) {
  while (low < high) {
    const long long middle = low + (high - low) / 2;
    if (idn_chunk(places[middle], step, length) >= chunk) high = middle; else low = middle + 1;
  }
  return low;
}

/*
 * A run of more than LONG places holds a multiple of LONG; the block of the first such multiple, and of
 * 32 columns, adds it up.
 */
extern "C" __global__ void __launch_bounds__(32 * WARPS)
    add_long_runs(float* __restrict__ out, const float* __restrict__ src, const Key* __restrict__ keys,
                  const Place* __restrict__ places, long long n, long long none, long long inner, long long step,
                  long long length) {
  __shared__ float partials[WARPS][32];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const long long tiles = (inner + 31) / 32, blocks = (n + LONG - 1) / LONG * tiles;
  for (long long block = blockIdx.x; block < blocks; block += gridDim.x) {
    const long long met = block / tiles * LONG, column = block % tiles * 32 + lane;
    const Key key = keys[met];
    if (key == (Key)none || (met >= LONG && keys[met - LONG] == key)) continue;
    long long first = met;
    while (first > 0 && keys[first - 1] == key) --first;
    if (!idn_is_long(keys, first, n)) continue;
    const long long end = idn_end_of_run(keys, key, first, n);
    const Place last = idn_chunk(places[end - 1], step, length);
    const bool here = column < inner;
    float result = here && warp == 0 ? out[(long long)key * inner + column] : 0.0f;
    for (Place base = idn_chunk(places[first], step, length); base <= last; base += WARPS) {
      const long long low = idn_start_of_chunk(places, base + warp, step, length, first, end);
      const long long high = idn_start_of_chunk(places, base + warp + 1, step, length, low, end);
      float partial = 0.0f;
      if (here) {
#pragma unroll 4
        for (long long at = low; at < high; ++at) {
          partial = idn_add(partial, src[(long long)places[at] * inner + column]);
        }
      }
      partials[warp][lane] = partial;
      __syncthreads();
      if (warp == 0) {
        for (int w = 0; w < WARPS; ++w) result = idn_add(result, partials[w][lane]);
      }
      __syncthreads();
    }
    if (here && warp == 0) out[(long long)key * inner + column] = idn_canon(result);
  }
}

/* ---- lines of few indices -------------------------------------------------------------------- */

/* Lines of at most 256 indices are one chunk each; a thread owns a line. */
extern "C" __global__ void add_lines(float* __restrict__ out, const float* __restrict__ src,
                                     const void* __restrict__ index, long long wide, long long lines,
                                     long long length, long long step, long long size, long long along, long long rank,
                                     Words<IDN_AXES> lengths, Words<IDN_AXES> multipliers, Words<2 * IDN_AXES> steps) {
  for (long long line = idn_thread(); line < lines; line += idn_threads()) {
    long long starts[2];
    idn_offsets<2>(line, rank, lengths, multipliers, steps, starts);
    const long long there = starts[0], here = starts[1];
    for (long long j = 0; j < length; ++j) {
      const long long at = idn_index(index, wide, here + j * step);
      bool counts = idn_inside(at, size);
      for (long long i = 0; i < j && counts; ++i) counts = idn_index(index, wide, here + i * step) != at;
      if (!counts) continue;
      float partial = 0.0f;
      for (long long i = j; i < length; ++i) {
        if (idn_index(index, wide, here + i * step) == at) partial = idn_add(partial, src[here + i * step]);
      }
      out[there + at * along] = idn_canon(idn_add(out[there + at * along], partial));
    }
  }
}
