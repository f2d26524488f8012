/*
 * conv, conv_dx, conv_dw as matrix products whose operands are never written out.
 *                                                               rules: NUM-10, OP-40, OP-41
 * Planes   The tensor that windows move over is copied once into planes with its padding in
 *          place (for conv_dx with the zeros between windows too), columns of one phase of the
 *          stride next to each other. An element's address is then an offset for the window plus
 *          one for the tap, and windows of one row are neighbours in memory.
 * Product  out[m][j] = sum over k of left[m][k] * right[k][j] in the order of NUM-10, by the
 *          blocks of matmul; panels are packed from such sums of offsets. The zeros of the padding
 *          are elements of the panels, as the rule has it.
 * Threads  share the planes, the panels of the left operand, then blocks of the result.
 */
#include "conv/cpu.h"

#include <cstring>
#include <vector>

#include "native/path.h"
#include "native/pool.h"

namespace identic {
namespace {

constexpr int64_t BLOCK_ROWS_TARGET = 192; /* rows of a block: their chunk of 256 k fits a private cache */
constexpr int64_t BLOCK_FLOATS = 1 << 16;  /* of the right operand, packed by one thread at a time */
constexpr int64_t BLOCK_COLUMNS = 512;
constexpr int64_t PIECE = 1 << 15;
constexpr int64_t MOST_ROWS = 64; /* of a register tile, on any path */
constexpr int64_t ALONE = 1 << 18; /* products of fewer multiply-adds are not worth sharing */

enum Slot { SLOT_LEFT = 0, SLOT_RIGHT = 1, SLOT_GROUP = 2, SLOT_PLANES = 4, SLOT_RESULT = 5 };

using Offsets = std::vector<int64_t>;

int64_t round_up(int64_t x, int64_t to) { return (x + to - 1) / to * to; }
int64_t count_of(int64_t whole, int64_t part) { return (whole + part - 1) / part; }

float* buffer(Slot slot, int64_t elements) {
  /* One cache line more: a packed block may be read a vector past its end. */
  return static_cast<float*>(thread_buffer(slot, sizeof(float) * static_cast<uint64_t>(elements) + 64));
}

/* ---- planes ------------------------------------------------------------------------------------ */

/* Where the places of one axis lie in the planes: place p at p * step - first, in [0, length). */
struct Spread {
  int64_t size, step, first, length;

  /* Whether places lie as they do in the tensor. */
  bool plain() const { return step == 1 && first == 0 && length == size; }
};

/* Places of the windowed tensor itself, with what its windows reach of the padding. */
Spread padded(const WindowAxis& a) { return {a.size, 1, -a.before, (a.count - 1) * a.stride + a.span()}; }

/* Results of the windows as what a place of the operand reads, tap by tap backwards. */
Spread between(const WindowAxis& a) { return {a.count, a.stride, a.before - a.span() + 1, a.size + a.span() - 1}; }

struct Planes {
  const float* data;
  int64_t plane, row, phases, phase; /* distances between planes and rows; number of phases, and their distance */
};

/* One row of length floats a phase, the first phase's columns 0, phases, 2 * phases, ... */
void fill_row(float* to, const float* from, const Spread& across, int64_t phases, int64_t length) {
  for (int64_t r = 0; r < phases; ++r, to += length) {
    if (across.step == 1) {
      /* Column q of the phase is place q * phases + r + first. */
      const int64_t shift = r + across.first;
      const int64_t first = std::min(length, shift < 0 ? count_of(-shift, phases) : 0);
      const int64_t stop = shift < across.size ? std::min(length, count_of(across.size - shift, phases)) : 0;
      memset(to, 0, sizeof(float) * static_cast<size_t>(first));
      if (phases == 1) {
        if (stop > first) memcpy(to + first, from + first + shift, sizeof(float) * static_cast<size_t>(stop - first));
      } else {
        for (int64_t q = first; q < stop; ++q) to[q] = from[q * phases + shift];
      }
      const int64_t end = std::max(first, stop);
      memset(to + end, 0, sizeof(float) * static_cast<size_t>(length - end));
    } else {
      memset(to, 0, sizeof(float) * static_cast<size_t>(length));
      for (int64_t p = 0; p < across.size; ++p) {
        const int64_t at = p * across.step - across.first;
        if (at >= 0 && at < length) to[at] = from[p];
      }
    }
  }
}

/* Elements of the planes; -1 where they are far more than `most`. */
int64_t planes_size(const Spread& down, const Spread& across, int64_t phases, int64_t count, int64_t most) {
  const __int128 row = static_cast<__int128>(count_of(across.length, phases)) * phases;
  const __int128 plane = row * down.length;
  return plane > most || plane * count > most ? -1 : static_cast<int64_t>(plane * count);
}

Planes make_planes(const float* x, int64_t count, const Spread& down, const Spread& across, int64_t phases) {
  const int64_t length = count_of(across.length, phases), row = length * phases, plane = row * down.length;
  if (down.plain() && across.plain() && phases == 1) return {x, plane, row, 1, length};
  float* data = buffer(SLOT_PLANES, plane * count);
  parallel_for(count, std::max<int64_t>(1, PIECE / std::max<int64_t>(1, plane)), [&](int64_t begin, int64_t end) {
    for (int64_t at = begin; at < end; ++at) {
      const float* from = x + at * down.size * across.size;
      float* to = data + at * plane;
      for (int64_t i = 0; i < down.length; ++i, to += row) {
        const int64_t place = i + down.first, p = place / down.step;
        if (place < 0 || place % down.step != 0 || p >= down.size) {
          memset(to, 0, sizeof(float) * static_cast<size_t>(row));
        } else {
          fill_row(to, from + p * across.size, across, phases, length);
        }
      }
    }
  });
  return {data, plane, row, phases, length};
}

/* ---- product ----------------------------------------------------------------------------------- */

/* How the panels of an operand are packed. */
enum class Near { lines, steps };

/*
 * Rows m, columns (image, j): element (image, m, j) of the result is out[image * image_stride + m * columns + j].
 * Left element (m, k) is left[m * left_row + left_step[k]], right element (k, column) right[line[column] + step[k]].
 */
struct Product {
  float* out;
  int64_t image_stride, images, rows, columns, k;
  const float* left;
  int64_t left_row;
  const int64_t* left_step;
  bool left_plain; /* left_step[k] is k */
  const float* right;
  const int64_t* line;
  const int64_t* step;
  Near near;
};

struct Part {
  int64_t k0, k;
  Panels left;
};

void pack_left(const Path& path, const Product& p, const Part& part, int64_t i, int64_t rows) {
  if (p.left_plain) {
    const float* from = p.left + i * p.left_row + part.k0;
    path.matmul.pack_left(part.left, i, from, p.left_row, 1, rows, p.rows - i, part.k);
    return;
  }
  int64_t lines[MOST_ROWS];
  for (int64_t r = 0; r < rows; ++r) lines[r] = (i + r) * p.left_row;
  for (int64_t start = 0; start < part.k; start += MATMUL_CHUNK) {
    const int64_t k = std::min(MATMUL_CHUNK, part.k - start);
    float* to = part.left.data + start * part.left.lines + i * k;
    path.conv.pack_left_steps(to, p.left, lines, rows, p.left_step + part.k0 + start, k);
  }
}

void pack_right(const Path& path, const Product& p, const Part& part, Panels to, int64_t first, int64_t columns) {
  const int64_t tile = path.matmul.tile_columns;
  const auto pack = p.near == Near::lines ? path.conv.pack_right_lines : path.conv.pack_right_steps;
  for (int64_t start = 0; start < part.k; start += MATMUL_CHUNK) {
    const int64_t k = std::min(MATMUL_CHUNK, part.k - start);
    for (int64_t j = 0; j < columns; j += tile) {
      const int64_t lines = std::min(tile, columns - j);
      pack(to.data + start * to.lines + j * k, p.right, p.line + first + j, lines, p.step + part.k0 + start, k);
    }
  }
}

/* Rows [row, row + rows) of columns [first + column, + columns), packed from `first` on; columns of one image. */
void run_block(const Path& path, const Product& p, const Part& part, Panels right, int64_t row, int64_t rows,
               int64_t first, int64_t column, int64_t columns) {
  const int64_t image = (first + column) / p.columns, j = (first + column) % p.columns;
  MatmulBlock block;
  block.out = p.out + image * p.image_stride + row * p.columns + j;
  block.out_stride = p.columns;
  block.left = part.left;
  block.right = right;
  block.row = row;
  block.column = column;
  block.rows = rows;
  block.columns = columns;
  block.k = part.k;
  block.first_group = part.k0 == 0;
  block.last_group = part.k0 + part.k == p.k;
  block.group_stride = columns;
  block.group = block.first_group ? nullptr : buffer(SLOT_GROUP, rows * columns);
  path.matmul.multiply_block(block);
}

/* Columns [first, first + columns) of rows [row0, row0 + rows). */
void run_columns(const Path& path, const Product& p, const Part& part, int64_t first, int64_t columns, int64_t row0,
                 int64_t rows) {
  const int64_t rounded = round_up(columns, path.matmul.tile_columns);
  const Panels right = {buffer(SLOT_RIGHT, rounded * part.k), rounded};
  pack_right(path, p, part, right, first, columns);
  const int64_t block_rows = round_up(BLOCK_ROWS_TARGET, path.matmul.tile_rows);
  for (int64_t row = row0; row < row0 + rows; row += block_rows) {
    const int64_t height = std::min(block_rows, row0 + rows - row);
    for (int64_t j = 0; j < columns;) {
      const int64_t width = std::min(columns - j, p.columns - (first + j) % p.columns);
      run_block(path, p, part, right, row, height, first, j, width);
      j += width;
    }
  }
}

/* One product whose images, if there are several, have whole tiles of columns. */
void multiply(const Path& path, const Product& p) {
  const int64_t tile_rows = path.matmul.tile_rows, tile_columns = path.matmul.tile_columns;
  const int64_t all = p.images * p.columns;
  for (int64_t k0 = 0; k0 < p.k; k0 += MATMUL_GROUP) {
    Part part{k0, std::min(MATMUL_GROUP, p.k - k0), {}};
    const int64_t rounded = round_up(p.rows, tile_rows);
    part.left = {buffer(SLOT_LEFT, rounded * part.k), rounded};
    parallel_for(rounded / tile_rows, std::max<int64_t>(1, PIECE / (tile_rows * part.k)), [&](int64_t begin, int64_t end) {
      for (int64_t at = begin; at < end; ++at) {
        pack_left(path, p, part, at * tile_rows, std::min(tile_rows, p.rows - at * tile_rows));
      }
    });
    /* Blocks are made smaller when there are too few for the threads. */
    const int64_t wanted = threads() == 1 ? 1 : 4 * threads();
    int64_t width = std::min(BLOCK_COLUMNS, BLOCK_FLOATS / part.k / tile_columns * tile_columns);
    width = std::min(round_up(count_of(all, wanted), tile_columns), std::max(width, 2 * tile_columns));
    const int64_t across = count_of(all, width);
    const int64_t down = std::min(count_of(p.rows, 2 * tile_rows), count_of(wanted, across));
    const int64_t height = round_up(count_of(p.rows, down), tile_rows);
    parallel_for(across * down, 1, [&](int64_t begin, int64_t end) {
      for (int64_t at = begin; at < end; ++at) {
        const int64_t first = at % across * width, row = at / across * height;
        if (row >= p.rows) continue;
        run_columns(path, p, part, first, std::min(width, all - first), row, std::min(height, p.rows - row));
      }
    });
  }
}

/* Runs a product; images that are no whole tiles are computed side by side and taken apart after. */
void multiply_images(const Path& path, Product p) {
  if (p.images == 1 || p.columns % path.matmul.tile_columns == 0) return multiply(path, p);
  Product joined = p;
  joined.images = 1;
  joined.columns = p.images * p.columns;
  joined.out = buffer(SLOT_RESULT, p.rows * joined.columns);
  multiply(path, joined);
  parallel_for(p.images * p.rows, std::max<int64_t>(1, PIECE / p.columns), [&](int64_t begin, int64_t end) {
    for (int64_t at = begin; at < end; ++at) {
      const int64_t image = at / p.rows, row = at % p.rows;
      memcpy(p.out + image * p.image_stride + row * p.columns, joined.out + row * joined.columns + image * p.columns,
             sizeof(float) * static_cast<size_t>(p.columns));
    }
  });
}

/* Runs a product for every group: many small ones apart, else one after the other on all threads. */
template <class OfGroup>
void multiply_groups(const Product& p, int64_t groups, OfGroup of_group) {
  const Path& path = current_path();
  const double work = static_cast<double>(p.rows) * static_cast<double>(p.images * p.columns) * static_cast<double>(p.k);
  const bool apart = work < ALONE || groups >= 4 * threads();
  auto one = [&](int64_t group) {
    Product mine = p;
    of_group(mine, group);
    multiply_images(path, mine);
  };
  if (!apart) {
    for (int64_t group = 0; group < groups; ++group) one(group);
    return;
  }
  const int64_t grain = std::max<int64_t>(1, static_cast<int64_t>(ALONE / work));
  parallel_for(groups, grain, [&](int64_t begin, int64_t end) {
    for (int64_t group = begin; group < end; ++group) one(group);
  });
}

/* ---- offsets ----------------------------------------------------------------------------------- */

/* Of windows (or places) (n, i, j), n outermost. */
Offsets grid(int64_t n, int64_t n_stride, int64_t rows, int64_t row_stride, int64_t columns, int64_t column_stride) {
  Offsets found;
  found.reserve(static_cast<size_t>(n * rows * columns));
  for (int64_t a = 0; a < n; ++a) {
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < columns; ++j) found.push_back(a * n_stride + i * row_stride + j * column_stride);
    }
  }
  return found;
}

/* Of what windows read with each tap, (channel, i, j), in planes with phases of the stride. */
Offsets taps_of(const ConvShape& s, const Planes& planes) {
  Offsets found;
  found.reserve(static_cast<size_t>(s.channels * s.taps()));
  for (int64_t c = 0; c < s.channels; ++c) {
    for (int64_t i = 0; i < s.down.window; ++i) {
      for (int64_t j = 0; j < s.across.window; ++j) {
        const int64_t at = j * s.across.dilation;
        found.push_back(c * planes.plane + i * s.down.dilation * planes.row + at % planes.phases * planes.phase +
                        at / planes.phases);
      }
    }
  }
  return found;
}

bool empty(float* out, int64_t elements, int64_t k) {
  if (elements == 0) return true;
  if (k > 0) return false;
  /* NUM-10: an empty contraction is +0. */
  memset(out, 0, sizeof(float) * static_cast<size_t>(elements));
  return true;
}

/* Most elements that planes may have beside tensors of so many. */
int64_t most_beside(int64_t tensors) { return 8 * tensors + (1 << 20); }

/* What conv and conv_dw share: the planes of x. */
struct Read {
  Spread down, across;
  int64_t phases; /* a single window a row needs no other */
  explicit Read(const ConvShape& s)
      : down(padded(s.down)), across(padded(s.across)), phases(s.across.count == 1 ? 1 : s.across.stride) {}
};

}  // namespace

void conv(float* out, const float* x, const float* w, const ConvShape& s) {
  const int64_t k = s.channels * s.taps(), images = s.batch, columns = s.windows();
  const int64_t in = s.groups * s.channels, results = s.groups * s.outputs;
  if (empty(out, images * results * columns, k)) return;
  const Read read(s);
  const int64_t most = most_beside(images * (in * s.plane() + results * columns) + results * k);
  if (planes_size(read.down, read.across, read.phases, images * in, most) < 0) return conv_plain(out, x, w, s);
  const Planes planes = make_planes(x, images * in, read.down, read.across, read.phases);
  const Offsets lines = grid(images, in * planes.plane, s.down.count, s.down.stride * planes.row, s.across.count, 1);
  const Offsets steps = taps_of(s, planes);
  Product p{};
  p.image_stride = results * columns;
  p.images = images;
  p.rows = s.outputs;
  p.columns = columns;
  p.k = k;
  p.left_row = k;
  p.left_plain = true;
  p.line = lines.data();
  p.step = steps.data();
  p.near = Near::lines;
  multiply_groups(p, s.groups, [&](Product& mine, int64_t group) {
    mine.out = out + group * s.outputs * columns;
    mine.left = w + group * s.outputs * k;
    mine.right = planes.data + group * s.channels * planes.plane;
  });
}

void conv_dx(float* out, const float* grad, const float* w, const ConvShape& s) {
  const int64_t k = s.outputs * s.taps(), images = s.batch, columns = s.plane();
  const int64_t in = s.groups * s.outputs, results = s.groups * s.channels;
  if (empty(out, images * results * columns, k)) return;
  const Spread down = between(s.down), across = between(s.across);
  const int64_t most = most_beside(images * (in * s.windows() + results * columns) + results * k);
  if (planes_size(down, across, 1, images * in, most) < 0) return conv_dx_plain(out, grad, w, s);
  const Planes planes = make_planes(grad, images * in, down, across, 1);
  const Offsets lines = grid(images, in * planes.plane, s.down.size, planes.row, s.across.size, 1);
  /* Taps run backwards: the last one reads the window that starts furthest before. */
  Offsets steps = grid(s.outputs, planes.plane, s.down.window, -s.down.dilation * planes.row, s.across.window, -s.across.dilation);
  for (int64_t& step : steps) step += (s.down.span() - 1) * planes.row + s.across.span() - 1;
  const Offsets kernel = grid(s.outputs, s.channels * s.taps(), 1, 0, s.taps(), 1);
  Product p{};
  p.image_stride = results * columns;
  p.images = images;
  p.rows = s.channels;
  p.columns = columns;
  p.k = k;
  p.left_row = s.taps();
  p.left_step = kernel.data();
  p.line = lines.data();
  p.step = steps.data();
  p.near = Near::lines;
  multiply_groups(p, s.groups, [&](Product& mine, int64_t group) {
    mine.out = out + group * s.channels * columns;
    mine.left = w + group * s.outputs * s.channels * s.taps();
    mine.right = planes.data + group * s.outputs * planes.plane;
  });
}

void conv_dw(float* out, const float* grad, const float* x, const ConvShape& s) {
  const int64_t k = s.batch * s.windows(), columns = s.channels * s.taps();
  const int64_t in = s.groups * s.channels, results = s.groups * s.outputs;
  if (empty(out, results * columns, k)) return;
  const Read read(s);
  const int64_t most = most_beside(s.batch * (in * s.plane() + results * s.windows()) + results * columns);
  if (planes_size(read.down, read.across, read.phases, s.batch * in, most) < 0) return conv_dw_plain(out, grad, x, s);
  const Planes planes = make_planes(x, s.batch * in, read.down, read.across, read.phases);
  const Offsets lines = taps_of(s, planes);
  const Offsets steps = grid(s.batch, in * planes.plane, s.down.count, s.down.stride * planes.row, s.across.count, 1);
  const Offsets given = grid(s.batch, results * s.windows(), 1, 0, s.windows(), 1);
  Product p{};
  p.images = 1;
  p.rows = s.outputs;
  p.columns = columns;
  p.k = k;
  p.left_row = s.windows();
  p.left_step = given.data();
  p.line = lines.data();
  p.step = steps.data();
  p.near = Near::steps;
  multiply_groups(p, s.groups, [&](Product& mine, int64_t group) {
    mine.out = out + group * s.outputs * columns;
    mine.left = grad + group * s.outputs * s.windows();
    mine.right = planes.data + group * s.channels * planes.plane;
  });
}

}  // namespace identic
