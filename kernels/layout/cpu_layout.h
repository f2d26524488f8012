/*
 * Transposition of 32-bit words inside one path.
 *
 * Included by native/path_body.h inside the namespace of a path.
 */

static void transpose(uint32_t* out, int64_t out_stride, const uint32_t* x, int64_t x_stride, int64_t rows,
                      int64_t columns) {
  int64_t i = 0;
  for (; i + TRANSPOSE <= rows; i += TRANSPOSE) {
    int64_t j = 0;
    for (; j + TRANSPOSE <= columns; j += TRANSPOSE) {
      transpose_block(x + j * x_stride + i, x_stride, out + i * out_stride + j, out_stride);
    }
    for (; j < columns; ++j) {
      for (int64_t q = i; q < i + TRANSPOSE; ++q) out[q * out_stride + j] = x[j * x_stride + q];
    }
  }
  for (; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) out[i * out_stride + j] = x[j * x_stride + i];
  }
}
