/* What kernels that read indices share: an index of either width, rows of bytes, places by coordinates. */
#ifndef IDENTIC_INDEX_CUDA_H
#define IDENTIC_INDEX_CUDA_H

#include "common/cuda_places.h"

#define IDN_CHUNK 256 /* NUM-14: positions of a chunk */

/* Index number i: int64 where `wide`, else int32. */
IDN_INLINE long long idn_index(const void* __restrict__ index, long long wide, long long i) {
  return wide ? ((const long long*)index)[i] : ((const int32_t*)index)[i];
}

/* OP-4: whether an index lies in [0, size). */
IDN_INLINE bool idn_inside(long long index, long long size) { return index >= 0 && index < size; }

/* ---- places --------------------------------------------------------------------------------- */

/* The offset of place number i of a shape in one buffer. */
IDN_INLINE long long idn_offset(long long i, long long rank, const Words<IDN_AXES>& lengths,
                                const Words<IDN_AXES>& multipliers, const Words<IDN_AXES>& steps) {
  long long at[1];
  idn_offsets<1>(i, rank, lengths, multipliers, steps, at);
  return at[0];
}

/* ---- words ---------------------------------------------------------------------------------- */

template <class W>
IDN_INLINE void idn_move(void* out, long long to, const void* x, long long from) {
  ((W*)out)[to] = from < 0 ? W{0} : ((const W*)x)[from];
}

/* out[to] = x[from], words of so many bytes; zero where `from` is below 0. */
IDN_INLINE void idn_move_word(long long bytes, void* __restrict__ out, long long to, const void* __restrict__ x,
                              long long from) {
  switch (bytes) {
    case 1: return idn_move<uint8_t>(out, to, x, from);
    case 2: return idn_move<uint16_t>(out, to, x, from);
    case 4: return idn_move<uint32_t>(out, to, x, from);
    default: return idn_move<uint64_t>(out, to, x, from);
  }
}

/* ---- rows ----------------------------------------------------------------------------------- */

/* The widest of 16, 8, 4, 2, 1 that divides all of these: addresses and lengths of rows. */
IDN_INLINE int idn_word_bytes(const void* a, const void* b, long long row_bytes) {
  const unsigned long long all = (unsigned long long)a | (unsigned long long)b | (unsigned long long)row_bytes;
  for (int bytes = 16; bytes > 1; bytes /= 2) {
    if (all % bytes == 0) return bytes;
  }
  return 1;
}

/* Lane `lane` of `lanes` copies its words of a row, or zeros where there is none. */
template <class W>
IDN_INLINE void idn_copy_words(void* to, const void* from, long long row_bytes, long long lane, long long lanes) {
  const long long words = row_bytes / (long long)sizeof(W);
  for (long long i = lane; i < words; i += lanes) ((W*)to)[i] = from ? ((const W*)from)[i] : W{};
}

IDN_INLINE void idn_copy_row(int word_bytes, void* to, const void* from, long long row_bytes, long long lane,
                             long long lanes) {
  switch (word_bytes) {
    case 16: return idn_copy_words<uint4>(to, from, row_bytes, lane, lanes);
    case 8: return idn_copy_words<uint64_t>(to, from, row_bytes, lane, lanes);
    case 4: return idn_copy_words<uint32_t>(to, from, row_bytes, lane, lanes);
    case 2: return idn_copy_words<uint16_t>(to, from, row_bytes, lane, lanes);
    default: return idn_copy_words<uint8_t>(to, from, row_bytes, lane, lanes);
  }
}

#endif
