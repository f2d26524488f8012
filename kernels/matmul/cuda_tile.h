/*
 * One tile of a contraction: a block computes TILE_M x TILE_N of
 *
 *     out[m, n] = sum_k left[m, k] * right[k, n]                             rules: NUM-10, NUM-11
 *
 * Order    As NUM-10 has it. Of a tile's steps only those that exist are multiplied: what fills the rest of a
 *          tile in shared memory is never read. Lines beyond the edge hold zeros, and their results go nowhere.
 * Threads  A warp owns LANES_M x LANES_N places of 4 x 4 results, repeated until a thread has THREAD_M x THREAD_N.
 *          Neighbouring lanes differ in m and n by turns: of any pair (i, i ^ 1) one shares the left operand, of
 *          (i, i ^ 2) the right, so that a shared read of 16 bytes a lane takes two turns instead of four.
 * Steps    TILE_K at a time, in two stages: the next tile is on its way while this one is multiplied. From sm_80
 *          on the copies pass no register (cp.async); before, they wait in registers.
 * Sums     A thread's 64 chains fill half of the 128 registers that let two blocks share a multiprocessor. The
 *          sums of chunks and of groups, as many again, are wanted once in 256 steps: they stay in the thread's
 *          own memory, which is interleaved so that a warp reads it whole, and add 96 instructions to 16,384
 *          fused multiply-adds. A contraction of at most 256 steps does not touch them. What is wanted at the end
 *          of a chunk is worked out there, so that ptxas 12.9 spills nothing else for sm_75 to sm_120; but two or
 *          three words a tile for sm_120 where steps lie beside each other in the right operand.
 *
 * A block takes a range of k and may store its chunks or groups apart (`span`): cuda_fold.cu adds them up.
 * IDN_TILE_M, _N and _K, IDN_THREAD_M and _N, IDN_LANES_M tune speed only; no bit depends on them.
 */
#ifndef IDENTIC_MATMUL_CUDA_TILE_H
#define IDENTIC_MATMUL_CUDA_TILE_H

#include "common/cuda.h"

#ifndef IDN_ASYNC
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
#define IDN_ASYNC 1
#else
#define IDN_ASYNC 0
#endif
#endif

constexpr int CHUNK = 256; /* NUM-10 */
constexpr int GROUP = 16;  /* chunks of a group: NUM-10 */

constexpr int TILE_M = IDN_TILE_M, TILE_N = IDN_TILE_N, TILE_K = IDN_TILE_K;
constexpr int THREAD_M = IDN_THREAD_M, THREAD_N = IDN_THREAD_N;
constexpr int LANES_M = IDN_LANES_M, LANES_N = 32 / LANES_M;
constexpr int WARPS_M = TILE_M / (LANES_M * THREAD_M), WARPS_N = TILE_N / (LANES_N * THREAD_N);
constexpr int THREADS = 32 * WARPS_M * WARPS_N;
constexpr int BLOCKS = 2; /* that share a multiprocessor, with 128 registers a thread */
constexpr int CHUNK_TILES = CHUNK / TILE_K;
constexpr int QUADS_N = THREAD_N / 4, QUADS = THREAD_M * QUADS_N;
static_assert(WARPS_M * LANES_M * THREAD_M == TILE_M && WARPS_N * LANES_N * THREAD_N == TILE_N, "warps fill a tile");
static_assert(CHUNK % TILE_K == 0 && TILE_K % 8 == 0, "chunks end with tiles");

#define IDN_MEMBER __device__ __forceinline__

/* Four floats in a row, read and written at once. */
struct alignas(16) Four {
  float x[4];

  IDN_MEMBER Four canonical() const {
    return Four{{idn_canon(x[0]), idn_canon(x[1]), idn_canon(x[2]), idn_canon(x[3])}};
  }
};

template <int WIDTH> struct PieceOf;
template <> struct PieceOf<1> { using Type = float; };
template <> struct PieceOf<4> { using Type = Four; };

/* ---- copies into shared memory --------------------------------------------------------------- */

/* Begins to copy a piece, or to write zeros where it is not inside. Off the device copies arrive at once. */
template <class Piece>
IDN_INLINE void idn_begin_copy(Piece* to, const Piece* from, bool inside) {
#ifdef __CUDA_ARCH__
  const unsigned place = (unsigned)__cvta_generic_to_shared(to);
  const int bytes = inside ? (int)sizeof(Piece) : 0;
  if (sizeof(Piece) == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(place), "l"(from), "r"(bytes) : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(place), "l"(from), "r"(bytes) : "memory");
  }
#else
  *to = inside ? *from : Piece{};
#endif
}

/* Waits for this thread's copies. */
IDN_INLINE void idn_end_copies() {
#ifdef __CUDA_ARCH__
  asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}

/*
 * An operand on its way. `Source` knows where it lies:
 *   Piece, PIECES             what is copied at once, and how often a thread does so for a tile
 *   ROW                       floats of one step in shared memory
 *   each(steps, visit)        calls visit(number, place, from, inside) for each piece of the next tile, of which
 *                             `steps` steps exist
 *   advance()                 moves on by TILE_K steps
 */
template <class Source>
struct Operand {
  using Piece = typename Source::Piece;
  Source source;
#if !IDN_ASYNC
  Piece waiting[Source::PIECES];
#endif

  IDN_MEMBER explicit Operand(const Source& from) : source(from) {}

  /* Begins to bring the next tile. */
  IDN_MEMBER void fetch(float* stage, int steps) {
    source.each(steps, [&](int number, int place, const float* from, bool inside) {
      const Piece* piece = (const Piece*)from;
#if IDN_ASYNC
      idn_begin_copy((Piece*)(stage + place), piece, inside);
#else
      waiting[number] = inside ? *piece : Piece{};
#endif
    });
#if IDN_ASYNC
    source.advance();
#endif
  }

  /* Puts down what waited in registers. */
  IDN_MEMBER void put(float* stage, int steps) {
#if !IDN_ASYNC
    source.each(steps, [&](int number, int place, const float*, bool) { *(Piece*)(stage + place) = waiting[number]; });
    source.advance();
#endif
  }
};

/* ---- a thread's results ------------------------------------------------------------------------ */

/* The first row and column of this thread's 4 x 4 results; others lie 4 LANES_M rows, 4 LANES_N columns on. */
struct Owned {
  int m, n;

  IDN_MEMBER explicit Owned(int thread) {
    const int lane = thread % 32, warp = thread / 32;
    const int lane_n = (lane & 1) | (lane >> 1 & 2) | (LANES_N == 8 ? lane >> 2 & 4 : 0);
    const int lane_m = (lane >> 1 & 1) | (lane >> 2 & 2) | (LANES_M == 8 ? lane >> 2 & 4 : 0);
    m = warp / WARPS_N * (LANES_M * THREAD_M) + lane_m * 4;
    n = warp % WARPS_N * (LANES_N * THREAD_N) + lane_n * 4;
  }

  /* Row of result i, first column of quad j, in the tile. */
  IDN_MEMBER int row(int i) const { return m + i / 4 * (4 * LANES_M) + i % 4; }
  IDN_MEMBER int column(int j) const { return n + j * (4 * LANES_N); }
};

/* The same number, worked out again: what comes of it is not kept in registers until it is wanted. */
IDN_INLINE int idn_anew(int x) {
#ifdef __CUDA_ARCH__
  asm volatile("" : "+r"(x));
#endif
  return x;
}

/*
 * The thread's own memory instead of registers: the compiler does not see what is behind the address, nor that it
 * could keep the address in a register while it is not wanted.
 */
IDN_INLINE Four* idn_in_memory(Four* at) {
#ifdef __CUDA_ARCH__
  asm volatile("" : "+l"(at));
#endif
  return at;
}

IDN_INLINE Four idn_add_fours(const Four& a, const Four& b) {
  return Four{{idn_add(a.x[0], b.x[0]), idn_add(a.x[1], b.x[1]), idn_add(a.x[2], b.x[2]), idn_add(a.x[3], b.x[3])}};
}

struct Chains {
  Four sum[THREAD_M][QUADS_N];

  IDN_MEMBER void clear() {
#pragma unroll
    for (int i = 0; i < THREAD_M; ++i) {
#pragma unroll
      for (int j = 0; j < QUADS_N; ++j) sum[i][j] = Four{{0.0f, 0.0f, 0.0f, 0.0f}};
    }
  }

  /* One step of all chains, from a step's row of each operand. */
  IDN_MEMBER void step(const Four (&left)[THREAD_M / 4], const Four (&right)[QUADS_N]) {
#pragma unroll
    for (int i = 0; i < THREAD_M; ++i) {
#pragma unroll
      for (int j = 0; j < QUADS_N; ++j) {
#pragma unroll
        for (int c = 0; c < 4; ++c) {
          sum[i][j].x[c] = idn_fma(left[i / 4].x[i % 4], right[j].x[c], sum[i][j].x[c]);
        }
      }
    }
  }
};

/* What a thread multiplies in one step. */
struct Fragment {
  Four left[THREAD_M / 4], right[QUADS_N];

  /* From this thread's first place in a step's row of each operand. */
  IDN_MEMBER void read(const float* left_row, const float* right_row) {
#pragma unroll
    for (int i = 0; i < THREAD_M / 4; ++i) left[i] = *(const Four*)(left_row + i * (4 * LANES_M));
#pragma unroll
    for (int j = 0; j < QUADS_N; ++j) right[j] = *(const Four*)(right_row + j * (4 * LANES_N));
  }
};

/* ---- the contraction ----------------------------------------------------------------------------- */

/* Nothing has to be made before the steps of a chunk are fetched. */
struct NoTable {
  IDN_MEMBER void make(int) const {}
};

/* The tiles of steps [first, stop) where every chunk has all its steps, but for the last. */
struct Even {
  long long first;
  int tiles, last_steps;

  IDN_MEMBER Even(long long from, long long stop)
      : first(from), tiles((int)((stop - from + TILE_K - 1) / TILE_K)),
        last_steps((int)(stop - from - (long long)(tiles - 1) * TILE_K)) {}

  /* Whether a tile begins a chunk; that chunk's number; the steps that exist of a tile. */
  IDN_MEMBER bool begins(int tile) const { return tile % CHUNK_TILES == 0; }
  IDN_MEMBER int chunk(int tile) const { return (int)((first + (long long)tile * TILE_K) / CHUNK); }
  IDN_MEMBER int steps(int tile) const { return tile < tiles - 1 ? TILE_K : last_steps; }
};

/*
 * The steps of k that `pace` goes through; it begins with a chunk, and with a group where `span` is more than 1.
 *
 * span     chunks of one plane of the result: 1 stores each chunk, GROUP each group, more the whole sum
 * table    make(chunk) is called by all threads before the steps of a chunk are fetched or counted, when none reads
 *          those of the chunk before; it ends with a barrier where it writes what others read
 * pace     how many tiles there are and what steps of a chunk each has, as Even
 * result   quad(column): where four columns of the tile lie; store(plane, row, quad, four): four results of a row.
 *          Rows and columns may lie beyond the edge.
 */
template <class Left, class Right, class Table, class Pace, class Result>
IDN_INLINE void idn_contract(const Result& result, Operand<Left>& left, Operand<Right>& right, const Table& table,
                             const Pace& pace, int span) {
  constexpr int LEFT_STAGE = TILE_K * Left::ROW, RIGHT_STAGE = TILE_K * Right::ROW;
  __shared__ Four left_stages[2 * LEFT_STAGE / 4];
  __shared__ Four right_stages[2 * RIGHT_STAGE / 4];
  float* const lefts = left_stages[0].x;
  float* const rights = right_stages[0].x;
  Four sums[2 * QUADS];

  Chains chains;
  chains.clear();
  const Owned place((int)threadIdx.x);

  /* NUM-11: of the last tile's steps only those that exist are multiplied. */
  table.make(pace.chunk(0));
  int stage = 0, steps = pace.steps(0);
  left.fetch(lefts, steps);
  right.fetch(rights, steps);
  left.put(lefts, steps);
  right.put(rights, steps);

  for (int tile = 0; tile < pace.tiles; ++tile) {
    if (IDN_ASYNC) idn_end_copies();
    __syncthreads();
    const int ahead = tile + 1;
    const bool more = ahead < pace.tiles;
    if (more && pace.begins(ahead)) table.make(pace.chunk(ahead));
    const int next = pace.steps(ahead);
    float* const next_left = lefts + (ahead & 1) * LEFT_STAGE;
    float* const next_right = rights + (ahead & 1) * RIGHT_STAGE;
    if (more) {
      left.fetch(next_left, next);
      right.fetch(next_right, next);
    }

    const float* const left_tile = lefts + stage * LEFT_STAGE + place.m;
    const float* const right_tile = rights + stage * RIGHT_STAGE + place.n;
    if (steps == TILE_K) {
#pragma unroll
      for (int i = 0; i < TILE_K; ++i) {
        Fragment fragment;
        fragment.read(left_tile + i * Left::ROW, right_tile + i * Right::ROW);
        chains.step(fragment.left, fragment.right);
      }
    } else {
#pragma unroll 1
      for (int i = 0; i < steps; ++i) {
        Fragment fragment;
        fragment.read(left_tile + i * Left::ROW, right_tile + i * Right::ROW);
        chains.step(fragment.left, fragment.right);
      }
    }

    if (more) {
      left.put(next_left, next);
      right.put(next_right, next);
    }
    stage = ahead & 1;
    steps = next;
    if (!pace.begins(ahead) && more) continue;

    /* NUM-10: the chunk ends; what came before it in its group, then in all groups, stands in front. */
    const int chunk = pace.chunk(tile);
    const bool group_ends = !more || chunk % GROUP == GROUP - 1;
    const bool plane_ends = !more || span == 1 || (span == GROUP && group_ends);
    const bool behind_group = span > 1 && chunk % GROUP > 0;
    const bool behind_total = span > GROUP && chunk >= GROUP && group_ends;
    const int plane = span == 1 ? chunk : span == GROUP ? chunk / GROUP : 0;
    const Owned owned(idn_anew((int)threadIdx.x));
    Four* const group = idn_in_memory(sums);
    Four* const total = group + QUADS;
    Four* const room = group_ends ? total : group;
    /* Four results at a time: were each step one for all, 64 sums would move into fours, and spill on the way. */
#pragma unroll
    for (int j = 0; j < QUADS_N; ++j) {
      const typename Result::Quad quad = result.quad(owned.column(j));
#pragma unroll
      for (int i = 0; i < THREAD_M; ++i) {
        const int at = i * QUADS_N + j;
        Four sum = chains.sum[i][j];
        if (behind_group) sum = idn_add_fours(group[at], sum);
        if (behind_total) sum = idn_add_fours(total[at], sum);
        if (plane_ends) {
          result.store(plane, owned.row(i), quad, sum.canonical());
        } else {
          room[at] = sum;
        }
      }
    }
    chains.clear();
  }
}

#endif
