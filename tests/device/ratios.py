"""Times on the device beside torch's: float32 without TF32, products by cuBLAS, whole steps."""

from __future__ import annotations

import hashlib
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from identic.kernels.cuda.device import DeviceFault
from identic.kernels.executor import Executor
from identic.kernels.hashing.cuda import chunk_root
from identic.node.bench import operators
from identic.node.bench.operators import Function, Runnable
from identic.node.bench.rows import Case, Row, Timed
from identic.node.capture import capture
from identic.protocol.errors import LocalError
from identic.protocol.program.unroll import unroll
from tests.device import gpt
from tests.device.setting import Finding, Setting

TURN_S, TURNS = 0.05, 7
"""Least length of a turn, and turns of each side."""

PRODUCTS = {
    "4096 square": (4096, 4096, 4096, False),
    "GPT-2 small, qkv": (8192, 2304, 768, False),
    "GPT-2 small, wide": (8192, 3072, 768, False),
    "GPT-2 small, scores": (8192, 50257, 768, False),
    "GPT-2 small, a weight's gradient": (768, 3072, 8192, True),
}
"""Rows, columns, what is summed over, and whether the left operand is stored transposed."""


def _plain_float32() -> None:
    """Keep torch from rounding operands of products."""
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    torch.set_float32_matmul_precision("highest")


def rows(setting: Setting, name: str, case: Case) -> Iterator[Row]:
    """Time all sides in turns; a row for each peer."""
    turns, turn_s = (1, 0.0) if setting.least else (TURNS, TURN_S)
    sides = {"": case.ours, **case.peers}
    calls = {side: _calls(setting, call, turn_s) for side, call in sides.items()}
    times: dict[str, list[float]] = {side: [] for side in sides}
    for _ in range(turns):
        for side, call in sides.items():
            times[side].append(_turn(setting, call, calls[side]))
    medians = {side: statistics.median(found) for side, found in times.items()}
    ours = medians.pop("")
    path = f"sm_{setting.device.compute_capability}"
    for peer, seconds in medians.items():
        yield Row(name, ours, peer, seconds, ours / seconds, 1, path, None, turns)


def _calls(setting: Setting, call: Timed, turn_s: float) -> int:
    call()
    one = _turn(setting, call, 1)
    return max(1, round(turn_s / max(one, 1e-6)))


def _turn(setting: Setting, call: Timed, calls: int) -> float:
    """Seconds of a call, the mean of some in a row, until the device has done all."""
    _wait(setting)
    start = time.perf_counter()
    for _ in range(calls):
        call()
    _wait(setting)
    return (time.perf_counter() - start) / calls


def _wait(setting: Setting) -> None:
    setting.device.synchronize()
    if setting.torch_device == "cuda":
        torch.cuda.synchronize()


# ---- products -------------------------------------------------------------------------------


def products(setting: Setting) -> Iterator[Row]:
    """Matrix products against cuBLAS."""
    _plain_float32()
    shapes = {"small": (8, 9, 40, True)} if setting.least else PRODUCTS
    for name, shape in shapes.items():
        yield from rows(setting, f"matmul {name}", _product(setting, *shape))


def _product(setting: Setting, m: int, n: int, k: int, turned: bool) -> Case:
    rng = np.random.default_rng(1)
    a = rng.standard_normal((k, m) if turned else (m, k), dtype=np.float32)
    b = rng.standard_normal((k, n), dtype=np.float32)
    out = setting.device.empty((m * n,), np.dtype("<f4"))
    left, right = setting.held([a.reshape(-1), b.reshape(-1)])
    steps = ((0, 1, m) if turned else (0, k, 1), (0, n, 1))
    x, y = (torch.from_numpy(z).to(setting.torch_device) for z in (a, b))
    x = x.T if turned else x
    result = torch.empty((m, n), device=setting.torch_device)
    product = setting.backend.engine.calls.matmul
    return Case(
        lambda: product(out, left, right, 1, m, n, k, *steps),
        {"torch, cuBLAS float32": lambda: torch.mm(x, y, out=result)},
    )


# ---- operators that become chains -----------------------------------------------------------


def fused(setting: Setting) -> Iterator[Row]:
    """Operators with their gradients, and an optimizer, against torch's."""
    _plain_float32()
    for name, function, shapes in _functions(least=setting.least):
        inputs = [_random(shape) for shape in shapes]
        if name.startswith("cross"):
            inputs.append(torch.arange(shapes[0][0]) % shapes[0][1])
        case = _function(setting, function, inputs)
        yield from rows(setting, name, case)
    side = 16 if setting.least else 8192
    ours = _step(setting, operators.adamw_program(side))
    yield from rows(setting, f"adamw, {side} square", Case(ours, _adamw(setting, side)))


def _functions(*, least: bool) -> Iterator[tuple[str, Function, list[tuple[int, ...]]]]:
    if least:
        yield "gelu and gradient", operators.gelu_both, [(4, 8), (4, 8)]
        return
    tokens, width, scores = 8192, 768, (8, 12, 1024, 1024)
    yield "gelu and gradient", operators.gelu_both, [(tokens, 4 * width)] * 2
    yield "softmax and gradient", operators.softmax_both, [scores] * 2
    sides = [(tokens, width), (width,), (width,), (tokens, width)]
    yield "layer norm and gradient", operators.layer_norm_both, sides
    yield "cross entropy and gradient", operators.cross_entropy_both, [(tokens, 50257)]


def _random(shape: tuple[int, ...]) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(len(shape)))


def _function(setting: Setting, function: Function, inputs: Sequence[Tensor]) -> Case:
    ours = _step(setting, operators.as_program(function, inputs))
    there = [x.to(setting.torch_device) for x in inputs]
    return Case(ours, {"torch": lambda: function(*there)})


def _step(setting: Setting, runnable: Runnable) -> Timed:
    """One step from the same state each time, all of it on the device."""
    program, state, data = runnable
    executor = Executor(unroll(program), setting.backend)
    arrays = (setting.held(state), setting.held(data))
    return lambda: executor.step(*arrays, 1, 0)


def _adamw(setting: Setting, side: int) -> dict[str, Timed]:
    peers: dict[str, Timed] = {}
    for name, fused in {"torch": False, "torch, fused": True}.items():
        parameter = torch.zeros((side, side), device=setting.torch_device, requires_grad=True)
        parameter.grad = torch.ones_like(parameter)
        peers[name] = torch.optim.AdamW(
            [parameter], lr=1e-3, betas=(0.9, 0.95), weight_decay=0.1, fused=fused
        ).step
    return peers


# ---- hashing --------------------------------------------------------------------------------


def hashing(setting: Setting) -> Iterator[Row]:
    """The root over an array's chunks against one SHA-256 of its bytes on the host."""
    size = 10_000 if setting.least else 1 << 30
    data = np.random.default_rng(1).integers(0, 256, size, np.uint8)
    held = setting.device.upload(data)
    case = Case(
        lambda: chunk_root(setting.device, held),
        {"hashlib, one stream": lambda: hashlib.sha256(data.data).digest()},
    )
    yield from rows(setting, f"root of {size} bytes", case)


# ---- whole steps ----------------------------------------------------------------------------


def gpt_step(setting: Setting, size: gpt.Size, name: str) -> Iterator[Row | Finding]:
    """A step of training, and one with the root of the state after it, if there is room."""
    _plain_float32()
    size = gpt.LEAST if setting.least else size
    job = gpt.job(size)
    captured = capture(job)
    executor = Executor(unroll(captured.program), setting.backend)
    try:
        setting.backend.check_room(executor.plan)
        data = executor.hold(captured.data)
    except DeviceFault:
        raise
    except LocalError as error:
        yield Finding(name, None, error.problem)
        return
    state = setting.held(captured.state)

    def ours() -> list[Any]:
        return executor.step(state, data, job.seed, 0)

    def committed() -> object:
        return executor.chunk_roots(ours())

    yield from rows(setting, name, Case(ours, {"torch": _eager(setting, size)}))
    yield from rows(setting, f"{name} and state root", Case(committed, {"the step alone": ours}))


def _eager(setting: Setting, size: gpt.Size) -> Timed:
    """The same model in torch, on one batch of noise."""
    model = gpt.GPT(size).to(setting.torch_device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, betas=(0.9, 0.95), weight_decay=0.1)
    shape = (size.batch, size.length + 1)
    tokens = torch.randint(size.vocabulary, shape, device=setting.torch_device)

    def step() -> None:
        optimizer.zero_grad()
        loss = gpt.loss(model, tokens[:, :-1], tokens[:, 1:])
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

    return step


RATIOS: dict[str, Callable[[Setting], Iterator[Row | Finding]]] = {
    "products": products,
    "gpt-2 small": partial(gpt_step, size=gpt.SMALL, name="GPT-2 small step, 8 x 1024"),
    "hashing": hashing,
    "fused": fused,
    "gpt 350M": partial(gpt_step, size=gpt.MEDIUM, name="GPT 350M step, 4 x 1024"),
}
"""Parts of this module by their names."""
