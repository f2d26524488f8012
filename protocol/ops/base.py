"""What every operator of the table says about itself.

One subclass of ``Operator`` per opcode or tight family of opcodes, registered as rows of
``protocol/ops/__init__.py``. An operator has a fixed number of inputs (or any number, for
``concat``), integer attributes, and one result.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from identic.protocol.errors import Code, ProtocolError
from identic.protocol.ops.folds import Fold
from identic.protocol.program.types import Attribute
from identic.protocol.tensors import TensorType


@dataclass(frozen=True)
class Cost:
    """What one call takes: arithmetic steps, and bytes read and written."""

    flops: int
    bytes: int


@dataclass(frozen=True)
class Call:
    """One operator applied to inputs of known types."""

    op: Operator
    inputs: tuple[TensorType, ...]
    attributes: tuple[Attribute, ...]
    output: TensorType

    def integer(self, name: str) -> int:
        """Value of a single-valued attribute."""
        (value,) = self.integers(name)
        return value

    def integers(self, name: str) -> tuple[int, ...]:
        """Values of a list attribute."""
        return next(a.values for a in self.attributes if a.name == name)


class Operator(ABC):
    """A row of the operator table."""

    name: ClassVar[str]
    """Word in programs, on screens and in file names."""

    code: ClassVar[int]
    """Number in the canonical encoding; never used again for another meaning."""

    arity: ClassVar[int | None]
    """Number of inputs; ``None`` for one or more."""

    attributes: ClassVar[tuple[tuple[str, bool], ...]] = ()
    """Names of the attributes in alphabetical order, and whether each is a list."""

    @abstractmethod
    def infer(
        self, inputs: tuple[TensorType, ...], attributes: dict[str, tuple[int, ...]]
    ) -> TensorType:
        """Type of the result; refuses types and attributes outside the rule (OP-*)."""

    @abstractmethod
    def fold(self, call: Call, element: int) -> Fold:
        """How the result's element at flat position ``element`` is computed."""

    def cost(self, call: Call) -> Cost:
        """Cost of a call; one step an element unless the operator says otherwise."""
        moved = sum(t.nbytes for t in call.inputs) + call.output.nbytes
        return Cost(flops=call.output.elements, bytes=moved)

    def call(self, inputs: tuple[TensorType, ...], attributes: tuple[Attribute, ...]) -> Call:
        """Check inputs and attributes and infer the result.

        Raises:
            ProtocolError: the program is wrong (PRG-5, PRG-6 or the operator's own rule).
        """
        # PRG-5: an operator has the number of inputs that its rule states.
        if (not inputs and self.arity is None) or (
            self.arity is not None and len(inputs) != self.arity
        ):
            raise ProtocolError(
                "PRG-5",
                Code.MALFORMED,
                got=f"{len(inputs)} inputs of {self.name}",
                want=self.arity or "one or more",
            )
        # PRG-6: attributes are exactly the operator's, in alphabetical order.
        want = tuple(name for name, _ in self.attributes)
        got = tuple(a.name for a in attributes)
        single = [
            a.name for a, (_, many) in zip(attributes, self.attributes, strict=False) if not many
        ]
        if got != want or any(len(a.values) != 1 for a in attributes if a.name in single):
            raise ProtocolError(
                "PRG-6", Code.MALFORMED, got=f"{self.name} {attributes}", want=self.attributes
            )
        result = self.infer(inputs, {a.name: a.values for a in attributes})
        result.check()
        return Call(self, inputs, attributes, result)
