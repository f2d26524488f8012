"""The stand-in for a device shows what a device may do and a test must see."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from identic.kernels.cuda import source
from identic.kernels.cuda.device import Kernel, Words
from tests.cuda.shim.device import ORDERS, ShimDevice, ShimError

REVERSE = """
extern "C" __global__ void reverse(float* out, const float* x, long long n) {
  extern __shared__ float tile[];
  const long long i = idn_thread();
  if (i < n) tile[threadIdx.x] = x[i];
  BARRIER
  const long long last = min((long long)blockDim.x, n - (long long)blockIdx.x * blockDim.x) - 1;
  if (i < n) out[i] = tile[last - threadIdx.x];
}
"""


def kernel(body: str, entry: str, **macros: str) -> Kernel:
    """A kernel that is no file of its own."""
    return Kernel("common/cuda.h", entry, tuple(macros.items()), body)


def run(order: int, made: Kernel, x: np.ndarray[Any, Any], block: int = 64) -> Any:
    device = ShimDevice(order)
    out = device.empty(x.shape, x.dtype)
    grid = -(-x.size // block)
    device.launch(made, (grid,), (block,), out, device.upload(x), x.size, shared=4 * block)
    return device.download(out)


@pytest.mark.parametrize("order", ORDERS)
def test_threads_meet_at_a_barrier(order: int) -> None:
    x = np.arange(200, dtype=np.float32)
    want = np.concatenate([x[i : i + 64][::-1] for i in range(0, 200, 64)])
    assert (run(order, kernel(REVERSE, "reverse", BARRIER="__syncthreads();"), x) == want).all()


def test_a_missing_barrier_shows() -> None:
    x = np.arange(200, dtype=np.float32)
    want = run(0, kernel(REVERSE, "reverse", BARRIER="__syncthreads();"), x)
    found = [run(order, kernel(REVERSE, "reverse", BARRIER=";"), x) for order in ORDERS]
    assert any((a.view(np.uint32) != want.view(np.uint32)).any() for a in found)


@pytest.mark.parametrize("order", ORDERS)
def test_a_warp_exchanges(order: int) -> None:
    body = """
    extern "C" __global__ void add_up(long long* out, const long long* x) {
      long long sum = x[idn_thread()];
      for (int by = 16; by; by >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, by);
      out[idn_thread()] = sum;
    }"""
    x = np.arange(96, dtype=np.int64) << 40
    device = ShimDevice(order)
    out = device.empty(x.shape, x.dtype)
    device.launch(kernel(body, "add_up"), (1,), (96,), out, device.upload(x))
    assert (out.reshape(3, 32) == x.reshape(3, 32).sum(1, keepdims=True)).all()


def test_a_barrier_that_some_never_reach_is_a_fault() -> None:
    body = 'extern "C" __global__ void stuck() { if (threadIdx.x) __syncthreads(); }'
    with pytest.raises(ShimError, match="never come"):
        ShimDevice().launch(kernel(body, "stuck"), (1,), (2,))


def test_a_write_behind_an_array_is_a_fault() -> None:
    body = 'extern "C" __global__ void past(char* x, long long n) { x[n] = 1; }'
    device = ShimDevice()
    with pytest.raises(ShimError, match="outside"):
        device.launch(kernel(body, "past"), (1,), (1,), device.empty((5,), np.dtype("u1")), 5)


@pytest.mark.parametrize(
    "arguments",
    [(1, np.float32(0.5)), (np.uint32(1), np.float32(0.5), Words((1,), 2)), (1, 2, Words((), 2))],
)
def test_arguments_must_be_of_the_kernels_types(arguments: tuple[Any, ...]) -> None:
    body = 'extern "C" __global__ void three(long long a, float b, Words<2> c) {}'
    with pytest.raises(ShimError, match="parameters"):
        ShimDevice().launch(kernel(body, "three"), (1,), (1,), *arguments)
    ShimDevice().launch(kernel(body, "three"), (1,), (1,), 1, np.float32(0.5), Words((3,), 2))


@pytest.mark.parametrize(
    ("statement", "word"),
    [
        ("atomicAdd(x, 1.0f);", "no atomics"),
        ("x[0] = fminf(x[0], x[1]);", "fminf"),
        ("x[0] = expf(x[0]);", "expf"),
        ("x[0] = min(x[0], x[1]);", "min"),
    ],
)
def test_a_float_has_no_atomics_and_no_library(statement: str, word: str) -> None:
    body = f'extern "C" __global__ void k(float* x) {{ {statement} }}'
    with pytest.raises(ShimError, match=word):
        ShimDevice().launch(kernel(body, "k"), (1,), (1,), np.zeros(2, np.float32))


def test_a_text_takes_each_include_once() -> None:
    text = source.text(kernel(REVERSE, "reverse", BARRIER="__syncthreads();"))
    assert text.startswith("#define BARRIER __syncthreads();\n")
    assert text.count("define IDENTIC_COMMON_FP32_H") == 1
