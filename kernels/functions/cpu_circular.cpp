/* sin and cos of many numbers: functions/circular.h says how. */
#include "common/fp32.h"
#include "functions/cpu.h"

namespace identic {
namespace {
#include "functions/circular.h"
}  // namespace

void circular(bool cosine, float* out, const float* x, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = circular_of(cosine, x[i]);
}

}  // namespace identic
