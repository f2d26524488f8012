/* cast: conversions between element types; elementwise/convert.h says how. */
#include "common/fp32.h"
#include "elementwise/cpu.h"
#include "native/pool.h"

namespace identic {
namespace {

constexpr int64_t PIECE = 1 << 15;

#include "elementwise/convert.h"

template <class To, class From>
void convert(void* out, const void* x, int64_t n) {
  To* to = static_cast<To*>(out);
  const From* from = static_cast<const From*>(x);
  for (int64_t i = 0; i < n; ++i) to[i] = Conversion<To>::of(from[i]);
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
