#!/bin/sh
# Checks and times of the first CUDA device of this machine, in less than eight minutes; the report
# is out/device.json. What there was no time for is named at the end, and makes the result 1.
#
#   tests/device/run.sh [PART ...]
#
# Needs python3 (or $PYTHON) of 3.11 or newer with CuPy for CUDA 12 or 13 and torch. The native module
# is built where a compiler, CMake, ninja, nanobind and scikit-build-core are here, and what the
# device gives is then compared with the CPU, too; else with what is stored. Nothing is downloaded.
set -eu
cd "$(dirname "$0")/../.."
python=${PYTHON:-python3}
mkdir -p out build
start=$(date +%s)

timeout 25 "$python" -c 'import cupy, numpy, torch' || {
  echo "CuPy and torch are needed: pip install cupy-cuda13x (or cupy-cuda12x) torch" >&2
  exit 2
}
export PYTHONPATH="$PWD/src:$PWD"
if ! "$python" -c 'import identic.kernels._native' 2>/dev/null; then
  if timeout 100 "$python" -m pip install --quiet --no-index --no-deps --no-build-isolation \
    --upgrade --target build/device . >out/device-build.log 2>&1; then
    cp build/device/identic/kernels/_native*.so kernels/
  else
    echo "the native module could not be built (out/device-build.log): going by what is stored" >&2
  fi
fi
left=$((470 - $(date +%s) + start))
exec "$python" -m tests.device --seconds "$left" "$@"
