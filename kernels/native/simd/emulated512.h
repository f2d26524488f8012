/*
 * The intrinsics that avx512.h uses, as loops over lanes: its own text runs on any x86-64 machine.
 *
 * For tests, never chosen by itself. Each function does what the manual says of the instruction, on lanes numbered from the
 * lowest bits. Include after <immintrin.h> and before avx512.h, inside the namespace of the path.
 */
/* Calls, not inlined: thousands of unrolled loops would take a compiler minutes. */
#define IDN_CALL static __attribute__((noinline, unused))

struct Floats { float f[16]; };
struct HalfFloats { float f[8]; };
struct Words { uint32_t w[16]; };
struct HalfWords { uint32_t w[8]; };
struct Doubles { double d[8]; };

template <class To, class From> IDN_CALL To same_bits(const From& x) {
  static_assert(sizeof(To) == sizeof(From), "a cast keeps every bit");
  To y;
  memcpy(&y, &x, sizeof y);
  return y;
}
template <class V, class P> IDN_CALL V from_memory(const P* p) {
  V x;
  memcpy(&x, p, sizeof x);
  return x;
}

#define IDN_LANES(type, count, expression) \
  type r;                                  \
  for (int i = 0; i < count; ++i) expression; \
  return r
#define IDN_FLOATS(expression) IDN_LANES(Floats, 16, r.f[i] = expression)
#define IDN_WORDS(expression) IDN_LANES(Words, 16, r.w[i] = expression)
#define IDN_DOUBLES(expression) IDN_LANES(Doubles, 8, r.d[i] = expression)

/* ---- binary32 ---------------------------------------------------------------------------- */

IDN_CALL Floats e_loadu_ps(const void* p) { return from_memory<Floats>(p); }
IDN_CALL void e_storeu_ps(void* p, Floats a) { memcpy(p, &a, sizeof a); }
IDN_CALL Floats e_set1_ps(float a) { IDN_FLOATS(a); }
IDN_CALL Floats e_add_ps(Floats a, Floats b) { IDN_FLOATS(a.f[i] + b.f[i]); }
IDN_CALL Floats e_sub_ps(Floats a, Floats b) { IDN_FLOATS(a.f[i] - b.f[i]); }
IDN_CALL Floats e_mul_ps(Floats a, Floats b) { IDN_FLOATS(a.f[i] * b.f[i]); }
IDN_CALL Floats e_div_ps(Floats a, Floats b) { IDN_FLOATS(a.f[i] / b.f[i]); }
IDN_CALL Floats e_sqrt_ps(Floats a) { IDN_FLOATS(__builtin_sqrtf(a.f[i])); }
IDN_CALL Floats e_fmadd_ps(Floats a, Floats b, Floats c) { IDN_FLOATS(__builtin_fmaf(a.f[i], b.f[i], c.f[i])); }
IDN_CALL Floats e_fnmadd_ps(Floats a, Floats b, Floats c) { IDN_FLOATS(__builtin_fmaf(-a.f[i], b.f[i], c.f[i])); }
/* The second operand where one is NaN, or where both are zeros. */
IDN_CALL Floats e_min_ps(Floats a, Floats b) { IDN_FLOATS(a.f[i] < b.f[i] ? a.f[i] : b.f[i]); }
IDN_CALL Floats e_max_ps(Floats a, Floats b) { IDN_FLOATS(a.f[i] > b.f[i] ? a.f[i] : b.f[i]); }
IDN_CALL uint16_t e_cmp_ps_mask(Floats a, Floats b, int predicate) {
  unsigned mask = 0;
  for (int i = 0; i < 16; ++i) {
    const float x = a.f[i], y = b.f[i];
    const bool holds = predicate == _CMP_LT_OQ ? x < y : predicate == _CMP_LE_OQ ? x <= y
                     : predicate == _CMP_EQ_OQ ? x == y : x != x || y != y;
    mask |= (unsigned)holds << i;
  }
  return (uint16_t)mask;
}
IDN_CALL Floats e_mask_blend_ps(uint16_t k, Floats a, Floats b) { IDN_FLOATS(k >> i & 1 ? b.f[i] : a.f[i]); }

/*
 * Of each lane of b its class chooses four bits of the lane of table: quiet NaN, signalling NaN, zero, one, -inf, +inf,
 * negative, positive. Of the sixteen answers two are done: 0 keeps a, 1 takes b.
 */
IDN_CALL Floats e_fixupimm_ps(Floats a, Floats b, Words table, int) {
  Floats r;
  for (int i = 0; i < 16; ++i) {
    const float x = b.f[i];
    const uint32_t word = idn_bits(x);
    const int of_value = x == 0 ? 2 : x == 1 ? 3 : word == 0xff800000u ? 4 : word == 0x7f800000u ? 5 : x < 0 ? 6 : 7;
    const int of_nan = word & 0x400000u ? 0 : 1;
    const uint32_t answer = table.w[i] >> 4 * (x != x ? of_nan : of_value) & 15;
    if (answer > 1) abort();
    r.f[i] = answer ? x : a.f[i];
  }
  return r;
}
IDN_CALL float e_cvtss_f32(Floats a) { return a.f[0]; }

/* Within each quarter of four lanes: two from a, then two from b, chosen by two bits each. */
template <int N> IDN_CALL Floats e_shuffle_ps_(Floats a, Floats b) {
  IDN_FLOATS((i % 4 < 2 ? a : b).f[i / 4 * 4 + (N >> 2 * (i % 4) & 3)]);
}
/* Whole quarters: two from a, then two from b, chosen by two bits each. */
template <int N> IDN_CALL Floats e_shuffle_f32x4_(Floats a, Floats b) {
  IDN_FLOATS((i < 8 ? a : b).f[4 * (N >> 2 * (i / 4) & 3) + i % 4]);
}
/* The low (high) two lanes of each quarter, a and b in turn. */
IDN_CALL Floats e_unpacklo_ps(Floats a, Floats b) { IDN_FLOATS((i % 2 ? b : a).f[i / 4 * 4 + i % 4 / 2]); }
IDN_CALL Floats e_unpackhi_ps(Floats a, Floats b) { IDN_FLOATS((i % 2 ? b : a).f[i / 4 * 4 + 2 + i % 4 / 2]); }

/* ---- 32-bit and 64-bit words ------------------------------------------------------------- */

IDN_CALL uint64_t e_get64(const Words& a, int i) { return a.w[2 * i] | (uint64_t)a.w[2 * i + 1] << 32; }
IDN_CALL void e_set64(Words& a, int i, uint64_t x) {
  a.w[2 * i] = (uint32_t)x;
  a.w[2 * i + 1] = (uint32_t)(x >> 32);
}
#define IDN_WORDS64(expression) IDN_LANES(Words, 8, e_set64(r, i, expression))

IDN_CALL Words e_loadu_si512(const void* p) { return from_memory<Words>(p); }
IDN_CALL void e_storeu_si512(void* p, Words a) { memcpy(p, &a, sizeof a); }
IDN_CALL Words e_set1_epi32(int a) { IDN_WORDS((uint32_t)a); }
IDN_CALL Words e_add_epi32(Words a, Words b) { IDN_WORDS(a.w[i] + b.w[i]); }
IDN_CALL Words e_sub_epi32(Words a, Words b) { IDN_WORDS(a.w[i] - b.w[i]); }
IDN_CALL Words e_and_si512(Words a, Words b) { IDN_WORDS(a.w[i] & b.w[i]); }
IDN_CALL Words e_or_si512(Words a, Words b) { IDN_WORDS(a.w[i] | b.w[i]); }
IDN_CALL Words e_xor_si512(Words a, Words b) { IDN_WORDS(a.w[i] ^ b.w[i]); }
IDN_CALL Words e_min_epu32(Words a, Words b) { IDN_WORDS(a.w[i] < b.w[i] ? a.w[i] : b.w[i]); }
IDN_CALL Words e_max_epu32(Words a, Words b) { IDN_WORDS(a.w[i] > b.w[i] ? a.w[i] : b.w[i]); }
IDN_CALL Words e_slli_epi32(Words a, unsigned n) { IDN_WORDS(n > 31 ? 0 : a.w[i] << n); }
IDN_CALL Words e_srli_epi32(Words a, unsigned n) { IDN_WORDS(n > 31 ? 0 : a.w[i] >> n); }
IDN_CALL Words e_srai_epi32(Words a, unsigned n) { IDN_WORDS((uint32_t)((int32_t)a.w[i] >> (n > 31 ? 31 : n))); }
IDN_CALL Words e_mul_epu32(Words a, Words b) { IDN_WORDS64((uint64_t)a.w[2 * i] * b.w[2 * i]); }
IDN_CALL Words e_add_epi64(Words a, Words b) { IDN_WORDS64(e_get64(a, i) + e_get64(b, i)); }
IDN_CALL Words e_slli_epi64(Words a, unsigned n) { IDN_WORDS64(n > 63 ? 0 : e_get64(a, i) << n); }
IDN_CALL Words e_srli_epi64(Words a, unsigned n) { IDN_WORDS64(n > 63 ? 0 : e_get64(a, i) >> n); }
IDN_CALL Words e_mask_blend_epi32(uint16_t k, Words a, Words b) { IDN_WORDS(k >> i & 1 ? b.w[i] : a.w[i]); }
/* Bit 4 of an index chooses b, bits 0 to 3 the lane. */
IDN_CALL Words e_permutex2var_epi32(Words a, Words at, Words b) { IDN_WORDS((at.w[i] & 16 ? b : a).w[at.w[i] & 15]); }
IDN_CALL Floats e_permutex2var_ps(Floats a, Words at, Floats b) { IDN_FLOATS((at.w[i] & 16 ? b : a).f[at.w[i] & 15]); }
IDN_CALL uint16_t e_cmpeq_epi32_mask(Words a, Words b) {
  unsigned mask = 0;
  for (int i = 0; i < 16; ++i) mask |= (unsigned)(a.w[i] == b.w[i]) << i;
  return (uint16_t)mask;
}
IDN_CALL __m128i e_maskz_set1_epi8(uint16_t k, char a) {
  char bytes[16];
  for (int i = 0; i < 16; ++i) bytes[i] = k >> i & 1 ? a : 0;
  return from_memory<__m128i>(bytes);
}
IDN_CALL uint16_t e_test_epi8_mask(__m128i a, __m128i b) {
  char x[16], y[16];
  memcpy(x, &a, 16);
  memcpy(y, &b, 16);
  unsigned mask = 0;
  for (int i = 0; i < 16; ++i) mask |= (unsigned)((x[i] & y[i]) != 0) << i;
  return (uint16_t)mask;
}

/* ---- binary64 ---------------------------------------------------------------------------- */

IDN_CALL Doubles e_loadu_pd(const void* p) { return from_memory<Doubles>(p); }
IDN_CALL Doubles e_set1_pd(double a) { IDN_DOUBLES(a); }
IDN_CALL Doubles e_add_pd(Doubles a, Doubles b) { IDN_DOUBLES(a.d[i] + b.d[i]); }
IDN_CALL Doubles e_sub_pd(Doubles a, Doubles b) { IDN_DOUBLES(a.d[i] - b.d[i]); }
IDN_CALL Doubles e_mul_pd(Doubles a, Doubles b) { IDN_DOUBLES(a.d[i] * b.d[i]); }
IDN_CALL Doubles e_div_pd(Doubles a, Doubles b) { IDN_DOUBLES(a.d[i] / b.d[i]); }
IDN_CALL Doubles e_fmadd_pd(Doubles a, Doubles b, Doubles c) { IDN_DOUBLES(__builtin_fma(a.d[i], b.d[i], c.d[i])); }
IDN_CALL Doubles e_permutexvar_pd(Words at, Doubles a) { IDN_DOUBLES(a.d[e_get64(at, i) & 7]); }

/* ---- casts, halves and conversions ------------------------------------------------------- */

IDN_CALL Words e_castps_si512(Floats a) { return same_bits<Words>(a); }
IDN_CALL Floats e_castsi512_ps(Words a) { return same_bits<Floats>(a); }
IDN_CALL Words e_castpd_si512(Doubles a) { return same_bits<Words>(a); }
IDN_CALL Doubles e_castsi512_pd(Words a) { return same_bits<Doubles>(a); }
IDN_CALL HalfFloats e_extractf32x8_ps(Floats a, int n) { IDN_LANES(HalfFloats, 8, r.f[i] = a.f[8 * n + i]); }
IDN_CALL HalfFloats e_castps512_ps256(Floats a) { return e_extractf32x8_ps(a, 0); }
IDN_CALL HalfWords e_extracti32x8_epi32(Words a, int n) { IDN_LANES(HalfWords, 8, r.w[i] = a.w[8 * n + i]); }
IDN_CALL HalfWords e_castsi512_si256(Words a) { return e_extracti32x8_epi32(a, 0); }
/* The upper half is undefined by the manual; a pattern that would show. */
IDN_CALL Floats e_castps256_ps512(HalfFloats a) { IDN_FLOATS(i < 8 ? a.f[i] : 12345.0f); }
IDN_CALL Floats e_insertf32x8(Floats a, HalfFloats b, int n) { IDN_FLOATS(i / 8 == n ? b.f[i % 8] : a.f[i]); }
IDN_CALL Doubles e_cvtps_pd(HalfFloats a) { IDN_DOUBLES((double)a.f[i]); }
IDN_CALL HalfFloats e_cvtpd_ps(Doubles a) { IDN_LANES(HalfFloats, 8, r.f[i] = (float)a.d[i]); }
IDN_CALL Doubles e_cvtepi32_pd(HalfWords a) { IDN_DOUBLES((double)(int32_t)a.w[i]); }
IDN_CALL Words e_cvtepu32_epi64(HalfWords a) { IDN_WORDS64(a.w[i]); }

/* ---- the names that avx512.h uses -------------------------------------------------------- */

#define __m512 Floats
#define __m512i Words
#define __m512d Doubles
#define _mm512_loadu_ps e_loadu_ps
#define _mm512_storeu_ps e_storeu_ps
#define _mm512_set1_ps e_set1_ps
#define _mm512_add_ps e_add_ps
#define _mm512_sub_ps e_sub_ps
#define _mm512_mul_ps e_mul_ps
#define _mm512_div_ps e_div_ps
#define _mm512_sqrt_ps e_sqrt_ps
#define _mm512_fmadd_ps e_fmadd_ps
#define _mm512_fnmadd_ps e_fnmadd_ps
#define _mm512_min_ps e_min_ps
#define _mm512_max_ps e_max_ps
#undef _mm512_fixupimm_ps
#define _mm512_fixupimm_ps e_fixupimm_ps
#define _mm512_cvtss_f32 e_cvtss_f32
#define _mm512_cmp_ps_mask e_cmp_ps_mask
#define _mm512_mask_blend_ps e_mask_blend_ps
#define _mm512_unpacklo_ps e_unpacklo_ps
#define _mm512_unpackhi_ps e_unpackhi_ps
#undef _mm512_shuffle_ps
#define _mm512_shuffle_ps(a, b, n) e_shuffle_ps_<n>(a, b)
#undef _mm512_shuffle_f32x4
#define _mm512_shuffle_f32x4(a, b, n) e_shuffle_f32x4_<n>(a, b)
#define _mm512_loadu_si512 e_loadu_si512
#define _mm512_storeu_si512 e_storeu_si512
#define _mm512_set1_epi32 e_set1_epi32
#define _mm512_add_epi32 e_add_epi32
#define _mm512_sub_epi32 e_sub_epi32
#define _mm512_and_si512 e_and_si512
#define _mm512_or_si512 e_or_si512
#define _mm512_xor_si512 e_xor_si512
#define _mm512_min_epu32 e_min_epu32
#define _mm512_max_epu32 e_max_epu32
#define _mm512_slli_epi32 e_slli_epi32
#define _mm512_srli_epi32 e_srli_epi32
#define _mm512_srai_epi32 e_srai_epi32
#define _mm512_mul_epu32 e_mul_epu32
#define _mm512_add_epi64 e_add_epi64
#define _mm512_slli_epi64 e_slli_epi64
#define _mm512_srli_epi64 e_srli_epi64
#define _mm512_mask_blend_epi32 e_mask_blend_epi32
#define _mm512_permutex2var_ps e_permutex2var_ps
#define _mm512_permutex2var_epi32 e_permutex2var_epi32
#define _mm512_cmpeq_epi32_mask e_cmpeq_epi32_mask
#define _mm_maskz_set1_epi8 e_maskz_set1_epi8
#define _mm_test_epi8_mask e_test_epi8_mask
#define _mm512_loadu_pd e_loadu_pd
#define _mm512_set1_pd e_set1_pd
#define _mm512_add_pd e_add_pd
#define _mm512_sub_pd e_sub_pd
#define _mm512_mul_pd e_mul_pd
#define _mm512_div_pd e_div_pd
#define _mm512_fmadd_pd e_fmadd_pd
#define _mm512_permutexvar_pd e_permutexvar_pd
#define _mm512_castps_si512 e_castps_si512
#define _mm512_castsi512_ps e_castsi512_ps
#define _mm512_castpd_si512 e_castpd_si512
#define _mm512_castsi512_pd e_castsi512_pd
#undef _mm512_extractf32x8_ps
#define _mm512_extractf32x8_ps e_extractf32x8_ps
#define _mm512_castps512_ps256 e_castps512_ps256
#undef _mm512_extracti32x8_epi32
#define _mm512_extracti32x8_epi32 e_extracti32x8_epi32
#define _mm512_castsi512_si256 e_castsi512_si256
#define _mm512_castps256_ps512 e_castps256_ps512
#undef _mm512_insertf32x8
#define _mm512_insertf32x8 e_insertf32x8
#define _mm512_cvtps_pd e_cvtps_pd
#define _mm512_cvtpd_ps e_cvtpd_ps
#define _mm512_cvtepi32_pd e_cvtepi32_pd
#define _mm512_cvtepu32_epi64 e_cvtepu32_epi64
