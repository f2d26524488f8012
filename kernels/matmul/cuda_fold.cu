/*
 * Planes of a contraction added up:  out[i] = sums of plane[0][i], plane[1][i], ...             rules: NUM-10
 *
 * Order    Left to right: every `group` planes, then these sums. With chunks as planes a group has 16; with groups
 *          as planes 1. No plane gives +0, the empty contraction.
 * Shapes   planes (number, elements), out (elements).
 * Launch   One-dimensional, any grid; a thread owns every idn_threads()-th element.
 * Twins    reference.py (definition), cpu.cpp.
 */
#include "common/cuda.h"

#ifndef IDN_ABREAST
#define IDN_ABREAST 4
#endif

constexpr int ABREAST = IDN_ABREAST; /* planes read before the first of them is added */

extern "C" __global__ void fold_planes(float* __restrict__ out, const float* __restrict__ planes, long long elements,
                                       long long number, long long group) {
  for (long long i = idn_thread(); i < elements; i += idn_threads()) {
    const float* from = planes + i;
    float total = 0.0f;
    for (long long first = 0; first < number; first += group) {
      const int more = (int)min(number - first, group) - 1;
      float sum = *from;
      from += elements;
      int p = 0;
      for (; p + ABREAST <= more; p += ABREAST, from += ABREAST * elements) {
        float next[ABREAST];
#pragma unroll
        for (int j = 0; j < ABREAST; ++j) next[j] = from[j * elements];
#pragma unroll
        for (int j = 0; j < ABREAST; ++j) sum = idn_add(sum, next[j]);
      }
      for (; p < more; ++p, from += elements) sum = idn_add(sum, *from);
      total = first ? idn_add(total, sum) : sum;
    }
    out[i] = idn_canon(total);
  }
}
