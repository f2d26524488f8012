"""What capture hands to lowering: one function's tensor operations, as plain data.

A graph is straight-line code over numbered values: the inputs first, then the result of
each node in order. Nodes carry the operator's name as the capturing framework says it
(``aten.mm.default``), arguments as plain data, the type of the result, and the place in the
user's source. Nothing here knows a framework, and nothing here can run.

Spec: docs/spec/capture.md.
"""

from __future__ import annotations

from dataclasses import dataclass

from identic.protocol.dtypes import DType
from identic.protocol.ids import Count
from identic.protocol.tensors import TensorType

_NO_LINE = Count(0)


@dataclass(frozen=True)
class Place:
    """Where an operation comes from, for people; it never enters a program."""

    file: str = ""
    """Name of the source file without its folders; empty when there is none."""
    line: Count = _NO_LINE
    """Line in that file, from 1; 0 when there is none."""
    text: str = ""
    """The source line, stripped."""
    module: str = ""
    """Path of the module at work, such as ``blocks.2.mlp``."""

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}" if self.file else ""
        return "  ".join(part for part in (self.module, f"({where})" if where else "") if part)


@dataclass(frozen=True)
class Ref:
    """An argument that is value ``index`` of the graph."""

    index: int


Argument = None | bool | int | float | str | DType | Ref | tuple["Argument", ...]


@dataclass(frozen=True)
class Node:
    """One operation."""

    target: str
    """Operator and overload, such as ``aten.add.Tensor``."""
    arguments: tuple[Argument, ...]
    keywords: tuple[tuple[str, Argument], ...]
    type: TensorType
    """Type of the one result."""
    place: Place = Place()

    @property
    def name(self) -> str:
        """Namespace and operator without the overload, such as ``aten.add``."""
        return self.target.rpartition(".")[0]

    @property
    def overload(self) -> str:
        """The overload, such as ``Tensor``."""
        return self.target.rpartition(".")[2]


@dataclass(frozen=True)
class Graph:
    """Straight-line code; every reference points backwards."""

    inputs: tuple[TensorType, ...]
    nodes: tuple[Node, ...]
    outputs: tuple[int, ...]

    def type(self, value: int) -> TensorType:
        """Type of value ``value``."""
        if value < len(self.inputs):
            return self.inputs[value]
        return self.nodes[value - len(self.inputs)].type
