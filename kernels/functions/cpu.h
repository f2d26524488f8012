/* Rounded functions that have no vector form. */
#ifndef IDENTIC_FUNCTIONS_CPU_H
#define IDENTIC_FUNCTIONS_CPU_H

#include <cstdint>

namespace identic {

/* sin or cos of n numbers in radians, each the nearest binary32 number (NUM-7, NUM-8). */
void circular(bool cosine, float* out, const float* x, int64_t n);

}  // namespace identic

#endif
