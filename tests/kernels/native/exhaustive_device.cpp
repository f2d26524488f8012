/*
 * The rounded functions of a CUDA device, compiled for the CPU through the tests' shim.    rules: NUM-7, NUM-8
 *
 * The text is the device's own (kernels/functions/cuda.h), one operand at a time as in a thread. Whatever binary64
 * decides passes one intrinsic on its way to binary32, and is counted there.
 */
#include <cfloat>

#include "tests/cuda/shim/shim.h"

static int64_t narrowed;

static inline float counted_narrowing(double a) {
  ++narrowed;
  return static_cast<float>(a);
}

#define __double2float_rn counted_narrowing
#include "functions/cuda.h"
#undef __double2float_rn

#include "tests/kernels/native/exhaustive_device.h"

namespace {

/* A function, and where pairs are made for it. */
struct Exp {
  static float of(float x) { return idn_exp(x); }
  static bool is_usual(float x) { return -87.0f <= x && x <= 87.0f; }
};
struct Log {
  static float of(float x) { return idn_log(x); }
  static bool is_usual(float x) { return 0.0f < x && x <= FLT_MAX; }
};
struct Tanh {
  static float of(float x) { return idn_tanh(x); }
  static bool is_usual(float x) { return x == x; }
};
struct Erf {
  static float of(float x) { return idn_erf(x); }
  static bool is_usual(float x) { return x <= -0x1p-90f || x == 0.0f || x >= 0x1p-90f; }
};
struct Sigmoid {
  static float of(float x) { return idn_sigmoid(x); }
  static bool is_usual(float x) { return x >= -60.0f; }
};
struct Sin {
  static float of(float x) { return idn_sin(x); }
  static bool is_usual(float x) { return -FLT_MAX <= x && x <= FLT_MAX; }
};
struct Cos {
  static float of(float x) { return idn_cos(x); }
  static bool is_usual(float x) { return Sin::is_usual(x); }
};

template <class Function>
void run(float* out, const float* x, int64_t n, Shares* shares) {
  for (int64_t i = 0; i < n; ++i) {
    const int64_t before = narrowed;
    out[i] = Function::of(x[i]);
    if (!Function::is_usual(x[i])) continue;
    ++shares->usual;
    shares->in_binary64 += narrowed != before;
  }
}

constexpr struct {
  const char* name;
  void (*run)(float*, const float*, int64_t, Shares*);
} FUNCTIONS[] = {
    {"exp", run<Exp>}, {"log", run<Log>}, {"tanh", run<Tanh>}, {"erf", run<Erf>}, {"sigmoid", run<Sigmoid>},
    {"sin", run<Sin>}, {"cos", run<Cos>},
};

}  // namespace

bool device_unary(const char* name, float* out, const float* x, int64_t n, Shares* shares) {
  for (const auto& function : FUNCTIONS) {
    if (strcmp(function.name, name)) continue;
    function.run(out, x, n, shares);
    return true;
  }
  return false;
}
