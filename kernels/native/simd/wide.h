/*
 * Vectors of 16 binary32 made of two AVX2 halves. See simd/README.md.
 *
 * The code paths of a 16-wide machine, run on an 8-wide one: for tests, never chosen by itself.
 */
namespace half {
#include "native/simd/avx2.h"
}
struct F { half::F a, b; static constexpr int W = 16; };
struct M { half::M a, b; };
struct U { half::U a, b; };
struct D { half::D a, b; };
constexpr int W = 16;
constexpr int VECTOR_REGISTERS = 32;

IDN_INLINE F load(const float* p) { return {half::load(p), half::load(p + 8)}; }
IDN_INLINE void store(float* p, F x) { half::store(p, x.a); half::store(p + 8, x.b); }
IDN_INLINE F splat(float x) { return {half::splat(x), half::splat(x)}; }
IDN_INLINE F splat_from(const float* p) { return {half::splat_from(p), half::splat_from(p)}; }
IDN_INLINE F add(F x, F y) { return {half::add(x.a, y.a), half::add(x.b, y.b)}; }
IDN_INLINE F sub(F x, F y) { return {half::sub(x.a, y.a), half::sub(x.b, y.b)}; }
IDN_INLINE F mul(F x, F y) { return {half::mul(x.a, y.a), half::mul(x.b, y.b)}; }
IDN_INLINE F div(F x, F y) { return {half::div(x.a, y.a), half::div(x.b, y.b)}; }
IDN_INLINE F root(F x) { return {half::root(x.a), half::root(x.b)}; }
IDN_INLINE F fma(F x, F y, F z) { return {half::fma(x.a, y.a, z.a), half::fma(x.b, y.b, z.b)}; }

IDN_INLINE U load(const uint32_t* p) { return {half::load(p), half::load(p + 8)}; }
IDN_INLINE void store(uint32_t* p, U x) { half::store(p, x.a); half::store(p + 8, x.b); }
IDN_INLINE U splat_bits(uint32_t x) { return {half::splat_bits(x), half::splat_bits(x)}; }
IDN_INLINE U bits(F x) { return {half::bits(x.a), half::bits(x.b)}; }
IDN_INLINE F floats(U x) { return {half::floats(x.a), half::floats(x.b)}; }
IDN_INLINE U operator+(U x, U y) { return {x.a + y.a, x.b + y.b}; }
IDN_INLINE U operator-(U x, U y) { return {x.a - y.a, x.b - y.b}; }
IDN_INLINE U operator&(U x, U y) { return {x.a & y.a, x.b & y.b}; }
IDN_INLINE U operator|(U x, U y) { return {x.a | y.a, x.b | y.b}; }
IDN_INLINE U operator^(U x, U y) { return {x.a ^ y.a, x.b ^ y.b}; }
template <int N> IDN_INLINE U shift_left(U x) { return {half::shift_left<N>(x.a), half::shift_left<N>(x.b)}; }
template <int N> IDN_INLINE U shift_right(U x) { return {half::shift_right<N>(x.a), half::shift_right<N>(x.b)}; }
template <int N> IDN_INLINE U shift_sign(U x) { return {half::shift_sign<N>(x.a), half::shift_sign<N>(x.b)}; }
IDN_INLINE void multiply_wide(U x, U y, U& high, U& low) {
  half::multiply_wide(x.a, y.a, high.a, low.a);
  half::multiply_wide(x.b, y.b, high.b, low.b);
}

IDN_INLINE M lt(F x, F y) { return {half::lt(x.a, y.a), half::lt(x.b, y.b)}; }
IDN_INLINE M le(F x, F y) { return {half::le(x.a, y.a), half::le(x.b, y.b)}; }
IDN_INLINE M eq(F x, F y) { return {half::eq(x.a, y.a), half::eq(x.b, y.b)}; }
IDN_INLINE M unordered(F x, F y) { return {half::unordered(x.a, y.a), half::unordered(x.b, y.b)}; }
IDN_INLINE M eq(U x, U y) { return {half::eq(x.a, y.a), half::eq(x.b, y.b)}; }
IDN_INLINE M both(M x, M y) { return {half::both(x.a, y.a), half::both(x.b, y.b)}; }
IDN_INLINE M either(M x, M y) { return {half::either(x.a, y.a), half::either(x.b, y.b)}; }
IDN_INLINE M opposite(M x) { return {half::opposite(x.a), half::opposite(x.b)}; }
IDN_INLINE bool any(M x) { return half::any(x.a) || half::any(x.b); }
IDN_INLINE F select(M m, F yes, F no) { return {half::select(m.a, yes.a, no.a), half::select(m.b, yes.b, no.b)}; }
IDN_INLINE U select(M m, U yes, U no) { return {half::select(m.a, yes.a, no.a), half::select(m.b, yes.b, no.b)}; }
IDN_INLINE void store_mask(uint8_t* p, M m) { half::store_mask(p, m.a); half::store_mask(p + 8, m.b); }
IDN_INLINE M load_mask(const uint8_t* p) { return {half::load_mask(p), half::load_mask(p + 8)}; }

IDN_INLINE D splat64(double x) { return {half::splat64(x), half::splat64(x)}; }
IDN_INLINE D widen(F x) { return {half::widen(x.a), half::widen(x.b)}; }
IDN_INLINE F narrow(D x) { return {half::narrow(x.a), half::narrow(x.b)}; }
IDN_INLINE D widen_integers(U x) { return {half::widen_integers(x.a), half::widen_integers(x.b)}; }
IDN_INLINE D add(D x, D y) { return {half::add(x.a, y.a), half::add(x.b, y.b)}; }
IDN_INLINE D sub(D x, D y) { return {half::sub(x.a, y.a), half::sub(x.b, y.b)}; }
IDN_INLINE D mul(D x, D y) { return {half::mul(x.a, y.a), half::mul(x.b, y.b)}; }
IDN_INLINE D div(D x, D y) { return {half::div(x.a, y.a), half::div(x.b, y.b)}; }
IDN_INLINE D scale_by_low_bits(D x, D y) { return {half::scale_by_low_bits(x.a, y.a), half::scale_by_low_bits(x.b, y.b)}; }
IDN_INLINE D multiply_add(D x, D y, D z) { return {half::multiply_add(x.a, y.a, z.a), half::multiply_add(x.b, y.b, z.b)}; }
struct Lookup { half::Lookup a, b; };
IDN_INLINE Lookup look_up_index(U index) { return {half::look_up_index(index.a), half::look_up_index(index.b)}; }
IDN_INLINE D look_up8(const double* table, Lookup at) { return {half::look_up8(table, at.a), half::look_up8(table, at.b)}; }

/* The 16 x 16 block at s (rows ss apart) transposed to d (rows ds apart), rows in order. */
constexpr int TRANSPOSE = 16;
IDN_INLINE void transpose_block(const uint32_t* s, int64_t ss, uint32_t* d, int64_t ds) {
  uint32_t block[16 * 16];
  half::transpose_block(s, ss, block, 16);
  half::transpose_block(s + 8, ss, block + 8 * 16, 16);
  half::transpose_block(s + 8 * ss, ss, block + 8, 16);
  half::transpose_block(s + 8 * ss + 8, ss, block + 8 * 16 + 8, 16);
  for (int i = 0; i < 16; ++i) store(d + i * ds, load(block + i * 16));
}
