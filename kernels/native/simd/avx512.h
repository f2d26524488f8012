/* Vectors of 16 binary32 with AVX-512 F, BW, DQ, VL; D is 16 binary64 in two registers. See simd/README.md. */
struct F { __m512 v; static constexpr int W = 16; };
struct M { __mmask16 v; };
struct U { __m512i v; };
struct D { __m512d lo, hi; };
constexpr int W = 16;
/* Whether look_up8 costs little more than a load. */
constexpr bool FAST_LOOK_UP = true;

IDN_INLINE F load(const float* p) { return {_mm512_loadu_ps(p)}; }
IDN_INLINE void store(float* p, F a) { _mm512_storeu_ps(p, a.v); }
IDN_INLINE F splat(float a) { return {_mm512_set1_ps(a)}; }
IDN_INLINE F splat_from(const float* p) { return {_mm512_set1_ps(*p)}; }
IDN_INLINE F add(F a, F b) { return {_mm512_add_ps(a.v, b.v)}; }
IDN_INLINE F sub(F a, F b) { return {_mm512_sub_ps(a.v, b.v)}; }
IDN_INLINE F mul(F a, F b) { return {_mm512_mul_ps(a.v, b.v)}; }
IDN_INLINE F div(F a, F b) { return {_mm512_div_ps(a.v, b.v)}; }
IDN_INLINE F root(F a) { return {_mm512_sqrt_ps(a.v)}; }
IDN_INLINE F fma(F a, F b, F c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }
IDN_INLINE F fnma(F a, F b, F c) { return {_mm512_fnmadd_ps(a.v, b.v, c.v)}; }

IDN_INLINE U load(const uint32_t* p) { return {_mm512_loadu_si512(p)}; }
IDN_INLINE void store(uint32_t* p, U a) { _mm512_storeu_si512(p, a.v); }
IDN_INLINE U splat_bits(uint32_t a) { return {_mm512_set1_epi32((int)a)}; }
IDN_INLINE U bits(F a) { return {_mm512_castps_si512(a.v)}; }
IDN_INLINE F floats(U a) { return {_mm512_castsi512_ps(a.v)}; }
IDN_INLINE U operator+(U a, U b) { return {_mm512_add_epi32(a.v, b.v)}; }
IDN_INLINE U operator-(U a, U b) { return {_mm512_sub_epi32(a.v, b.v)}; }
IDN_INLINE U operator&(U a, U b) { return {_mm512_and_si512(a.v, b.v)}; }
IDN_INLINE U operator|(U a, U b) { return {_mm512_or_si512(a.v, b.v)}; }
IDN_INLINE U operator^(U a, U b) { return {_mm512_xor_si512(a.v, b.v)}; }
IDN_INLINE U least(U a, U b) { return {_mm512_min_epu32(a.v, b.v)}; }
IDN_INLINE U greatest(U a, U b) { return {_mm512_max_epu32(a.v, b.v)}; }
template <int N> IDN_INLINE U shift_left(U a) { return {_mm512_slli_epi32(a.v, N)}; }
template <int N> IDN_INLINE U shift_right(U a) { return {_mm512_srli_epi32(a.v, N)}; }
template <int N> IDN_INLINE U shift_sign(U a) { return {_mm512_srai_epi32(a.v, N)}; }
/* 32 x 32 -> the high and the low half of each product. */
IDN_INLINE void multiply_wide(U a, U b, U& high, U& low) {
  const __m512i even = _mm512_mul_epu32(a.v, b.v);
  const __m512i odd = _mm512_mul_epu32(_mm512_srli_epi64(a.v, 32), _mm512_srli_epi64(b.v, 32));
  high.v = _mm512_mask_blend_epi32(0xaaaa, _mm512_srli_epi64(even, 32), odd);
  low.v = _mm512_mask_blend_epi32(0xaaaa, even, _mm512_slli_epi64(odd, 32));
}

IDN_INLINE M lt(F a, F b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_LT_OQ)}; }
IDN_INLINE M le(F a, F b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_LE_OQ)}; }
IDN_INLINE M eq(F a, F b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_EQ_OQ)}; }
IDN_INLINE M unordered(F a, F b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_UNORD_Q)}; }
IDN_INLINE M eq(U a, U b) { return {_mm512_cmpeq_epi32_mask(a.v, b.v)}; }
IDN_INLINE M both(M a, M b) { return {(__mmask16)(a.v & b.v)}; }
IDN_INLINE M either(M a, M b) { return {(__mmask16)(a.v | b.v)}; }
IDN_INLINE M opposite(M a) { return {(__mmask16)~a.v}; }
IDN_INLINE bool any(M a) { return a.v != 0; }
IDN_INLINE F select(M m, F yes, F no) { return {_mm512_mask_blend_ps(m.v, no.v, yes.v)}; }
/* a < b ? a : b and a > b ? a : b, so the second operand when one is NaN. */
IDN_INLINE F smaller(F a, F b) { return {_mm512_min_ps(a.v, b.v)}; }
IDN_INLINE F larger(F a, F b) { return {_mm512_max_ps(a.v, b.v)}; }
IDN_INLINE U select(M m, U yes, U no) { return {_mm512_mask_blend_epi32(m.v, no.v, yes.v)}; }
/* NUM-2: x, or the one NaN: of a lane's eight classes, of which two are NaNs, the table takes the others from x. */
IDN_INLINE F canonical(F x) {
  return {_mm512_fixupimm_ps(_mm512_castsi512_ps(_mm512_set1_epi32(IDN_NAN_BITS)), x.v, _mm512_set1_epi32(0x11111100), 0)};
}
/* Lanes folded half onto half, the lower half left of the upper. */
IDN_INLINE float sum_of_lanes(F a) {
  a = add(a, {_mm512_shuffle_f32x4(a.v, a.v, 0x4e)});
  a = add(a, {_mm512_shuffle_f32x4(a.v, a.v, 0xb1)});
  a = add(a, {_mm512_shuffle_ps(a.v, a.v, 0x4e)});
  return _mm512_cvtss_f32(add(a, {_mm512_shuffle_ps(a.v, a.v, 0xb1)}).v);
}
IDN_INLINE float largest_of_lanes(F a) {
  a = larger(a, {_mm512_shuffle_f32x4(a.v, a.v, 0x4e)});
  a = larger(a, {_mm512_shuffle_f32x4(a.v, a.v, 0xb1)});
  a = larger(a, {_mm512_shuffle_ps(a.v, a.v, 0x4e)});
  return _mm512_cvtss_f32(larger(a, {_mm512_shuffle_ps(a.v, a.v, 0xb1)}).v);
}
/* One byte a lane, 0 or 1. */
IDN_INLINE void store_mask(uint8_t* p, M m) {
  _mm_storeu_si128((__m128i*)p, _mm_maskz_set1_epi8(m.v, 1));
}
IDN_INLINE M load_mask(const uint8_t* p) {
  const __m128i bytes = _mm_loadu_si128((const __m128i*)p);
  return {_mm_test_epi8_mask(bytes, bytes)};
}

IDN_INLINE D splat64(double a) { return {_mm512_set1_pd(a), _mm512_set1_pd(a)}; }
IDN_INLINE D widen(F a) {
  return {_mm512_cvtps_pd(_mm512_castps512_ps256(a.v)), _mm512_cvtps_pd(_mm512_extractf32x8_ps(a.v, 1))};
}
IDN_INLINE F narrow(D a) {
  return {_mm512_insertf32x8(_mm512_castps256_ps512(_mm512_cvtpd_ps(a.lo)), _mm512_cvtpd_ps(a.hi), 1)};
}
IDN_INLINE D widen_integers(U a) {
  return {_mm512_cvtepi32_pd(_mm512_castsi512_si256(a.v)), _mm512_cvtepi32_pd(_mm512_extracti32x8_epi32(a.v, 1))};
}
IDN_INLINE D add(D a, D b) { return {_mm512_add_pd(a.lo, b.lo), _mm512_add_pd(a.hi, b.hi)}; }
IDN_INLINE D sub(D a, D b) { return {_mm512_sub_pd(a.lo, b.lo), _mm512_sub_pd(a.hi, b.hi)}; }
IDN_INLINE D mul(D a, D b) { return {_mm512_mul_pd(a.lo, b.lo), _mm512_mul_pd(a.hi, b.hi)}; }
IDN_INLINE D div(D a, D b) { return {_mm512_div_pd(a.lo, b.lo), _mm512_div_pd(a.hi, b.hi)}; }
IDN_INLINE D multiply_add(D a, D b, D c) { return {_mm512_fmadd_pd(a.lo, b.lo, c.lo), _mm512_fmadd_pd(a.hi, b.hi, c.hi)}; }
IDN_INLINE D scale_by_low_bits(D a, D t) {
  return {_mm512_castsi512_pd(_mm512_add_epi64(_mm512_castpd_si512(a.lo), _mm512_slli_epi64(_mm512_castpd_si512(t.lo), 52))),
          _mm512_castsi512_pd(_mm512_add_epi64(_mm512_castpd_si512(a.hi), _mm512_slli_epi64(_mm512_castpd_si512(t.hi), 52)))};
}
struct Lookup { __m512i lo, hi; };
IDN_INLINE Lookup look_up_index(U index) {
  return {_mm512_cvtepu32_epi64(_mm512_castsi512_si256(index.v)), _mm512_cvtepu32_epi64(_mm512_extracti32x8_epi32(index.v, 1))};
}
IDN_INLINE D look_up8(const double* table, Lookup at) {
  const __m512d all = _mm512_loadu_pd(table);
  return {_mm512_permutexvar_pd(at.lo, all), _mm512_permutexvar_pd(at.hi, all)};
}

#define IDN_TABLES_OF_32
/* The number of a table that the low five bits of each lane choose. */
IDN_INLINE F look_up32(const float* table, U at) {
  return {_mm512_permutex2var_ps(_mm512_loadu_ps(table), at.v, _mm512_loadu_ps(table + 16))};
}
IDN_INLINE U look_up32(const uint32_t* table, U at) {
  return {_mm512_permutex2var_epi32(_mm512_loadu_si512(table), at.v, _mm512_loadu_si512(table + 16))};
}

/* The 16 x 16 block whose row i is at row(i) transposed to d (rows ds apart), rows in order. */
constexpr int TRANSPOSE = 16;
template <class Row> IDN_INLINE void transpose_rows(Row row, uint32_t* d, int64_t ds) {
  __m512 r[16], t[16];
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) r[i] = _mm512_loadu_ps(row(i));
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) {
    t[2 * i] = _mm512_unpacklo_ps(r[2 * i], r[2 * i + 1]);
    t[2 * i + 1] = _mm512_unpackhi_ps(r[2 * i], r[2 * i + 1]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    r[4 * i] = _mm512_shuffle_ps(t[4 * i], t[4 * i + 2], 0x44);
    r[4 * i + 1] = _mm512_shuffle_ps(t[4 * i], t[4 * i + 2], 0xee);
    r[4 * i + 2] = _mm512_shuffle_ps(t[4 * i + 1], t[4 * i + 3], 0x44);
    r[4 * i + 3] = _mm512_shuffle_ps(t[4 * i + 1], t[4 * i + 3], 0xee);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    t[i] = _mm512_shuffle_f32x4(r[i], r[i + 4], 0x88);
    t[i + 4] = _mm512_shuffle_f32x4(r[i], r[i + 4], 0xdd);
    t[i + 8] = _mm512_shuffle_f32x4(r[i + 8], r[i + 12], 0x88);
    t[i + 12] = _mm512_shuffle_f32x4(r[i + 8], r[i + 12], 0xdd);
  }
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) _mm512_storeu_ps(d + i * ds, _mm512_shuffle_f32x4(t[i], t[i + 8], 0x88));
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) _mm512_storeu_ps(d + (i + 8) * ds, _mm512_shuffle_f32x4(t[i], t[i + 8], 0xdd));
}
