"""A liar that lies at chosen places, and a chooser that goes through all choices.

``Scripted`` publishes at every level the honest list up to a chosen item and junk from there
on, with its own claim last: the most a liar can do at each level, since every list must fit
its claim. ``every`` calls a function once for each way in which its choices can come out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from typing import TypeVar

from identic.proofs.tensors import chunk_hashes, tensor_digest
from identic.protocol.commitments import state_root
from identic.protocol.dispute.elements import ChunkLevel, FoldLevel
from identic.protocol.dispute.levels import (
    IntervalLevel,
    OutputLevel,
    RunLevel,
    StateLevel,
    StepLevel,
)
from identic.protocol.dispute.moves import Children, Chunk, Entries, Move, Side
from identic.protocol.dispute.state import Dispute
from identic.protocol.hashing import sha256
from identic.protocol.ids import Digest, Unsigned
from tests.helpers.execution import MemoryExecution, to_bytes, to_words

T = TypeVar("T")


class Chooser:
    """Makes the choices of a prefix, then first ones, and remembers how many there were."""

    def __init__(self, prefix: list[int]) -> None:
        self.prefix = prefix
        self.made: list[tuple[int, int]] = []

    def pick(self, options: int) -> int:
        """One of ``options``."""
        at = len(self.made)
        choice = self.prefix[at] if at < len(self.prefix) else 0
        self.made.append((choice, options))
        return choice


def every(run: Callable[[Chooser], T]) -> Iterator[T]:
    """Results of ``run`` for every combination of choices."""
    prefix: list[int] = []
    while True:
        chooser = Chooser(prefix)
        yield run(chooser)
        made = chooser.made
        while made and made[-1][0] + 1 == made[-1][1]:
            made.pop()
        if not made:
            return
        prefix = [choice for choice, _ in made[:-1]] + [made[-1][0] + 1]


class Scripted:
    """A strategy that lies where ``pick`` says.

    Args:
        good: the honest run.
        pick: chooses one of so many.
    """

    def __init__(self, good: MemoryExecution, pick: Callable[[int], int]) -> None:
        self.good, self.pick = good, pick
        self._numbers = count()
        terms, plan = good.terms, good.plan
        self.tensor: bytes | None = None
        self.state: list[Digest] | None = None
        mark = pick(terms.marks)
        self.step = 0
        if mark == 0:
            self.leaves = [self.junk() for _ in range(terms.marks)]
            return
        first, last = terms.step_of(mark - 1), terms.step_of(mark)
        self.step = first + pick(last - first)
        value = pick(plan.trace_length)
        claim = self._state() if value == plan.values else self.junk()
        self.trace = list(good.traces[self.step][:value])
        self.trace += [self.junk() for _ in range(value, plan.values)] + [claim]
        if value < plan.values and plan.call(value) is not None and pick(2):
            self.trace[value] = self._tensor(value)
        after = [claim, *(self.junk() for _ in range(self.step + 1, terms.steps))]
        roots = [*good.roots[: self.step + 1], *after]
        self.interval = roots[first + 1 : last + 1]
        self.leaves = [roots[terms.step_of(m)] for m in range(terms.marks)]

    def junk(self) -> Digest:
        """A digest that nobody can open."""
        return sha256(f"junk {next(self._numbers)}".encode())

    def _state(self) -> Digest:
        """Root of a new state with one wrong leaf, or of no state at all."""
        leaves = [
            self.good.header(self.step + 1),
            *self.good.state_digests(self.step + 1),
        ]
        wrong = self.pick(len(leaves) + 1)
        if wrong == len(leaves):
            return self.junk()
        leaves[wrong:] = [self.junk() for _ in leaves[wrong:]]
        self.state = leaves
        return state_root(leaves[0], leaves[1:])

    def _tensor(self, value: int) -> Digest:
        """Digest of the value's tensor with one wrong element."""
        kind = self.good.plan.type(value)
        words = to_words(kind, self.good.values[self.step][value])
        words[self.pick(len(words))] ^= 1
        self.tensor = to_bytes(kind, words)
        return tensor_digest(kind, self.tensor)

    def __call__(self, dispute: Dispute, side: Side) -> Move | None:
        """Make the next move; nothing where the claim cannot be opened."""
        level, setup = dispute.level, dispute.setup
        if isinstance(level, RunLevel):
            return Children(level.publish(setup, self.leaves[: setup.marks]))
        if isinstance(level, IntervalLevel):
            return Children(tuple(self.interval))
        if isinstance(level, StepLevel):
            items = level.publish(setup, self.trace[:-1])
            return Children((*items, self.trace[-1]) if level.top else items)
        if isinstance(level, StateLevel) and self.state is not None:
            return Children(level.publish(setup, self.state))
        if isinstance(level, OutputLevel) and self.tensor is not None:
            return Children(level.publish(setup, chunk_hashes(self.tensor)))
        if isinstance(level, ChunkLevel) and self.tensor is not None:
            return Chunk(self.tensor[4096 * level.chunk :][:4096])
        if isinstance(level, FoldLevel):
            return self._entries(level, level.claims.of(side))
        return None

    def _entries(self, level: FoldLevel, claim: int) -> Entries:
        """Honest words up to a choice, junk from there, the claim last."""
        at = level.at
        honest = self.good.entries(at.step, at.value, at.element, at.path)
        wrong = self.pick(len(honest))
        words = [*honest[:wrong], *(word ^ 3 for word in honest[wrong:])]
        return Entries(tuple(Unsigned(word) for word in (*words[:-1], claim)))
