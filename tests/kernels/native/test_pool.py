"""The machine under the kernels: threads, paths, control registers, forks."""

from __future__ import annotations

import ctypes
import ctypes.util
import os
import platform
import threading
from pathlib import Path

import numpy as np
import pytest

from identic.kernels import _native
from identic.kernels.arrays import Array

TASKS = Path("/proc/self/task")
"""The threads of this process, by number."""


def product(size: int) -> Array:
    a = np.arange(size * size, dtype=np.float32).reshape(size, size)
    out = np.empty_like(a)
    _native.matmul(out, a, a, 1, size, size, size, (0, size, 1), (0, size, 1))
    return out


class Registers:
    """The control register of this thread, changed through the C library."""

    # Offset of the control word in fenv_t and the bits that lose subnormals.
    flush = (28, 0x8040) if platform.machine() == "x86_64" else (0, 1 << 24)
    upward = 0x800 if platform.machine() == "x86_64" else 0x400000

    def __init__(self) -> None:
        self.library = ctypes.CDLL(ctypes.util.find_library("m") or "libm.so.6")

    def round_up(self) -> None:
        self.library.fesetround(self.upward)

    def lose_subnormals(self) -> None:
        words = (ctypes.c_uint32 * 16)()
        self.library.fegetenv(words)
        offset, bits = self.flush
        words[offset // 4] |= bits
        self.library.fesetenv(words)


def test_num_21__the_float_environment_is_seen_and_reset() -> None:
    good = {"ftz": False, "daz": False, "rounding": "nearest"}
    registers = Registers()
    for threads in (1, 3):
        _native.set_threads(threads)
        _native.reset_float_environment()
        assert _native.float_environment() == good
        registers.lose_subnormals()
        seen = _native.float_environment()
        _native.reset_float_environment()
        assert seen["ftz"]
        assert _native.float_environment() == good
        registers.round_up()
        seen = _native.float_environment()
        _native.reset_float_environment()
        assert seen["rounding"] == "up"
        assert _native.float_environment() == good
    _native.set_threads(1)


def test_paths_can_be_chosen_by_name() -> None:
    assert _native.paths()[-1] == "scalar"
    for name in _native.paths():
        _native.set_path(name)
        assert _native.path() == name
    _native.set_path("auto")
    assert _native.path() == _native.paths()[0]
    with pytest.raises(ValueError, match="unknown"):
        _native.set_path("abacus")


def test_calls_from_many_threads_do_not_disturb_each_other() -> None:
    _native.set_threads(2)
    want = product(150).tobytes()
    wrong: list[int] = []

    def work(number: int) -> None:
        results = {product(150).tobytes() for _ in range(20)}
        if results != {want}:
            wrong.append(number)

    workers = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    _native.set_threads(1)
    assert wrong == []


def test_threads_stay_on_the_processors_that_the_process_may_use() -> None:
    allowed = os.sched_getaffinity(0)
    want = product(200).tobytes()
    for few in ({min(allowed)}, {max(allowed)}, allowed):
        for threads in (1, 2, 3):
            # New threads begin with the mask of this one.
            _native.set_threads(threads)
            os.sched_setaffinity(0, few)
            before = set(TASKS.iterdir())
            assert {product(200).tobytes() for _ in range(20)} == {want}
            made = set(TASKS.iterdir()) - before
            for thread in made:
                assert os.sched_getaffinity(int(thread.name)) <= few
            os.sched_setaffinity(0, allowed)
    _native.set_threads(1)


def test_a_range_is_done_without_threads_that_come_too_late() -> None:
    _native.set_threads(64)
    want = {product(150).tobytes() for _ in range(50)}
    _native.set_threads(1)
    assert want == {product(150).tobytes()}


def test_a_forked_child_computes() -> None:
    _native.set_threads(2)
    want = product(200).tobytes()
    child = os.fork()
    if child == 0:
        os._exit(0 if product(200).tobytes() == want else 1)
    _, status = os.waitpid(child, 0)
    _native.set_threads(1)
    assert os.waitstatus_to_exitcode(status) == 0
