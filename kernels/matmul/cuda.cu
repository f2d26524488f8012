/*
 * matmul:  out[b,m,n] = sum_k left[b,m,k] * right[b,k,n], binary32.                rules: NUM-10, NUM-11
 *
 * Order    Chains of fused multiply-adds over 256 steps, sums of 16 of them, sums of those (cuda_tile.h).
 * Shapes   left (B, M, K) and right (B, K, N) of any strides in elements; out of any strides, so that a product
 *          with few rows may be computed as its transpose: fma(a, b, c) = fma(b, a, c).
 * Launch   THREADS threads; one block for each tile of each range of k of each matrix. Tiles run down 8 rows,
 *          then across, so that blocks that run together share lines of both operands. Matrices for which one
 *          row of blocks is too short are in the next, along y.
 * Twins    reference.py (definition), cpu.cpp.
 *
 * How an operand is read (IDN_LEFT, IDN_RIGHT); a line is a row of left, a column of right:
 *   IDN_WIDE    four neighbouring lines at a time: lines lie beside each other, on 16-byte borders, in fours
 *   IDN_LINES   a line for each lane
 *   IDN_STEPS   steps lie beside each other: eight for neighbouring lanes, turned over on the way to shared
 *               memory, whose rows are 4 floats longer than a tile so that the lanes write to 32 banks
 */
#ifndef IDN_TILE_M
#define IDN_TILE_M 128
#define IDN_TILE_N 128
#define IDN_THREAD_M 8
#define IDN_THREAD_N 8
#define IDN_LANES_M 4
#define IDN_TILE_K 16
#endif
#include "matmul/cuda_tile.h"

#define IDN_WIDE 0
#define IDN_LINES 1
#define IDN_STEPS 2
#ifndef IDN_LEFT
#define IDN_LEFT IDN_STEPS
#endif
#ifndef IDN_RIGHT
#define IDN_RIGHT IDN_WIDE
#endif

constexpr unsigned DOWN = 8; /* rows of tiles that are run through together */

/* ---- operands -------------------------------------------------------------------------------- */

/*
 * TILE lines of a matrix, of which `rest` exist. A thread's pieces belong to one line (or four lines beside each
 * other), so that one comparison of steps tells whether a piece exists: for no step where the line does not.
 */
template <int MODE, int TILE>
struct Matrix {
  static constexpr int WIDTH = MODE == IDN_WIDE ? 4 : 1;
  using Piece = typename PieceOf<WIDTH>::Type;
  static constexpr int ROW = TILE + 4, ACROSS = TILE / WIDTH;
  static constexpr int APART = THREADS / ACROSS; /* steps from a piece to the next */
  static constexpr int PIECES = (TILE_K + APART - 1) / APART;
  static_assert(THREADS % ACROSS == 0 && (APART * PIECES == TILE_K || PIECES == 1), "threads share steps evenly");

  const float* at; /* of this thread's first piece */
  long long step;
  int place, k;

  IDN_MEMBER Matrix(const float* from, long long line, long long step_stride, long long rest) : step(step_stride) {
    const int l = threadIdx.x % ACROSS * WIDTH, mine = threadIdx.x / ACROSS;
    at = from + l * (WIDTH == 4 ? 1 : line) + mine * step;
    place = mine * ROW + l;
    k = l < rest && mine < TILE_K ? mine : TILE_K;
  }

  template <class Visit>
  IDN_MEMBER void each(int steps, Visit visit) const {
    const float* from = at;
#pragma unroll
    for (int i = 0; i < PIECES; ++i, from += APART * step) {
      if (PIECES > 1 || threadIdx.x < ACROSS * TILE_K) visit(i, place + i * APART * ROW, from, k + i * APART < steps);
    }
  }

  IDN_MEMBER void advance() { at += TILE_K * step; }
};

/* The same where steps lie beside each other. */
template <int TILE>
struct Matrix<IDN_STEPS, TILE> {
  using Piece = float;
  static constexpr int ROW = TILE + 4, APART = THREADS / 8; /* lines from a piece to the next */
  static constexpr int LINES = TILE / APART, STEPS = TILE_K / 8, PIECES = LINES * STEPS;
  static_assert(TILE % APART == 0, "threads share lines evenly");

  const float* at;
  long long line;
  int place, k, lines; /* lines that exist from this thread's first on */

  IDN_MEMBER Matrix(const float* from, long long line_stride, long long, long long rest)
      : line(line_stride), k(threadIdx.x % 8), lines((int)min(rest, (long long)TILE) - (int)threadIdx.x / 8) {
    at = from + threadIdx.x / 8 * line + k;
    place = k * ROW + threadIdx.x / 8;
  }

  template <class Visit>
  IDN_MEMBER void each(int steps, Visit visit) const {
    if (lines > TILE - APART && steps == TILE_K) {
      pieces([&](int number, int more, const float* from, int, int) { visit(number, place + more, from, true); });
    } else {
      pieces([&](int number, int more, const float* from, int i, int j) {
        visit(number, place + more, from, i * APART < lines && k + 8 * j < steps);
      });
    }
  }

  IDN_MEMBER void advance() { at += TILE_K; }

 private:
  template <class Visit>
  IDN_MEMBER void pieces(Visit visit) const {
    const float* from = at;
#pragma unroll
    for (int i = 0; i < LINES; ++i, from += APART * line) {
#pragma unroll
      for (int j = 0; j < STEPS; ++j) visit(i * STEPS + j, i * APART + j * 8 * ROW, from + 8 * j, i, j);
    }
  }
};

/* ---- results ----------------------------------------------------------------------------------- */

struct Stored {
  float* out; /* of the tile */
  long long row, column, plane;
  int rows, columns; /* that exist */
  bool wide;         /* four columns are one aligned piece, or beyond the edge */

  using Quad = int; /* the first column */

  IDN_MEMBER int quad(int n) const { return n; }

  IDN_MEMBER void store(int number, int m, int n, const Four& four) const {
    if (m >= rows || n >= columns) return;
    float* const to = out + number * plane + m * row + n * column;
    if (wide) {
      *(Four*)to = four;
      return;
    }
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      if (n + c < columns) to[c * column] = four.x[c];
    }
  }
};

/* ---- entry points ------------------------------------------------------------------------------ */

/*
 * sizes: m, n, k; strides of left: batch, line, step; of right: batch, step, line; of out: batch, row, column,
 * plane; chunks of a range of k, ranges, chunks of a plane (`span`), whether out is written in fours; matrices of a
 * row of blocks, matrices.
 */
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
matmul(float* __restrict__ out, const float* __restrict__ left, const float* __restrict__ right,
       const Words<19> sizes) {
  const long long m = sizes.v[0], n = sizes.v[1], k = sizes.v[2];
  /* Along x there are less than 2^31 blocks. */
  const unsigned down = (unsigned)((m + TILE_M - 1) / TILE_M), across = (unsigned)((n + TILE_N - 1) / TILE_N);
  const unsigned slice = blockIdx.x / (down * across), number = blockIdx.x % (down * across);
  const unsigned ranges = (unsigned)sizes.v[14];
  const long long range = slice % ranges, batch = slice / ranges + (long long)blockIdx.y * sizes.v[17];
  if (batch >= sizes.v[18]) return;
  const unsigned band = number / (DOWN * across), within = number % (DOWN * across);
  const unsigned height = min(down - band * DOWN, DOWN);
  const long long row = (long long)(band * DOWN + within % height) * TILE_M;
  const long long column = (long long)(within / height) * TILE_N;
  const long long first = range * sizes.v[13] * CHUNK, stop = min(first + sizes.v[13] * CHUNK, k);

  const float* const from_left = left + batch * sizes.v[3] + row * sizes.v[4] + first * sizes.v[5];
  const float* const from_right = right + batch * sizes.v[6] + first * sizes.v[7] + column * sizes.v[8];
  using Left = Matrix<IDN_LEFT, TILE_M>;
  using Right = Matrix<IDN_RIGHT, TILE_N>;
  Operand<Left> lefts(Left(from_left, sizes.v[4], sizes.v[5], m - row));
  Operand<Right> rights(Right(from_right, sizes.v[8], sizes.v[7], n - column));
  /* Wanted at the end only: out of the registers. The contraction's first barrier comes before. */
  __shared__ Stored stored;
  if (threadIdx.x == 0) {
    stored = Stored{out + batch * sizes.v[9] + row * sizes.v[10] + column * sizes.v[11],
                    sizes.v[10], sizes.v[11], sizes.v[12],
                    (int)min(m - row, (long long)TILE_M), (int)min(n - column, (long long)TILE_N), sizes.v[16] != 0};
  }
  idn_contract(stored, lefts, rights, NoTable(), Even(first, stop), (int)sizes.v[15]);
}
