"""A dispute as a table: each level, what was compared, where the sides part, and the last step.

``describe`` turns a ruling and its setup into a ``DisputeView``; ``lines`` draws one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from rich.text import Text

from identic.node.cli import words
from identic.node.cli.output import Lines, columns, indented
from identic.protocol.dispute.moves import Side
from identic.protocol.dispute.setup import Setup
from identic.protocol.dispute.state import Operand, Round, Ruling
from identic.protocol.dtypes import DType
from identic.protocol.ids import Digest
from identic.protocol.job.entries import Verdicts
from identic.protocol.ops.folds import Element, Fold, Looked, Nested, Step
from identic.protocol.ops.primitives import PRIMITIVES
from identic.protocol.program.plan import Source, StepPlan
from identic.protocol.tensors import unravel

Places = Mapping[int, str]
"""Where a plan value comes from in the source, such as ``blocks.2.mlp (train.py:31)``."""

SIDES: Final = {Side.DEFENDER: "defender", Side.CHALLENGER: "challenger"}


@dataclass(frozen=True)
class LevelLine:
    """One round of the descent.

    Attributes:
        level: what is in dispute, such as "step 37".
        compared: what both sides published, such as "1,148 values".
        agreed: number of the last child that both gave alike; empty when even the first differs.
        differ: the first that differs, in words.
        nbytes: length of both moves together.
        moved_first: "defender" or "challenger".
    """

    level: str
    compared: str
    agreed: str
    differ: str
    nbytes: int
    moved_first: str


@dataclass(frozen=True)
class OperandLine:
    """An operand of the primitive step.

    Attributes:
        label: letter in the formula.
        meaning: where it stands, such as ``x[205, 345]``.
        decimal: its value.
        hex: its bit pattern.
        origin: how the referee knows it.
    """

    label: str
    meaning: str
    decimal: str
    hex: str
    origin: str


@dataclass(frozen=True)
class ClaimLine:
    """What somebody says the step gives."""

    who: str
    decimal: str
    hex: str
    right: bool


@dataclass(frozen=True)
class DisputeView:
    """A ruled dispute.

    Attributes:
        name: such as ``d-12ab34``.
        defender: how screens call the side that made the claim.
        challenger: likewise, the side that doubted it.
        levels: the descent.
        formula: the step in dispute; empty where there was none.
        operands: of the formula.
        claims: of both sides and the referee.
        verdict: "wrong", "late" or "cannot tell".
        loser: "defender", "challenger" or "".
        rule: id of the rule that decided.
        nbytes: bytes of all moves.
        read_bytes: bytes of evidence that the referee read.
        seconds: time the referee took; 0 where not measured.
        money: sentences about who paid whom.
        transcript: file or digest of the transcript; empty where unknown.
    """

    name: str
    defender: str
    challenger: str
    levels: tuple[LevelLine, ...]
    formula: str
    operands: tuple[OperandLine, ...]
    claims: tuple[ClaimLine, ...]
    verdict: str
    loser: str
    rule: str
    nbytes: int
    read_bytes: int
    seconds: float = 0.0
    money: tuple[str, ...] = ()
    transcript: str = ""


# ---- drawing --------------------------------------------------------------------------------


def lines(view: DisputeView) -> Lines:
    """The table, the step in dispute, and the ruling."""
    out: list[Text] = []
    if view.levels:
        names = ("level", "compared", "agree up to", "differ at", "bytes")
        rows: list[list[Text | str]] = [[Text(name, style="dim") for name in names]]
        for line in view.levels:
            differ = Text(line.differ, style="bold")
            rows.append([line.level, line.compared, line.agreed, differ, words.size(line.nbytes)])
        out += [*indented(columns(rows, right=(2, 4)), 1), Text()]
    if view.formula:
        out.append(Text(f" the step in dispute   {view.formula}", style="bold"))
    if view.operands:
        out += indented(columns([_operand_cells(o) for o in view.operands], right=(2,)), 3)
    if view.claims:
        out += [*indented(columns([_claim_cells(c) for c in view.claims], right=(1,)), 3), Text()]
    return [*out, *ruling_lines(view)]


def _operand_cells(operand: OperandLine) -> list[Text | str]:
    dim = (Text(operand.hex, style="dim"), Text(operand.origin, style="dim"))
    return [f"{operand.label} =", operand.meaning, operand.decimal, *dim]


def _claim_cells(claim: ClaimLine) -> list[Text | str]:
    said = Text(claim.decimal, style="green" if claim.right else "bold red")
    return [claim.who, said, Text(claim.hex, style="dim")]


def ruling_lines(view: DisputeView) -> list[Text]:
    """The ruling, what it cost and where to see it again."""
    name = {"defender": view.defender, "challenger": view.challenger}.get(view.loser, "nobody")
    sentence = {
        "wrong": f"ruling: {name} is wrong ({view.rule}).",
        "late": f"ruling: {name} did not move in time ({view.rule}).",
    }.get(view.verdict, f"ruling: it cannot be told who is wrong ({view.rule}); nobody is slashed.")
    head = Text("✓ " if view.loser else "! ", style="green" if view.loser else "yellow")
    head.append(sentence, style="bold")
    head.append(
        f" {words.plural(len(view.levels), 'round')}, {words.size(view.nbytes)} exchanged, "
        f"{words.size(view.read_bytes)} read by the referee"
    )
    head.append(f", {words.duration(view.seconds)}." if view.seconds else ".")
    out = [head, *(Text(f"  {sentence}") for sentence in view.money)]
    if view.transcript:
        out.append(Text(f"  judge it again, offline:  identic dispute replay {view.transcript}"))
    return out


# ---- describing -----------------------------------------------------------------------------


def describe(
    setup: Setup,
    ruling: Ruling,
    *,
    roles: tuple[str, str] = ("solver", "verifier"),
    places: Places | None = None,
    money: tuple[str, ...] = (),
    transcript: str = "",
    seconds: float = 0.0,
) -> DisputeView:
    """Say in words what a ruling says.

    Args:
        setup: what the dispute is about; the program in it names operators and tensors.
        ruling: how it ended.
        roles: of the defender and of the challenger.
        places: where plan values come from in the submitter's source.
        money: sentences about who paid whom.
        transcript: where to find the transcript.
        seconds: time the referee took.
    """
    opening = setup.opening
    claims, operands, formula = _last_step(setup, ruling, roles)
    return DisputeView(
        name=f"d-{Digest(ruling.dispute).hex()[:6]}",
        defender=f"the {roles[0]} {words.party(roles[0], opening.defender)}",
        challenger=f"the {roles[1]} {words.party(roles[1], opening.challenger)}",
        levels=tuple(_level(setup, line, ruling, places or {}) for line in ruling.rounds),
        formula=formula,
        operands=operands,
        claims=claims,
        verdict={Verdicts.WRONG: "wrong", Verdicts.LATE: "late"}.get(ruling.verdict, "cannot tell"),
        loser="" if ruling.loser is None else SIDES[ruling.loser],
        rule=ruling.rule,
        nbytes=sum(r.defender_bytes + r.challenger_bytes for r in ruling.rounds),
        read_bytes=ruling.read_bytes,
        seconds=seconds,
        money=money,
        transcript=transcript,
    )


def value_name(plan: StepPlan, value: int, places: Places | None = None) -> str:
    """What a plan value is: a tensor's name, or its operator and place in the source."""
    program = plan.program
    if value < len(plan.loads):
        load = plan.loads[value]
        if load.source is Source.STATE:
            return program.state[load.index].name
        if load.source is Source.DATA:
            return f"data {program.data[load.index].name}"
        return f"context of shard {load.index}"
    if value >= plan.values:
        return "the new state"
    call = plan.calls[value - len(plan.loads)]
    place = (places or {}).get(value, "")
    return f"{call.call.op.name}  {place}" if place else call.call.op.name


def _position(plan: StepPlan, value: int, element: int) -> str:
    shape = plan.type(value).shape
    if len(shape) == 2:
        row, column = unravel(element, shape)
        return f"row {row}, column {column}"
    return f"[{', '.join(str(i) for i in unravel(element, shape))}]" if shape else "its only one"


def _level(setup: Setup, line: Round, ruling: Ruling, places: Places) -> LevelLine:
    at = line.first + line.differ * line.block
    noun, label, differ = _NAMES.get(line.level, _other)(setup, line, ruling, places, at)
    if line.block > 1:
        noun = f"blocks of {line.block:,} {noun}"
        last = at + line.block - 1
        differ = f"{at:,} to {last:,}"
    return LevelLine(
        level=label,
        compared=f"{line.compared:,} {noun}",
        agreed=f"{at - 1:,}" if at else "",
        differ=differ,
        nbytes=line.defender_bytes + line.challenger_bytes,
        moved_first=SIDES[line.moved_first],
    )


Named = tuple[str, str, str]
"""Noun of the children, name of the node, the first child that differs."""


def _run(setup: Setup, line: Round, ruling: Ruling, places: Places, at: int) -> Named:
    del line, ruling, places
    step = setup.terms.step_of(at)
    return "states", "run", f"{at:,}" if step == at else f"mark {at:,} (step {step:,})"


def _interval(setup: Setup, line: Round, ruling: Ruling, places: Places, at: int) -> Named:
    del ruling, places
    first = setup.terms.step_of(line.subject - 1)
    return "states", f"to mark {line.subject:,}", f"step {first + at:,}"


def _step(setup: Setup, line: Round, ruling: Ruling, places: Places, at: int) -> Named:
    del ruling
    plan = setup.plan
    if line.differ == line.compared - 1 and at >= plan.values:
        return "values", f"step {line.subject:,}", "the new state"
    return "values", f"step {line.subject:,}", f"{at:,}  {value_name(plan, at, places)}"


def _state(setup: Setup, line: Round, ruling: Ruling, places: Places, at: int) -> Named:
    del ruling, places
    name = "its header" if at == 0 else setup.plan.program.state[at - 1].name
    return "parts", f"state after step {line.subject:,}", f"{at:,}  {name}"


def _output(setup: Setup, line: Round, ruling: Ruling, places: Places, at: int) -> Named:
    del ruling, places
    name = value_name(setup.plan, line.subject)
    return "chunks of 4 kB", f"result of {name}", f"{at:,}"


def _chunk(setup: Setup, line: Round, ruling: Ruling, places: Places, at: int) -> Named:
    del places
    label = f"chunk {line.subject:,}"
    if ruling.value is None:
        return "elements", label, f"{at:,}"
    kind = setup.plan.type(ruling.value)
    element = line.subject * kind.chunk_elements + at
    return "elements", label, f"{at:,}  = {_position(setup.plan, ruling.value, element)}"


def _fold(setup: Setup, line: Round, ruling: Ruling, places: Places, at: int) -> Named:
    del setup, places
    label = "element" if line.subject == ruling.element else f"part {line.subject:,}"
    return "partial values", label, f"{at:,}"


def _other(setup: Setup, line: Round, ruling: Ruling, places: Places, at: int) -> Named:
    del setup, ruling, places
    return "children", f"{line.level} {line.subject:,}", f"{at:,}"


_NAMES: Final[dict[str, Callable[[Setup, Round, Ruling, Places, int], Named]]] = {
    "run": _run,
    "interval": _interval,
    "step": _step,
    "state": _state,
    "output": _output,
    "chunk": _chunk,
    "fold": _fold,
}


def _last_step(
    setup: Setup, ruling: Ruling, roles: tuple[str, str]
) -> tuple[tuple[ClaimLine, ...], tuple[OperandLine, ...], str]:
    """Claims, operands and formula of the question that was answered."""
    primitive = PRIMITIVES.get(ruling.primitive)
    kind = primitive.result if primitive else None

    def claim(who: str, data: bytes) -> ClaimLine:
        right = data == ruling.computed
        if not ruling.primitive:
            return ClaimLine(who, words.short(data), "", right)
        word = int.from_bytes(data, "big")
        return ClaimLine(who, words.element(kind, word), words.pattern(kind, word), right)

    said = zip(roles, (ruling.defender, ruling.challenger), strict=True)
    claims = tuple(claim(f"the {role} claims", data) for role, data in said if data)
    if ruling.computed:
        claims += (claim("the referee computes", ruling.computed),)
    if not ruling.primitive or ruling.value is None or ruling.element is None:
        return claims, (), f"what is the {ruling.level}?" if ruling.computed else ""
    step = _primitive_step(setup, ruling)
    kinds = primitive.operands if primitive else (None,) * len(ruling.operands)
    operands = tuple(
        _operand(setup, ruling, i, operand, kind, step)
        for i, (operand, kind) in enumerate(zip(ruling.operands, kinds, strict=False))
    )
    formula = f"{ruling.primitive}( {', '.join(o.label for o in operands)} )"
    where = ", ".join(str(i) for i in ruling.path)
    return claims, operands, f"{formula}   at {where}" if where else formula


def _primitive_step(setup: Setup, ruling: Ruling) -> Step | None:
    """The step that the ruling's path leads to, for the names of its operands."""
    planned = setup.plan.call(ruling.value or 0)
    if planned is None:
        return None
    fold: Fold = planned.call.op.fold(planned.call, ruling.element or 0)
    for index in ruling.path:
        entry = fold.entry(index)
        if isinstance(entry, Step):
            return entry
        fold = entry.fold
    return None


def _operand(
    setup: Setup,
    ruling: Ruling,
    index: int,
    operand: Operand,
    kind: DType | None,
    step: Step | None,
) -> OperandLine:
    plan = setup.plan
    source = step.operands[index] if step and index < len(step.operands) else None
    label, meaning, origin = "abcdefgh"[index], "", "agreed before"
    if operand.source == "constant":
        meaning, origin = "constant", "from the program"
    elif operand.source == "outside":
        meaning, origin = "outside its table", "reads 0"
    elif operand.source == "element" and operand.value is not None:
        value = int(operand.value)
        where = unravel(operand.element or 0, plan.type(value).shape)
        meaning = f"{value_name(plan, value)}[{', '.join(str(i) for i in where)}]"
        what = "a tensor loaded" if value < len(plan.loads) else f"value {value:,}"
        origin = f"opened from {what}, in both traces"
    elif not isinstance(source, Element | Looked | Nested):
        label = "acc" if index == len(ruling.operands) - 1 and index else label
        meaning = "the value before"
    word = int(operand.word)
    return OperandLine(label, meaning, words.element(kind, word), words.pattern(kind, word), origin)
