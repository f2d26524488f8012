/* The kernels compiled for AArch64. */
#include <cstdlib>
#include <cstring>

#include <arm_neon.h>

#include "common/fp32.h"
#include "native/path.h"

namespace identic {
namespace neon_path {
namespace {
#include "native/simd/neon.h"
#include "native/path_body.h"
}  // namespace
}  // namespace neon_path

const Path NEON_PATH = {
    "neon", neon_path::MATMUL, neon_path::CONV, neon_path::POOL,
    neon_path::ELEMENTWISE, neon_path::REDUCE, neon_path::STREAM, neon_path::LAYOUT};

}  // namespace identic
