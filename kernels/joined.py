"""Chains of one code over different buffers, joined to one operation of a prepared step.

An optimizer is the same chain for every tensor. Such chains stand next to each other at the
end of a step, and none needs a result of another; an engine with ``JoinedChain`` runs all of
them at once. Chains are joined where

* no operation but such chains stands between them, and none of those reads what another writes;
* they have the same code, and operands that are dense, or one element for all, in the same places.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from identic.kernels.chains import Chained, External
from identic.kernels.draft import Bind, Draft, Kernel, Operation, Slots
from identic.kernels.engine import BuiltJoin, Joins, Over
from identic.protocol.tensors import Shape, strides

ROWS = frozenset({"sum_last", "amax"})
"""Operators that need rows."""


@dataclass(frozen=True)
class Key:
    """What chains of one launch have in common."""

    inputs: tuple[tuple[str, bool], ...]
    code: tuple[tuple[str, tuple[int, ...]], ...]
    outputs: tuple[int, ...]
    scalars: tuple[bool, ...]


def join_chains(draft: Draft, calls: Joins) -> None:
    """Replace chains of a finished draft by joined ones."""
    done: list[Operation] = []
    waiting: dict[Key, list[Operation]] = {}
    written: set[int] = set()

    def run_all() -> None:
        for key, operations in waiting.items():
            done.extend(_joined(calls, key, operations))
        waiting.clear()
        written.clear()

    for operation in draft.operations:
        key = key_of(operation)
        if key is None or any(draft.base(slot) in written for slot in operation.reads):
            run_all()
        if key is None:
            done.append(operation)
        else:
            waiting.setdefault(key, []).append(operation)
            written.update(operation.writes)
    run_all()
    draft.operations = done


def key_of(operation: Operation) -> Key | None:
    """What the chain has in common with others, or ``None`` where it is none that joins."""
    chained = operation.chained
    if chained is None or any(name in ROWS for name, _ in chained.code):
        return None
    scalars = [is_scalar(x, chained.shape) for x in chained.externals]
    outputs = tuple(chained.members[slot] for slot in operation.writes)
    inputs = tuple((x.kind, x.of_rows) for x in chained.externals)
    found = tuple(s for s in scalars if s is not None)
    if len(found) != len(scalars) or of_rows(chained).intersection(outputs):
        return None
    return Key(inputs, chained.code, outputs, found)


def is_scalar(x: External, shape: Shape) -> bool | None:
    """False for a dense operand, true for one element, ``None`` for any other."""
    pairs = [(s, d) for n, s, d in zip(shape, x.steps, strides(shape), strict=True) if n != 1]
    if all(s == d for s, d in pairs):
        return False
    return None if any(s for s, _ in pairs) else True


def of_rows(chained: Chained) -> set[int]:
    """Numbers of the values that have one element a row."""
    rows = {number for number, x in enumerate(chained.externals) if x.of_rows}
    for number, (_, operands) in enumerate(chained.code, start=len(chained.externals)):
        if rows.issuperset(operands):
            rows.add(number)
    return rows


def _joined(calls: Joins, key: Key, operations: Sequence[Operation]) -> Sequence[Operation]:
    """One operation for all, or the only one as it is."""
    if len(operations) == 1:
        return operations
    reads = tuple(dict.fromkeys(slot for o in operations for slot in o.reads))
    writes = tuple(slot for o in operations for slot in o.writes)
    bind = joined_bind(calls, key, operations)
    return [Operation(reads, writes, bind, parts=tuple(operations))]


def joined_bind(calls: Joins, key: Key, operations: Sequence[Operation], over: Over = ()) -> Bind:
    """Chains of one key as one, whose results may be written over some of the inputs."""
    built = calls.JoinedChain(key.inputs, key.code, key.outputs, key.scalars, over)
    return _bind(built, operations)


def _bind(built: BuiltJoin, operations: Sequence[Operation]) -> Bind:
    sets = [(o.writes, o.reads) for o in operations]
    elements = [math.prod(o.chained.shape) for o in operations if o.chained is not None]

    def bind(slots: Slots) -> Kernel:
        def run() -> None:
            outputs = [[slots[w] for w in writes] for writes, _ in sets]
            inputs = [[slots[r] for r in reads] for _, reads in sets]
            built.run(outputs, inputs, elements)

        return run

    return bind
