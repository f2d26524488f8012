/*
 * Every binary32 operand through every rounded function of every path.                 rules: NUM-7, NUM-8
 *
 *   exhaustive FUNCTION FIRST COUNT
 *
 * checks COUNT blocks of 4,096 operands from block FIRST on. A result is compared with the binary64
 * library function where that settles it (it lies further from the middle of two binary32 numbers than
 * 2^-49 of itself), and with a 113-bit evaluation elsewhere. Prints the first operands whose result is
 * wrong, then a line "operands HARD WRONG..." with the operands settled in 113 bits and the wrong results
 * of each path in turn. `exhaustive paths` prints the names of the paths. Exit status 1 when a result is
 * wrong, 2 when the words make no sense.
 *
 * Built and run piece by piece by exhaustive.py.
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

constexpr uint64_t BLOCK = 4096;

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

/* Wrong results of one function on some blocks, one number a path. */
std::vector<int64_t> check(const Function& function, uint64_t begin, uint64_t end) {
  const std::vector<std::string> paths = identic::available_paths();
  std::vector<int64_t> wrong(paths.size());
  int64_t hard = 0;
  std::vector<float> x(BLOCK), want(BLOCK), got(BLOCK);
  for (uint64_t block = begin; block < end; ++block) {
    for (size_t i = 0; i < BLOCK; ++i) {
      x[i] = idn_float(static_cast<uint32_t>(block * BLOCK + i));
      want[i] = expected(function, x[i], &hard);
    }
    for (size_t p = 0; p < paths.size(); ++p) {
      identic::set_path(paths[p]);
      identic::unary(function.op, got.data(), x.data(), BLOCK);
      if (memcmp(got.data(), want.data(), sizeof(float) * BLOCK) == 0) continue;
      for (size_t i = 0; i < BLOCK; ++i) {
        if (idn_bits(got[i]) == idn_bits(want[i])) continue;
        if (++wrong[p] <= 10) {
          std::printf("%s(%08x) on %s: got %08x, want %08x\n", identic::UNARY_NAMES[function.op], idn_bits(x[i]),
                      paths[p].c_str(), idn_bits(got[i]), idn_bits(want[i]));
        }
      }
    }
  }
  std::printf("%llu %lld", static_cast<unsigned long long>((end - begin) * BLOCK), static_cast<long long>(hard));
  for (int64_t count : wrong) std::printf(" %lld", static_cast<long long>(count));
  std::printf("\n");
  return wrong;
}

}  // namespace

int main(int count, char** words) {
  if (count == 2 && std::string(words[1]) == "paths") {
    for (const std::string& path : identic::available_paths()) std::printf("%s\n", path.c_str());
    return 0;
  }
  if (count != 4) return 2;
  const uint64_t first = std::strtoull(words[2], nullptr, 10), blocks = std::strtoull(words[3], nullptr, 10);
  if (first + blocks > (1ull << 32) / BLOCK) return 2;
  identic::set_threads(1);
  for (const Function& function : FUNCTIONS) {
    if (std::string(words[1]) != identic::UNARY_NAMES[function.op]) continue;
    for (int64_t wrong : check(function, first, first + blocks)) {
      if (wrong) return 1;
    }
    return 0;
  }
  return 2;
}
