/*
 * max_pool, max_pool_indices, max_pool_dx, sum_pool, sum_pool_dx.          rules: NUM-4, OP-40, OP-42, OP-43
 *
 * Order    Places of a window in order, from +0 (sums); windows over a place in order, from +0 (gradients). Maxima
 *          by rank, the first of equal ones.
 * Shapes   x (planes, H, W), out and grad (planes, OH, OW), dx (planes, H, W), row-major. IDN_PLACE counts
 *          elements and places, padding included: int where all have 31 bits, else long long.
 * Launch   One-dimensional, any grid; a thread owns every idn_threads()-th element of the result.
 * Twins    reference.py (definition), cpu.cpp. Vectors: tests/vectors/ops
 */
#include "common/cuda_rank.h"
#include "common/cuda_windows.h"

#ifndef IDN_PLACE
#define IDN_PLACE int
#endif

typedef IDN_PLACE Place;

constexpr int NOTHING = -0x7fffffff - 1; /* below every rank */

struct Pool {
  Axis<Place> down, across;
  Place plane, windows; /* elements of a plane of x and of out */

  /* sizes: down, across. */
  __device__ __forceinline__ explicit Pool(const Words<12>& sizes)
      : down(Axis<Place>::of(sizes.v)), across(Axis<Place>::of(sizes.v + 6)), plane(down.size * across.size),
        windows(down.count * across.count) {}

  /* Calls visit(position) for each place of a window, in order. */
  template <class Visit>
  __device__ __forceinline__ void each_place(Place oh, Place ow, Visit visit) const {
    const Range<Place> rows = down.taps(oh), columns = across.taps(ow);
    for (Place i = rows.first; i < rows.stop; ++i) {
      Place at = (down.start(oh) + i * down.dilation) * across.size + across.start(ow) + columns.first * across.dilation;
      for (Place j = columns.first; j < columns.stop; ++j, at += across.dilation) visit(at);
    }
  }

  /* Calls visit(window) for each window whose span covers a place, in order. */
  template <class Visit>
  __device__ __forceinline__ void each_window(Place h, Place v, Visit visit) const {
    const Range<Place> rows = down.covering(h), columns = across.covering(v);
    for (Place oh = rows.first; oh < rows.stop; ++oh) {
      for (Place ow = columns.first; ow < columns.stop; ++ow) visit(oh * across.count + ow);
    }
  }
};

/* Calls visit(element, number of the plane, place or window in it) for each element of a thread. */
template <class Visit>
IDN_INLINE void idn_each(long long planes, Place height, Place width, Visit visit) {
  const Place elements = (Place)(planes * height * width);
  for (long long i = idn_thread(); i < elements; i += idn_threads()) visit((Place)i, Three<Place>((Place)i, height, width));
}

/* ---- forward ------------------------------------------------------------------------------------ */

extern "C" __global__ void max_pool(float* __restrict__ out, const float* __restrict__ x, long long planes,
                                    const Words<12> sizes) {
  const Pool pool(sizes);
  idn_each(planes, pool.down.count, pool.across.count, [&](Place i, const Three<Place>& at) {
    const float* plane = x + at.outer * pool.plane;
    int best = idn_rank(idn_float(0xff800000u));
    pool.each_place(at.middle, at.inner, [&](Place place) { best = max(best, idn_rank(plane[place])); });
    idn_unrank(out + i, best);
  });
}

extern "C" __global__ void max_pool_indices(long long* __restrict__ out, const float* __restrict__ x,
                                            long long planes, const Words<12> sizes) {
  const Pool pool(sizes);
  idn_each(planes, pool.down.count, pool.across.count, [&](Place i, const Three<Place>& at) {
    const float* plane = x + at.outer * pool.plane;
    int best = NOTHING;
    Place position = -1;
    pool.each_place(at.middle, at.inner, [&](Place place) {
      const int rank = idn_rank(plane[place]);
      if (rank > best) position = place;
      best = max(best, rank);
    });
    out[i] = position;
  });
}

extern "C" __global__ void sum_pool(float* __restrict__ out, const float* __restrict__ x, long long planes,
                                    const Words<12> sizes) {
  const Pool pool(sizes);
  idn_each(planes, pool.down.count, pool.across.count, [&](Place i, const Three<Place>& at) {
    const float* plane = x + at.outer * pool.plane;
    float sum = 0.0f;
    pool.each_place(at.middle, at.inner, [&](Place place) { sum = idn_add(sum, plane[place]); });
    out[i] = idn_canon(sum);
  });
}

/* ---- gradients ---------------------------------------------------------------------------------- */

extern "C" __global__ void max_pool_dx(float* __restrict__ out, const float* __restrict__ grad,
                                       const long long* __restrict__ indices, long long planes,
                                       const Words<12> sizes) {
  const Pool pool(sizes);
  idn_each(planes, pool.down.size, pool.across.size, [&](Place i, const Three<Place>& at) {
    const float* given = grad + at.outer * pool.windows;
    const long long* index = indices + at.outer * pool.windows;
    const Place position = at.middle * pool.across.size + at.inner;
    float sum = 0.0f;
    pool.each_window(at.middle, at.inner, [&](Place window) {
      if (index[window] == position) sum = idn_add(sum, given[window]);
    });
    out[i] = idn_canon(sum);
  });
}

extern "C" __global__ void sum_pool_dx(float* __restrict__ out, const float* __restrict__ grad, long long planes,
                                       const Words<12> sizes) {
  const Pool pool(sizes);
  idn_each(planes, pool.down.size, pool.across.size, [&](Place i, const Three<Place>& at) {
    const float* given = grad + at.outer * pool.windows;
    float sum = 0.0f;
    pool.each_window(at.middle, at.inner, [&](Place window) { sum = idn_add(sum, given[window]); });
    out[i] = idn_canon(sum);
  });
}
