/* The kernels compiled for any machine: one element at a time, no fma instruction assumed. */
#include <cstdlib>
#include <cstring>

#include "common/fp32.h"
#include "native/path.h"

namespace identic {
namespace scalar_path {
namespace {
#include "native/simd/scalar.h"
#include "native/path_body.h"
}  // namespace
}  // namespace scalar_path

const Path SCALAR_PATH = {
    "scalar", scalar_path::MATMUL, scalar_path::CONV, scalar_path::POOL,
    scalar_path::ELEMENTWISE, scalar_path::REDUCE, scalar_path::STREAM, scalar_path::LAYOUT};

}  // namespace identic
