/*
 * Windows along a spatial axis, for convolutions and pools on a device.                  rules: OP-40
 *
 * Tap i of window o lies at o * stride - before + i * dilation. T holds every place of the axis, padding included.
 * The CPU's twin of this text is common/windows.h.
 */
#ifndef IDENTIC_COMMON_CUDA_WINDOWS_H
#define IDENTIC_COMMON_CUDA_WINDOWS_H

#include "common/cuda.h"

/* [first, stop) */
template <class T>
struct Range {
  T first, stop;
};

template <class T>
struct Axis {
  T size, window, stride, dilation, before, count;

  /* From an axis as launchers pass it. */
  static __device__ __forceinline__ Axis of(const long long* v) {
    return {(T)v[0], (T)v[1], (T)v[2], (T)v[3], (T)v[4], (T)v[5]};
  }

  __device__ __forceinline__ T start(T number) const { return number * stride - before; }

  /* Taps of a window that are inside. */
  __device__ __forceinline__ Range<T> taps(T number) const {
    const T from = start(number);
    const T first = from < 0 ? min(window, (dilation - 1 - from) / dilation) : 0;
    const T stop = from < size ? min(window, (size - from + dilation - 1) / dilation) : 0;
    return {first, max(first, stop)};
  }

  /* Windows whose span, from the first tap to the last, covers a place. */
  __device__ __forceinline__ Range<T> covering(T place) const {
    const T at = place + before, span = dilation * (window - 1) + 1;
    const T first = at < span ? 0 : (at - span) / stride + 1;
    return {first, min(count, at / stride + 1)};
  }
};

/* Three numbers of a count, the last running fastest. */
template <class T>
struct Three {
  T outer, middle, inner;

  __device__ __forceinline__ Three(T number, T middles, T inners)
      : outer(number / inners / middles), middle(number / inners % middles), inner(number % inners) {}
};

#endif
