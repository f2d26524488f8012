"""The table of lowering rules, and what a rule is given.

A rule turns one node of a graph into instructions and returns the value that stands for the
node. Rules are registered under the operator's name without its overload.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from identic.protocol.dtypes import DType
from identic.protocol.graph import Argument, Graph, Node, Ref
from identic.protocol.lowering.builder import Builder
from identic.protocol.lowering.errors import CaptureError


@dataclass(frozen=True)
class Context:
    """One node being lowered: its graph, the section under construction, known values."""

    graph: Graph
    builder: Builder
    values: list[int]
    """Section value of each graph value so far."""
    node: Node

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the node's result."""
        return tuple(int(n) for n in self.node.type.shape)

    @property
    def dtype(self) -> DType:
        """Element type of the node's result."""
        return self.node.type.dtype

    def argument(self, position: int, name: str = "", default: Argument = None) -> Argument:
        """Argument by position, else by keyword, else the default."""
        if position < len(self.node.arguments):
            return self.node.arguments[position]
        return next((value for key, value in self.node.keywords if key == name), default)

    def tensor(self, position: int, name: str = "") -> int:
        """Section value of a tensor argument."""
        argument = self.argument(position, name)
        if not isinstance(argument, Ref):
            raise self.refuse(f"argument {position} is {argument!r}, not a tensor")
        return self.values[argument.index]

    def tensors(self, position: int) -> list[int]:
        """Section values of an argument that is a list of tensors."""
        argument = self.argument(position)
        if not isinstance(argument, tuple) or not all(isinstance(a, Ref) for a in argument):
            raise self.refuse(f"argument {position} is not a list of tensors")
        return [self.values[a.index] for a in argument if isinstance(a, Ref)]

    def integer(self, position: int, name: str = "", default: int | None = None) -> int:
        """An integer argument."""
        argument = self.argument(position, name, default)
        if not isinstance(argument, int) or isinstance(argument, DType):
            raise self.refuse(f"argument {position} is {argument!r}, not an integer")
        return int(argument)

    def integers(self, position: int, name: str = "") -> list[int]:
        """A list of integers; a single one counts as a list of one."""
        argument = self.argument(position, name)
        items = argument if isinstance(argument, tuple) else (argument,)
        if not all(isinstance(item, int) for item in items):
            raise self.refuse(f"argument {position} is {argument!r}, not a list of integers")
        return [item for item in items if isinstance(item, int)]

    def scalar(self, position: int, name: str = "", default: Argument = None) -> float:
        """A number argument."""
        argument = self.argument(position, name, default)
        if not isinstance(argument, int | float):
            raise self.refuse(f"argument {position} is {argument!r}, not a number")
        return argument

    def axis(self, position: int, rank: int, name: str = "", default: int | None = None) -> int:
        """An axis argument, counted from the front."""
        return self.integer(position, name, default) % max(rank, 1)

    def operand(self, position: int, dtype: DType) -> int:
        """A tensor argument cast to ``dtype``, or a number argument as a constant of it."""
        argument = self.argument(position)
        if isinstance(argument, Ref):
            return self.builder.cast(self.values[argument.index], dtype)
        return self.builder.full(dtype, self.scalar(position))

    def refuse(self, problem: str, advice: str = "") -> CaptureError:
        """The error that this node cannot be lowered (CAP-4)."""
        return CaptureError(
            "CAP-4",
            f"{self.node.target}: {problem}",
            advice=advice
            or "write it with other operations; docs/spec/capture.md lists those that capture.",
            place=self.node.place,
            operator=self.node.target,
        )


Rule = Callable[[Context], int]

RULES: dict[str, Rule] = {}
"""Rule of each operator, by its name without the overload."""


def lowers(*names: str) -> Callable[[Rule], Rule]:
    """Register a rule for operators of the ``aten`` namespace, or fully named ones."""

    def register(rule: Rule) -> Rule:
        for name in names:
            RULES[name if "." in name else f"aten.{name}"] = rule
        return rule

    return register
