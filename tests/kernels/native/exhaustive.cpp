/*
 * Every binary32 operand through every rounded function of every path.                 rules: NUM-7, NUM-8
 *
 *   exhaustive [function [step]]
 *
 * A result is compared with the binary64 library function where that settles it (it lies further from
 * the middle of two binary32 numbers than 2^-49 of itself), and with a 113-bit evaluation elsewhere.
 * step > 1 takes every step-th block of 4,096 operands, and always those around zero. Exit status 1
 * when a result differs; the first operands that do are printed.
 *
 * Build and run: python -m tests.kernels.native.exhaustive
 */
#include <quadmath.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "common/fp32.h"
#include "elementwise/cpu.h"
#include "native/path.h"
#include "native/pool.h"

namespace {

constexpr int64_t BLOCK = 4096;

struct Function {
  identic::Unary op;
  double (*near)(double);
  __float128 (*exact)(__float128);
};

double sigmoid64(double x) { return 1.0 / (1.0 + std::exp(-x)); }
__float128 sigmoid128(__float128 x) { return 1.0Q / (1.0Q + expq(-x)); }
double exp64(double x) { return std::exp(x); }
double log64(double x) { return std::log(x); }
double tanh64(double x) { return std::tanh(x); }
double erf64(double x) { return std::erf(x); }
double sin64(double x) { return std::sin(x); }
double cos64(double x) { return std::cos(x); }

constexpr Function FUNCTIONS[] = {
    {identic::UNARY_EXP, exp64, expq},    {identic::UNARY_LOG, log64, logq},
    {identic::UNARY_TANH, tanh64, tanhq}, {identic::UNARY_ERF, erf64, erfq},
    {identic::UNARY_SIGMOID, sigmoid64, sigmoid128}, {identic::UNARY_SIN, sin64, sinq},
    {identic::UNARY_COS, cos64, cosq},
};

/* The nearest binary32 number to the true value. */
float expected(const Function& function, float x, int64_t* hard) {
  const double near = function.near(static_cast<double>(x));
  if (near != near) return idn_float(IDN_NAN_BITS);
  if (std::isinf(near)) return static_cast<float>(near);
  const float below = static_cast<float>(near - near * 0x1p-49), above = static_cast<float>(near + near * 0x1p-49);
  if (idn_bits(below) == idn_bits(above)) return below;
  ++*hard;
  return static_cast<float>(function.exact(static_cast<__float128>(x)));
}

/* Wrong results of one function on all paths; blocks are shared between threads. */
int64_t check(const Function& function, uint64_t step) {
  const std::vector<std::string> paths = identic::available_paths();
  int64_t wrong = 0, hard = 0, operands = 0;
  std::vector<float> x(BLOCK), want(BLOCK), got(BLOCK);
  for (uint64_t block = 0; block < (1ull << 32) / BLOCK; ++block) {
    const uint32_t first = static_cast<uint32_t>(block * BLOCK);
    if (block % step != 0 && (first & 0x7fffffffu) >= BLOCK) continue;
    for (int64_t i = 0; i < BLOCK; ++i) {
      x[static_cast<size_t>(i)] = idn_float(first + static_cast<uint32_t>(i));
      want[static_cast<size_t>(i)] = expected(function, x[static_cast<size_t>(i)], &hard);
    }
    operands += BLOCK;
    for (const std::string& path : paths) {
      identic::set_path(path);
      identic::unary(function.op, got.data(), x.data(), BLOCK);
      if (memcmp(got.data(), want.data(), sizeof(float) * BLOCK) == 0) continue;
      for (size_t i = 0; i < BLOCK; ++i) {
        if (idn_bits(got[i]) == idn_bits(want[i])) continue;
        if (++wrong <= 20) {
          std::printf("%s(%08x) on %s: got %08x, want %08x\n", identic::UNARY_NAMES[function.op], idn_bits(x[i]),
                      path.c_str(), idn_bits(got[i]), idn_bits(want[i]));
        }
      }
    }
  }
  std::printf("%s: %lld operands, %lld of them settled in 113 bits, %lld wrong results on %zu paths\n",
              identic::UNARY_NAMES[function.op], static_cast<long long>(operands), static_cast<long long>(hard),
              static_cast<long long>(wrong), paths.size());
  std::fflush(stdout);
  return wrong;
}

}  // namespace

int main(int count, char** words) {
  const std::string only = count > 1 ? words[1] : "all";
  const uint64_t step = count > 2 ? std::strtoull(words[2], nullptr, 10) : 1;
  identic::set_threads(1);
  int64_t wrong = 0, checked = 0;
  for (const Function& function : FUNCTIONS) {
    if (only != "all" && only != identic::UNARY_NAMES[function.op]) continue;
    ++checked;
    wrong += check(function, step ? step : 1);
  }
  return wrong || !checked ? 1 : 0;
}
