"""The ways to compute an operator on this machine, by name.

``fold``       the definition, one primitive step at a time, as a referee computes it
``reference``  the plain loops in Python integers
``cpu``        the native kernels on the preferred vector path
``cuda``       the kernels on the first CUDA device; ``cuda:1`` on the second one
others         the native kernels on the vector path of this name

A native twin may have a number of threads after a colon: ``avx2:4``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache

from identic.kernels import _native
from identic.kernels.arrays import Array, from_words, words
from identic.kernels.cpu_backend import CpuBackend
from identic.kernels.reference_backend import ReferenceBackend
from identic.node.worker import cards
from identic.node.worker.cards import Card
from identic.node.worker.devices import AUTO, CUDA, number
from identic.protocol.errors import LocalError
from identic.protocol.ops.base import Call
from identic.protocol.ops.evaluate import element

Run = Callable[[Call, Sequence[Array]], Array]

MOST_THREADS = 1024


@dataclass(frozen=True)
class Twin:
    """One way to compute operators."""

    name: str
    run: Run
    """Result of a call, as of ``Backend.run``."""


def names(device: str = AUTO) -> list[str]:
    """Every twin of this machine, the definition first.

    Args:
        device: the one to be among them; ``auto`` takes the first one if it is there.

    Raises:
        LocalError: that device is not here.
    """
    found = ["fold", "reference", *_native.paths()]
    index = number(device)
    if index is None:
        return found
    try:
        card(index)
    except LocalError:
        if device != AUTO:
            raise
        return found
    return [*found, CUDA if device == AUTO else device]


def named(name: str) -> Twin:
    """The twin of a name.

    Raises:
        LocalError: this machine has none of this name.
    """
    path, _, threads = name.partition(":")
    if path == CUDA:
        return Twin(name, card(number(name) or 0).run)
    count = int(threads) if threads.isascii() and threads.isdecimal() else None
    plain = name in {"fold", "reference"}
    native = path == "cpu" or path in _native.paths()
    if plain:
        return Twin(name, fold if name == "fold" else ReferenceBackend().run)
    if not native or (threads and (count is None or not 1 <= count <= MOST_THREADS)):
        raise LocalError(
            f"there is no backend or vector path {name} here",
            remedy=f"take one of {', '.join(names())} or cpu; avx2:4 is a path with four threads",
        )
    return Twin(name, native_twin("auto" if path == "cpu" else path, count))


@cache
def card(index: int) -> Card:
    """The operators on a device, opened once; not tested: what they give is to be looked at."""
    return cards.opened(index)


def fold(call: Call, inputs: Sequence[Array]) -> Array:
    """Every element by its fold."""
    given = [words(x) for x in inputs]
    made = [
        element(call, flat, lambda number, at: given[number][at])
        for flat in range(call.output.elements)
    ]
    return from_words(call.output, made)


def native_twin(path: str, threads: int | None) -> Run:
    """The native kernels on a path, which the process takes only while they run."""

    def run(call: Call, inputs: Sequence[Array]) -> Array:
        with taken(path, threads):
            return CpuBackend().run(call, inputs)

    return run


@contextmanager
def taken(path: str, threads: int | None) -> Iterator[None]:
    """Use a vector path and a number of threads, and go back to those of before."""
    before, count = _native.path(), _native.threads()
    try:
        _native.set_path(path)
        if threads is not None:
            _native.set_threads(threads)
        yield
    finally:
        _native.set_path(before)
        _native.set_threads(count)
