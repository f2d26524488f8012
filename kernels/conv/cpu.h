/* Convolutions on the CPU: entry points for native/module.cpp. All arrays are contiguous. */
#ifndef IDENTIC_CONV_CPU_H
#define IDENTIC_CONV_CPU_H

#include <cstdint>

#include "common/windows.h"

namespace identic {

/* channels and outputs are those of one group; `down` and `across` are the spatial axes. */
struct ConvShape {
  int64_t batch, groups, channels, outputs;
  WindowAxis down, across;

  int64_t taps() const { return down.window * across.window; }
  int64_t windows() const { return down.count * across.count; }
  int64_t plane() const { return down.size * across.size; }
};

/* x (N, G * C, H, W) and w (G * O, C, KH, KW) give out (N, G * O, OH, OW). */
void conv(float* out, const float* x, const float* w, const ConvShape& shape);

/* grad (N, G * O, OH, OW) and w (G * O, C, KH, KW) give out (N, G * C, H, W). */
void conv_dx(float* out, const float* grad, const float* w, const ConvShape& shape);

/* grad (N, G * O, OH, OW) and x (N, G * C, H, W) give out (G * O, C, KH, KW). */
void conv_dw(float* out, const float* grad, const float* x, const ConvShape& shape);

/*
 * The same element by element, without room for anything: for shapes whose padding, strides or
 * dilation are far larger than the operands, and as another way to the same bits in tests.
 */
void conv_plain(float* out, const float* x, const float* w, const ConvShape& shape);
void conv_dx_plain(float* out, const float* grad, const float* w, const ConvShape& shape);
void conv_dw_plain(float* out, const float* grad, const float* x, const ConvShape& shape);

/* One element of conv_dx, by its position. */
float conv_dx_element(const float* grad, const float* w, const ConvShape& shape, int64_t at);

}  // namespace identic

#endif
