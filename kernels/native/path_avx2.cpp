/* The kernels compiled for x86-64 with AVX2 and FMA. */
#include <cstdlib>
#include <cstring>

#include <immintrin.h>

#include "common/fp32.h"
#include "native/path.h"

namespace identic {
namespace avx2_path {
namespace {
#include "native/simd/avx2.h"
#include "native/path_body.h"
}  // namespace
}  // namespace avx2_path

const Path AVX2_PATH = {
    "avx2", avx2_path::MATMUL, avx2_path::CONV, avx2_path::POOL,
    avx2_path::ELEMENTWISE, avx2_path::REDUCE, avx2_path::STREAM, avx2_path::LAYOUT};

}  // namespace identic
