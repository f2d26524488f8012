/*
 * Elementwise operators, one row at a time, inside one path.                rules: NUM-1 .. NUM-6, NUM-9
 *
 * A row has n results next to each other; an operand steps by any stride, 0 for a broadcast one.
 * Strides other than 0 and 1 are gathered into a short contiguous run first.
 *
 * Included by native/path_body.h inside the namespace of a path.
 */

/* ---- operations on vectors ------------------------------------------------------------------------ */

struct Neg { IDN_INLINE F of(F x) { return canonical(floats(bits(x) ^ splat_bits(0x80000000u))); } };
struct Abs { IDN_INLINE F of(F x) { return canonical(absolute(x)); } };
struct Sqrt { IDN_INLINE F of(F x) { return canonical(root(x)); } };
struct Rsqrt { IDN_INLINE F of(F x) { return canonical(div(splat(1.0f), root(x))); } };
struct Exp { IDN_INLINE F of(F x) { return exp_of(x); } };
struct Log { IDN_INLINE F of(F x) { return log_of(x); } };
struct Tanh { IDN_INLINE F of(F x) { return tanh_of(x); } };
struct Erf { IDN_INLINE F of(F x) { return erf_of(x); } };
struct Sigmoid { IDN_INLINE F of(F x) { return sigmoid_of(x); } };

struct Add { IDN_INLINE F of(F a, F b) { return canonical(add(a, b)); } };
struct Sub { IDN_INLINE F of(F a, F b) { return canonical(sub(a, b)); } };
struct Mul { IDN_INLINE F of(F a, F b) { return canonical(mul(a, b)); } };
struct Div { IDN_INLINE F of(F a, F b) { return canonical(div(a, b)); } };

/* NUM-4: NaN wins, then the value, and +0 is above -0. */
IDN_INLINE F maximum_of(F a, F b) {
  const F equal = floats(bits(a) & bits(b));
  const F ordered = select(lt(a, b), b, select(eq(a, b), equal, a));
  return select(unordered(a, b), not_a_number(), ordered);
}
IDN_INLINE F minimum_of(F a, F b) {
  const F equal = floats(bits(a) | bits(b));
  const F ordered = select(lt(b, a), b, select(eq(a, b), equal, a));
  return select(unordered(a, b), not_a_number(), ordered);
}
struct Maximum { IDN_INLINE F of(F a, F b) { return maximum_of(a, b); } };
struct Minimum { IDN_INLINE F of(F a, F b) { return minimum_of(a, b); } };

struct Eq { IDN_INLINE M of(F a, F b) { return eq(a, b); } };
struct Ne { IDN_INLINE M of(F a, F b) { return opposite(eq(a, b)); } };
struct Lt { IDN_INLINE M of(F a, F b) { return lt(a, b); } };
struct Le { IDN_INLINE M of(F a, F b) { return le(a, b); } };
struct Gt { IDN_INLINE M of(F a, F b) { return lt(b, a); } };
struct Ge { IDN_INLINE M of(F a, F b) { return le(b, a); } };

/* ---- rows of vectors --------------------------------------------------------------------------------- */

IDN_INLINE void put(float* out, F x) { store(out, x); }
IDN_INLINE void put(uint8_t* out, M x) { store_mask(out, x); }

/* count < W elements at p, the other lanes 1. */
IDN_INLINE F load_part(const float* p, int64_t count) {
  alignas(64) float lanes[W];
  for (int i = 0; i < W; ++i) lanes[i] = 1.0f;
  memcpy(lanes, p, sizeof(float) * static_cast<size_t>(count));
  return load(lanes);
}

template <class Out, class X>
IDN_INLINE void put_part(Out* out, X x, int64_t count) {
  alignas(64) Out lanes[W];
  put(lanes, x);
  memcpy(out, lanes, sizeof(Out) * static_cast<size_t>(count));
}

template <class Op>
static void unary_row(void* out_, const void* x_, int64_t n) {
  float* out = static_cast<float*>(out_);
  const float* x = static_cast<const float*>(x_);
  int64_t i = 0;
  for (; i + W <= n; i += W) put(out + i, Op::of(load(x + i)));
  if (i < n) put_part(out + i, Op::of(load_part(x + i, n - i)), n - i);
}

/* EACH_A, EACH_B: whether the operand has one element a result, rather than one for all. */
template <class Op, class Out, bool EACH_A, bool EACH_B>
IDN_INLINE void binary_run(Out* out, const float* a, const float* b, int64_t n) {
  const F one_a = splat(*a), one_b = splat(*b);
  int64_t i = 0;
#pragma GCC unroll 4
  for (; i + W <= n; i += W) put(out + i, Op::of(EACH_A ? load(a + i) : one_a, EACH_B ? load(b + i) : one_b));
  if (i < n) {
    put_part(out + i, Op::of(EACH_A ? load_part(a + i, n - i) : one_a, EACH_B ? load_part(b + i, n - i) : one_b),
             n - i);
  }
}

constexpr int64_t RUN = 512;  /* elements gathered at a time */

template <class T>
static const T* gathered(T* to, const T* from, int64_t stride, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] = from[i * stride];
  return to;
}

IDN_INLINE bool is_simple(int64_t stride) { return stride == 0 || stride == 1; }

/* Calls run(out, a, b, n) with strides 0 and 1 only, for a row with any strides. */
template <class Out, class T, class Run>
IDN_INLINE void with_simple_strides(Out* out, const T* a, int64_t a_stride, const T* b, int64_t b_stride, int64_t n,
                                    Run run) {
  if (is_simple(a_stride) && is_simple(b_stride)) {
    run(out, a, a_stride, b, b_stride, n);
    return;
  }
  T a_run[RUN], b_run[RUN];
  for (int64_t i = 0; i < n; i += RUN) {
    const int64_t part = n - i < RUN ? n - i : RUN;
    const T* a_at = is_simple(a_stride) ? a + i * a_stride : gathered(a_run, a + i * a_stride, a_stride, part);
    const T* b_at = is_simple(b_stride) ? b + i * b_stride : gathered(b_run, b + i * b_stride, b_stride, part);
    run(out + i, a_at, a_stride != 0, b_at, b_stride != 0, part);
  }
}

template <class Op, class Out>
static void binary_row(void* out, const void* a, int64_t a_stride, const void* b, int64_t b_stride, int64_t n) {
  with_simple_strides(
      static_cast<Out*>(out), static_cast<const float*>(a), a_stride, static_cast<const float*>(b), b_stride, n,
      [](Out* to, const float* x, int64_t each_x, const float* y, int64_t each_y, int64_t count) {
        if (each_x && each_y) return binary_run<Op, Out, true, true>(to, x, y, count);
        if (each_x) return binary_run<Op, Out, true, false>(to, x, y, count);
        if (each_y) return binary_run<Op, Out, false, true>(to, x, y, count);
        return binary_run<Op, Out, false, false>(to, x, y, count);
      });
}

/* ---- rows of integers and booleans --------------------------------------------------------------------- */

/* NUM-9: arithmetic modulo the width, on the unsigned type of the same width. */
template <class T> struct Unsigned;
template <> struct Unsigned<int64_t> { using type = uint64_t; };
template <> struct Unsigned<int32_t> { using type = uint32_t; };
template <> struct Unsigned<uint8_t> { using type = uint8_t; };

#define IDN_INTEGER_OPERATION(NAME, OUT, EXPRESSION)                 \
  template <class T> struct NAME {                                   \
    using Out = OUT;                                                 \
    using N = typename Unsigned<T>::type;                            \
    IDN_INLINE Out of(T a, T b) { return static_cast<Out>(EXPRESSION); } \
  };
IDN_INTEGER_OPERATION(IntegerAdd, T, static_cast<N>(a) + static_cast<N>(b))
IDN_INTEGER_OPERATION(IntegerSub, T, static_cast<N>(a) - static_cast<N>(b))
IDN_INTEGER_OPERATION(IntegerMul, T, static_cast<N>(a) * static_cast<N>(b))
IDN_INTEGER_OPERATION(IntegerMaximum, T, a < b ? b : a)
IDN_INTEGER_OPERATION(IntegerMinimum, T, b < a ? b : a)
IDN_INTEGER_OPERATION(IntegerEq, uint8_t, a == b)
IDN_INTEGER_OPERATION(IntegerNe, uint8_t, a != b)
IDN_INTEGER_OPERATION(IntegerLt, uint8_t, a < b)
IDN_INTEGER_OPERATION(IntegerLe, uint8_t, a <= b)
IDN_INTEGER_OPERATION(IntegerGt, uint8_t, a > b)
IDN_INTEGER_OPERATION(IntegerGe, uint8_t, a >= b)
IDN_INTEGER_OPERATION(BoolAnd, uint8_t, (a != 0) & (b != 0))
IDN_INTEGER_OPERATION(BoolOr, uint8_t, (a != 0) | (b != 0))
#undef IDN_INTEGER_OPERATION

template <class Op, class T>
static void integer_row(void* out, const void* a, int64_t a_stride, const void* b, int64_t b_stride, int64_t n) {
  using Out = typename Op::Out;
  with_simple_strides(
      static_cast<Out*>(out), static_cast<const T*>(a), a_stride, static_cast<const T*>(b), b_stride, n,
      [](Out* to, const T* x, int64_t each_x, const T* y, int64_t each_y, int64_t count) {
        if (each_x && each_y) {
          for (int64_t i = 0; i < count; ++i) to[i] = Op::of(x[i], y[i]);
        } else if (each_x) {
          const T one = *y;
          for (int64_t i = 0; i < count; ++i) to[i] = Op::of(x[i], one);
        } else {
          const T one = *x;
          for (int64_t i = 0; i < count; ++i) to[i] = Op::of(one, y[each_y ? i : 0]);
        }
      });
}

static void not_row(void* out, const void* x, int64_t n) {
  uint8_t* to = static_cast<uint8_t*>(out);
  const uint8_t* from = static_cast<const uint8_t*>(x);
  for (int64_t i = 0; i < n; ++i) to[i] = from[i] == 0;
}

/* ---- where ------------------------------------------------------------------------------------------------ */

/* Elements move as words of their size; bits stay as they are (NUM-2). */
template <class T>
static void where_row(void* out_, const uint8_t* c, int64_t c_stride, const void* a_, int64_t a_stride, const void* b_,
                      int64_t b_stride, int64_t n) {
  uint8_t c_run[RUN];
  int64_t start = 0;
  with_simple_strides(
      static_cast<T*>(out_), static_cast<const T*>(a_), a_stride, static_cast<const T*>(b_), b_stride, n,
      [&](T* to, const T* a, int64_t each_a, const T* b, int64_t each_b, int64_t count) {
        for (int64_t first = 0; first < count; first += RUN) {
          const int64_t part = count - first < RUN ? count - first : RUN;
          const uint8_t* from = c + (start + first) * c_stride;
          const uint8_t* chosen = c_stride == 1 ? from : gathered(c_run, from, c_stride, part);
          T* put_at = to + first;
          const T* a_at = a + (each_a ? first : 0);
          const T* b_at = b + (each_b ? first : 0);
          if (each_a && each_b) {
            for (int64_t i = 0; i < part; ++i) put_at[i] = chosen[i] ? a_at[i] : b_at[i];
          } else if (each_a) {
            const T one = *b_at;
            for (int64_t i = 0; i < part; ++i) put_at[i] = chosen[i] ? a_at[i] : one;
          } else if (each_b) {
            const T one = *a_at;
            for (int64_t i = 0; i < part; ++i) put_at[i] = chosen[i] ? one : b_at[i];
          } else {
            const T one_a = *a_at, one_b = *b_at;
            for (int64_t i = 0; i < part; ++i) put_at[i] = chosen[i] ? one_a : one_b;
          }
        }
        start += count;
      });
}

/* ---- table --------------------------------------------------------------------------------------------------- */

#define IDN_ARITHMETIC(NAME)                                                                              \
  {binary_row<NAME, float>, integer_row<Integer##NAME<int64_t>, int64_t>,                                 \
   integer_row<Integer##NAME<int32_t>, int32_t>, nullptr}
#define IDN_COMPARISON(NAME, ON_BOOL)                                                                     \
  {binary_row<NAME, uint8_t>, integer_row<Integer##NAME<int64_t>, int64_t>,                               \
   integer_row<Integer##NAME<int32_t>, int32_t>, ON_BOOL}

constexpr ElementwisePath ELEMENTWISE = {
    {unary_row<Neg>, unary_row<Abs>, unary_row<Exp>, unary_row<Log>, unary_row<Tanh>, unary_row<Erf>,
     unary_row<Sigmoid>, unary_row<Sqrt>, unary_row<Rsqrt>, nullptr, nullptr, not_row},
    {IDN_ARITHMETIC(Add),
     IDN_ARITHMETIC(Sub),
     IDN_ARITHMETIC(Mul),
     {binary_row<Div, float>, nullptr, nullptr, nullptr},
     IDN_ARITHMETIC(Maximum),
     IDN_ARITHMETIC(Minimum),
     IDN_COMPARISON(Eq, (integer_row<IntegerEq<uint8_t>, uint8_t>)),
     IDN_COMPARISON(Ne, (integer_row<IntegerNe<uint8_t>, uint8_t>)),
     IDN_COMPARISON(Lt, nullptr),
     IDN_COMPARISON(Le, nullptr),
     IDN_COMPARISON(Gt, nullptr),
     IDN_COMPARISON(Ge, nullptr),
     {nullptr, nullptr, nullptr, integer_row<BoolAnd<uint8_t>, uint8_t>},
     {nullptr, nullptr, nullptr, integer_row<BoolOr<uint8_t>, uint8_t>}},
    {where_row<uint8_t>, where_row<uint16_t>, where_row<uint32_t>, where_row<uint64_t>},
};

#undef IDN_ARITHMETIC
#undef IDN_COMPARISON
