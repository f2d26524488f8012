/*
 * Where operands that step through memory by strides have their elements, for kernels that count over
 * a flat number of them.
 *
 * The launcher (cuda/places.py) merges axes. A quotient by a length d in [2, 2^31) is a product: with 2^s the
 * least power of two >= d and multiplier = floor(2^32 (2^s - d) / d) + 1, it is (high half of x multiplier + x)
 * >> s for every x < 2^31. A longer axis has the multiplier -1, and is divided by.
 */
#ifndef IDENTIC_COMMON_CUDA_PLACES_H
#define IDENTIC_COMMON_CUDA_PLACES_H

#include "common/cuda.h"

#define IDN_AXES 8 /* of a tensor, at most */

IDN_INLINE long long idn_quotient(long long x, long long length, long long multiplier) {
  if (multiplier >= 0 && x < 0x80000000ll) {
    const uint32_t at = (uint32_t)x;
    return (__umulhi(at, (uint32_t)multiplier) + at) >> (32 - __clz((int)((uint32_t)length - 1u)));
  }
  return x / length;
}

/* Offsets of element i for OPERANDS operands; the steps of operand o begin at IDN_AXES * o, outermost axis first. */
template <int OPERANDS>
IDN_INLINE void idn_offsets(long long i, long long rank, const Words<IDN_AXES>& lengths,
                            const Words<IDN_AXES>& multipliers, const Words<IDN_AXES * OPERANDS>& steps,
                            long long (&offsets)[OPERANDS]) {
  IDN_UNROLL(4)
  for (int o = 0; o < OPERANDS; ++o) offsets[o] = 0;
  IDN_ROLLED
  for (long long axis = rank - 1; axis > 0; --axis) {
    const long long outer = idn_quotient(i, lengths.v[axis], multipliers.v[axis]);
    const long long at = i - outer * lengths.v[axis];
    IDN_UNROLL(4)
    for (int o = 0; o < OPERANDS; ++o) offsets[o] += at * steps.v[IDN_AXES * o + axis];
    i = outer;
  }
  IDN_UNROLL(4)
  for (int o = 0; o < OPERANDS; ++o) offsets[o] += i * steps.v[IDN_AXES * o];
}

#endif
