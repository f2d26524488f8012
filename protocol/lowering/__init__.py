"""From a graph to primitive instructions: pure, and free of any framework.

``lower`` appends a graph's nodes to a section under construction. The rules are one table,
by operator name; an operator without a rule is refused with its place in the user's source.

Spec: docs/spec/capture.md (CAP-4 to CAP-8).
"""

from __future__ import annotations

from collections.abc import Sequence

from identic.protocol.errors import ProtocolError
from identic.protocol.graph import Graph
from identic.protocol.lowering import elementwise, indexing, ordering, reductions, views, windows
from identic.protocol.lowering.builder import Builder
from identic.protocol.lowering.errors import CaptureError
from identic.protocol.lowering.rules import RULES, Context

__all__ = ["RULES", "Builder", "CaptureError", "Context", "lower"]

_RULE_FILES = (elementwise, indexing, ordering, reductions, views, windows)


def lower(graph: Graph, builder: Builder, inputs: Sequence[int]) -> tuple[int, ...]:
    """Append the graph's operations to ``builder``.

    Args:
        graph: what capture traced.
        builder: the section under construction.
        inputs: section value of each graph input, of the same type.

    Returns:
        Section value of each graph output.

    Raises:
        CaptureError: an operator has no rule, or its rule refuses these operands (CAP-4).
    """
    values = list(inputs)
    for node in graph.nodes:
        builder.place = node.place
        context = Context(graph, builder, values, node)
        # CAP-4: an operator without a lowering rule is refused by name and place.
        if node.name not in RULES:
            raise context.refuse("this operator is not supported in a step")
        try:
            value = RULES[node.name](context)
        except CaptureError:
            raise
        except ProtocolError as error:
            raise context.refuse(f"cannot be made of primitive operators: {error}") from error
        # CAP-5: a lowered value has the type that the framework gave it.
        if builder.types[value] != node.type:
            raise context.refuse(f"lowering made {builder.types[value]} of {node.type}")
        values.append(value)
    return tuple(values[i] for i in graph.outputs)
