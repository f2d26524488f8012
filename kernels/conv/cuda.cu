/*
 * conv, conv_dx, conv_dw as products whose right operand is gathered from planes.
 *                                                               rules: NUM-10, NUM-11, OP-40, OP-41
 * Order    That of matmul over k of cuda_shape.h. A place in the padding, or between two windows, is a step of
 *          the chain like any other: +0 is what cp.async, or the select in its place, writes.
 * Shapes   x (N, G C, H, W), w (G O, C, KH, KW), out and grad (N, G O, OH, OW), row-major; lines, steps and
 *          places below 2^31: cuda_plain.cu has no such bound.
 * Launch   THREADS threads; one block for each tile of each range of k of each group.
 * Table    An element's offset is a sum of what its line and its step contribute, and so is its place, which
 *          tells whether it lies in the padding. The 256 steps of a chunk are worked out together, one by a
 *          thread, when the chunk is begun. That takes registers: with tiles of 128 x 128 ptxas 12.9 spills up
 *          to nine words a tile of IDN_DX for some architectures, with smaller ones and for other products none.
 * Phases   Where windows lie a stride apart, a place of dx meets the taps of its phase alone, in windows that lie
 *          beside each other: with IDN_PHASED a launch computes the places of one phase, of which `shape` tells as
 *          of a plane. The products with +0 between windows are left out, the chunks begin where they would: each
 *          result but -0 is then that of the rule, if all of w is finite. (A product of +0 and a finite number
 *          changes no chain but one that is -0; from there on the chains with and without differ at most in that
 *          the former is +0 where the latter is -0.) cuda_plain.cu computes the others again.
 * Twins    reference.py (definition), cpu.cpp, cuda_plain.cu; for phases cpu_phases.cpp.
 */
#ifndef IDN_TILE_M
#define IDN_TILE_M 64
#define IDN_TILE_N 128
#define IDN_THREAD_M 4
#define IDN_THREAD_N 8
#define IDN_LANES_M 4
#define IDN_TILE_K 16
#endif
#include "conv/cuda_shape.h"
#include "matmul/cuda_tile.h"

#ifndef IDN_STRIDED
#define IDN_STRIDED 0 /* windows of IDN_DX lie more than a place apart */
#endif

#ifndef IDN_PHASED
#define IDN_PHASED 0 /* one phase of the strides between windows of IDN_DX */
#endif

constexpr int SIZES = IDN_PHASED ? 44 : 33;
constexpr int DOWN = 8; /* rows of tiles that are run through together */
constexpr int NOWHERE = -(1 << 30); /* with any step outside the planes */

/* What a line or a step contributes to the right operand's offset and place. */
struct alignas(16) Part { long long offset; int h, v; };

/* x / length for x < 2^31, as common/cuda_places.h has it. */
struct Divisor {
  unsigned length, multiplier;

  IDN_MEMBER unsigned quotient(unsigned x) const {
    return length == 1 ? x : (__umulhi(x, multiplier) + x) >> (32 - __clz((int)(length - 1)));
  }
};

/* The planes the right operand is gathered from. */
struct Planes {
  int height, width;
  Divisor down, across; /* strides between windows, where IDN_STRIDED */

  /* Whether an element lies in its plane, and then where from the offset of its line and step. */
  IDN_MEMBER bool find(int h, int v, long long& more) const {
    more = 0;
    if (!IDN_STRIDED) return (unsigned)h < (unsigned)height && (unsigned)v < (unsigned)width;
    if ((h | v) < 0) return false;
    const unsigned oh = down.quotient(h), ow = across.quotient(v);
    more = (long long)oh * width + ow;
    return oh * down.length == (unsigned)h && ow * across.length == (unsigned)v && oh < height && ow < width;
  }
};

/* ---- lines and steps -------------------------------------------------------------------------- */

IDN_INLINE Part idn_window(const Shape<int>& s, long long image, int oh, int ow) {
  const int h = oh * s.down.stride - s.down.before, v = ow * s.across.stride - s.across.before;
  return {image * s.groups * s.channels * s.plane + (long long)h * s.across.size + v, h, v};
}

IDN_INLINE Part idn_tap(const Shape<int>& s, long long channel, int i, int j) {
  const int h = i * s.down.dilation, v = j * s.across.dilation;
  return {channel * s.plane + (long long)h * s.across.size + v, h, v};
}

/* A column of the right operand. */
IDN_INLINE Part idn_line(const Shape<int>& s, int number) {
  if (IDN_DIRECTION == IDN_FORWARD) {
    const Three<int> at(number, s.down.count, s.across.count);
    return idn_window(s, at.outer, at.middle, at.inner);
  }
  if (IDN_DIRECTION == IDN_DW) {
    const Three<int> at(number, s.down.window, s.across.window);
    return idn_tap(s, at.outer, at.middle, at.inner);
  }
  const Three<int> at(number, s.down.size, s.across.size);
  const int h = at.middle + s.down.before, v = at.inner + s.across.before;
  const long long image = (long long)at.outer * s.groups * s.outputs * s.windows;
  return {IDN_STRIDED ? image : image + (long long)h * s.across.count + v, h, v};
}

/* The taps of one axis that a phase has: `first`, and others `apart`, `count` in all. */
struct Progression {
  int first, apart, count;

  /* How many are below x. */
  IDN_MEMBER int below(int x) const { return x <= first ? 0 : min(count, (x - first + apart - 1) / apart); }
  IDN_MEMBER bool has(int x) const { return below(x + 1) > below(x); }
};

/* The taps that w has of an output, of which a phase has some. */
struct Taps {
  int all, window; /* in all, and across */
  Progression down, across;

  /* Steps of the phase before step k of all. */
  IDN_MEMBER int below(int k) const {
    const int output = k / all, row = k % all / window, column = k % all % window;
    return output * down.count * across.count + down.below(row) * across.count +
           (down.has(row) ? across.below(column) : 0);
  }
};

/* A row of the right operand, and the column of left that belongs to it. */
IDN_INLINE Part idn_step(const Shape<int>& s, const Taps& taps, int number, long long& left) {
  if (IDN_DIRECTION == IDN_DW) {
    const Three<int> at(number, s.down.count, s.across.count);
    left = (long long)at.outer * s.groups * s.outputs * s.windows + at.middle * s.across.count + at.inner;
    return idn_window(s, at.outer, at.middle, at.inner);
  }
  const Three<int> at(number, s.down.window, s.across.window);
  if (IDN_DIRECTION == IDN_FORWARD) {
    left = number;
    return idn_tap(s, at.outer, at.middle, at.inner);
  }
  const int h = -at.middle * s.down.dilation, v = -at.inner * s.across.dilation;
  const long long output = (long long)at.outer * s.windows;
  left = IDN_PHASED ? (long long)at.outer * s.channels * taps.all +
                          (taps.down.first + at.middle * taps.down.apart) * taps.window + taps.across.first +
                          at.inner * taps.across.apart
                    : (long long)at.outer * s.channels * s.taps + at.middle * s.across.window + at.inner;
  return {IDN_STRIDED ? output : output + (long long)h * s.across.count + v, h, v};
}

/* The steps of a chunk in shared memory. */
struct Table {
  Part* right;
  long long* left;
  const Shape<int>& shape;
  const Taps& taps;
  int* ends; /* of phases: the first step of the chunk and of the next */
  int last;  /* step of all, that is no more */

  IDN_MEMBER void make(int chunk) const {
    int first = chunk * CHUNK, steps = CHUNK;
    if (IDN_PHASED) {
      if (threadIdx.x < 2) ends[threadIdx.x] = taps.below(min(first + (int)threadIdx.x * CHUNK, last));
      __syncthreads();
      first = ends[0];
      steps = ends[1] - first;
    }
    for (int i = threadIdx.x; i < steps; i += THREADS) right[i] = idn_step(shape, taps, first + i, left[i]);
    __syncthreads();
  }
};

/* The tiles of a phase, as many for each chunk, some of which may have no steps. */
struct Uneven {
  int tiles, of_chunk, first;
  const int* ends;

  IDN_MEMBER bool begins(int tile) const { return tile % of_chunk == 0; }
  IDN_MEMBER int chunk(int tile) const { return first + tile / of_chunk; }
  IDN_MEMBER int steps(int tile) const {
    return max(0, min(TILE_K, ends[1] - ends[0] - tile % of_chunk * TILE_K));
  }
};

/* ---- operands ----------------------------------------------------------------------------------- */

/* Of both: eight steps for neighbouring lanes, or all lines of a step. */
template <int TILE, bool TURNED>
struct Spread {
  using Piece = float;
  static constexpr int ROW = TILE + 4;
  static constexpr int STEPS_APART = TURNED ? 8 : THREADS / TILE, STEPS = TILE_K / STEPS_APART;
  static constexpr int LINES_APART = TURNED ? THREADS / 8 : TILE, LINES = TILE / LINES_APART;
  static constexpr int PIECES = STEPS * LINES;
  static_assert(STEPS * STEPS_APART == TILE_K && LINES * LINES_APART == TILE, "threads share a tile evenly");

  int k = TURNED ? threadIdx.x % 8 : threadIdx.x / TILE, l = TURNED ? threadIdx.x / 8 : threadIdx.x % TILE;
  int from = 0; /* of the table: the tile's first step */
  int chunk;    /* steps that a chunk's tiles have room for */

  IDN_MEMBER explicit Spread(int room) : chunk(room) {}

  IDN_MEMBER int place(int i, int j) const { return (k + j * STEPS_APART) * ROW + l + i * LINES_APART; }
  IDN_MEMBER void advance() {
    from += TILE_K;
    if (from == (IDN_PHASED ? chunk : CHUNK)) from = 0;
  }
};

/* Rows of left, a stride apart, with steps by the table. */
struct Rows : Spread<TILE_M, true> {
  const float* at;
  const long long* table;
  long long line;
  int lines; /* that exist */

  IDN_MEMBER Rows(const float* left, const Table& steps, long long stride, int rest, int room)
      : Spread(room), at(left + l * stride), table(steps.left), line(LINES_APART * stride), lines(rest - l) {}

  template <class Visit>
  IDN_MEMBER void each(int steps, Visit visit) const {
#pragma unroll
    for (int j = 0; j < STEPS; ++j) {
      const bool exists = k + j * STEPS_APART < steps;
      const float* source = at + table[from + k + j * STEPS_APART];
#pragma unroll
      for (int i = 0; i < LINES; ++i, source += line) {
        visit(i * STEPS + j, place(i, j), source, exists && i * LINES_APART < lines);
      }
    }
  }
};

/* Columns of right: a thread's line is worked out once, or each time from shared memory where it has several. */
struct Columns : Spread<TILE_N, IDN_DIRECTION == IDN_DW> {
  const float* at; /* of a thread's only line, else of offset 0 */
  const Part* table;
  const Part* lines;
  int h, v; /* of its only line */
  Planes planes;

  IDN_MEMBER Columns(const float* right, const Table& steps, const Part* all, const Planes& of, int room)
      : Spread(room), at(LINES == 1 ? right + all[l].offset : right), table(steps.right), lines(all + l), h(all[l].h), v(all[l].v),
        planes(of) {}

  template <class Visit>
  IDN_MEMBER void each(int steps, Visit visit) const {
#pragma unroll
    for (int j = 0; j < STEPS; ++j) {
      const bool exists = k + j * STEPS_APART < steps;
      const Part step = table[from + k + j * STEPS_APART];
#pragma unroll
      for (int i = 0; i < LINES; ++i) {
        const Part part = LINES == 1 ? Part{0, h, v} : lines[i * LINES_APART];
        long long more;
        /* OP-41: +0 stands for an element in the padding, or between two windows. */
        const bool inside = exists & planes.find(part.h + step.h, part.v + step.v, more);
        visit(i * STEPS + j, place(i, j), at + (part.offset + step.offset + more), inside);
      }
    }
  }
};

/* ---- results -------------------------------------------------------------------------------------- */

/* Columns of an image lie beside each other, of phases in rows of places; images lie `image` elements apart. */
struct Stored {
  float* out; /* of the tile's first row, and of column 0 */
  long long row, image, plane;
  int rows, columns, first, of_image; /* columns that exist in all; the tile's first; those of an image */
  bool wide;                          /* four columns are one aligned piece of an image, or beyond the edge */
  int width, down, across;            /* of phases: columns of a row; elements from a row and a column to the next */

  struct Quad {
    long long at[4];
    int count; /* that exist */
  };

  IDN_MEMBER Quad quad(int n) const {
    Quad made;
    n += first;
    made.count = columns - n;
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      const int at = (n + c) % of_image;
      made.at[c] = (n + c) / of_image * image + (IDN_PHASED ? (long long)(at / width) * down + at % width * across : at);
    }
    return made;
  }

  IDN_MEMBER void store(int number, int m, const Quad& quad, const Four& four) const {
    if (m >= rows || quad.count <= 0) return;
    float* const to = out + number * plane + m * row;
    if (wide) {
      *(Four*)(to + quad.at[0]) = four;
      return;
    }
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      if (c < quad.count) to[quad.at[c]] = four.x[c];
    }
  }
};

/* ---- entry point ------------------------------------------------------------------------------------ */

/*
 * sizes: the shape's sixteen; rows, columns and steps of the product; columns of an image; elements of out from a
 * row and from an image to the next, of a plane of sums; elements of left from a row to the next; elements of out,
 * left and right from a group to the next; chunks of a range of k, ranges, chunks of a plane (`span`), whether out
 * is written in fours; multipliers of the strides. Of phases, whose shape is the phase's and whose steps are those of
 * all, also: the first element of out; columns of a row, elements from a row and from a column to the next; tiles of
 * a chunk; taps in all and across; the first tap down, how far the others are apart, the same across.
 */
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
convolve(float* __restrict__ out, const float* __restrict__ left, const float* __restrict__ right,
         const Words<SIZES> sizes) {
  __shared__ Shape<int> shape;
  __shared__ Stored stored;
  __shared__ Part steps[CHUNK];
  __shared__ long long left_steps[CHUNK];
  __shared__ Part lines[TILE_N];
  __shared__ Taps taps;
  __shared__ int ends[2];
  const long long* const v = sizes.v + 16;
  const int rows = (int)v[0], columns = (int)v[1], k = (int)v[2];
  const int down = (rows + TILE_M - 1) / TILE_M, across = (columns + TILE_N - 1) / TILE_N;
  const int number = (int)(blockIdx.x % ((long long)down * across)), ranges = (int)v[12];
  const int slice = (int)(blockIdx.x / ((long long)down * across)), range = slice % ranges, group = slice / ranges;
  const int band = number / (DOWN * across), within = number % (DOWN * across);
  const int height = min(down - band * DOWN, DOWN);
  const int row = (band * DOWN + within % height) * TILE_M, column = within / height * TILE_N;
  const long long first = range * v[11] * CHUNK, stop = min(first + v[11] * CHUNK, (long long)k);

  /* Wanted seldom: out of the registers. */
  if (threadIdx.x == 0) {
    shape = idn_shape<int>(sizes);
    stored = Stored{out + group * v[8] + row * v[4], v[4], v[5], v[6], min(rows - row, TILE_M), columns, column,
                    (int)v[3], v[14] != 0};
#if IDN_PHASED
    const long long* const p = v + 17;
    stored.out += p[0];
    stored.width = (int)p[1], stored.down = (int)p[2], stored.across = (int)p[3];
    taps = Taps{(int)p[5], (int)p[6], {(int)p[7], (int)p[8], shape.down.window},
                {(int)p[9], (int)p[10], shape.across.window}};
#endif
  }
  __syncthreads();
  for (int i = threadIdx.x; i < TILE_N; i += THREADS) {
    lines[i] = column + i < columns ? idn_line(shape, column + i) : Part{0, NOWHERE, NOWHERE};
  }
  __syncthreads();

  const Table table{steps, left_steps, shape, taps, ends, k};
#if IDN_PHASED
  const int of_chunk = (int)v[21];
  const Uneven pace{(int)((stop - first + CHUNK - 1) / CHUNK) * of_chunk, of_chunk, (int)(first / CHUNK), ends};
  const int room = of_chunk * TILE_K;
#else
  const Even pace(first, stop);
  const int room = CHUNK;
#endif
  const bool dx = IDN_DIRECTION == IDN_DX;
  /* From the parameters and not from the shape: these need no registers. */
  const Planes planes{(int)sizes.v[dx ? 9 : 4], (int)sizes.v[dx ? 15 : 10],
                      {(unsigned)sizes.v[6], (unsigned)v[15]}, {(unsigned)sizes.v[12], (unsigned)v[16]}};
  Operand<Rows> lefts(Rows(left + group * v[9] + row * v[7], table, v[7], min(rows - row, TILE_M), room));
  Operand<Columns> rights(Columns(right + group * v[10], table, lines, planes, room));
  idn_contract(stored, lefts, rights, table, pace, (int)v[13]);
}
