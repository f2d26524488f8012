"""Bits on the device: golden vectors, random calls, repetitions, sizes past 2^31."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from identic.kernels.arrays import Array, from_words, words
from identic.kernels.cuda.device import DeviceFault
from identic.kernels.hashing.cuda import chunk_root
from identic.node.debug.calls import BUILDERS
from identic.node.debug.cases import F32, I64, Case, Maker, case
from identic.protocol.arithmetic import philox4x32, uniform24
from identic.protocol.errors import LocalError
from identic.protocol.hashing import leaf_hash, node_hash
from identic.protocol.ids import Digest
from identic.protocol.ops import TABLE
from identic.protocol.tensors import CHUNK_BYTES, TensorType
from tests.device.setting import Finding, Setting
from tests.vectors import generate

LEAST = ("add", "sum_last", "take_rows")
"""Operators of the smallest form."""


def vectors(setting: Setting) -> Iterator[Finding]:
    """Every operator on its golden vectors."""
    for name in LEAST if setting.least else sorted(TABLE):
        stored = json.loads(generate.path(name).read_text(encoding="utf-8"))
        rows = stored["cases"][:2] if setting.least else stored["cases"]
        wrong = [number for number, row in enumerate(rows) if not _as_stored(setting, name, row)]
        yield Finding(f"vectors of {name}", not wrong, f"cases {wrong} differ" if wrong else "")


def _as_stored(setting: Setting, name: str, row: dict[str, Any]) -> bool:
    call, inputs, want = generate.parse(row, name)
    arrays = [from_words(k, w) for k, w in zip(call.inputs, inputs, strict=True)]
    return words(setting.backend.run(call, arrays)) == want


# ---- random calls ---------------------------------------------------------------------------

CALLS_S = 20.0
"""How long random calls are made."""


def random_calls(setting: Setting) -> Iterator[Finding]:
    """Random calls of every operator, one after the other, as the CPU computes them."""
    if setting.cpu is None:
        yield Finding("random calls", None, "the native module is not here to compare with")
        return
    end, done, wrong = time.monotonic() + CALLS_S, 0, list[str]()
    names = LEAST if setting.least else sorted(BUILDERS)
    for seed in range(1 if setting.least else 1 << 20):
        for name in names:
            made = BUILDERS[name](Maker(seed))
            inputs = _arrays(made)
            here, there = (b.run(made.call, inputs) for b in (setting.backend, setting.cpu))
            done += 1
            if here.tobytes() != there.tobytes():
                wrong.append(f"{name} {seed}")
        if time.monotonic() > end:
            break
    yield Finding("random calls", not wrong, f"{done} calls; other bits: {wrong[:9] or 'none'}")


def _arrays(made: Case) -> list[Array]:
    return [from_words(k, list(w)) for k, w in zip(made.call.inputs, made.inputs, strict=True)]


# ---- repetitions ----------------------------------------------------------------------------

REPETITIONS = 1000


def repetitions(setting: Setting) -> Iterator[Finding]:
    """Operators that add up in an order, many times over: always the same bits."""
    rng = np.random.default_rng(1)
    for name, shapes, attributes in _reductions(least=setting.least):
        kinds = [TensorType.of(I64 if index else F32, shape) for shape, index in shapes]
        made = case(name, kinds, [[] for _ in kinds], **attributes)
        inputs = setting.held([_numbers(rng, k) for k in kinds])
        found = {
            chunk_root(setting.device, setting.run(made.call, inputs))
            for _ in range(3 if setting.least else REPETITIONS)
        }
        yield Finding(f"repetitions of {name}", len(found) == 1, f"{len(found)} results")


Reduction = tuple[str, list[tuple[tuple[int, ...], bool]], dict[str, object]]


def _reductions(*, least: bool) -> Iterator[Reduction]:
    """Names, shapes with whether they are indices, attributes."""
    n, few = (300, 3) if least else (100_000, 64)
    wide = 40 if least else 4_400
    yield "sum_last", [((few, n), False)], {}
    yield "sum_first", [((n, few), False)], {}
    yield "add_rows", [((few, 8), False), ((n,), True), ((n, 8), False)], {}
    yield "scatter_add", [((few, 8), False), ((n, 8), True), ((n, 8), False)], {"axis": 0}
    yield "matmul", [((few, wide), False), ((wide, few), False)], {}
    if not least:
        yield "amax", [((few, n), False)], {}
        yield "argmax", [((few, n), False)], {}
        yield "cumsum", [((few, n), False)], {}
        yield "argsort", [((few, n), False)], {"descending": 0}
        image, pads = ((16, 32, 28, 28), False), {"after": (1, 1), "before": (1, 1)}
        more = {"stride": (1, 1), "dilation": (1, 1), "groups": 1, "window": (3, 3)}
        yield "conv_dw", [image, image], {**pads, **more}


def _numbers(rng: np.random.Generator, kind: TensorType) -> Array:
    if kind.dtype is I64:
        return rng.integers(0, 5, kind.shape)
    return rng.standard_normal(kind.shape, dtype=np.float32)


# ---- sizes past 2^31 ------------------------------------------------------------------------


def large(setting: Setting) -> Iterator[Finding]:
    """Arrays of more than 2^31 elements; their ends and their roots show what went wrong."""
    n = 5000 if setting.least else (1 << 31) + 12_345
    checks: dict[str, Callable[[Setting, int], bool]] = {
        "elements": _large_elements,
        "uniforms": _large_uniforms,
        "rows of a table": _large_table,
        "hashes": _large_hashes,
        "a sum": _large_sum,
    }
    for name, check in checks.items():
        try:
            yield Finding(f"past 2^31: {name}", check(setting, n))
        except DeviceFault:
            raise
        except LocalError as error:
            # There is no room for it.
            yield Finding(f"past 2^31: {name}", None, str(error))


def _full(setting: Setting, n: int, number: float) -> Any:
    out = setting.device.empty((n,), np.dtype("<f4"))
    setting.backend.engine.calls.full(out, int(np.float32(number).view(np.uint32)))
    return out


def _ends(setting: Setting, array: Any, n: int) -> Array:
    """The last elements, and those about element 2^31 or the middle."""
    middle = min(1 << 31, n // 2)
    parts = (array[n - 4 :], array[middle - 2 : middle + 2])
    return np.concatenate([setting.device.download(p) for p in parts])


def _large_elements(setting: Setting, n: int) -> bool:
    x = _full(setting, n, 1.25)
    out = setting.device.empty((n,), np.dtype("<f4"))
    setting.backend.engine.calls.binary("add", out, x, x, (n,), (1,), (1,))
    return bool((_ends(setting, out, n) == np.float32(2.5)).all())


def _large_uniforms(setting: Setting, n: int) -> bool:
    out = setting.device.empty((n,), np.dtype("<f4"))
    setting.backend.engine.calls.philox_uniform(out, 1, 2, 3, 4)
    block, place = divmod(n - 1, 4)
    word = philox4x32((1, 2), (block & 0xFFFFFFFF, block >> 32, 3, 4))[place]
    last = setting.device.download(out[n - 1 :]).view(np.uint32)
    return int(last[0]) == uniform24(word)


def _large_table(setting: Setting, n: int) -> bool:
    width, rows = 1000, n // 1000
    table = _full(setting, rows * width, 0.0)
    ones = _full(setting, 2 * width, 1.0)
    calls = setting.backend.engine.calls
    calls.copy_strided(table, (rows - 2) * width, (1,), ones, 0, (1,), (2 * width,))
    index = setting.device.upload(np.array([rows - 1, rows, 0]))
    out = setting.device.empty((3 * width,), np.dtype("<f4"))
    calls.take_rows(out, table, index, rows, 4 * width)
    found = setting.device.download(out).reshape(3, width)
    return bool((found == np.array([[1.0], [0.0], [0.0]], np.float32)).all())


def _large_hashes(setting: Setting, n: int) -> bool:
    x = _full(setting, n, 3.0)
    number = np.float32(3.0).tobytes()
    chunks, left = divmod(4 * n, CHUNK_BYTES)
    whole, rest = (leaf_hash(number * (k // 4)) for k in (CHUNK_BYTES, left or CHUNK_BYTES))
    return chunk_root(setting.device, x) == _root(whole, rest, chunks + (left > 0))


def _root(equal: Digest, last: Digest, count: int) -> Digest:
    """Root over ``count`` leaf hashes that are equal but for the last."""
    while count > 1:
        pairs, odd = divmod(count, 2)
        last = last if odd else node_hash(equal, last)
        equal, count = node_hash(equal, equal), pairs + odd
    return last


def _large_sum(setting: Setting, n: int) -> bool:
    """The sum of many ones against that of the sums of its blocks, by the same rule (NUM-12)."""
    sums = setting.backend.engine.calls.sum_last
    ones, out = _full(setting, n, 1.0), setting.device.empty((2,), np.dtype("<f4"))
    sums(out[:1], ones, 1, n)
    blocks = np.full(-(-n // 4096), 4096, np.float32)
    blocks[-1] = n - 4096 * (len(blocks) - 1)
    sums(out[1:], setting.device.upload(blocks), 1, len(blocks))
    one, other = setting.device.download(out)
    return bool(one == other) and abs(float(one) / n - 1) < 1e-6


CHECKS: dict[str, Callable[[Setting], Iterator[Finding]]] = {
    "vectors": vectors,
    "random calls": random_calls,
    "repetitions": repetitions,
    "large": large,
}
"""Parts of this module by their names."""
