/*
 * conv, conv_dx, conv_dw one element at a time.                rules: NUM-10, NUM-11, OP-40, OP-41
 *
 * Order    k of cuda_shape.h, in chains of 256, their sums as NUM-10 has them; with `span` 1 the chains of a
 *          range of k are stored apart, and matmul/cuda_fold.cu adds them up.
 * Shapes   Any: counts, padding, strides and dilation of 64 bits. Meant for numbers that cuda.cu cannot hold, and
 *          for groups of so few rows that its tiles would stay empty.
 * Launch   One-dimensional, any grid; a thread owns every idn_threads()-th element of each range.
 * Mending  With IDN_MENDS only the elements are computed that cuda.cu may have wrong where it leaves out the zeros
 *          between windows: those that are -0, and those of channels some of whose kernels are not finite.
 * Twins    reference.py (definition), cpu_plain.cpp, cuda.cu.
 */
#include "conv/cuda_shape.h"

constexpr long long CHUNK = 256; /* NUM-10 */
constexpr long long GROUP = 16;

/* Counts through three lengths, the last running fastest. */
struct Walk {
  Three<long long> at;
  long long middles, inners;

  __device__ __forceinline__ void step() {
    if (++at.inner < inners) return;
    at.inner = 0;
    if (++at.middle < middles) return;
    at.middle = 0;
    ++at.outer;
  }
};

/* The window that reads `place` with its tap; not inside where it falls between two. */
IDN_INLINE long long idn_meeting(const Axis<long long>& axis, long long place, long long tap) {
  const long long from = place + axis.before - tap * axis.dilation;
  return from >= 0 && from % axis.stride == 0 && from / axis.stride < axis.count ? from / axis.stride : -1;
}

/* A plane's element, +0 outside. */
IDN_INLINE float idn_element(const float* plane, long long height, long long width, long long h, long long v) {
  /* OP-41: +0 stands for an element in the padding, or between two windows. */
  return h >= 0 && h < height && v >= 0 && v < width ? plane[h * width + v] : 0.0f;
}

/* What an element of out multiplies with, by step. */
struct Element {
  const Shape<long long>& s;
  const float* left;
  const float* right;
  long long group, row, outer, middle, inner; /* its group and row in it; image or channel; window, place or tap */

  __device__ __forceinline__ Element(const Shape<long long>& shape, const float* lefts, const float* rights,
                                     long long number)
      : s(shape), left(lefts), right(rights) {
    const bool forward = IDN_DIRECTION == IDN_FORWARD, dx = IDN_DIRECTION == IDN_DX;
    const Three<long long> at(number, forward ? s.down.count : dx ? s.down.size : s.down.window,
                              forward ? s.across.count : dx ? s.across.size : s.across.window);
    const long long rows = dx ? s.channels : s.outputs, columns = IDN_DIRECTION == IDN_DW ? s.channels : rows * s.groups;
    const long long line = IDN_DIRECTION == IDN_DW ? at.outer / columns : at.outer % columns;
    group = line / rows;
    row = line % rows;
    outer = IDN_DIRECTION == IDN_DW ? at.outer % columns : at.outer / columns;
    middle = at.middle;
    inner = at.inner;
  }

  __device__ __forceinline__ float product(const Walk& k, float sum) const {
    const long long a = k.at.outer, b = k.at.middle, c = k.at.inner;
    if (IDN_DIRECTION == IDN_FORWARD) {
      const float* plane = right + ((outer * s.groups + group) * s.channels + a) * s.plane;
      const float x = idn_element(plane, s.down.size, s.across.size,
                                  middle * s.down.stride - s.down.before + b * s.down.dilation,
                                  inner * s.across.stride - s.across.before + c * s.across.dilation);
      const long long output = group * s.outputs + row;
      return idn_fma(left[(output * s.channels + a) * s.taps + b * s.across.window + c], x, sum);
    }
    if (IDN_DIRECTION == IDN_DX) {
      const long long output = group * s.outputs + a;
      const float* plane = right + (outer * s.groups * s.outputs + output) * s.windows;
      const float grad = idn_element(plane, s.down.count, s.across.count, idn_meeting(s.down, middle, b),
                                     idn_meeting(s.across, inner, c));
      return idn_fma(left[(output * s.channels + row) * s.taps + b * s.across.window + c], grad, sum);
    }
    const float* plane = right + ((a * s.groups + group) * s.channels + outer) * s.plane;
    const float x = idn_element(plane, s.down.size, s.across.size,
                                b * s.down.stride - s.down.before + middle * s.down.dilation,
                                c * s.across.stride - s.across.before + inner * s.across.dilation);
    const long long output = (a * s.groups + group) * s.outputs + row;
    return idn_fma(left[output * s.windows + b * s.across.count + c], x, sum);
  }
};

#ifndef IDN_MENDS
#define IDN_MENDS 0
#endif

#if IDN_MENDS
constexpr unsigned WARP = 0xffffffffu;

/* finite (G C): whether all of w that a channel is multiplied with is finite. A warp for each; sizes as below. */
extern "C" __global__ void find_finite(int* __restrict__ finite, const float* __restrict__ w, const Words<21> sizes) {
  const Shape<long long> s = idn_shape<long long>(sizes);
  const int lane = threadIdx.x % 32;
  for (long long line = idn_thread() / 32; line < s.groups * s.channels; line += idn_threads() / 32) {
    unsigned most = 0;
    for (long long o = 0; o < s.outputs; ++o) {
      const float* from = w + ((line / s.channels * s.outputs + o) * s.channels + line % s.channels) * s.taps;
      for (long long tap = lane; tap < s.taps; tap += 32) most = max(most, idn_bits(from[tap]) & 0x7fffffffu);
    }
    const bool endless = __any_sync(WARP, most >= 0x7f800000u);
    if (lane == 0) finite[line] = !endless;
  }
}
#endif

/* sizes: the shape's sixteen; elements of out, steps, chunks of a range of k, ranges, chunks of a plane (`span`). */
extern "C" __global__ void convolve_plainly(float* __restrict__ out, const float* __restrict__ left,
                                            const float* __restrict__ right,
#if IDN_MENDS
                                            const int* __restrict__ finite,
#endif
                                            const Words<21> sizes) {
  const Shape<long long> s = idn_shape<long long>(sizes);
  const long long elements = sizes.v[16], steps = sizes.v[17], chunks = sizes.v[18];
  const long long middles = IDN_DIRECTION == IDN_DW ? s.down.count : s.down.window;
  const long long inners = IDN_DIRECTION == IDN_DW ? s.across.count : s.across.window;
  for (long long i = idn_thread(); i < elements * sizes.v[19]; i += idn_threads()) {
    const Element element(s, left, right, i % elements);
#if IDN_MENDS
    if (idn_bits(out[i]) != 0x80000000u && finite[element.group * s.channels + element.row]) continue;
#endif
    const long long first = i / elements * chunks;
    Walk k{Three<long long>(first * CHUNK, middles, inners), middles, inners};
    float group = 0.0f, total = 0.0f;
    const long long last = min(first + chunks, (steps + CHUNK - 1) / CHUNK);
    for (long long chunk = first; chunk < last; ++chunk) {
      float sum = 0.0f;
      for (long long n = min(CHUNK, steps - chunk * CHUNK); n > 0; --n, k.step()) sum = element.product(k, sum);
      if (sizes.v[20] == 1) {
        out[chunk * elements + i % elements] = idn_canon(sum);
        continue;
      }
      group = chunk % GROUP ? idn_add(group, sum) : sum;
      if (chunk % GROUP == GROUP - 1 || chunk + 1 == last) total = chunk >= GROUP ? idn_add(total, group) : group;
    }
    if (sizes.v[20] != 1) out[i] = idn_canon(total);
  }
}
