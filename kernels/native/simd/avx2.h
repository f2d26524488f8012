/* Vectors of 8 binary32 with AVX2 and FMA; D is 8 binary64 in two registers. See simd/README.md. */
struct F { __m256 v; static constexpr int W = 8; };
struct M { __m256 v; };
struct U { __m256i v; };
struct D { __m256d lo, hi; };
constexpr int W = 8;
/* Whether look_up8 costs little more than a load. */
constexpr bool FAST_LOOK_UP = false;

IDN_INLINE F load(const float* p) { return {_mm256_loadu_ps(p)}; }
IDN_INLINE void store(float* p, F a) { _mm256_storeu_ps(p, a.v); }
IDN_INLINE F splat(float a) { return {_mm256_set1_ps(a)}; }
IDN_INLINE F splat_from(const float* p) { return {_mm256_broadcast_ss(p)}; }
IDN_INLINE F add(F a, F b) { return {_mm256_add_ps(a.v, b.v)}; }
IDN_INLINE F sub(F a, F b) { return {_mm256_sub_ps(a.v, b.v)}; }
IDN_INLINE F mul(F a, F b) { return {_mm256_mul_ps(a.v, b.v)}; }
IDN_INLINE F div(F a, F b) { return {_mm256_div_ps(a.v, b.v)}; }
IDN_INLINE F root(F a) { return {_mm256_sqrt_ps(a.v)}; }
IDN_INLINE F fma(F a, F b, F c) { return {_mm256_fmadd_ps(a.v, b.v, c.v)}; }
IDN_INLINE F fnma(F a, F b, F c) { return {_mm256_fnmadd_ps(a.v, b.v, c.v)}; }

IDN_INLINE U load(const uint32_t* p) { return {_mm256_loadu_si256((const __m256i*)p)}; }
IDN_INLINE void store(uint32_t* p, U a) { _mm256_storeu_si256((__m256i*)p, a.v); }
IDN_INLINE U splat_bits(uint32_t a) { return {_mm256_set1_epi32((int)a)}; }
IDN_INLINE U bits(F a) { return {_mm256_castps_si256(a.v)}; }
IDN_INLINE F floats(U a) { return {_mm256_castsi256_ps(a.v)}; }
IDN_INLINE U operator+(U a, U b) { return {_mm256_add_epi32(a.v, b.v)}; }
IDN_INLINE U operator-(U a, U b) { return {_mm256_sub_epi32(a.v, b.v)}; }
IDN_INLINE U operator&(U a, U b) { return {_mm256_and_si256(a.v, b.v)}; }
IDN_INLINE U operator|(U a, U b) { return {_mm256_or_si256(a.v, b.v)}; }
IDN_INLINE U operator^(U a, U b) { return {_mm256_xor_si256(a.v, b.v)}; }
IDN_INLINE U least(U a, U b) { return {_mm256_min_epu32(a.v, b.v)}; }
IDN_INLINE U greatest(U a, U b) { return {_mm256_max_epu32(a.v, b.v)}; }
template <int N> IDN_INLINE U shift_left(U a) { return {_mm256_slli_epi32(a.v, N)}; }
template <int N> IDN_INLINE U shift_right(U a) { return {_mm256_srli_epi32(a.v, N)}; }
template <int N> IDN_INLINE U shift_sign(U a) { return {_mm256_srai_epi32(a.v, N)}; }
/* 32 x 32 -> the high and the low half of each product. */
IDN_INLINE void multiply_wide(U a, U b, U& high, U& low) {
  const __m256i even = _mm256_mul_epu32(a.v, b.v);
  const __m256i odd = _mm256_mul_epu32(_mm256_srli_epi64(a.v, 32), _mm256_srli_epi64(b.v, 32));
  high.v = _mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xaa);
  low.v = _mm256_blend_epi32(even, _mm256_slli_epi64(odd, 32), 0xaa);
}

IDN_INLINE M lt(F a, F b) { return {_mm256_cmp_ps(a.v, b.v, _CMP_LT_OQ)}; }
IDN_INLINE M le(F a, F b) { return {_mm256_cmp_ps(a.v, b.v, _CMP_LE_OQ)}; }
IDN_INLINE M eq(F a, F b) { return {_mm256_cmp_ps(a.v, b.v, _CMP_EQ_OQ)}; }
IDN_INLINE M unordered(F a, F b) { return {_mm256_cmp_ps(a.v, b.v, _CMP_UNORD_Q)}; }
IDN_INLINE M eq(U a, U b) { return {_mm256_castsi256_ps(_mm256_cmpeq_epi32(a.v, b.v))}; }
IDN_INLINE M both(M a, M b) { return {_mm256_and_ps(a.v, b.v)}; }
IDN_INLINE M either(M a, M b) { return {_mm256_or_ps(a.v, b.v)}; }
IDN_INLINE M opposite(M a) { return {_mm256_xor_ps(a.v, _mm256_castsi256_ps(_mm256_set1_epi32(-1)))}; }
IDN_INLINE bool any(M a) { return _mm256_movemask_ps(a.v) != 0; }
/* a < b ? a : b and a > b ? a : b, so the second operand when one is NaN. */
IDN_INLINE F smaller(F a, F b) { return {_mm256_min_ps(a.v, b.v)}; }
IDN_INLINE F larger(F a, F b) { return {_mm256_max_ps(a.v, b.v)}; }
IDN_INLINE F select(M m, F yes, F no) { return {_mm256_blendv_ps(no.v, yes.v, m.v)}; }
IDN_INLINE U select(M m, U yes, U no) { return bits(select(m, floats(yes), floats(no))); }
/* NUM-2: x, or the one NaN. Clang takes one NaN for another unless it forgets where x comes from. */
IDN_INLINE F canonical(F x) {
#ifdef __clang__
  asm("" : "+x"(x.v));
#endif
  return select(unordered(x, x), floats(splat_bits(IDN_NAN_BITS)), x);
}
/* Lanes folded half onto half, the lower half left of the upper. */
IDN_INLINE float sum_of_lanes(F a) {
  a = add(a, {_mm256_permute2f128_ps(a.v, a.v, 1)});
  a = add(a, {_mm256_shuffle_ps(a.v, a.v, 0x4e)});
  return _mm256_cvtss_f32(add(a, {_mm256_shuffle_ps(a.v, a.v, 0xb1)}).v);
}
IDN_INLINE float largest_of_lanes(F a) {
  a = larger(a, {_mm256_permute2f128_ps(a.v, a.v, 1)});
  a = larger(a, {_mm256_shuffle_ps(a.v, a.v, 0x4e)});
  return _mm256_cvtss_f32(larger(a, {_mm256_shuffle_ps(a.v, a.v, 0xb1)}).v);
}
/* One byte a lane, 0 or 1. */
IDN_INLINE void store_mask(uint8_t* p, M m) {
  const __m256i one = _mm256_srli_epi32(_mm256_castps_si256(m.v), 31);
  const __m128i words = _mm_packs_epi32(_mm256_castsi256_si128(one), _mm256_extracti128_si256(one, 1));
  _mm_storel_epi64((__m128i*)p, _mm_packus_epi16(words, words));
}
IDN_INLINE M load_mask(const uint8_t* p) {
  const __m256i wide = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i*)p));
  return {_mm256_castsi256_ps(_mm256_cmpgt_epi32(wide, _mm256_setzero_si256()))};
}

IDN_INLINE D splat64(double a) { return {_mm256_set1_pd(a), _mm256_set1_pd(a)}; }
IDN_INLINE D widen(F a) {
  return {_mm256_cvtps_pd(_mm256_castps256_ps128(a.v)), _mm256_cvtps_pd(_mm256_extractf128_ps(a.v, 1))};
}
IDN_INLINE F narrow(D a) {
  return {_mm256_insertf128_ps(_mm256_castps128_ps256(_mm256_cvtpd_ps(a.lo)), _mm256_cvtpd_ps(a.hi), 1)};
}
IDN_INLINE D widen_integers(U a) {
  return {_mm256_cvtepi32_pd(_mm256_castsi256_si128(a.v)), _mm256_cvtepi32_pd(_mm256_extracti128_si256(a.v, 1))};
}
IDN_INLINE D add(D a, D b) { return {_mm256_add_pd(a.lo, b.lo), _mm256_add_pd(a.hi, b.hi)}; }
IDN_INLINE D sub(D a, D b) { return {_mm256_sub_pd(a.lo, b.lo), _mm256_sub_pd(a.hi, b.hi)}; }
IDN_INLINE D mul(D a, D b) { return {_mm256_mul_pd(a.lo, b.lo), _mm256_mul_pd(a.hi, b.hi)}; }
IDN_INLINE D div(D a, D b) { return {_mm256_div_pd(a.lo, b.lo), _mm256_div_pd(a.hi, b.hi)}; }
IDN_INLINE D multiply_add(D a, D b, D c) { return {_mm256_fmadd_pd(a.lo, b.lo, c.lo), _mm256_fmadd_pd(a.hi, b.hi, c.hi)}; }
IDN_INLINE D scale_by_low_bits(D a, D t) {
  return {_mm256_castsi256_pd(_mm256_add_epi64(_mm256_castpd_si256(a.lo), _mm256_slli_epi64(_mm256_castpd_si256(t.lo), 52))),
          _mm256_castsi256_pd(_mm256_add_epi64(_mm256_castpd_si256(a.hi), _mm256_slli_epi64(_mm256_castpd_si256(t.hi), 52)))};
}
/* Positions in a table of 8 binary64: word pairs for the permutation, and the half of the table as a sign bit. */
struct Lookup { __m256i lo, hi; __m256d lo_half, hi_half; };
IDN_INLINE __m256i word_pairs(__m256i wide) {
  const __m256i twice = _mm256_slli_epi64(wide, 1);
  return _mm256_or_si256(_mm256_or_si256(twice, _mm256_slli_epi64(twice, 32)), _mm256_set1_epi64x(1ll << 32));
}
IDN_INLINE Lookup look_up_index(U index) {
  const __m256i lo = _mm256_cvtepi32_epi64(_mm256_castsi256_si128(index.v));
  const __m256i hi = _mm256_cvtepi32_epi64(_mm256_extracti128_si256(index.v, 1));
  return {word_pairs(lo), word_pairs(hi), _mm256_castsi256_pd(_mm256_slli_epi64(lo, 61)),
          _mm256_castsi256_pd(_mm256_slli_epi64(hi, 61))};
}
IDN_INLINE __m256d look_up_half(const double* table, __m256i pairs, __m256d half) {
  const __m256i front = _mm256_permutevar8x32_epi32(_mm256_loadu_si256((const __m256i*)table), pairs);
  const __m256i back = _mm256_permutevar8x32_epi32(_mm256_loadu_si256((const __m256i*)(table + 4)), pairs);
  return _mm256_blendv_pd(_mm256_castsi256_pd(front), _mm256_castsi256_pd(back), half);
}
IDN_INLINE D look_up8(const double* table, Lookup at) {
  return {look_up_half(table, at.lo, at.lo_half), look_up_half(table, at.hi, at.hi_half)};
}

/* Tables of binary32: entry at mod 8 of 8 for each lane, and rows of 4 taken apart. */
#define IDN_FLOAT_TABLES
IDN_INLINE F look_up8(const float* table, U at) { return {_mm256_permutevar8x32_ps(_mm256_loadu_ps(table), at.v)}; }
IDN_INLINE void load_rows4(const float (*table)[4], U at, F columns[4]) {
  alignas(32) uint32_t bytes[8];
  _mm256_store_si256((__m256i*)bytes, _mm256_slli_epi32(at.v, 4));
  auto row = [&](int lane) { return _mm_loadu_ps((const float*)((const char*)table + bytes[lane])); };
  __m256 r[4];
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    r[i] = _mm256_insertf128_ps(_mm256_castps128_ps256(row(i)), row(i + 4), 1);
  }
  const __m256 a = _mm256_unpacklo_ps(r[0], r[1]), b = _mm256_unpackhi_ps(r[0], r[1]);
  const __m256 c = _mm256_unpacklo_ps(r[2], r[3]), d = _mm256_unpackhi_ps(r[2], r[3]);
  columns[0].v = _mm256_shuffle_ps(a, c, 0x44);
  columns[1].v = _mm256_shuffle_ps(a, c, 0xee);
  columns[2].v = _mm256_shuffle_ps(b, d, 0x44);
  columns[3].v = _mm256_shuffle_ps(b, d, 0xee);
}

/* The 8 x 8 block whose row i is at row(i) transposed to d (rows ds apart), rows in order. */
constexpr int TRANSPOSE = 8;
template <class Row> IDN_INLINE void transpose_rows(Row row, uint32_t* d, int64_t ds) {
  __m256 r[8], t[8];
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) r[i] = _mm256_loadu_ps((const float*)row(i));
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    t[2 * i] = _mm256_unpacklo_ps(r[2 * i], r[2 * i + 1]);
    t[2 * i + 1] = _mm256_unpackhi_ps(r[2 * i], r[2 * i + 1]);
  }
#pragma GCC unroll 2
  for (int i = 0; i < 2; ++i) {
    r[4 * i] = _mm256_shuffle_ps(t[4 * i], t[4 * i + 2], 0x44);
    r[4 * i + 1] = _mm256_shuffle_ps(t[4 * i], t[4 * i + 2], 0xee);
    r[4 * i + 2] = _mm256_shuffle_ps(t[4 * i + 1], t[4 * i + 3], 0x44);
    r[4 * i + 3] = _mm256_shuffle_ps(t[4 * i + 1], t[4 * i + 3], 0xee);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) _mm256_storeu_ps((float*)(d + i * ds), _mm256_permute2f128_ps(r[i], r[i + 4], 0x20));
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) _mm256_storeu_ps((float*)(d + (i + 4) * ds), _mm256_permute2f128_ps(r[i], r[i + 4], 0x31));
}
