/*
 * sin and cos: the binary32 number nearest to the true value, however large the operand.
 *                                                                       rules: NUM-2, NUM-7, NUM-8
 * Reduction  x * 2/pi modulo 4 from 128 bits of 2/pi, in integers: a quadrant and a fraction with an
 *            error below 2^-100.
 * Value      first by a polynomial in binary64; where that lies within its error of the middle of two
 *            binary32 numbers, again by a Taylor series in 126-bit fixed point. No floating-point
 *            operation of the second kind rounds before the last.
 *
 * One operand at a time, for the CPU and for a CUDA device.
 */
#ifndef IDENTIC_FUNCTIONS_CIRCULAR_H
#define IDENTIC_FUNCTIONS_CIRCULAR_H

using Wide = unsigned __int128;

/* Bits of 2/pi after the point, most significant first. */
IDN_TABLE uint64_t TWO_OVER_PI[4] = {0xa2f9836e4e441529u, 0xfc2757d1f534ddc0u, 0xdb6295993c439041u,
                                     0xfe5163abdebbc561u};
/* pi/2 in units of 2^-126. */
constexpr Wide HALF_PI = static_cast<Wide>(0x6487ed5110b4611au) << 64 | 0x62633145c06e0e68u;

/* 64 bits of 2/pi from bit `first` on; bit 1 has weight 1/2, bits before it and after the table are 0. */
IDN_INLINE uint64_t bits_from(int first) {
  uint64_t result = 0;
  for (int word = 0; word < 4; ++word) {
    const int shift = first - 1 - 64 * word; /* how far the word's first bit lies before the window's */
    if (shift >= 0 && shift < 64) result |= TWO_OVER_PI[word] << shift;
    if (shift < 0 && shift > -64) result |= TWO_OVER_PI[word] >> -shift;
  }
  return result;
}

/* a * b / 2^126, truncated; a and b below 2^127. */
IDN_INLINE Wide product(Wide a, Wide b) {
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
IDN_INLINE Reduced reduce(uint32_t magnitude) {
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

/* A wide number as top * 2^exponent, the lowest bit of top set where bits are left out. */
struct Rounded {
  uint64_t top;
  int exponent;
};

IDN_INLINE Rounded leading(Wide x) {
  const uint64_t high = static_cast<uint64_t>(x >> 64), low = static_cast<uint64_t>(x);
  if (high == 0) return {low, 0};
  const int shift = 64 - idn_leading_zeros(high);
  const uint64_t rest = shift == 64 ? low : low << (64 - shift);
  return {static_cast<uint64_t>(x >> shift) | static_cast<uint64_t>(rest != 0), shift};
}

/* 2^exponent for exponents of normal numbers. */
IDN_INLINE double power_of_two(int exponent) { return idn_double(static_cast<uint64_t>(1023 + exponent) << 52); }

/* a / b, truncated, 32 bits at a time. */
IDN_INLINE Wide quotient(Wide a, uint32_t b) {
  Wide result = 0;
  uint64_t rest = 0;
  for (int shift = 96; shift >= 0; shift -= 32) {
    rest = rest << 32 | static_cast<uint32_t>(a >> shift);
    result = result << 32 | rest / b;
    rest %= b;
  }
  return result;
}

/* Taylor series of sin (start = 1) or cos (start = 0) of an angle, in units of 2^-126. */
IDN_NOINLINE Wide series(Wide angle, int start) {
  const Wide square = product(angle, angle);
  Wide term = start ? angle : static_cast<Wide>(1) << 126;
  Wide plus = term, minus = 0;
  for (int n = start + 1; term != 0; n += 2) {
    term = quotient(product(term, square), static_cast<uint32_t>(n * (n + 1)));
    ((n - start) / 2 % 2 ? plus : minus) += term;
  }
  return plus - minus;
}

IDN_INLINE double sine(double r) {
  constexpr double TERMS[7] = {-0x1.5555555555555p-3,  0x1.1111111111111p-7,  -0x1.a01a01a01a01ap-13,
                               0x1.71de3a556c734p-19,  -0x1.ae64567f544e4p-26, 0x1.6124613a86d09p-33,
                               -0x1.ae7f3e733b81fp-41};
  const double z = idn_mul64(r, r);
  double q = TERMS[6];
  IDN_UNROLL(8)
  for (int i = 5; i >= 0; --i) q = idn_add64(idn_mul64(q, z), TERMS[i]);
  return idn_add64(idn_mul64(idn_mul64(r, z), q), r);
}

IDN_INLINE double cosine_of(double r) {
  constexpr double TERMS[8] = {-0x1p-1, 0x1.5555555555555p-5, -0x1.6c16c16c16c17p-10, 0x1.a01a01a01a01ap-16,
                               -0x1.27e4fb7789f5cp-22, 0x1.1eed8eff8d898p-29, -0x1.93974a8c07c9dp-37,
                               0x1.ae7f3e733b81fp-45};
  const double z = idn_mul64(r, r);
  double q = TERMS[7];
  IDN_UNROLL(8)
  for (int i = 6; i >= 0; --i) q = idn_add64(idn_mul64(q, z), TERMS[i]);
  return idn_add64(idn_mul64(z, q), 1.0);
}

IDN_INLINE float circular_of(bool cosine, float x) {
  const uint32_t magnitude = idn_bits(x) & 0x7fffffffu;
  if (magnitude >= 0x7f800000u) return idn_float(IDN_NAN_BITS);
  /* Below 2^-12 the second term is less than half a place. */
  if (magnitude < 0x39800000u) return cosine ? 1.0f : x;
  const Reduced at = reduce(magnitude);
  const bool use_cosine = cosine != (at.quadrant % 2 != 0);
  bool negative = cosine ? at.quadrant == 1 || at.quadrant == 2 : at.quadrant >= 2;
  if (!use_cosine && at.below) negative = !negative;
  if (!cosine && idn_bits(x) >> 31) negative = !negative;
  const Rounded angle = leading(at.angle);
  const double r = idn_mul64(static_cast<double>(angle.top >> 11), power_of_two(angle.exponent + 11 - 126));
  const double y = use_cosine ? cosine_of(r) : sine(r);
  float result = idn_nearest(y);
  constexpr double ERROR = 0x1p-49;
  const double error = idn_mul64(y, ERROR);
  if (idn_nearest(idn_sub64(y, error)) != idn_nearest(idn_add64(y, error))) {
    const Rounded exact = leading(series(at.angle, use_cosine ? 0 : 1));
    result = idn_nearest(idn_mul64(static_cast<double>(idn_nearest(exact.top)), power_of_two(exact.exponent - 126)));
  }
  return negative ? -result : result;
}

#endif
