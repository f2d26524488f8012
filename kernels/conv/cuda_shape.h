/*
 * The numbers of a convolution as the launcher passes them, and which of its three products is meant.
 *                                                                        rules: NUM-10, OP-40, OP-41
 * Of a group, with IDN_DIRECTION:
 *
 *     direction     out[m, n]                    left[m, k]              right[k, n]            k
 *     IDN_FORWARD   out[o, (image, window)]      w[o, k]                 x at window, tap       (channel, tap)
 *     IDN_DX        dx[channel, (image, place)]  w[(o, tap), channel]    grad at place, tap     (o, tap)
 *     IDN_DW        dw[o, (channel, tap)]        grad[o, k]              x at window, tap       (image, window)
 */
#ifndef IDENTIC_CONV_CUDA_SHAPE_H
#define IDENTIC_CONV_CUDA_SHAPE_H

#include "common/cuda_windows.h"

#define IDN_FORWARD 0
#define IDN_DX 1
#define IDN_DW 2
#ifndef IDN_DIRECTION
#define IDN_DIRECTION IDN_FORWARD
#endif

template <class T>
struct Shape {
  T batch, groups, channels, outputs; /* channels and outputs of a group */
  Axis<T> down, across;
  T taps, windows, plane;
};

/* sizes: batch, groups, channels, outputs; down and across: size, window, stride, dilation, before, count. */
template <class T, int N>
IDN_INLINE Shape<T> idn_shape(const Words<N>& sizes) {
  const long long* v = sizes.v;
  const Axis<T> down = Axis<T>::of(v + 4), across = Axis<T>::of(v + 10);
  return {(T)v[0], (T)v[1], (T)v[2], (T)v[3], down, across,
          (T)(down.window * across.window), (T)(down.count * across.count), (T)(down.size * across.size)};
}

#endif
