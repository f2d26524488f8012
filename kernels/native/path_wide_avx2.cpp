/* The kernels compiled for a 16-wide machine, run as two AVX2 halves; for tests. */
#include <cstdlib>
#include <cstring>

#include <immintrin.h>

#include "common/fp32.h"
#include "native/path.h"

namespace identic {
namespace wide_path {
namespace {
#include "native/simd/wide.h"
#include "native/path_body.h"
}  // namespace
}  // namespace wide_path

const Path WIDE_PATH = {"wide", wide_path::MATMUL, wide_path::ELEMENTWISE, wide_path::REDUCE, wide_path::LAYOUT};

}  // namespace identic
