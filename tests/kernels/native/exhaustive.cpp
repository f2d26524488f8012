/*
 * Every binary32 operand through every rounded function of every path, and of a device.   rules: NUM-7, NUM-8
 *
 *   exhaustive FUNCTION FIRST COUNT PATH...
 *
 * checks COUNT blocks of 4,096 operands from block FIRST on. A result is compared with the binary64
 * library function where that settles it (it lies further from the middle of two binary32 numbers than
 * 2^-49 of itself), and with a 113-bit evaluation elsewhere. Prints the first operands whose result is
 * wrong on a path, then one line of JSON: operands, those settled in 113 bits ("hard"), the wrong results of
 * each path, and of a device's usual operands ("usual") those that it needs binary64 for ("in_binary64"). The
 * path named "device" is the CUDA device's text (exhaustive_device.cpp). Exit status 1 when a result is
 * wrong, 2 when the words make no sense.
 *
 * Built and run piece by piece by exhaustive.py.
 */
#include <quadmath.h>

#include <algorithm>
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
#include "tests/kernels/native/exhaustive_device.h"

namespace {

constexpr uint64_t BLOCK = 4096;
const std::string DEVICE = "device";

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

/* out = the function of a block on a path. */
void compute(const Function& function, const std::string& path, float* out, const float* x, Shares* shares) {
  if (path == DEVICE) {
    device_unary(identic::UNARY_NAMES[function.op], out, x, BLOCK, shares);
  } else {
    identic::set_path(path);
    identic::unary(function.op, out, x, BLOCK);
  }
}

/* Checks some blocks, and prints what it found; whether everything was right. */
bool check(const Function& function, uint64_t begin, uint64_t end, const std::vector<std::string>& paths) {
  std::vector<int64_t> wrong(paths.size());
  int64_t hard = 0;
  Shares shares;
  std::vector<float> x(BLOCK), want(BLOCK), got(BLOCK);
  for (uint64_t block = begin; block < end; ++block) {
    for (size_t i = 0; i < BLOCK; ++i) {
      x[i] = idn_float(static_cast<uint32_t>(block * BLOCK + i));
      want[i] = expected(function, x[i], &hard);
    }
    for (size_t p = 0; p < paths.size(); ++p) {
      compute(function, paths[p], got.data(), x.data(), &shares);
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
  std::printf("{\"operands\": %llu, \"hard\": %lld, \"usual\": %lld, \"in_binary64\": %lld, \"wrong\": {",
              static_cast<unsigned long long>((end - begin) * BLOCK), static_cast<long long>(hard),
              static_cast<long long>(shares.usual), static_cast<long long>(shares.in_binary64));
  bool all_right = true;
  for (size_t p = 0; p < paths.size(); ++p) {
    std::printf("%s\"%s\": %lld", p ? ", " : "", paths[p].c_str(), static_cast<long long>(wrong[p]));
    all_right = all_right && wrong[p] == 0;
  }
  std::printf("}}\n");
  return all_right;
}

}  // namespace

int main(int count, char** words) {
  if (count < 5) return 2;
  const uint64_t first = std::strtoull(words[2], nullptr, 10), blocks = std::strtoull(words[3], nullptr, 10);
  if (first + blocks > (1ull << 32) / BLOCK) return 2;
  std::vector<std::string> known = identic::available_paths();
  known.push_back(DEVICE);
  const std::vector<std::string> paths(words + 4, words + count);
  for (const std::string& path : paths) {
    if (std::find(known.begin(), known.end(), path) == known.end()) return 2;
  }
  identic::set_threads(1);
  for (const Function& function : FUNCTIONS) {
    if (std::string(words[1]) != identic::UNARY_NAMES[function.op]) continue;
    return check(function, first, first + blocks, paths) ? 0 : 1;
  }
  return 2;
}
