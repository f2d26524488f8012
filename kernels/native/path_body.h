/*
 * All kernels of one path. A native/path_*.cpp opens the path's namespace, includes one header of
 * native/simd/ and then this file, and defines the table from the names below.
 *
 * No standard header may be included from here: it would land inside the namespace.
 */

#include "matmul/cpu_tile.h"
#include "conv/cpu_pack.h"
#include "functions/functions.h"
#include "elementwise/cpu_rows.h"
#include "reduce/cpu_rows.h"
#include "fused/cpu_stream_steps.h"
#include "layout/cpu_layout.h"
#include "pool/cpu_rows.h"
#include "random/cpu_philox.h"

constexpr MatmulPath MATMUL = {TILE_ROWS, TILE_COLUMNS, pack_left, pack_right, multiply_block};
constexpr ConvPath CONV = {pack_near_steps<TILE_ROWS>, pack_near_steps<TILE_COLUMNS>, pack_near_lines};
constexpr PoolPath POOL = {raise_maxima, find_maxima};
constexpr ReducePath REDUCE = {sum_rows, sum_chunk, add_row, maximum_rows};
constexpr StreamPaths STREAM = {{WIDE_RUN * W, stream_step<WIDE_RUN>, run_stream<WIDE_RUN>},
                                {NARROW_RUN * W, stream_step<NARROW_RUN>, run_stream<NARROW_RUN>}};
constexpr LayoutPath LAYOUT = {transpose, uniform};
