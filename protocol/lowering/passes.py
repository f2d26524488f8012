"""What is done to a section after it has been built: named passes, each checked when it is done.

1. ``constants``: an elementwise operator on constants is the constant that it gives, computed
   by the operator's own definition, so that no bit can change.
2. ``common subexpressions``: the same operator on the same inputs with the same attributes is
   one value.
3. ``dead code``: values that no output needs are left out.

Every pass keeps the order of what it keeps. After each one all types are inferred again and
compared with the declared ones, and the outputs have the types they had.

Spec: docs/spec/capture.md (CAP-5).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from identic.protocol.errors import LocalError, ProtocolError
from identic.protocol.graph import Place
from identic.protocol.ids import Unsigned
from identic.protocol.ops import TABLE
from identic.protocol.ops.checks import attribute_of_word
from identic.protocol.ops.creation import Full
from identic.protocol.ops.elementwise import Binary, Cast, Unary, Where
from identic.protocol.ops.evaluate import element
from identic.protocol.program.types import Attribute, Instruction, Section
from identic.protocol.tensors import TensorType


@dataclass(frozen=True)
class Body:
    """A section under construction: each instruction with its place."""

    inputs: tuple[TensorType, ...]
    instructions: tuple[Instruction, ...]
    places: tuple[Place, ...]
    outputs: tuple[int, ...]

    def section(self) -> Section:
        """The section as programs have it."""
        return Section(self.inputs, self.instructions, tuple(Unsigned(o) for o in self.outputs))

    def types(self) -> list[TensorType]:
        """Declared type of every value."""
        return [*self.inputs, *(i.output for i in self.instructions)]


Pass = Callable[[Body], Body]


class _Rewriter:
    """Collects what a pass keeps, and numbers it anew."""

    def __init__(self, body: Body) -> None:
        self._body = body
        self._instructions: list[Instruction] = []
        self._places: list[Place] = []
        self.number = list(range(len(body.inputs)))
        """New number of each value so far."""

    def moved(self, instruction: Instruction) -> Instruction:
        """The instruction with its inputs' new numbers."""
        inputs = tuple(Unsigned(self.number[i]) for i in instruction.inputs)
        return instruction if inputs == instruction.inputs else replace(instruction, inputs=inputs)

    def keep(self, instruction: Instruction, place: Place) -> int:
        """Append an instruction; returns its value."""
        self._instructions.append(instruction)
        self._places.append(place)
        return len(self._body.inputs) + len(self._instructions) - 1

    def finish(self) -> Body:
        """What was kept."""
        outputs = tuple(self.number[o] for o in self._body.outputs)
        return Body(self._body.inputs, tuple(self._instructions), tuple(self._places), outputs)


# ---- the passes -----------------------------------------------------------------------------

_FOLDED = (Unary, Binary, Where, Cast)


def constants(body: Body) -> Body:
    """Elementwise operators on constants become constants."""
    new = _Rewriter(body)
    known: dict[int, int] = {}
    """Word of the values that are one repeated number, by their new number."""
    types = body.types()
    for old, place in zip(body.instructions, body.places, strict=True):
        made, op = new.moved(old), TABLE[old.op]
        word: int | None = None
        if isinstance(op, Full):
            word = op.word(op.call((), old.attributes))
        elif isinstance(op, _FOLDED) and all(i in known for i in made.inputs):
            call = op.call(tuple(types[i] for i in old.inputs), old.attributes)
            words = [known[i] for i in made.inputs]
            if old.output.elements:
                # CAP-5: the constant has the bits that the operator gives on any machine.
                word = element(call, 0, lambda number, _, words=words: words[number])  # type: ignore[misc]
                made = _full(old.output, word)
        value = new.keep(made, place)
        if word is not None:
            known[value] = word
        new.number.append(value)
    return new.finish()


def _full(kind: TensorType, word: int) -> Instruction:
    attributes = (
        Attribute("dtype", (int(kind.dtype),)),
        Attribute("shape", tuple(int(n) for n in kind.shape)),
        Attribute("word", (attribute_of_word(kind.dtype, word),)),
    )
    return Instruction("full", (), attributes, kind)


def common(body: Body) -> Body:
    """Equal instructions on equal values become one."""
    new = _Rewriter(body)
    known: dict[tuple[object, ...], int] = {}
    for old, place in zip(body.instructions, body.places, strict=True):
        made = new.moved(old)
        key = (made.op, made.inputs, made.attributes)
        if key not in known:
            known[key] = new.keep(made, place)
        new.number.append(known[key])
    return new.finish()


def live(body: Body) -> Body:
    """Instructions that no output needs are left out."""
    first = len(body.inputs)
    needed = set(body.outputs)
    for position in reversed(range(len(body.instructions))):
        if first + position in needed:
            needed.update(body.instructions[position].inputs)
    new = _Rewriter(body)
    for position, (old, place) in enumerate(zip(body.instructions, body.places, strict=True)):
        kept = first + position in needed
        # A value that is left out has no number; nothing that is kept asks for it.
        new.number.append(new.keep(new.moved(old), place) if kept else -1)
    return new.finish()


PASSES: tuple[tuple[str, Pass], ...] = (
    ("constants", constants),
    ("common subexpressions", common),
    ("dead code", live),
)
"""The passes by name, in their order."""


def run(body: Body, passes: Sequence[tuple[str, Pass]] = PASSES) -> Body:
    """Run the passes, and check the section after each.

    Raises:
        LocalError: a pass has made an invalid section.
    """
    known: dict[tuple[object, ...], TensorType] = {}
    for name, function in passes:
        before = body
        body = function(before)
        _check(name, before, body, known)
    return body


def _check(
    name: str, before: Body, after: Body, known: dict[tuple[object, ...], TensorType]
) -> None:
    """Infer every type again; ``known`` holds those of earlier checks."""
    types = list(after.inputs)
    for made in after.instructions:
        if not all(0 <= i < len(types) for i in made.inputs):
            raise _broken(name, f"{made.op} uses a value that is made later")
        operands = tuple(types[i] for i in made.inputs)
        key = (made.op, operands, made.attributes)
        if key not in known:
            try:
                known[key] = TABLE[made.op].call(operands, made.attributes).output
            except ProtocolError as error:
                raise _broken(name, str(error)) from error
        if known[key] != made.output:
            raise _broken(name, f"{made.op} gives {known[key]}, not {made.output}")
        types.append(made.output)
    old = before.types()
    # CAP-5: a pass leaves inputs and outputs of the section as they are.
    if after.inputs != before.inputs or [types[o] for o in after.outputs] != [
        old[o] for o in before.outputs
    ]:
        raise _broken(name, "inputs or outputs have other types")
    if len(after.places) != len(after.instructions):
        raise _broken(name, "places are lost")


def _broken(name: str, problem: str) -> LocalError:
    return LocalError(
        f"the pass over {name} has made an invalid program: {problem}",
        remedy="please report the job",
    )
