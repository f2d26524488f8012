/*
 * sum_last, sum_first, amax, argmax.                                  rules: NUM-4, NUM-9, NUM-12, NUM-13
 *
 * Order    Row sum: 64 lanes, two a thread; lane i + lane (i + 32) is a thread's own addition, the other folds
 *          are exchanges in the warp. A longer row's blocks of 4,096 are pieces, whose sums are a row again.
 *          Column sum: down the rows of a chunk, then chunk after chunk. Maxima: any order gives the same.
 * Shapes   x (rows, n) or (n, inner), row-major, of IDN_TYPE: float, int or long long.
 * Launch   Whole warps, one-dimensional, any grid. `width` threads (8, 16 or 32) own a piece of a row; fewer than
 *          32 only for rows no longer than that: the lanes left out hold +0, and no lane ever holds -0. A thread
 *          owns a column of a chunk; of fewer than 32 columns a warp owns as many chunks as it has lanes for, and
 *          brings STAGED rows of each to shared memory, where they lie beside each other, before it adds them up.
 * Twins    reference.py (definition), cpu.cpp, cpu_rows.h. Vectors: tests/vectors/ops
 */
#include "common/cuda_rank.h"
#include "common/cuda_sum.h"

#ifndef IDN_ABREAST
#define IDN_ABREAST 8
#endif

constexpr int ABREAST = IDN_ABREAST;  /* elements of a lane that are read before the first of them is used */
constexpr int LANES = 64;             /* NUM-12 */
constexpr long long CHUNK_ROWS = 256; /* NUM-13 */
constexpr unsigned WARP = 0xffffffffu;

#ifndef IDN_NARROW_WARPS
#define IDN_NARROW_WARPS 4
#endif
#ifndef IDN_STAGED
#define IDN_STAGED 32
#endif

constexpr int NARROW_WARPS = IDN_NARROW_WARPS; /* of a block that sums few columns */
constexpr int STAGED = IDN_STAGED;             /* rows of a chunk that are brought at once */

typedef decltype(idn_rank(Type())) Rank;

/* A piece of a row: elements [first, stop) of the row at x. */
struct Piece {
  const Type* x;
  long long first, stop;
};

/*
 * Calls run(piece, its number, lane) for the pieces of `length` elements of all rows, `width` threads for each.
 * All threads of a warp take part in as many calls, some with an empty piece whose number is -1.
 */
template <class Run>
IDN_INLINE void idn_each_piece(const Type* x, long long rows, long long n, long long length, int width, Run run) {
  const long long pieces = max((n + length - 1) / length, 1ll), total = rows * pieces;
  const int lane = threadIdx.x % width;
  const long long per_warp = 32 / width, warps = idn_threads() / 32;
  for (long long item = idn_thread() / 32 * per_warp; item < total; item += warps * per_warp) {
    /* One call for all lanes: an exchange must stand in the code once, or a warp that has parted never meets there. */
    const long long number = item + threadIdx.x % 32 / width;
    const bool real = number < total;
    const long long row = real ? (pieces == 1 ? number : number / pieces) : 0;
    const long long first = real ? (number - row * pieces) * length : 0;
    run(Piece{x + row * n, first, real ? min(first + length, n) : 0}, real ? number : -1ll, lane);
  }
}

/* Calls take(position) for every `apart`-th position of a piece from `first` on, several read before one is used. */
template <class Read, class Take>
IDN_INLINE void idn_stride(long long first, long long stop, long long apart, Read read, Take take) {
  typedef decltype(read(first)) Value;
  long long i = first;
  for (; i + (ABREAST - 1) * apart < stop; i += ABREAST * apart) {
    Value next[ABREAST];
#pragma unroll
    for (int j = 0; j < ABREAST; ++j) next[j] = read(i + j * apart);
#pragma unroll
    for (int j = 0; j < ABREAST; ++j) take(next[j], i + j * apart);
  }
  for (; i < stop; i += apart) take(read(i), i);
}

/* ---- rows --------------------------------------------------------------------------------------- */

extern "C" __global__ void sum_rows(Type* __restrict__ out, const Type* __restrict__ x, long long rows, long long n,
                                    long long length, long long width) {
  idn_each_piece(x, rows, n, length, (int)width, [&](const Piece& piece, long long number, int lane) {
    /* NUM-12: this thread's lanes, `lane` and `lane + 32`. */
    Type low = 0, high = 0;
    const Type* from = piece.x;
    long long i = piece.first + lane;
    for (; i + (ABREAST - 1) * LANES + 32 < piece.stop; i += ABREAST * LANES) {
      Type lows[ABREAST], highs[ABREAST];
#pragma unroll
      for (int j = 0; j < ABREAST; ++j) {
        lows[j] = from[i + j * LANES];
        highs[j] = from[i + j * LANES + 32];
      }
#pragma unroll
      for (int j = 0; j < ABREAST; ++j) {
        low = idn_sum(low, lows[j]);
        high = idn_sum(high, highs[j]);
      }
    }
    for (; i < piece.stop; i += LANES) {
      low = idn_sum(low, from[i]);
      if (i + 32 < piece.stop) high = idn_sum(high, from[i + 32]);
    }
    Type sum = idn_sum(low, high);
    for (int w = (int)width / 2; w > 0; w /= 2) sum = idn_sum(sum, __shfl_xor_sync(WARP, sum, w));
    if (lane == 0 && number >= 0) out[number] = idn_result(sum);
  });
}

extern "C" __global__ void largest_of_rows(Type* __restrict__ out, const Type* __restrict__ x, long long rows,
                                           long long n, long long length, long long width) {
  idn_each_piece(x, rows, n, length, (int)width, [&](const Piece& piece, long long number, int lane) {
    Rank best = idn_rank(piece.x[piece.first]);
    idn_stride(piece.first + lane, piece.stop, width, [&](long long i) { return piece.x[i]; },
               [&](Type value, long long) { best = max(best, idn_rank(value)); });
    for (int w = (int)width / 2; w > 0; w /= 2) best = max(best, __shfl_xor_sync(WARP, best, w));
    if (lane == 0 && number >= 0) idn_unrank(out + number, best);
  });
}

/* NUM-4: the greater rank, of equals the first position. */
struct First {
  Rank rank;
  long long position;

  __device__ __forceinline__ void meet(Rank other, long long at) {
    if (other > rank || (other == rank && at < position)) {
      rank = other;
      position = at;
    }
  }

  __device__ __forceinline__ void meet_lanes(int width) {
    for (int w = width / 2; w > 0; w /= 2) {
      const Rank other = __shfl_xor_sync(WARP, rank, w);
      meet(other, __shfl_xor_sync(WARP, position, w));
    }
  }
};

extern "C" __global__ void first_of_largest(long long* __restrict__ out, const Type* __restrict__ x, long long rows,
                                            long long n, long long length, long long width) {
  idn_each_piece(x, rows, n, length, (int)width, [&](const Piece& piece, long long number, int lane) {
    First best{idn_rank(piece.x[piece.first]), piece.first};
    idn_stride(piece.first + lane, piece.stop, width, [&](long long i) { return piece.x[i]; },
               [&](Type value, long long i) { best.meet(idn_rank(value), i); });
    best.meet_lanes((int)width);
    if (lane == 0 && number >= 0) out[number] = best.position;
  });
}

/* The first of the largest among a row's candidates, `number` positions each; a warp for a row. */
extern "C" __global__ void first_of_candidates(long long* __restrict__ out, const Type* __restrict__ x,
                                               const long long* __restrict__ candidates, long long rows, long long n,
                                               long long number) {
  const int lane = threadIdx.x % 32;
  for (long long row = idn_thread() / 32; row < rows; row += idn_threads() / 32) {
    const Type* from = x + row * n;
    const long long* at = candidates + row * number;
    First best{idn_rank(from[at[0]]), at[0]};
    idn_stride(lane, number, 32, [&](long long i) { return at[i]; },
               [&](long long position, long long) { best.meet(idn_rank(from[position]), position); });
    best.meet_lanes(32);
    if (lane == 0) out[row] = best.position;
  }
}

/* ---- columns -------------------------------------------------------------------------------------- */

/* out (chunks, inner): the chain of each chunk of each column of x (n, inner). */
extern "C" __global__ void sum_chunks(Type* __restrict__ out, const Type* __restrict__ x, long long n,
                                      long long inner) {
  const long long chunks = (n + CHUNK_ROWS - 1) / CHUNK_ROWS;
  for (long long i = idn_thread(); i < chunks * inner; i += idn_threads()) {
    const long long first = i / inner * CHUNK_ROWS;
    const Type* from = x + i % inner;
    Type sum = 0;
    idn_stride(first, min(first + CHUNK_ROWS, n), 1, [&](long long row) { return from[row * inner]; },
               [&](Type value, long long) { sum = idn_sum(sum, value); });
    out[i] = idn_result(sum);
  }
}

/* The same of fewer than 32 columns; blocks of NARROW_WARPS warps. */
extern "C" __global__ void sum_narrow_chunks(Type* __restrict__ out, const Type* __restrict__ x, long long n,
                                             long long inner) {
  __shared__ Type stages[NARROW_WARPS][(STAGED + 1) * 32];
  const int columns = (int)inner, lane = threadIdx.x % 32, abreast = 32 / columns;
  /* Neighbouring lanes read neighbouring words: a chunk's place is a row longer than what is staged of it. */
  const int apart = (STAGED + 1) * columns, mine = lane / columns * apart + lane % columns;
  Type* const stage = stages[threadIdx.x / 32];
  const long long chunks = (n + CHUNK_ROWS - 1) / CHUNK_ROWS;
  const long long step = idn_threads() / 32 * abreast;
  for (long long first = idn_thread() / 32 * abreast; first < chunks; first += step) {
    const long long chunk = first + lane / columns;
    const bool adds = lane < abreast * columns && chunk < chunks;
    const int rows = adds ? (int)min(CHUNK_ROWS, n - chunk * CHUNK_ROWS) : 0;
    Type sum = 0;
    for (int from = 0; from < CHUNK_ROWS; from += STAGED) {
      for (int c = 0; c < abreast && first + c < chunks; ++c) {
        const long long row = (first + c) * CHUNK_ROWS + from;
        const int stop = (int)min((long long)STAGED, min(CHUNK_ROWS - from, n - row)) * columns;
        const Type* const source = x + row * inner;
#pragma unroll 4
        for (int i = lane; i < stop; i += 32) stage[c * apart + i] = source[i];
      }
      __syncwarp();
      for (int r = 0; r < min(STAGED, rows - from); ++r) sum = idn_sum(sum, stage[mine + r * columns]);
      __syncwarp();
    }
    if (adds) out[first * inner + lane] = idn_result(sum);
  }
}

/* out (inner): the chunks of each column left to right; none gives +0. */
extern "C" __global__ void fold_chunks(Type* __restrict__ out, const Type* __restrict__ chunks, long long number,
                                       long long inner) {
  for (long long i = idn_thread(); i < inner; i += idn_threads()) {
    Type sum = number ? chunks[i] : Type(0);
    idn_stride(1, number, 1, [&](long long chunk) { return chunks[chunk * inner + i]; },
               [&](Type value, long long) { sum = idn_sum(sum, value); });
    out[i] = idn_result(sum);
  }
}
