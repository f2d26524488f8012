/*
 * Windows along one spatial axis, for convolutions and pools.                        rules: OP-40
 *
 * Tap i of window o lies at o * stride - before + i * dilation. Every number is below 2^46, and
 * places of the padded axis below 2^48, so that sums and products of two of them, where they are
 * formed, stay inside 64 bits.
 */
#ifndef IDENTIC_COMMON_WINDOWS_H
#define IDENTIC_COMMON_WINDOWS_H

#include <algorithm>
#include <cstdint>

namespace identic {

struct WindowAxis {
  int64_t size, window, stride, dilation, before, count;

  int64_t start(int64_t number) const { return number * stride - before; }
  int64_t span() const { return dilation * (window - 1) + 1; }
  int64_t place(int64_t number, int64_t tap) const { return start(number) + tap * dilation; }
  bool inside(int64_t place) const { return place >= 0 && place < size; }

  /* Taps [first, stop) of a window that are inside. */
  int64_t first_tap(int64_t number) const {
    const int64_t from = start(number);
    return from < 0 ? std::min(window, (-from + dilation - 1) / dilation) : 0;
  }
  int64_t stop_tap(int64_t number) const {
    const int64_t from = start(number);
    const int64_t stop = from < size ? std::min(window, (size - from + dilation - 1) / dilation) : 0;
    return std::max(stop, first_tap(number));
  }

  /* Windows [first, stop) whose tap is inside. */
  int64_t first_window(int64_t tap) const {
    const int64_t from = before - tap * dilation;
    return from > 0 ? std::min(count, (from + stride - 1) / stride) : 0;
  }
  int64_t stop_window(int64_t tap) const {
    const int64_t from = size + before - tap * dilation;
    return from > 0 ? std::max(first_window(tap), std::min(count, (from + stride - 1) / stride)) : first_window(tap);
  }
};

}  // namespace identic

#endif
