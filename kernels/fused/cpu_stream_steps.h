/*
 * The steps of streams (fused/stream.h), inside one path.                    rules: NUM-1 .. NUM-6
 *
 * A step is a function that gets the running value, a few vectors, in registers and ends in a call of
 * the next step with them: a jump, so that nothing is stored in between.
 *
 * Included by native/path_body.h inside the namespace of a path.
 */

using Stream = void (*)(const StreamStep*, uint8_t* const*, int64_t, F, F, F, F, F, F, F, F);

/* Vectors of the running value. Where eight hold more elements than a row sum has lanes, four are for shorter rows. */
constexpr int WIDE_RUN = 8;
constexpr int NARROW_RUN = W == 16 ? 4 : 8;

#define IDN_STREAM const StreamStep *step, uint8_t *const *places, int64_t at, F v0, F v1, F v2, F v3, F v4, F v5, F v6, F v7
#define IDN_NEXT reinterpret_cast<Stream>(step[1].run)(step + 1, places, at, v0, v1, v2, v3, v4, v5, v6, v7)
/* EACH(v, i) for every vector v of the running value, the i-th. */
#define IDN_EACH(EACH)                              \
  EACH(v0, 0) EACH(v1, 1) EACH(v2, 2) EACH(v3, 3)   \
  if constexpr (RUN == 8) {                     \
    EACH(v4, 4) EACH(v5, 5) EACH(v6, 6) EACH(v7, 7) \
  }

/* ---- operators that leave any NaN --------------------------------------------------------------------- */

struct Canonical { IDN_INLINE F of(F x) { return canonical(x); } };
struct AnyNeg { IDN_INLINE F of(F x) { return floats(bits(x) ^ splat_bits(0x80000000u)); } };
struct AnyAbs { IDN_INLINE F of(F x) { return absolute(x); } };
struct AnySqrt { IDN_INLINE F of(F x) { return root(x); } };
struct AnyRsqrt { IDN_INLINE F of(F x) { return div(splat(1.0f), root(x)); } };
struct AnyAdd { IDN_INLINE F of(F x, F y) { return add(x, y); } };
struct AnySub { IDN_INLINE F of(F x, F y) { return sub(x, y); } };
struct AnyMul { IDN_INLINE F of(F x, F y) { return mul(x, y); } };
struct AnyDiv { IDN_INLINE F of(F x, F y) { return div(x, y); } };

/* ---- steps ------------------------------------------------------------------------------------------ */

/* A load; the next block comes near while this one is computed, its operands as well as room for results. */
IDN_INLINE F stream_operand(const float* x) {
  __builtin_prefetch(x + CHAIN_BLOCK, 0, 2);
  return load(x);
}

IDN_INLINE float* stream_place(const StreamStep* step, uint8_t* const* places, int64_t at) {
  return reinterpret_cast<float*>(places[step->slot]) + at;
}

static void stream_end(const StreamStep*, uint8_t* const*, int64_t, F, F, F, F, F, F, F, F) {}

template <int RUN>
static void stream_load(IDN_STREAM) {
  const float* x = stream_place(step, places, at);
#define IDN_ONE(V, I) V = stream_operand(x + I * W);
  IDN_EACH(IDN_ONE)
#undef IDN_ONE
  IDN_NEXT;
}

template <int RUN>
static void stream_spread(IDN_STREAM) {
  const F one = splat_from(stream_place(step, places, 0));
#define IDN_ONE(V, I) V = one;
  IDN_EACH(IDN_ONE)
#undef IDN_ONE
  IDN_NEXT;
}

template <int RUN, bool CANONICAL>
static void stream_store(IDN_STREAM) {
  float* to = stream_place(step, places, at);
  /* What is made canonical is mostly a result, whose room is far; the others are temporaries, which are near. */
#define IDN_ONE(V, I)                                                \
  if (CANONICAL) __builtin_prefetch(to + I * W + CHAIN_BLOCK, 1, 2); \
  if (CANONICAL) V = canonical(V);                                   \
  store(to + I * W, V);
  IDN_EACH(IDN_ONE)
#undef IDN_ONE
  IDN_NEXT;
}

template <int RUN>
static void stream_square(IDN_STREAM) {
#define IDN_ONE(V, I) V = mul(V, V);
  IDN_EACH(IDN_ONE)
#undef IDN_ONE
  IDN_NEXT;
}

template <int RUN, class Op>
static void stream_unary(IDN_STREAM) {
#define IDN_ONE(V, I) V = Op::of(V);
  IDN_EACH(IDN_ONE)
#undef IDN_ONE
  IDN_NEXT;
}

/* The same for an operator of many instructions, of which one copy is enough. */
template <int RUN, class Op>
static void stream_function(IDN_STREAM) {
  F v[8] = {v0, v1, v2, v3, v4, v5, v6, v7};
#pragma GCC unroll 1
  for (int i = 0; i < RUN; ++i) v[i] = Op::of(v[i]);
#define IDN_ONE(V, I) V = v[I];
  IDN_EACH(IDN_ONE)
#undef IDN_ONE
  IDN_NEXT;
}

/* exp and erf: short where a register instruction looks up their tables. */
template <int RUN, class Op>
constexpr Stream STREAM_SHORT = W == 16 ? stream_unary<RUN, Op> : stream_function<RUN, Op>;

template <int RUN, class Op, bool REVERSED, bool SPREAD>
static void stream_binary(IDN_STREAM) {
  const float* x = stream_place(step, places, SPREAD ? 0 : at);
  auto of = [&](F v, int i) {
    const F operand = SPREAD ? splat_from(x) : stream_operand(x + i * W);
    return REVERSED ? Op::of(operand, v) : Op::of(v, operand);
  };
#define IDN_ONE(V, I) V = of(V, I);
  IDN_EACH(IDN_ONE)
#undef IDN_ONE
  IDN_NEXT;
}

/*
 * The running value x over one number y, by multiplications. With inverse the number nearest to 1 / y and rest what it lacks,
 * q is off by less than a last place, x - q y is exact, and q with that added is the nearest number to x / y
 * (Markstein 1990). So that no product comes near the subnormal numbers, y and every x are +0 or from 2^-60 to 2^60;
 * +0 over a number above zero is +0 here too.
 */
template <int RUN>
static void stream_divide(IDN_STREAM) {
  constexpr uint32_t LEAST = 0x21800000u, GREATEST = 0x5d800000u;
  const float y = *stream_place(step, places, 0);
  const F divisor = splat(y);
  /* Less one, +0 is above all others; numbers below zero are above all others as they are. */
  U low = splat_bits(LEAST - 1), high = splat_bits(GREATEST);
#define IDN_ONE(V, I) low = least(low, bits(V) - splat_bits(1)); high = greatest(high, bits(V));
  IDN_EACH(IDN_ONE)
#undef IDN_ONE
  const M is_usual = both(eq(low, splat_bits(LEAST - 1)), eq(high, splat_bits(GREATEST)));
  if (idn_bits(y) - LEAST > GREATEST - LEAST || any(opposite(is_usual))) {
#define IDN_ONE(V, I) V = div(V, divisor);
    IDN_EACH(IDN_ONE)
#undef IDN_ONE
    IDN_NEXT;
    return;
  }
  const float reciprocal = 1.0f / y;
  const F inverse = splat(reciprocal), rest = mul(fnma(inverse, divisor, splat(1.0f)), inverse);
#define IDN_ONE(V, I)                                     \
  {                                                       \
    const F q = fma(V, inverse, mul(V, rest));            \
    V = fma(fnma(q, divisor, V), inverse, q);             \
  }
  IDN_EACH(IDN_ONE)
#undef IDN_ONE
  IDN_NEXT;
}

template <int RUN, class Op, bool REVERSED, bool SPREAD>
static void stream_comparison(IDN_STREAM) {
  const float* x = stream_place(step, places, SPREAD ? 0 : at);
  uint8_t* to = places[step->mask] + at;
  auto of = [&](F v, int i) {
    const F operand = SPREAD ? splat_from(x) : stream_operand(x + i * W);
    store_mask(to + i * W, REVERSED ? Op::of(operand, v) : Op::of(v, operand));
  };
#define IDN_ONE(V, I) of(V, I);
  IDN_EACH(IDN_ONE)
#undef IDN_ONE
  IDN_NEXT;
}

template <int RUN, bool REVERSED, bool SPREAD>
static void stream_where(IDN_STREAM) {
  const float* x = stream_place(step, places, SPREAD ? 0 : at);
  const uint8_t* mask = places[step->mask] + at;
  auto of = [&](F v, int i) {
    const F operand = SPREAD ? splat_from(x) : stream_operand(x + i * W);
    const M taken = load_mask(mask + i * W);
    return REVERSED ? select(taken, operand, v) : select(taken, v, operand);
  };
#define IDN_ONE(V, I) V = of(V, I);
  IDN_EACH(IDN_ONE)
#undef IDN_ONE
  IDN_NEXT;
}

/* ---- running ------------------------------------------------------------------------------------------ */

/* The last group of a row may overlap the one before it: no step reads what a stream writes over. */
template <int RUN>
static void run_stream(const StreamStep* first, StreamRows rows, int64_t n) {
  constexpr int64_t GROUP = RUN * W;
  const Stream run = reinterpret_cast<Stream>(first->run);
  const F none = splat(0.0f);
  for (int64_t r = 0; r < rows.count; ++r) {
    int64_t at = 0;
    for (; at + GROUP <= n; at += GROUP) {
      run(first, rows.places, at, none, none, none, none, none, none, none, none);
    }
    if (at < n) run(first, rows.places, n - GROUP, none, none, none, none, none, none, none, none);
    for (int slot = 0; slot < rows.slots; ++slot) rows.places[slot] += rows.steps[slot];
  }
}

/* The function of a code; null where streams have none. */
#define IDN_FORMS(KIND, OP) KIND<RUN, OP, false, false>, KIND<RUN, OP, false, true>, KIND<RUN, OP, true, false>, KIND<RUN, OP, true, true>
template <int RUN>
static StreamRun stream_step(int code) {
  static constexpr Stream STEPS[STREAM_COUNT] = {
      stream_load<RUN>, stream_spread<RUN>, stream_store<RUN, false>, stream_store<RUN, true>, stream_unary<RUN, Canonical>,
      stream_square<RUN>, stream_end, stream_unary<RUN, AnyNeg>, stream_unary<RUN, AnyAbs>, STREAM_SHORT<RUN, Exp>,
      stream_function<RUN, Log>, stream_function<RUN, Tanh>, STREAM_SHORT<RUN, Erf>, stream_function<RUN, Sigmoid>,
      stream_unary<RUN, AnySqrt>, stream_unary<RUN, AnyRsqrt>, nullptr, nullptr, nullptr,
      IDN_FORMS(stream_binary, AnyAdd), IDN_FORMS(stream_binary, AnySub), IDN_FORMS(stream_binary, AnyMul),
      stream_binary<RUN, AnyDiv, false, false>, W == 1 ? stream_binary<RUN, AnyDiv, false, true> : stream_divide<RUN>,
      stream_binary<RUN, AnyDiv, true, false>, stream_binary<RUN, AnyDiv, true, true>, IDN_FORMS(stream_binary, Maximum),
      IDN_FORMS(stream_binary, Minimum), IDN_FORMS(stream_comparison, Eq), IDN_FORMS(stream_comparison, Ne), IDN_FORMS(stream_comparison, Lt),
      IDN_FORMS(stream_comparison, Le), IDN_FORMS(stream_comparison, Gt), IDN_FORMS(stream_comparison, Ge),
      nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr,
      stream_where<RUN, false, false>, stream_where<RUN, false, true>, stream_where<RUN, true, false>,
      stream_where<RUN, true, true>};
  return reinterpret_cast<StreamRun>(STEPS[code]);
}
#undef IDN_FORMS
#undef IDN_EACH
#undef IDN_STREAM
#undef IDN_NEXT
