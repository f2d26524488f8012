/* A device's rounded functions, and how often they need binary64. */
#ifndef IDENTIC_TESTS_EXHAUSTIVE_DEVICE_H
#define IDENTIC_TESTS_EXHAUSTIVE_DEVICE_H

#include <cstdint>

/* Operands that pairs of binary32 are made for, and how many of these binary64 decided. */
struct Shares {
  int64_t usual = 0, in_binary64 = 0;
};

/* out = the function of n operands, one at a time; false if there is no function of that name. */
bool device_unary(const char* name, float* out, const float* x, int64_t n, Shares* shares);

#endif
