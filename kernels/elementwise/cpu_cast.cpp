/*
 * cast: conversions between element types.                                   rules: NUM-2, NUM-5, NUM-9
 *
 * A conversion of a type to itself moves bits. bfloat16 goes by way of float32.
 */
#include <cstring>
#include <limits>
#include <type_traits>

#include "common/fp32.h"
#include "elementwise/cpu.h"
#include "native/pool.h"

namespace identic {
namespace {

constexpr int64_t PIECE = 1 << 15;

struct Bool { uint8_t byte; };
struct Bfloat16 { uint16_t word; };

/* NUM-5: toward zero, clamped to the range of the type, NaN to 0. */
template <class To>
To truncated(float x) {
  if (x != x) return 0;
  /* Both limits of a two's complement type are powers of two, exact in binary32. */
  constexpr float BELOW = static_cast<float>(std::numeric_limits<To>::min());
  constexpr float ABOVE = std::is_same_v<To, int64_t> ? 0x1p63f : std::is_same_v<To, int32_t> ? 0x1p31f : 256.0f;
  if (x <= BELOW) return std::numeric_limits<To>::min();
  if (x >= ABOVE) return std::numeric_limits<To>::max();
  return static_cast<To>(x);
}

float widened(Bfloat16 x) { return idn_canon(idn_float(static_cast<uint32_t>(x.word) << 16)); }

Bfloat16 rounded(float x) {
  if (x != x) return {0x7fc0};
  const uint32_t u = idn_bits(x);
  return {static_cast<uint16_t>((u + 0x7fffu + ((u >> 16) & 1)) >> 16)};
}

template <class To, class From>
To converted(From x) {
  if constexpr (std::is_same_v<From, To>) {
    return x;
  } else if constexpr (std::is_same_v<From, Bool>) {
    return converted<To>(static_cast<uint8_t>(x.byte != 0));
  } else if constexpr (std::is_same_v<From, Bfloat16>) {
    return converted<To>(widened(x));
  } else if constexpr (std::is_same_v<To, Bfloat16>) {
    return rounded(converted<float>(x));
  } else if constexpr (std::is_same_v<To, Bool>) {
    return {static_cast<uint8_t>(x != 0)};
  } else if constexpr (std::is_same_v<To, float>) {
    return static_cast<float>(x);
  } else if constexpr (std::is_same_v<From, float>) {
    return truncated<To>(x);
  } else {
    return static_cast<To>(static_cast<std::make_unsigned_t<To>>(x));
  }
}

template <class To, class From>
void convert(void* out, const void* x, int64_t n) {
  To* to = static_cast<To*>(out);
  const From* from = static_cast<const From*>(x);
  for (int64_t i = 0; i < n; ++i) to[i] = converted<To>(from[i]);
}

template <class To>
constexpr CastRow from_type(Type from) {
  switch (from) {
    case TYPE_F32: return convert<To, float>;
    case TYPE_I64: return convert<To, int64_t>;
    case TYPE_I32: return convert<To, int32_t>;
    case TYPE_U8: return convert<To, uint8_t>;
    case TYPE_BOOL: return convert<To, Bool>;
    default: return convert<To, Bfloat16>;
  }
}

int bytes_of(Type type) {
  constexpr int BYTES[TYPE_COUNT] = {4, 8, 4, 1, 1, 2};
  return BYTES[type];
}

}  // namespace

CastRow cast_row(Type to, Type from) {
  switch (to) {
    case TYPE_F32: return from_type<float>(from);
    case TYPE_I64: return from_type<int64_t>(from);
    case TYPE_I32: return from_type<int32_t>(from);
    case TYPE_U8: return from_type<uint8_t>(from);
    case TYPE_BOOL: return from_type<Bool>(from);
    default: return from_type<Bfloat16>(from);
  }
}

void cast(void* out, Type to, const void* x, Type from, int64_t n) {
  const CastRow run = cast_row(to, from);
  parallel_for(n, PIECE, [&](int64_t begin, int64_t end) {
    run(static_cast<uint8_t*>(out) + begin * bytes_of(to), static_cast<const uint8_t*>(x) + begin * bytes_of(from),
        end - begin);
  });
}

}  // namespace identic
