"""The disputed step explained: where it stands in the program and the source, and its numbers.

``describe`` turns a ruling into an ``Explained``; ``lines`` draws it.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from typing import Final

from rich.text import Text

from identic.node.cli import words
from identic.node.cli.output import Lines, columns, indented
from identic.node.cli.screens.descent import position, value_name
from identic.protocol.dispute.setup import Setup
from identic.protocol.dispute.state import Operand, Ruling
from identic.protocol.dtypes import DType
from identic.protocol.ops.primitives import PRIMITIVES
from identic.protocol.program.plan import Part, PlannedCall, Source, StepPlan
from identic.protocol.tensors import CHUNK_BYTES

_EXACT: Final = Context(prec=400)
"""Enough digits for any sum or product of float32 numbers."""

_PARTS: Final = {
    Part.GRADIENT: "the gradient section",
    Part.REDUCTION: "the sums over shards",
    Part.UPDATE: "the update section",
}

_MEANINGS: Final = {
    "fma": "a * b + acc, rounded once",
    "add": "a + b, rounded once",
    "sub": "a - b, rounded once",
    "mul": "a * b, rounded once",
    "div": "a / b, rounded once",
    "maximum": "the larger one; NaN if one is",
    "minimum": "the smaller one; NaN if one is",
    "copy": "a, unchanged",
    "select": "b where a is true, otherwise c",
    "cast": "a, converted",
    "add_if_equal": "a + d if b is c, otherwise a",
    "set_if_equal": "d if b is c, otherwise a",
    "argmax": "d if b exceeds a, otherwise c",
}
"""Primitive steps in words, by the first part of their names."""


@dataclass(frozen=True)
class Number:
    """An operand or a result.

    Attributes:
        label: letter in the formula, or who claims it.
        decimal: its exact value.
        hex: its bit pattern.
        where: tensor, chunk and byte that it was read from; empty where it is no element.
    """

    label: str
    decimal: str
    hex: str
    where: str


@dataclass(frozen=True)
class Explained:
    """Where the disputed step stands, and its numbers.

    Attributes:
        place: the operator's place in the program.
        operator: its name, attributes and types.
        inputs: what it is applied to.
        source: place in the submitter's source; empty where it is not known.
        line: the line of source; empty where it is not known.
        element: which element of the result, and how far into its sums.
        meaning: the primitive step in words.
        operands: of the primitive step, in order.
        results: what each side claims and the referee computes.
        exact: result before rounding, where that can be said.
    """

    place: str
    operator: str
    inputs: tuple[str, ...]
    source: str
    line: str
    element: str
    meaning: str
    operands: tuple[Number, ...]
    results: tuple[Number, ...]
    exact: str


def describe(
    setup: Setup, ruling: Ruling, places: Mapping[int, str], source: Mapping[int, str]
) -> Explained:
    """Explain the last question of a dispute.

    Args:
        setup: what the dispute is about.
        ruling: how it ended.
        places: where plan values come from in the submitter's source.
        source: lines of source by plan value.
    """
    plan, value = setup.plan, ruling.value
    planned = plan.call(value) if value is not None else None
    kind = _result_kind(plan, ruling)
    labels = _labels(ruling)
    operands = tuple(
        _number(plan, label, operand, dtype)
        for label, operand, dtype in zip(labels, ruling.operands, _kinds(ruling), strict=False)
    )
    said = (
        ("the defender claims", ruling.defender),
        ("the challenger claims", ruling.challenger),
        ("the referee computes", ruling.computed),
    )
    return Explained(
        place=_place(plan, value, planned),
        operator=_operator(planned),
        inputs=_inputs(plan, planned, places),
        source=places.get(value, "") if value is not None else "",
        line=source.get(value, "") if value is not None else "",
        element=_element(plan, ruling),
        meaning=_MEANINGS.get(ruling.primitive.partition(".")[0], ""),
        operands=operands,
        results=tuple(_result(who, data, ruling, kind) for who, data in said if data),
        exact=_exact(ruling, operands),
    )


def _result_kind(plan: StepPlan, ruling: Ruling) -> DType | None:
    row = PRIMITIVES.get(ruling.primitive)
    if row is not None and row.result is not None:
        return row.result
    return None if ruling.value is None else plan.type(ruling.value).dtype


def _kinds(ruling: Ruling) -> tuple[DType | None, ...]:
    row = PRIMITIVES.get(ruling.primitive)
    return row.operands if row else ()


def _labels(ruling: Ruling) -> list[str]:
    labels = [chr(ord("a") + i) for i in range(len(ruling.operands))]
    return [*labels[:2], "acc"] if ruling.primitive == "fma" else labels


# ---- where it stands --------------------------------------------------------------------------


def _place(plan: StepPlan, value: int | None, planned: PlannedCall | None) -> str:
    if value is None:
        return ""
    if planned is None:
        load = plan.loads[value]
        origin = {
            Source.STATE: "from the state before the step",
            Source.DATA: "from the job's data",
            Source.CONTEXT: f"the context of shard {load.index}",
        }[load.source]
        return f"value {value:,} of {plan.values:,}: a load, {origin}"
    where = f"instruction {planned.position:,} of {_PARTS[planned.part]}"
    shard = f", shard {planned.shard}" if planned.part is Part.GRADIENT else ""
    return f"value {value:,} of {plan.values:,}: {where}{shard}"


def _operator(planned: PlannedCall | None) -> str:
    if planned is None:
        return ""
    call = planned.call
    given = ", ".join(str(kind) for kind in call.inputs)
    attributes = [
        f"{a.name}={int(a.values[0]) if len(a.values) == 1 else tuple(int(v) for v in a.values)}"
        for a in call.attributes
    ]
    more = f"  {', '.join(attributes)}" if attributes else ""
    return f"{call.op.name}({given}) -> {call.output}{more}"


def _inputs(
    plan: StepPlan, planned: PlannedCall | None, places: Mapping[int, str]
) -> tuple[str, ...]:
    if planned is None:
        return ()
    return tuple(f"value {v:,}: {value_name(plan, v, places)}" for v in planned.inputs)


def _element(plan: StepPlan, ruling: Ruling) -> str:
    if ruling.value is None or ruling.element is None:
        return ""
    flat, kind = int(ruling.element), plan.type(ruling.value)
    path = f"; entry {', '.join(f'{i:,}' for i in ruling.path)} of its fold" if ruling.path else ""
    chunk, offset = divmod(flat * kind.dtype.size, CHUNK_BYTES)
    return (
        f"element {flat:,} of {kind.elements:,}, {position(plan, ruling.value, flat)}, "
        f"chunk {chunk:,} byte {offset:,}{path}"
    )


# ---- numbers ----------------------------------------------------------------------------------


def _number(plan: StepPlan, label: str, operand: Operand, kind: DType | None) -> Number:
    where = {"constant": "from the program", "agreed": "agreed before"}.get(operand.source, "")
    if operand.source == "outside":
        where = f"outside value {operand.value}, reads 0"
    if operand.value is not None and operand.element is not None:
        type_ = plan.type(int(operand.value))
        kind = kind or type_.dtype
        chunk, offset = divmod(int(operand.element) * type_.dtype.size, CHUNK_BYTES)
        place = f"value {operand.value:,}, element {operand.element:,}"
        where = f"{place}: chunk {chunk:,} byte {offset:,}"
    word = int(operand.word)
    return Number(label, exact_decimal(kind, word), words.pattern(kind, word), where)


def _result(who: str, data: bytes, ruling: Ruling, kind: DType | None) -> Number:
    if not ruling.primitive:
        return Number(who, "", data.hex(), "")
    word = int.from_bytes(data, "big")
    return Number(who, exact_decimal(kind, word), words.pattern(kind, word), "")


def exact_decimal(kind: DType | None, word: int) -> str:
    """Every digit of an element's value."""
    found = _float(kind, word)
    if found is None or found - found != 0:
        return words.element(kind, word)
    return f"{Decimal(found).normalize(_EXACT):f}" if abs(found) >= 1e-6 else f"{Decimal(found)}"


def _float(kind: DType | None, word: int) -> float | None:
    """The value of a floating-point element; None for other types."""
    shift = {DType.FLOAT32: 0, DType.BFLOAT16: 16}
    if kind not in shift:
        return None
    bits = (word << shift[kind]) & 0xFFFFFFFF
    value: float = struct.unpack("<f", struct.pack("<I", bits))[0]
    return value


def _exact(ruling: Ruling, operands: tuple[Number, ...]) -> str:
    """The result of a sum or a product before it is rounded."""
    name = ruling.primitive
    if name not in ("fma", "add.float32", "sub.float32", "mul.float32"):
        return ""
    found = [_float(DType.FLOAT32, int(o.word)) for o in ruling.operands]
    if len(found) != len(operands) or any(x is None or x - x != 0 for x in found):
        return ""
    a, b, *rest = (Fraction(x) for x in found if x is not None)
    value = {"fma": a * b + sum(rest), "add.float32": a + b, "sub.float32": a - b}.get(name, a * b)
    return str(_EXACT.divide(Decimal(value.numerator), Decimal(value.denominator)))


# ---- drawing ----------------------------------------------------------------------------------

NO_SOURCE: Final = (
    "not known here: a program carries no source",
    "whoever submitted the job has it in places.json: give --job DIR or --notes FILE",
)


def lines(view: Explained) -> Lines:
    """The explanation."""
    rows: list[list[Text | str]] = []

    def row(name: str, text: str) -> None:
        if text:
            rows.append([Text(name, style="dim"), text])

    row("program", view.place)
    row("operator", view.operator)
    for number, text in enumerate(view.inputs):
        row("applied to" if not number else "", text)
    if view.place:
        row("source", view.source or NO_SOURCE[0])
        row("", view.line if view.source else NO_SOURCE[1])
    row("element", view.element)
    row("step", view.meaning)
    out: list[Text] = [Text(" explained", style="bold"), *indented(columns(rows), 3)]
    out += indented(columns([_cells(n) for n in view.operands]), 5)
    if view.exact:
        out.append(Text(f"     exactly  {view.exact}", style="dim"))
    out += indented(columns([_cells(n) for n in view.results]), 5)
    return out


def _cells(number: Number) -> list[Text | str]:
    label = f"{number.label} =" if len(number.label) <= 3 else number.label
    cells = (number.decimal, Text(number.hex, style="dim"), Text(number.where, style="dim"))
    return [label, *(cell for cell in cells if len(cell))]
