/*
 * sin and cos: the binary32 number nearest to the true value, however large the operand.
 *                                                                       rules: NUM-2, NUM-7, NUM-8
 * Reduction  x * 2/pi modulo 4 from 128 bits of 2/pi, in integers: a quadrant and a fraction with an
 *            error below 2^-100.
 * Value      first by a polynomial in binary64; where that lies within its error of the middle of two
 *            binary32 numbers, again by a Taylor series in 126-bit fixed point. No floating-point
 *            operation of the second kind rounds before the last.
 */
#include <cmath>

#include "common/fp32.h"
#include "functions/cpu.h"
#include "native/pool.h"

namespace identic {
namespace {

using Wide = unsigned __int128;

/* Bits of 2/pi after the point, most significant first. */
constexpr uint64_t TWO_OVER_PI[4] = {0xa2f9836e4e441529u, 0xfc2757d1f534ddc0u, 0xdb6295993c439041u,
                                     0xfe5163abdebbc561u};
/* pi/2 in units of 2^-126. */
constexpr Wide HALF_PI = static_cast<Wide>(0x6487ed5110b4611au) << 64 | 0x62633145c06e0e68u;

/* 64 bits of 2/pi from bit `first` on; bit 1 has weight 1/2, bits before it and after the table are 0. */
uint64_t bits_from(int first) {
  uint64_t result = 0;
  for (int word = 0; word < 4; ++word) {
    const int shift = first - 1 - 64 * word; /* how far the word's first bit lies before the window's */
    if (shift >= 0 && shift < 64) result |= TWO_OVER_PI[word] << shift;
    if (shift < 0 && shift > -64) result |= TWO_OVER_PI[word] >> -shift;
  }
  return result;
}

/* a * b / 2^126, truncated; a and b below 2^127. */
Wide product(Wide a, Wide b) {
  const uint64_t a0 = static_cast<uint64_t>(a), a1 = static_cast<uint64_t>(a >> 64);
  const uint64_t b0 = static_cast<uint64_t>(b), b1 = static_cast<uint64_t>(b >> 64);
  const Wide low = static_cast<Wide>(a0) * b0;
  const Wide cross = static_cast<Wide>(a0) * b1 + (low >> 64);
  const Wide other = static_cast<Wide>(a1) * b0 + static_cast<uint64_t>(cross);
  const Wide high = static_cast<Wide>(a1) * b1 + (cross >> 64) + (other >> 64);
  return high << 2 | static_cast<uint64_t>(other) >> 62;
}

/* An operand: x = sign * (quadrant * pi/2 + angle), the angle in [-pi/4, pi/4] in units of 2^-126. */
struct Reduced {
  int quadrant;
  bool below;  /* whether the angle is negative */
  Wide angle;  /* its magnitude */
};

/* magnitude: bits of a positive finite number of at least 2^-12. */
Reduced reduce(uint32_t magnitude) {
  const int exponent = static_cast<int>(magnitude >> 23) - 150;
  const uint32_t significand = (magnitude & 0x7fffffu) | 0x800000u;
  if (magnitude <= 0x3f490fdbu) return {0, false, static_cast<Wide>(significand) << (126 + exponent)};
  /* Bits of weight 4 and more, after scaling, fall out of 128 bits by themselves. */
  const int first = exponent - 1;
  const Wide window = static_cast<Wide>(bits_from(first)) << 64 | bits_from(first + 64);
  const Wide turns = window * significand; /* quadrants in units of 2^-126, modulo 4 */
  const Wide nearest = turns + (static_cast<Wide>(1) << 125);
  const Wide rest = turns - (nearest >> 126 << 126); /* in [-1/2, 1/2) modulo 2^128 */
  const bool below = rest >> 127 != 0;
  return {static_cast<int>(nearest >> 126), below, product(below ? -rest : rest, HALF_PI)};
}

/* Taylor series of sin (start = 1) or cos (start = 0) of an angle, in units of 2^-126. */
Wide series(Wide angle, int start) {
  const Wide square = product(angle, angle);
  Wide term = start ? angle : static_cast<Wide>(1) << 126;
  Wide plus = term, minus = 0;
  for (int n = start + 1; term != 0; n += 2) {
    term = product(term, square) / static_cast<unsigned>(n * (n + 1));
    ((n - start) / 2 % 2 ? plus : minus) += term;
  }
  return plus - minus;
}

double sine(double r) {
  constexpr double TERMS[7] = {-0x1.5555555555555p-3,  0x1.1111111111111p-7,  -0x1.a01a01a01a01ap-13,
                               0x1.71de3a556c734p-19,  -0x1.ae64567f544e4p-26, 0x1.6124613a86d09p-33,
                               -0x1.ae7f3e733b81fp-41};
  const double z = r * r;
  double q = TERMS[6];
  for (int i = 5; i >= 0; --i) q = q * z + TERMS[i];
  return r * z * q + r;
}

double cosine_of(double r) {
  constexpr double TERMS[8] = {-0x1p-1, 0x1.5555555555555p-5, -0x1.6c16c16c16c17p-10, 0x1.a01a01a01a01ap-16,
                               -0x1.27e4fb7789f5cp-22, 0x1.1eed8eff8d898p-29, -0x1.93974a8c07c9dp-37,
                               0x1.ae7f3e733b81fp-45};
  const double z = r * r;
  double q = TERMS[7];
  for (int i = 6; i >= 0; --i) q = q * z + TERMS[i];
  return z * q + 1.0;
}

float circular_of(bool cosine, float x) {
  const uint32_t magnitude = idn_bits(x) & 0x7fffffffu;
  if (magnitude >= 0x7f800000u) return idn_float(IDN_NAN_BITS);
  /* Below 2^-12 the second term is less than half a place. */
  if (magnitude < 0x39800000u) return cosine ? 1.0f : x;
  const Reduced at = reduce(magnitude);
  const bool use_cosine = cosine != (at.quadrant % 2 != 0);
  bool negative = cosine ? at.quadrant == 1 || at.quadrant == 2 : at.quadrant >= 2;
  if (!use_cosine && at.below) negative = !negative;
  if (!cosine && idn_bits(x) >> 31) negative = !negative;
  const double r = static_cast<double>(at.angle) * 0x1p-126;
  const double y = use_cosine ? cosine_of(r) : sine(r);
  float result = static_cast<float>(y);
  constexpr double ERROR = 0x1p-49;
  if (static_cast<float>(y - y * ERROR) != static_cast<float>(y + y * ERROR)) {
    result = static_cast<float>(series(at.angle, use_cosine ? 0 : 1)) * 0x1p-126f;
  }
  return negative ? -result : result;
}

}  // namespace

void circular(bool cosine, float* out, const float* x, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = circular_of(cosine, x[i]);
}

}  // namespace identic
