"""Runs the unrolled step of a program on a backend.

* With an observer every value of the plan is computed by itself, as a row-major array, in
  the order of the trace; the observer sees each and may return another array in its place.
* Without one a value is freed after its last use, operators that only move elements become
  views where the reader takes strides, and a backend that compiles plans may fuse.

The bits of the new state are the same either way. Arrays given to ``step`` are never
written; arrays it returns may be the same objects (a frozen parameter) or views of each other.
A state that ``consume`` takes is given away: on a device the new one may lie where it lay.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from identic.kernels.arrays import NUMPY, Array, on_host, part, row_major
from identic.kernels.backend import Backend, Compiles, Holds, Run
from identic.kernels.hashing import chunk_roots
from identic.protocol.ids import Digest
from identic.protocol.ops.base import Call
from identic.protocol.program.context import context
from identic.protocol.program.cost import last_uses
from identic.protocol.program.plan import Load, Source, StepPlan

Observer = Callable[[int, Array], Array]
"""``observer(value, array)``: sees a plan value and returns the array to go on with."""


class Executor:
    """One program on one backend."""

    def __init__(self, plan: StepPlan, backend: Backend) -> None:
        self.plan = plan
        self.backend = backend
        last = last_uses(plan)
        freed: list[list[int]] = [[] for _ in range(plan.values + 1)]
        for value, use in enumerate(last):
            freed[use].append(value)
        self._freed = [tuple(f) for f in freed]
        self._compiled: Run | None = None

    def step(
        self,
        state: Sequence[Array],
        data: Sequence[Array],
        seed: int,
        step: int,
        observer: Observer | None = None,
    ) -> list[Array]:
        """Compute the state after one step.

        Args:
            state: tensors in the order of ``program.state``; the loss's content is not read.
            data: tensors in the order of ``program.data``.
            seed: the job's seed.
            step: index of ``state``, 0 for the initial one.
            observer: sees every value, loads first.

        Returns:
            The new state in the same order, the loss last.
        """
        loads = self._loads(state, data, seed, step)
        if observer is not None:
            return self._observed(loads, observer)
        return self._prepared(loads)(loads)

    def consume(
        self, state: list[Array], data: Sequence[Array], seed: int, step: int
    ) -> list[Array]:
        """The state after one step, from one that nobody needs any more.

        Args:
            state: as in ``step``; the list is emptied, so that nobody reads what its arrays
                hold afterwards, or keeps their memory. Arrays of numpy are not written.
            data: as in ``step``; not written.
            seed: the job's seed.
            step: index of ``state``.

        Returns:
            The new state, as from ``step``.
        """
        loads = self._loads(state, data, seed, step)
        run = self._prepared(loads, given=True)
        state.clear()
        return run(loads, given=True)

    def hold(self, data: Sequence[Array]) -> list[Array]:
        """Data for many steps, put once where prepared steps read it.

        Raises:
            LocalError: a device has no room for a step.
        """
        # The step first, since what it needs is compared with what is free.
        self._prepared(given=True)
        return self.backend.hold(data) if isinstance(self.backend, Holds) else list(data)

    def _prepared(self, loads: Sequence[Array] = (), *, given: bool = False) -> Run:
        if self._compiled is None:
            backend, run = self.backend, self._plain
            if isinstance(backend, Compiles):
                run = backend.compile(self.plan, loads, given=given)
            self._compiled = run
        return self._compiled

    def chunk_roots(self, arrays: Sequence[Array]) -> list[Digest]:
        """Root over the chunks of each array of a state, computed where it lies (COM-3)."""
        if isinstance(self.backend, Holds):
            return self.backend.chunk_roots(arrays)
        return chunk_roots(arrays)

    def _loads(
        self, state: Sequence[Array], data: Sequence[Array], seed: int, step: int
    ) -> list[Array]:
        program = self.plan.program
        if len(state) != len(program.state) or len(data) != len(program.data):
            raise ValueError(f"{len(state)} state and {len(data)} data tensors do not fit")
        return [_load(load, state, data, seed, step) for load in self.plan.loads]

    def _observed(self, loads: list[Array], observer: Observer) -> list[Array]:
        values: list[Array | None] = [observer(i, on_host(a)) for i, a in enumerate(loads)]
        for number, planned in enumerate(self.plan.calls, start=len(loads)):
            inputs = [_present(values[i]) for i in planned.inputs]
            values.append(observer(number, self.backend.run(planned.call, inputs)))
            for dead in self._freed[number]:
                values[dead] = None
        return [_present(values[o]) for o in self.plan.outputs]

    def _plain(self, loads: list[Array], *, given: bool = False) -> list[Array]:
        del given
        values: list[Array | None] = list(loads)
        for number, planned in enumerate(self.plan.calls, start=len(loads)):
            inputs = [_present(values[i]) for i in planned.inputs]
            view = VIEWS.get(planned.call.op.name)
            result = view(planned.call, inputs[0]) if view else None
            values.append(self.backend.run(planned.call, inputs) if result is None else result)
            for dead in self._freed[number]:
                values[dead] = None
        return [row_major(_present(values[o])) for o in self.plan.outputs]


def _load(load: Load, state: Sequence[Array], data: Sequence[Array], seed: int, step: int) -> Array:
    if load.source is Source.CONTEXT:
        return np.array(context(seed, step, load.index), dtype="<i8")
    array = (state if load.source is Source.STATE else data)[load.index]
    if array.shape != load.type.shape or array.dtype != NUMPY[load.type.dtype]:
        raise ValueError(f"{array.dtype}{list(array.shape)} where the program has {load.type}")
    return array


def _present(array: Array | None) -> Array:
    if array is None:
        raise RuntimeError("a value was freed before its last use")
    return array


# ---- views ----------------------------------------------------------------------------------


def _reshape(call: Call, x: Array) -> Array:
    return x.reshape(call.output.shape)


def _permute(call: Call, x: Array) -> Array:
    return x.transpose(call.integers("axes"))


def _expand(call: Call, x: Array) -> Array:
    return np.broadcast_to(x, call.output.shape)


def _slice(call: Call, x: Array) -> Array:
    bounds = zip(*(call.integers(n) for n in ("start", "stop", "step")), strict=True)
    return part(x, *(slice(*b) for b in bounds))


VIEWS: dict[str, Callable[[Call, Array], Array]] = {
    "reshape": _reshape,
    "permute": _permute,
    "expand": _expand,
    "slice": _slice,
}
"""Operators that need no copy: their result is a view (or, for a reshape, may be)."""
