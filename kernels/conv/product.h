/*
 * Matrix products whose operands are read through sums of offsets and never written out.
 *
 * out[m][j] = sum over k of left[m][k] * right[k][j] in the order of NUM-10, by the blocks of
 * matmul. Both operands are packed into panels straight from the tensors.
 */
#ifndef IDENTIC_CONV_PRODUCT_H
#define IDENTIC_CONV_PRODUCT_H

#include <cstdint>
#include <vector>

#include "native/path.h"

namespace identic {

/* Buffers of a thread that convolutions use; the first three are those of matmul. */
enum ConvSlot { SLOT_LEFT = 0, SLOT_RIGHT = 1, SLOT_GROUP = 2, SLOT_PLANES = 4, SLOT_RESULT = 5 };

float* conv_buffer(ConvSlot slot, int64_t elements);

using Offsets = std::vector<int64_t>;

/* Of a grid (n, i, j), n outermost, in elements. */
Offsets grid(int64_t n, int64_t n_stride, int64_t rows, int64_t row_stride, int64_t columns, int64_t column_stride);

/*
 * How a contraction falls into chains and groups of NUM-10. With every k there, a chain has 256; where some products
 * are left out, it has those of its 256 that are there.
 */
struct Chains {
  Offsets starts;  /* of each chain, and the number of all k */
  Offsets groups;  /* number of each group's first chain, and the number of chains */

  static Chains every(int64_t k);
  int64_t k() const { return starts.back(); }
};

/* How the panels of the right operand are packed: by what is often next to each other. */
enum class Near { lines, steps };

/*
 * Rows m, columns (image, j): element (image, m, j) of the result is out[image * image_stride + m * columns + j].
 * Left element (m, k) is left[m * left_row + left_step[k]] and right element (k, column) right[line[column] + step[k]].
 */
struct Product {
  float* out;
  int64_t image_stride, images, rows, columns;
  const Chains* chains;
  const float* left;
  int64_t left_row;
  const int64_t* left_step; /* ascending; null where left_step[k] is k and every k is there */
  const float* right;
  const int64_t* line;
  const int64_t* step;
  Near near;
};

/* Runs a product on all threads. */
void multiply(const Path& path, const Product& product);

/* Multiply-adds that are not worth sharing. */
constexpr int64_t ALONE = 1 << 18;

double work_of(const Product& product);

}  // namespace identic

#endif
