/*
 * set_rows, scatter                                                     rules: OP-4, OP-32, NUM-2
 *
 * Order   The last write to a place stays. Every index claims the place that it names, with its position
 *         plus 1, by an integer maximum, which no order of threads changes; then only those who hold their
 *         claim write. In lines of few indices one thread makes all writes of a line, in order.
 * Shapes  out and x as the operator; index and src (T,) and (T, row), or of one shape. `claims` has one
 *         word a row of out, or a place, and begins as zeros.
 * Launch  Any one-dimensional launch. write_rows: the 2^lane_bits lanes of a source row own it, and the
 *         block is a multiple of that. Elsewhere a thread owns an index, or a line.
 * Twins   reference.py (definition), cpu.cpp.
 */
#include "index/cuda.h"

#ifndef CLAIMS
#define CLAIMS 0xffffffffll
#endif

/* ---- claims ---------------------------------------------------------------------------------- */

/*
 * Index i is position i / step mod length of its line. CLAIMS positions from `first` on claim at a time; the claim of
 * others is 0.
 */
IDN_INLINE uint32_t idn_claim(long long i, long long step, long long length, long long first) {
  const long long position = i / step % length - first;
  return position >= 0 && position < CLAIMS ? (uint32_t)(position + 1) : 0;
}

extern "C" __global__ void claim(uint32_t* __restrict__ claims, const void* __restrict__ index, long long wide,
                                 long long n, long long size, long long along, long long step, long long length,
                                 long long first, long long rank,
                                 Words<IDN_AXES> lengths, Words<IDN_AXES> multipliers, Words<IDN_AXES> steps) {
  for (long long i = idn_thread(); i < n; i += idn_threads()) {
    const long long at = idn_index(index, wide, i);
    if (!idn_inside(at, size)) continue;
    const long long there = idn_offset(i, rank, lengths, multipliers, steps) + at * along;
    atomicMax(&claims[there], idn_claim(i, step, length, first));
  }
}

/* ---- writes ---------------------------------------------------------------------------------- */

extern "C" __global__ void write_rows(void* __restrict__ out, const void* __restrict__ src,
                                      const uint32_t* __restrict__ claims, const void* __restrict__ index,
                                      long long wide, long long count, long long rows, long long row_bytes,
                                      long long first, long long lane_bits) {
  const int word_bytes = idn_word_bytes(out, src, row_bytes);
  const long long lanes = 1ll << lane_bits, lane = idn_thread() & (lanes - 1);
  for (long long t = idn_thread() >> lane_bits; t < count; t += idn_threads() >> lane_bits) {
    const long long at = idn_index(index, wide, t);
    const uint32_t mine = idn_claim(t, 1, count, first);
    if (!idn_inside(at, rows) || !mine || claims[at] != mine) continue;
    idn_copy_row(word_bytes, (char*)out + at * row_bytes, (const char*)src + t * row_bytes, row_bytes, lane, lanes);
  }
}

extern "C" __global__ void write_claimed(void* __restrict__ out, const void* __restrict__ src,
                                         const uint32_t* __restrict__ claims, const void* __restrict__ index,
                                         long long wide, long long bytes, long long n, long long size,
                                         long long along, long long step, long long length, long long first,
                                         long long rank,
                                         Words<IDN_AXES> lengths, Words<IDN_AXES> multipliers, Words<IDN_AXES> steps) {
  for (long long i = idn_thread(); i < n; i += idn_threads()) {
    const long long at = idn_index(index, wide, i);
    if (!idn_inside(at, size)) continue;
    const long long to = idn_offset(i, rank, lengths, multipliers, steps) + at * along;
    const uint32_t mine = idn_claim(i, step, length, first);
    if (mine && claims[to] == mine) idn_move_word(bytes, out, to, src, i);
  }
}

extern "C" __global__ void write_lines(void* __restrict__ out, const void* __restrict__ src,
                                       const void* __restrict__ index, long long wide, long long bytes,
                                       long long lines, long long length, long long step, long long size,
                                       long long along, long long rank,
                                       Words<IDN_AXES> lengths, Words<IDN_AXES> multipliers,
                                       Words<2 * IDN_AXES> steps) {
  for (long long line = idn_thread(); line < lines; line += idn_threads()) {
    long long starts[2];
    idn_offsets<2>(line, rank, lengths, multipliers, steps, starts);
    const long long there = starts[0], here = starts[1];
    for (long long j = 0; j < length; ++j) {
      const long long at = idn_index(index, wide, here + j * step);
      if (idn_inside(at, size)) idn_move_word(bytes, out, there + at * along, src, here + j * step);
    }
  }
}
