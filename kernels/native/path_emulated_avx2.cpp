/* The kernels as compiled for AVX-512, its instructions done lane by lane; for tests. */
#include <cstdlib>
#include <cstring>

#include <immintrin.h>

#include "common/fp32.h"
#include "native/path.h"

namespace identic {
namespace emulated_path {
namespace {
#include "native/simd/emulated512.h"
#include "native/simd/avx512.h"
#include "native/path_body.h"
}  // namespace
}  // namespace emulated_path

const Path EMULATED_PATH = {
    "emulated", emulated_path::MATMUL, emulated_path::CONV, emulated_path::POOL,
    emulated_path::ELEMENTWISE, emulated_path::REDUCE, emulated_path::STREAM, emulated_path::LAYOUT};

}  // namespace identic
