"""What is left when the descent ends: one question with an answer that anyone can compute.

Everything to the left of a difference is agreed. ``Agreed`` keeps what both sides published
alike, as leaves or as roots of blocks; a question refers to it for what its answer needs.

Spec: docs/spec/dispute.md (DSP-9, REF-7 to REF-12).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from identic.protocol.dispute.moves import Pair
from identic.protocol.ids import Digest
from identic.protocol.ops.folds import Constant, Element, Entry, Looked, Operand, Outer, Step


@dataclass(frozen=True)
class Where:
    """A place in a run, as far down as it is known."""

    step: int | None
    value: int | None
    """Plan value."""
    element: int | None
    """Flat position in the value."""


@dataclass(frozen=True)
class Known:
    """An agreed leaf that was published itself."""

    digest: Digest


@dataclass(frozen=True)
class Under:
    """An agreed leaf that was published only in the root of an aligned block."""

    root: Digest
    """Root over leaves ``[first, first + size)``."""
    index: int
    """The leaf."""
    first: int
    size: int


Place = Known | Under


@dataclass(frozen=True)
class Published:
    """Items of one round that both sides gave alike."""

    first: int
    """First leaf of the first item."""
    block: int
    """Leaves an item stands for; 1 for leaves themselves."""
    last: int
    """End of the last item's leaves."""
    items: tuple[Digest, ...]


@dataclass(frozen=True)
class Agreed:
    """The agreed left part of one tree, round by round."""

    rounds: tuple[Published, ...] = ()

    def adding(self, published: Published) -> Agreed:
        """With one more round."""
        return Agreed((*self.rounds, published))

    def find(self, leaf: int) -> Place:
        """Where leaf ``leaf``, which lies left of the difference, is bound."""
        for part in self.rounds:
            if part.first <= leaf < part.last:
                item = (leaf - part.first) // part.block
                if part.block == 1:
                    return Known(part.items[item])
                first = part.first + item * part.block
                size = min(part.block, part.last - first)
                return Under(part.items[item], leaf, first, size)
        raise LookupError(f"leaf {leaf} is not agreed")


# ---- questions about digests ----------------------------------------------------------------


@dataclass(frozen=True)
class StartQuestion:
    """Which state does the run start from? The terms say."""

    name: ClassVar[str] = "start"

    claims: Pair[Digest]

    @property
    def where(self) -> Where:
        """The place in the run."""
        return Where(None, None, None)

    @property
    def immediate(self) -> bool:
        """Whether the answer needs no evidence."""
        return True


@dataclass(frozen=True)
class LoadQuestion:
    """What does a load give? The state before, the terms or the context say."""

    name: ClassVar[str] = "load"

    step: int
    value: int
    """Plan value of the load."""
    before: Place
    """Root of the state before the step: agreed."""
    from_state: bool
    claims: Pair[Digest]

    @property
    def where(self) -> Where:
        """The place in the run."""
        return Where(self.step, self.value, None)

    @property
    def immediate(self) -> bool:
        """Whether the answer needs no evidence."""
        return not self.from_state


@dataclass(frozen=True)
class EmptyQuestion:
    """What is the digest of a result without elements? Its type says."""

    name: ClassVar[str] = "empty"

    step: int
    value: int
    claims: Pair[Digest]

    @property
    def where(self) -> Where:
        """The place in the run."""
        return Where(self.step, self.value, None)

    @property
    def immediate(self) -> bool:
        """Whether the answer needs no evidence."""
        return True


@dataclass(frozen=True)
class HeaderQuestion:
    """What is the new state's header? Terms, program and step say."""

    name: ClassVar[str] = "header"

    step: int
    claims: Pair[Digest]

    @property
    def where(self) -> Where:
        """The place in the run."""
        return Where(self.step, None, None)

    @property
    def immediate(self) -> bool:
        """Whether the answer needs no evidence."""
        return True


@dataclass(frozen=True)
class StateQuestion:
    """What is a tensor of the new state? The agreed trace says."""

    name: ClassVar[str] = "state"

    step: int
    index: int
    """Tensor number in the state's order."""
    value: int
    """Plan value that it is."""
    place: Place
    """That value in the agreed trace."""
    claims: Pair[Digest]

    @property
    def where(self) -> Where:
        """The place in the run."""
        return Where(self.step, self.value, None)

    @property
    def immediate(self) -> bool:
        """Whether the answer needs no evidence."""
        return isinstance(self.place, Known)


# ---- the question about one primitive step --------------------------------------------------


@dataclass(frozen=True)
class StepQuestion:
    """What does one primitive step give, on operands that are agreed?"""

    name: ClassVar[str] = "primitive"

    step: int
    value: int
    """Plan value of the operator's result."""
    element: int
    """Flat position in the result."""
    path: tuple[int, ...]
    """Entry of each nested fold, outermost first."""
    primitive: Step
    entries: tuple[int, ...]
    """Agreed words of earlier entries of the same fold."""
    outer: tuple[tuple[int, ...], ...]
    """The same for the enclosing folds, innermost last."""
    trace: Agreed
    claims: Pair[int]

    @property
    def where(self) -> Where:
        """The place in the run."""
        return Where(self.step, self.value, self.element)

    @property
    def immediate(self) -> bool:
        """Whether no operand is an element of a tensor."""
        return not any(isinstance(o, Element | Looked) for o in self.primitive.operands)

    def agreed_word(self, operand: Operand) -> int:
        """Word of an operand that is no element: a constant or an agreed entry."""
        if isinstance(operand, Constant):
            return operand.word
        if isinstance(operand, Entry):
            return self.entries[operand.index]
        if isinstance(operand, Outer):
            return self.outer[-operand.up][operand.index]
        raise TypeError(f"{operand} is opened, not agreed")


Question = (
    StartQuestion | LoadQuestion | EmptyQuestion | HeaderQuestion | StateQuestion | StepQuestion
)
