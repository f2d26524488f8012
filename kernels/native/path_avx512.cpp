/* The kernels compiled for x86-64 with AVX-512 F, BW, DQ and VL. */
#if defined(__GNUC__) && !defined(__clang__)
/* GCC 12 takes the undefined pass-through operand of its own intrinsics for a mistake (GCC bug 105593). */
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif
#include <cstdlib>
#include <cstring>

#include <immintrin.h>

#include "common/fp32.h"
#include "native/path.h"

namespace identic {
namespace avx512_path {
namespace {
#include "native/simd/avx512.h"
#include "native/path_body.h"
}  // namespace
}  // namespace avx512_path

const Path AVX512_PATH = {
    "avx512", avx512_path::MATMUL, avx512_path::CONV, avx512_path::POOL,
    avx512_path::ELEMENTWISE, avx512_path::REDUCE, avx512_path::STREAM, avx512_path::LAYOUT};

}  // namespace identic
