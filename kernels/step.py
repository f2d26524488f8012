"""A prepared step as it runs: buffers, and the calls bound to them.

A tensor of the new state gets its memory right before it is made, and a load's is let go right
after its last use. So the memory of a state that the caller gives away, or of a copy that was
made of numpy's, serves the same step again; some new tensors are written over old ones
(``donation.py``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from identic.kernels.arrays import NUMPY, Array
from identic.kernels.draft import ALIAS, HOST, LOAD, RESULT, Arena, Draft, Slots
from identic.kernels.engine import Apart, Engine
from identic.protocol.tensors import Shape


class Step:
    """A draft's operations over buffers of an engine.

    Args:
        engine: makes the buffers.
        draft: finished.
        arena: where its buffers lie.
        loads: how many loads there are; their slots are the first.
        results: slot and shape of each output.
        over: slots of new tensors, and those of loads whose memory each may take.
    """

    def __init__(
        self,
        engine: Engine,
        draft: Draft,
        arena: Arena,
        loads: int,
        results: Sequence[tuple[int, Shape]],
        over: Mapping[int, int],
    ) -> None:
        self._engine = engine
        self._loads = loads
        self._results = list(results)
        self._over = over
        self._none = [engine.empty((0,), NUMPY[s.dtype]) for s in draft.slots]
        self._slots: Slots = list(self._none)
        arena.allocate(draft, engine, self._slots)
        kept = {slot for slot, _ in results}
        self._given = [(i, s.base) for i, s in enumerate(draft.slots) if s.kind == HOST]
        self._fresh = {
            i: (s.elements, NUMPY[s.dtype]) for i, s in enumerate(draft.slots) if s.kind == RESULT
        }
        self._shown: dict[int, list[tuple[int, int]]] = {}
        for i, s in enumerate(draft.slots):
            if s.kind == ALIAS and draft.slots[s.base].kind in {LOAD, RESULT}:
                self._shown.setdefault(s.base, []).append((i, s.offset))
        made = {slot: n for n, o in reversed([*enumerate(draft.operations)]) for slot in o.writes}
        self._first = [slot for slot in self._fresh if slot not in made]
        """New tensors that nothing writes: they have no elements."""
        before: list[list[int]] = [[] for _ in draft.operations]
        after: list[list[int]] = [[] for _ in draft.operations]
        for slot in self._fresh:
            if slot in made:
                before[made[slot]].append(slot)
        for slot in range(loads):
            if slot not in kept and draft.slots[slot].last >= 0:
                after[draft.slots[slot].last] += self._with_views(slot)
        moving = {*range(loads), *self._fresh}
        self._moving = [slot for base in moving for slot in self._with_views(base)]
        calls = [operation.bind(self._slots) for operation in draft.operations]
        self._calls = list(zip(before, calls, after, strict=True))

    def _with_views(self, base: int) -> list[int]:
        """A slot, and all that show it."""
        views = [slot for slot, _ in self._shown.get(base, ())]
        return [base, *views, *(slot for slot, load in self._given if load == base)]

    def run(self, loads: list[Array], *, given: bool = False) -> list[Array]:
        """The plan's outputs from its loads; see ``backend.Run``."""
        slots, none = self._slots, self._none
        for slot, load in self._given:
            slots[slot] = loads[load]
        slots[: self._loads] = [self._engine.flat(a) for a in loads]
        over = self._written_over(loads, given=given)
        if given:
            loads.clear()
        for slot in range(self._loads):
            self._show(slot)
        for slot in self._first:
            self._make(slot, {})
        for before, call, after in self._calls:
            for slot in before:
                self._make(slot, over)
            call()
            for slot in after:
                slots[slot] = none[slot]
        results = [slots[slot].reshape(shape) for slot, shape in self._results]
        self._let_go()
        return results

    def _make(self, slot: int, over: Mapping[int, int]) -> None:
        """Memory for a tensor of the new state: an old one's, or new."""
        elements, dtype = self._fresh[slot]
        old = over.get(slot)
        empty = self._engine.empty
        self._slots[slot] = empty((elements,), dtype) if old is None else self._slots[old]
        self._show(slot)

    def _show(self, base: int) -> None:
        """Set the slots that show the rest of another."""
        for slot, offset in self._shown.get(base, ()):
            self._slots[slot] = self._slots[base][offset:]

    def _written_over(self, loads: Sequence[Array], *, given: bool) -> dict[int, int]:
        """What is written over what in this step: nothing that lies where two loads do.

        A load that the engine has copied from numpy's is the step's own.
        """
        engine = self._engine
        if not self._over or not isinstance(engine, Apart):
            return {}
        twice = _shared([engine.span(self._slots[n]) for n in range(self._loads)])
        return {
            new: old
            for new, old in self._over.items()
            if old not in twice and (given or not engine.holds(loads[old]))
        }

    def _let_go(self) -> None:
        """Hold on to nothing that is the caller's: not the old state, nor views of it."""
        for slot in self._moving:
            self._slots[slot] = self._none[slot]


def _shared(spans: Sequence[range]) -> set[int]:
    """Numbers of the spans that have an address in common with another."""
    found: set[int] = set()
    end, owner = -1, -1
    for number in sorted(range(len(spans)), key=lambda n: (spans[n].start, spans[n].stop)):
        span = spans[number]
        if not span:
            continue
        if span.start < end:
            found |= {owner, number}
        if span.stop > end:
            end, owner = span.stop, number
    return found
