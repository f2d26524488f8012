/*
 * take_rows, take_windows, gather                                                 rules: OP-4, NUM-2
 *
 * Order   None: words are moved.
 * Shapes  take_rows: out (count, row), table (rows, row), rows of bytes. take_windows: out (count,
 *         length), tokens (size,). gather: out and index of one shape. An index is int32 or int64.
 * Launch  Any one-dimensional launch whose block is a multiple of 2^lane_bits. That many neighbouring
 *         threads, the lanes, own a row or a window; elsewhere a thread owns an element. All stride on.
 * Twins   reference.py (definition), cpu.cpp.
 */
#include "index/cuda.h"

/* OP-4: an index outside the table reads zeros. */
extern "C" __global__ void take_rows(void* __restrict__ out, const void* __restrict__ table,
                                     const void* __restrict__ index, long long wide, long long count, long long rows,
                                     long long row_bytes, long long lane_bits) {
  const int word_bytes = idn_word_bytes(out, table, row_bytes);
  const long long lanes = 1ll << lane_bits, lane = idn_thread() & (lanes - 1);
  for (long long t = idn_thread() >> lane_bits; t < count; t += idn_threads() >> lane_bits) {
    const long long at = idn_index(index, wide, t);
    const char* from = idn_inside(at, rows) ? (const char*)table + at * row_bytes : nullptr;
    idn_copy_row(word_bytes, (char*)out + t * row_bytes, from, row_bytes, lane, lanes);
  }
}

/* OP-4: a negative start reads zeros all along. Differences only, so that nothing overflows. */
extern "C" __global__ void take_windows(void* __restrict__ out, const void* __restrict__ tokens,
                                        const void* __restrict__ starts, long long wide, long long bytes,
                                        long long count, long long size, long long length, long long lane_bits) {
  const long long lanes = 1ll << lane_bits, lane = idn_thread() & (lanes - 1);
  for (long long b = idn_thread() >> lane_bits; b < count; b += idn_threads() >> lane_bits) {
    const long long start = idn_index(starts, wide, b);
    const long long kept = idn_inside(start, size) ? size - start : 0;
    for (long long i = lane; i < length; i += lanes) {
      idn_move_word(bytes, out, b * length + i, tokens, i < kept ? start + i : -1);
    }
  }
}

/* Steps are those of x, 0 along the axis; `along` is the step along it, and `size` its length. */
extern "C" __global__ void gather(void* __restrict__ out, const void* __restrict__ x, const void* __restrict__ index,
                                  long long wide, long long bytes, long long n, long long size, long long along,
                                  long long rank,
                                  Words<IDN_AXES> lengths, Words<IDN_AXES> multipliers, Words<IDN_AXES> steps) {
  for (long long i = idn_thread(); i < n; i += idn_threads()) {
    const long long at = idn_index(index, wide, i);
    const long long from = idn_offset(i, rank, lengths, multipliers, steps) + at * along;
    idn_move_word(bytes, out, i, x, idn_inside(at, size) ? from : -1);
  }
}

/* ---- whole arrays --------------------------------------------------------------------------- */

/* The bytes of x, or zeros. */
extern "C" __global__ void copy_all(void* __restrict__ out, const void* __restrict__ x, long long bytes,
                                    long long zeros) {
  idn_copy_row(idn_word_bytes(out, x, bytes), out, zeros ? nullptr : x, bytes, idn_thread(), idn_threads());
}
