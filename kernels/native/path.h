/*
 * Paths: the same kernels compiled for different vector units, chosen at run time.
 *
 * Every path gives the same bits. A path's functions work on one piece, on the calling thread;
 * the drivers (kernels/<group>/cpu.cpp) check arguments, cut the work and hand it to the pool.
 */
#ifndef IDENTIC_NATIVE_PATH_H
#define IDENTIC_NATIVE_PATH_H

#include <cstdint>
#include <string>
#include <vector>

#include "fused/stream.h"
#include "native/codes.h"

namespace identic {

/* ---- matmul ------------------------------------------------------------------------------------ */

/* NUM-10: lengths of a chain and of a group of chains. */
constexpr int64_t MATMUL_CHUNK = 256;
constexpr int64_t MATMUL_GROUP = 4096;

/*
 * One operand, packed for one group of k: chunk after chunk of 256 k, in each the panels of all lines
 * one after another. A line is a row of the left or a column of the right operand; `lines` counts
 * them, rounded up to whole panels.
 */
struct Panels {
  float* data;
  int64_t lines;
};

/* A block of the result at (row, column) of the packed range, and a group of k for it. Strides are in elements. */
struct MatmulBlock {
  float* out;
  int64_t out_stride;
  Panels left, right;
  /*
   * The left operand as it is, and the strides of its rows and of k, of which one is 1: instead of panels, unless null. It starts
   * at the group's first k, or, where left_step is not null, step k of the group is left_step[k] further; these ascend.
   */
  const float* plain_left = nullptr;
  int64_t left_row = 0, left_column = 1;
  const int64_t* left_step = nullptr;
  int64_t row, column;
  int64_t rows, columns, k;
  /* The part of the group to add, of whole chains; panels hold that part alone. */
  int64_t begin = 0, end = MATMUL_GROUP;
  /* Ends of the chains, counted from the group's first k; null where each has 256. */
  const int64_t* ends = nullptr;
  bool first_group, last_group;
  /* Room for rows x columns sums of a later group; may be null when first_group. */
  float* group;
  int64_t group_stride;
};

struct MatmulPath {
  int64_t tile_rows, tile_columns;
  /* Packs lines [first, first + lines); from is the first of them, and `readable` exist from there on. */
  void (*pack_left)(Panels to, int64_t first, const float* from, int64_t row_stride, int64_t k_stride, int64_t lines,
                    int64_t readable, int64_t k);
  void (*pack_right)(Panels to, int64_t first, const float* from, int64_t k_stride, int64_t column_stride,
                     int64_t lines, int64_t k);
  void (*multiply_block)(const MatmulBlock& block);
};

/* ---- convolutions ------------------------------------------------------------------------------ */

/* One panel of k steps: the element of line i at step q is from[line[i] + step[q]], +0 past the last line. */
using PackOffsets = void (*)(float* to, const float* from, const int64_t* line, int64_t lines, const int64_t* step,
                             int64_t k);

struct ConvPath {
  PackOffsets pack_left_steps;   /* neighbouring steps are often neighbours in memory, and ascend */
  PackOffsets pack_right_steps;
  PackOffsets pack_right_lines;  /* neighbouring lines are */
};

/* ---- pools -------------------------------------------------------------------------------------- */

/* Most windows of a row computed at a time. */
constexpr int64_t POOL_LENGTH = 256;

/* One tap of n windows, which reads x[i * stride]. */
struct PoolPath {
  /* best[i] is the largest rank so far. */
  void (*raise_maxima)(int32_t* best, const float* x, int64_t stride, int n);
  /* The same, with the position place + steps[i] of the first of the largest. */
  void (*find_maxima)(int32_t* best, int32_t* at, const float* x, int64_t stride, int n, int32_t place,
                      const int32_t* steps);
};

/* ---- elementwise -------------------------------------------------------------------------------- */

/* n results in a row. Strides of operands are in elements: any; results lie next to each other. */
using UnaryRow = void (*)(void* out, const void* x, int64_t n);
using BinaryRow = void (*)(void* out, const void* a, int64_t a_stride, const void* b, int64_t b_stride, int64_t n);
using WhereRow = void (*)(void* out, const uint8_t* c, int64_t c_stride, const void* a, int64_t a_stride,
                          const void* b, int64_t b_stride, int64_t n);

struct ElementwisePath {
  UnaryRow unary[UNARY_COUNT];
  BinaryRow binary[BINARY_COUNT][KIND_COUNT];
  WhereRow where[4];  /* by the size of an element: 1, 2, 4, 8 bytes */
};

/* ---- reductions --------------------------------------------------------------------------------- */

struct ReducePath {
  void (*sum_rows)(float* out, const float* x, int64_t rows, int64_t n);
  /* out[j] = chain from +0 over rows of x[row * stride + j]; not made canonical. */
  void (*sum_chunk)(float* out, const float* x, int64_t rows, int64_t stride, int64_t columns);
  /* out[j] = out[j] + x[j], canonical when last. */
  void (*add_row)(float* out, const float* x, int64_t columns, bool last);
  void (*maximum_rows)(float* out, const float* x, int64_t rows, int64_t n);
};

/* ---- streams ------------------------------------------------------------------------------------- */

struct StreamPath {
  int64_t group;  /* elements of the running value */
  /* The function of a StreamCode; null where there is none. */
  StreamRun (*step)(int code);
  /* Rows of n >= group elements. */
  void (*run)(const StreamStep* first, StreamRows rows, int64_t n);
};

/* The same steps for long rows and for rows that are shorter than a long group. */
struct StreamPaths {
  StreamPath wide, narrow;
};

/* ---- layout and random --------------------------------------------------------------------------- */

struct LayoutPath {
  /* out[i * out_stride + j] = x[j * x_stride + i] for 32-bit words, i < rows, j < columns. */
  void (*transpose)(uint32_t* out, int64_t out_stride, const uint32_t* x, int64_t x_stride, int64_t rows,
                    int64_t columns);
  /* Uniforms of blocks [first, first + blocks), four a block. */
  void (*uniform)(float* out, uint64_t first, int64_t blocks, const uint32_t key[2], const uint32_t fixed[2]);
};

struct Path {
  const char* name;
  MatmulPath matmul;
  ConvPath conv;
  PoolPath pool;
  ElementwisePath elementwise;
  ReducePath reduce;
  StreamPaths stream;
  LayoutPath layout;
};

/* Tables of the compiled paths; each is defined in its own native/path_*.cpp. */
extern const Path SCALAR_PATH;
#if defined(__x86_64__)
extern const Path AVX2_PATH;
extern const Path EMULATED_PATH;
extern const Path AVX512_PATH;
#elif defined(__aarch64__)
extern const Path NEON_PATH;
#endif

/* The path in use. */
const Path& current_path();

/* Names of the paths this machine can run, the preferred one first. */
std::vector<std::string> available_paths();

/* Chooses a path by name, or the preferred one with "auto". Throws std::invalid_argument. */
void set_path(const std::string& name);

}  // namespace identic

#endif
