/*
 * Elementwise operators: cuts a result into pieces and hands rows to the path's kernels.
 *
 * Each element depends on its own operands only, so pieces may be of any size.
 */
#include "elementwise/cpu.h"

#include "functions/cpu.h"
#include "native/path.h"
#include "native/pool.h"
#include "native/strided.h"

namespace identic {
namespace {

constexpr int64_t LIGHT = 1 << 15;  /* elements of a piece when an element takes a few instructions */
constexpr int64_t HEAVY = 1 << 12;  /* ... and when it takes a polynomial */

bool is_heavy(Unary op) { return op != UNARY_NEG && op != UNARY_ABS && op != UNARY_NOT; }

int result_bytes(Binary op, Kind kind) {
  if (op >= BINARY_EQ || kind == KIND_BOOL) return 1;
  return kind == KIND_I64 ? 8 : 4;
}

int operand_bytes(Kind kind) { return kind == KIND_BOOL ? 1 : kind == KIND_I64 ? 8 : 4; }

const uint8_t* at(const void* base, int64_t elements, int bytes) {
  return static_cast<const uint8_t*>(base) + elements * bytes;
}

}  // namespace

bool has_binary(Binary op, Kind kind) { return current_path().elementwise.binary[op][kind] != nullptr; }

void unary(Unary op, void* out, const void* x, int64_t n) {
  const int bytes = op == UNARY_NOT ? 1 : 4;
  const UnaryRow row = current_path().elementwise.unary[op];
  parallel_for(n, is_heavy(op) ? HEAVY : LIGHT, [&](int64_t begin, int64_t end) {
    uint8_t* to = static_cast<uint8_t*>(out) + begin * bytes;
    if (row) {
      row(to, at(x, begin, bytes), end - begin);
    } else {
      circular(op == UNARY_COS, reinterpret_cast<float*>(to), static_cast<const float*>(x) + begin, end - begin);
    }
  });
}

void binary(Binary op, Kind kind, void* out, const Sizes& shape, const void* a, const Sizes& a_strides, const void* b,
            const Sizes& b_strides) {
  Walk<2> walk{shape, {a_strides, b_strides}};
  const int64_t n = walk.elements();
  if (n == 0) return;
  walk.merge();
  const BinaryRow row = current_path().elementwise.binary[op][kind];
  const int bytes = operand_bytes(kind), out_bytes = result_bytes(op, kind);
  parallel_for(n, LIGHT, [&](int64_t begin, int64_t end) {
    const int64_t a_stride = walk.strides[0].back(), b_stride = walk.strides[1].back();
    walk.run(begin, end, [&](int64_t position, const int64_t* starts, int64_t count) {
      row(static_cast<uint8_t*>(out) + position * out_bytes, at(a, starts[0], bytes), a_stride,
          at(b, starts[1], bytes), b_stride, count);
    });
  });
}

void where(int element_bytes, void* out, const Sizes& shape, const uint8_t* c, const Sizes& c_strides, const void* a,
           const Sizes& a_strides, const void* b, const Sizes& b_strides) {
  Walk<3> walk{shape, {c_strides, a_strides, b_strides}};
  const int64_t n = walk.elements();
  if (n == 0) return;
  walk.merge();
  const int size = element_bytes == 1 ? 0 : element_bytes == 2 ? 1 : element_bytes == 4 ? 2 : 3;
  const WhereRow row = current_path().elementwise.where[size];
  parallel_for(n, LIGHT, [&](int64_t begin, int64_t end) {
    walk.run(begin, end, [&](int64_t position, const int64_t* starts, int64_t count) {
      row(static_cast<uint8_t*>(out) + position * element_bytes, c + starts[0], walk.strides[0].back(),
          at(a, starts[1], element_bytes), walk.strides[1].back(), at(b, starts[2], element_bytes),
          walk.strides[2].back(), count);
    });
  });
}

}  // namespace identic
