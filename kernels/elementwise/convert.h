/*
 * Conversions of one element between types.                                   rules: NUM-2, NUM-5, NUM-9
 *
 * A conversion of a type to itself moves bits. bfloat16 goes by way of float32. One text for the CPU and
 * for a CUDA device.
 */
#ifndef IDENTIC_ELEMENTWISE_CONVERT_H
#define IDENTIC_ELEMENTWISE_CONVERT_H

/* A truth value in memory, and the bits of a bfloat16. */
struct Bool { uint8_t byte; };
struct Bfloat16 { uint16_t word; };

IDN_INLINE float widened(Bfloat16 x) { return idn_canon(idn_float(static_cast<uint32_t>(x.word) << 16)); }

IDN_INLINE Bfloat16 rounded(float x) {
  if (x != x) return {0x7fc0};
  const uint32_t u = idn_bits(x);
  return {static_cast<uint16_t>((u + 0x7fffu + ((u >> 16) & 1)) >> 16)};
}

/* Limits of the integer types; both are exact in binary32 when the type is two's complement. */
template <class T> struct Limits;
template <> struct Limits<int64_t> {
  static constexpr float ABOVE = 0x1p63f;
  static constexpr int64_t LEAST = -0x7fffffffffffffff - 1, MOST = 0x7fffffffffffffff;
  using Unsigned = uint64_t;
};
template <> struct Limits<int32_t> {
  static constexpr float ABOVE = 0x1p31f;
  static constexpr int32_t LEAST = -0x7fffffff - 1, MOST = 0x7fffffff;
  using Unsigned = uint32_t;
};
template <> struct Limits<uint8_t> {
  static constexpr float ABOVE = 256.0f;
  static constexpr uint8_t LEAST = 0, MOST = 255;
  using Unsigned = uint8_t;
};

/* NUM-5: toward zero, clamped to the range of the type, NaN to 0. */
template <class To>
IDN_INLINE To truncated(float x) {
  if (x != x) return 0;
  if (x <= static_cast<float>(Limits<To>::LEAST)) return Limits<To>::LEAST;
  if (x >= Limits<To>::ABOVE) return Limits<To>::MOST;
  return static_cast<To>(x);
}

/* Conversion<To>::of(x) is x as a To. */
template <class To>
struct Conversion {
  template <class From> static IDN_MEMBER To of(From x) { return static_cast<To>(static_cast<typename Limits<To>::Unsigned>(x)); }
  static IDN_MEMBER To of(float x) { return truncated<To>(x); }
  static IDN_MEMBER To of(Bool x) { return static_cast<To>(x.byte != 0); }
  static IDN_MEMBER To of(Bfloat16 x) { return truncated<To>(widened(x)); }
};
template <>
struct Conversion<float> {
  template <class From> static IDN_MEMBER float of(From x) { return static_cast<float>(x); }
  static IDN_MEMBER float of(Bool x) { return static_cast<float>(x.byte != 0); }
  static IDN_MEMBER float of(Bfloat16 x) { return widened(x); }
};
template <>
struct Conversion<Bool> {
  template <class From> static IDN_MEMBER Bool of(From x) { return {static_cast<uint8_t>(x != 0)}; }
  static IDN_MEMBER Bool of(Bool x) { return x; }
  static IDN_MEMBER Bool of(Bfloat16 x) { return of(widened(x)); }
};
template <>
struct Conversion<Bfloat16> {
  template <class From> static IDN_MEMBER Bfloat16 of(From x) { return rounded(Conversion<float>::of(x)); }
  static IDN_MEMBER Bfloat16 of(Bfloat16 x) { return x; }
};

#endif
