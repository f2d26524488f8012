/* Vectors of 4 binary32 with AArch64 NEON; D is 4 binary64 in two registers. See simd/README.md. */
struct F { float32x4_t v; static constexpr int W = 4; };
struct M { uint32x4_t v; };
struct U { uint32x4_t v; };
struct D { float64x2_t lo, hi; };
constexpr int W = 4;
/* Whether look_up8 costs little more than a load. */
constexpr bool FAST_LOOK_UP = false;

IDN_INLINE F load(const float* p) { return {vld1q_f32(p)}; }
IDN_INLINE void store(float* p, F a) { vst1q_f32(p, a.v); }
IDN_INLINE F splat(float a) { return {vdupq_n_f32(a)}; }
IDN_INLINE F splat_from(const float* p) { return {vld1q_dup_f32(p)}; }
IDN_INLINE F add(F a, F b) { return {vaddq_f32(a.v, b.v)}; }
IDN_INLINE F sub(F a, F b) { return {vsubq_f32(a.v, b.v)}; }
IDN_INLINE F mul(F a, F b) { return {vmulq_f32(a.v, b.v)}; }
IDN_INLINE F div(F a, F b) { return {vdivq_f32(a.v, b.v)}; }
IDN_INLINE F root(F a) { return {vsqrtq_f32(a.v)}; }
IDN_INLINE F fma(F a, F b, F c) { return {vfmaq_f32(c.v, a.v, b.v)}; }
IDN_INLINE F fnma(F a, F b, F c) { return {vfmsq_f32(c.v, a.v, b.v)}; }

IDN_INLINE U load(const uint32_t* p) { return {vld1q_u32(p)}; }
IDN_INLINE void store(uint32_t* p, U a) { vst1q_u32(p, a.v); }
IDN_INLINE U splat_bits(uint32_t a) { return {vdupq_n_u32(a)}; }
IDN_INLINE U bits(F a) { return {vreinterpretq_u32_f32(a.v)}; }
IDN_INLINE F floats(U a) { return {vreinterpretq_f32_u32(a.v)}; }
IDN_INLINE U operator+(U a, U b) { return {vaddq_u32(a.v, b.v)}; }
IDN_INLINE U operator-(U a, U b) { return {vsubq_u32(a.v, b.v)}; }
IDN_INLINE U operator&(U a, U b) { return {vandq_u32(a.v, b.v)}; }
IDN_INLINE U operator|(U a, U b) { return {vorrq_u32(a.v, b.v)}; }
IDN_INLINE U operator^(U a, U b) { return {veorq_u32(a.v, b.v)}; }
IDN_INLINE U least(U a, U b) { return {vminq_u32(a.v, b.v)}; }
IDN_INLINE U greatest(U a, U b) { return {vmaxq_u32(a.v, b.v)}; }
template <int N> IDN_INLINE U shift_left(U a) { return {vshlq_n_u32(a.v, N)}; }
template <int N> IDN_INLINE U shift_right(U a) { return {vshrq_n_u32(a.v, N)}; }
template <int N> IDN_INLINE U shift_sign(U a) {
  return {vreinterpretq_u32_s32(vshrq_n_s32(vreinterpretq_s32_u32(a.v), N))};
}
/* 32 x 32 -> the high and the low half of each product. */
IDN_INLINE void multiply_wide(U a, U b, U& high, U& low) {
  const uint32x4_t front = vreinterpretq_u32_u64(vmull_u32(vget_low_u32(a.v), vget_low_u32(b.v)));
  const uint32x4_t back = vreinterpretq_u32_u64(vmull_high_u32(a.v, b.v));
  low.v = vuzp1q_u32(front, back);
  high.v = vuzp2q_u32(front, back);
}

IDN_INLINE M lt(F a, F b) { return {vcltq_f32(a.v, b.v)}; }
IDN_INLINE M le(F a, F b) { return {vcleq_f32(a.v, b.v)}; }
IDN_INLINE M eq(F a, F b) { return {vceqq_f32(a.v, b.v)}; }
IDN_INLINE M unordered(F a, F b) { return {vmvnq_u32(vandq_u32(vceqq_f32(a.v, a.v), vceqq_f32(b.v, b.v)))}; }
IDN_INLINE M eq(U a, U b) { return {vceqq_u32(a.v, b.v)}; }
IDN_INLINE M both(M a, M b) { return {vandq_u32(a.v, b.v)}; }
IDN_INLINE M either(M a, M b) { return {vorrq_u32(a.v, b.v)}; }
IDN_INLINE M opposite(M a) { return {vmvnq_u32(a.v)}; }
IDN_INLINE bool any(M a) { return vmaxvq_u32(a.v) != 0; }
IDN_INLINE F select(M m, F yes, F no) { return {vbslq_f32(m.v, yes.v, no.v)}; }
/* a < b ? a : b and a > b ? a : b, so the second operand when one is NaN. */
IDN_INLINE F smaller(F a, F b) { return select(lt(a, b), a, b); }
IDN_INLINE F larger(F a, F b) { return select(lt(b, a), a, b); }
IDN_INLINE U select(M m, U yes, U no) { return {vbslq_u32(m.v, yes.v, no.v)}; }
/* NUM-2: x, or the one NaN. */
IDN_INLINE F canonical(F x) { return select(unordered(x, x), floats(splat_bits(IDN_NAN_BITS)), x); }
/* Lanes folded half onto half, the lower half left of the upper. */
IDN_INLINE float sum_of_lanes(F a) {
  a = add(a, {vextq_f32(a.v, a.v, 2)});
  return vgetq_lane_f32(add(a, {vextq_f32(a.v, a.v, 1)}).v, 0);
}
IDN_INLINE float largest_of_lanes(F a) {
  a = larger(a, {vextq_f32(a.v, a.v, 2)});
  return vgetq_lane_f32(larger(a, {vextq_f32(a.v, a.v, 1)}).v, 0);
}
/* One byte a lane, 0 or 1. */
IDN_INLINE void store_mask(uint8_t* p, M m) {
  uint32_t lanes[4];
  vst1q_u32(lanes, vshrq_n_u32(m.v, 31));
  for (int i = 0; i < 4; ++i) p[i] = (uint8_t)lanes[i];
}
IDN_INLINE M load_mask(const uint8_t* p) {
  const uint32_t lanes[4] = {p[0], p[1], p[2], p[3]};
  return {vmvnq_u32(vceqzq_u32(vld1q_u32(lanes)))};
}

IDN_INLINE D splat64(double a) { return {vdupq_n_f64(a), vdupq_n_f64(a)}; }
IDN_INLINE D widen(F a) { return {vcvt_f64_f32(vget_low_f32(a.v)), vcvt_high_f64_f32(a.v)}; }
IDN_INLINE F narrow(D a) { return {vcvt_high_f32_f64(vcvt_f32_f64(a.lo), a.hi)}; }
IDN_INLINE D widen_integers(U a) {
  const int32x4_t s = vreinterpretq_s32_u32(a.v);
  return {vcvtq_f64_s64(vmovl_s32(vget_low_s32(s))), vcvtq_f64_s64(vmovl_high_s32(s))};
}
IDN_INLINE D add(D a, D b) { return {vaddq_f64(a.lo, b.lo), vaddq_f64(a.hi, b.hi)}; }
IDN_INLINE D sub(D a, D b) { return {vsubq_f64(a.lo, b.lo), vsubq_f64(a.hi, b.hi)}; }
IDN_INLINE D mul(D a, D b) { return {vmulq_f64(a.lo, b.lo), vmulq_f64(a.hi, b.hi)}; }
IDN_INLINE D div(D a, D b) { return {vdivq_f64(a.lo, b.lo), vdivq_f64(a.hi, b.hi)}; }
IDN_INLINE D multiply_add(D a, D b, D c) { return {vfmaq_f64(c.lo, a.lo, b.lo), vfmaq_f64(c.hi, a.hi, b.hi)}; }
IDN_INLINE float64x2_t scale_half(float64x2_t a, float64x2_t t) {
  return vreinterpretq_f64_s64(vaddq_s64(vreinterpretq_s64_f64(a), vshlq_n_s64(vreinterpretq_s64_f64(t), 52)));
}
IDN_INLINE D scale_by_low_bits(D a, D t) { return {scale_half(a.lo, t.lo), scale_half(a.hi, t.hi)}; }
struct Lookup { uint32_t at[4]; };
IDN_INLINE Lookup look_up_index(U index) {
  Lookup result;
  vst1q_u32(result.at, index.v);
  return result;
}
IDN_INLINE D look_up8(const double* table, Lookup index) {
  const double lo[2] = {table[index.at[0]], table[index.at[1]]};
  const double hi[2] = {table[index.at[2]], table[index.at[3]]};
  return {vld1q_f64(lo), vld1q_f64(hi)};
}

/* The 4 x 4 block whose row i is at row(i) transposed to d (rows ds apart), rows in order. */
constexpr int TRANSPOSE = 4;
template <class Row> IDN_INLINE void transpose_rows(Row row, uint32_t* d, int64_t ds) {
  const uint32x4x2_t front = vtrnq_u32(vld1q_u32(row(0)), vld1q_u32(row(1)));
  const uint32x4x2_t back = vtrnq_u32(vld1q_u32(row(2)), vld1q_u32(row(3)));
  vst1q_u32(d, vcombine_u32(vget_low_u32(front.val[0]), vget_low_u32(back.val[0])));
  vst1q_u32(d + ds, vcombine_u32(vget_low_u32(front.val[1]), vget_low_u32(back.val[1])));
  vst1q_u32(d + 2 * ds, vcombine_u32(vget_high_u32(front.val[0]), vget_high_u32(back.val[0])));
  vst1q_u32(d + 3 * ds, vcombine_u32(vget_high_u32(front.val[1]), vget_high_u32(back.val[1])));
}
