/* One binary32 at a time, no vector unit, no fma instruction assumed. See simd/README.md. */
struct F { float v; static constexpr int W = 1; };
struct M { bool v; };
struct U { uint32_t v; };
struct D { double v; };
constexpr int W = 1;
/* Whether look_up8 costs little more than a load. */
constexpr bool FAST_LOOK_UP = true;

IDN_INLINE F load(const float* p) { return {*p}; }
IDN_INLINE void store(float* p, F a) { *p = a.v; }
IDN_INLINE F splat(float a) { return {a}; }
IDN_INLINE F splat_from(const float* p) { return {*p}; }
IDN_INLINE F add(F a, F b) { return {a.v + b.v}; }
IDN_INLINE F sub(F a, F b) { return {a.v - b.v}; }
IDN_INLINE F mul(F a, F b) { return {a.v * b.v}; }
IDN_INLINE F div(F a, F b) { return {a.v / b.v}; }
IDN_INLINE F root(F a) { return {__builtin_sqrtf(a.v)}; }
IDN_INLINE F fma(F a, F b, F c) { return {idn_fma(a.v, b.v, c.v)}; }
IDN_INLINE F fnma(F a, F b, F c) { return {idn_fma(-a.v, b.v, c.v)}; }
IDN_INLINE float sum_of_lanes(F a) { return a.v; }
IDN_INLINE float largest_of_lanes(F a) { return a.v; }

IDN_INLINE U load(const uint32_t* p) { return {*p}; }
IDN_INLINE void store(uint32_t* p, U a) { *p = a.v; }
IDN_INLINE U splat_bits(uint32_t a) { return {a}; }
IDN_INLINE U bits(F a) { return {idn_bits(a.v)}; }
IDN_INLINE F floats(U a) { return {idn_float(a.v)}; }
IDN_INLINE U operator+(U a, U b) { return {a.v + b.v}; }
IDN_INLINE U operator-(U a, U b) { return {a.v - b.v}; }
IDN_INLINE U operator&(U a, U b) { return {a.v & b.v}; }
IDN_INLINE U operator|(U a, U b) { return {a.v | b.v}; }
IDN_INLINE U operator^(U a, U b) { return {a.v ^ b.v}; }
IDN_INLINE U least(U a, U b) { return a.v < b.v ? a : b; }
IDN_INLINE U greatest(U a, U b) { return a.v > b.v ? a : b; }
template <int N> IDN_INLINE U shift_left(U a) { return {a.v << N}; }
template <int N> IDN_INLINE U shift_right(U a) { return {a.v >> N}; }
template <int N> IDN_INLINE U shift_sign(U a) { return {(uint32_t)((int32_t)a.v >> N)}; }
/* 32 x 32 -> the high and the low half of the product. */
IDN_INLINE void multiply_wide(U a, U b, U& high, U& low) {
  const uint64_t product = (uint64_t)a.v * b.v;
  high.v = (uint32_t)(product >> 32);
  low.v = (uint32_t)product;
}

IDN_INLINE M lt(F a, F b) { return {a.v < b.v}; }
IDN_INLINE M le(F a, F b) { return {a.v <= b.v}; }
IDN_INLINE M eq(F a, F b) { return {a.v == b.v}; }
IDN_INLINE M unordered(F a, F b) { return {a.v != a.v || b.v != b.v}; }
IDN_INLINE M eq(U a, U b) { return {a.v == b.v}; }
IDN_INLINE M both(M a, M b) { return {a.v && b.v}; }
IDN_INLINE M either(M a, M b) { return {a.v || b.v}; }
IDN_INLINE M opposite(M a) { return {!a.v}; }
IDN_INLINE bool any(M a) { return a.v; }
/* a < b ? a : b and a > b ? a : b, so the second operand when one is NaN. */
IDN_INLINE F smaller(F a, F b) { return a.v < b.v ? a : b; }
IDN_INLINE F larger(F a, F b) { return a.v > b.v ? a : b; }
IDN_INLINE F select(M m, F yes, F no) { return m.v ? yes : no; }
IDN_INLINE U select(M m, U yes, U no) { return m.v ? yes : no; }
/* NUM-2: x, or the one NaN. */
IDN_INLINE F canonical(F x) { return {idn_canon(x.v)}; }
IDN_INLINE void store_mask(uint8_t* p, M m) { *p = m.v; }
IDN_INLINE M load_mask(const uint8_t* p) { return {*p != 0}; }

IDN_INLINE D splat64(double a) { return {a}; }
IDN_INLINE D widen(F a) { return {(double)a.v}; }
IDN_INLINE F narrow(D a) { return {(float)a.v}; }
IDN_INLINE D widen_integers(U a) { return {(double)(int32_t)a.v}; }
IDN_INLINE D add(D a, D b) { return {a.v + b.v}; }
IDN_INLINE D sub(D a, D b) { return {a.v - b.v}; }
IDN_INLINE D mul(D a, D b) { return {a.v * b.v}; }
IDN_INLINE D div(D a, D b) { return {a.v / b.v}; }
IDN_INLINE D multiply_add(D a, D b, D c) { return {a.v * b.v + c.v}; }
IDN_INLINE D scale_by_low_bits(D a, D t) { return {idn_double(idn_bits64(a.v) + (idn_bits64(t.v) << 52))}; }
struct Lookup { uint32_t at; };
IDN_INLINE Lookup look_up_index(U index) { return {index.v}; }
IDN_INLINE D look_up8(const double* table, Lookup index) { return {table[index.at]}; }

constexpr int TRANSPOSE = 1;
template <class Row> IDN_INLINE void transpose_rows(Row row, uint32_t* d, int64_t) { *d = *row(0); }
