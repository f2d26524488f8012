"""A dispute as a table: each level, what was compared, where the sides part, and the last step.

``describe`` turns a ruling and its setup into a ``DisputeView``; ``lines`` draws one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from string import ascii_lowercase
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
from identic.protocol.ops.folds import Element, Entry, Fold, Outer, Step
from identic.protocol.ops.primitives import PRIMITIVES
from identic.protocol.program.plan import Source, StepPlan
from identic.protocol.tensors import unravel

Places = Mapping[int, str]
"""Where a plan value comes from in the source, such as ``blocks.2.mlp (train.py:31)``."""

FMA_ACCUMULATOR: Final = 2
"""Which operand of a fused multiply-add is the sum so far."""

COPY: Final = "copy"
"""The primitive step of operators that only move elements."""

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
        moved_first: role of the side whose move arrived first.
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


def lines(view: DisputeView, *, table: bool = True) -> Lines:
    """The table, unless the rounds are shown otherwise, the step in dispute, and the ruling."""
    out: list[Text] = []
    if view.levels and table:
        names = ("level", "compared", "agree up to", "differ at", "bytes", "moved first")
        rows: list[list[Text | str]] = [[Text(name, style="dim") for name in names]]
        for line in view.levels:
            differ = Text(line.differ, style="bold")
            size = words.size(line.nbytes)
            rows.append([line.level, line.compared, line.agreed, differ, size, line.moved_first])
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


def sentence(view: DisputeView) -> str:
    """The ruling in a sentence."""
    name = {"defender": view.defender, "challenger": view.challenger}.get(view.loser, "nobody")
    return {
        "wrong": f"ruling: {name} is wrong ({view.rule}).",
        "late": f"ruling: {name} did not move in time ({view.rule}).",
    }.get(view.verdict, f"ruling: it cannot be told who is wrong ({view.rule}); nobody is slashed.")


def ruling_lines(view: DisputeView) -> list[Text]:
    """The ruling, what it cost and where to see it again."""
    head = Text("✓ " if view.loser else "! ", style="green" if view.loser else "yellow")
    head.append(sentence(view), style="bold")
    head.append(
        f" {words.plural(len(view.levels), 'round')}, {words.size(view.nbytes)} exchanged, "
        f"{words.size(view.read_bytes)} read by the referee"
    )
    head.append(f", {words.duration(view.seconds)}." if view.seconds else ".")
    out = [head, *(Text(f"  {sentence}") for sentence in view.money)]
    if view.transcript:
        out.append(Text(f"  judge it again, offline:  identic dispute replay {view.transcript}"))
    else:
        file = f"{view.name}.identic"
        out.append(Text(f"  keep the transcript:  identic dispute show {view.name} --save {file}"))
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
    claims, operands, formula = _last_step(setup, ruling, roles, places or {})
    return DisputeView(
        name=f"d-{Digest(ruling.dispute).hex()[:6]}",
        defender=f"the {roles[0]} {words.party(roles[0], opening.defender)}",
        challenger=f"the {roles[1]} {words.party(roles[1], opening.challenger)}",
        levels=tuple(
            level_line(setup, line, (ruling.value, ruling.element), places or {}, roles)
            for line in ruling.rounds
        ),
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


def _element_name(plan: StepPlan, value: int, element: int, places: Places) -> str:
    """What an element is; one that was only moved has the name of where it was computed."""
    while (planned := plan.call(value)) is not None:
        entry = planned.call.op.fold(planned.call, element).entry(0)
        source = entry.operands[0] if isinstance(entry, Step) and entry.primitive == COPY else None
        if not isinstance(source, Element):
            break
        value, element = planned.inputs[source.input], source.index
    module = places.get(value, "").partition("  ")[0]
    where = ", ".join(str(i) for i in unravel(element, plan.type(value).shape))
    name = f"{value_name(plan, value)}[{where}]"
    return f"{module} {name}" if module and not module.startswith("(") else name


def position(plan: StepPlan, value: int, element: int) -> str:
    """Where an element stands in its tensor."""
    shape = plan.type(value).shape
    if len(shape) == 2:
        row, column = unravel(element, shape)
        return f"row {row}, column {column}"
    return f"[{', '.join(str(i) for i in unravel(element, shape))}]" if shape else "its only one"


def level_line(
    setup: Setup,
    line: Round,
    found: tuple[int | None, int | None],
    places: Places,
    roles: tuple[str, str],
) -> LevelLine:
    """A completed round in words.

    Args:
        setup: what the dispute is about.
        line: the round.
        found: plan value and element that the dispute came to, as far as it has.
        places: where plan values come from in the submitter's source.
        roles: of the defender and of the challenger.
    """
    at = line.first + line.differ * line.block
    named = _NAMES.get(line.level, _other)(_At(setup, line, found, places, at))
    noun, differ = named.noun, named.differ
    if line.block > 1:
        noun = f"blocks of {line.block:,} {noun}"
        differ = f"{at:,} to {at + line.block - 1:,}"
    elif line.compared == 1:
        noun = noun.replace("s", "", 1) if noun.startswith("chunks") else noun.removesuffix("s")
    agreed = named.agreed if named.agreed is not None else at - 1
    return LevelLine(
        level=named.label,
        compared=f"{line.compared:,} {noun}",
        agreed=f"{agreed:,}" if agreed >= 0 else "",
        differ=differ,
        nbytes=line.defender_bytes + line.challenger_bytes,
        moved_first=roles[0] if line.moved_first is Side.DEFENDER else roles[1],
    )


@dataclass(frozen=True)
class _At:
    """A round, with all that its words depend on."""

    setup: Setup
    line: Round
    found: tuple[int | None, int | None]
    """Plan value and element of the dispute, as far as it has come."""
    places: Places
    child: int
    """Number of the first child that differs."""


@dataclass(frozen=True)
class _Named:
    """A round in words."""

    label: str
    """The node."""
    noun: str
    """Its children."""
    differ: str
    """The first child that differs."""
    agreed: int | None = None
    """Number of the last child that is agreed, where it is not just one less."""


def _run(at: _At) -> _Named:
    state = at.setup.terms.step_of(at.child)
    agreed = int(at.setup.terms.step_of(at.child - 1)) if at.child else -1
    return _Named("run", "signed states", f"state {state:,}", agreed)


def _interval(at: _At) -> _Named:
    terms, mark = at.setup.terms, at.line.subject
    first, last = terms.step_of(mark - 1), terms.step_of(mark)
    label = f"states {first:,} to {last:,}"
    return _Named(label, "states", f"state {first + at.child + 1:,}", int(first) + at.child)


def _step(at: _At) -> _Named:
    step, plan = at.line.subject, at.setup.plan
    new_state = at.line.first == 0 and at.line.differ == at.line.compared - 1
    name = value_name(plan, at.child, at.places)
    differ = "the new state" if new_state else f"{at.child:,}  {name}"
    return _Named(f"step {step:,}→{step + 1:,}", "values", differ)


def _state(at: _At) -> _Named:
    state = at.setup.plan.program.state
    name = "its header" if at.child == 0 else state[at.child - 1].name
    return _Named(f"state {at.line.subject + 1:,}", "parts", f"{at.child:,}  {name}")


def _output(at: _At) -> _Named:
    name = value_name(at.setup.plan, at.line.subject)
    return _Named(f"result of {name}", "chunks of 4 kB", f"{at.child:,}")


def _chunk(at: _At) -> _Named:
    label, differ = f"chunk {at.line.subject:,}", f"{at.child:,}"
    value, _ = at.found
    if value is not None:
        kind = at.setup.plan.type(value)
        element = at.line.subject * kind.chunk_elements + at.child
        differ += f"  = {position(at.setup.plan, value, element)}"
    return _Named(label, "elements", differ)


def _fold(at: _At) -> _Named:
    whole = at.line.subject == at.found[1]
    label = "element" if whole else f"part {at.line.subject:,}"
    return _Named(label, "partial values", f"{at.child:,}")


def _other(at: _At) -> _Named:
    return _Named(f"{at.line.level} {at.line.subject:,}", "children", f"{at.child:,}")


_NAMES: Final[dict[str, Callable[[_At], _Named]]] = {
    "run": _run,
    "interval": _interval,
    "step": _step,
    "state": _state,
    "output": _output,
    "chunk": _chunk,
    "fold": _fold,
}


def _last_step(
    setup: Setup, ruling: Ruling, roles: tuple[str, str], places: Places
) -> tuple[tuple[ClaimLine, ...], tuple[OperandLine, ...], str]:
    """Claims, operands and formula of the question that was answered."""
    primitive = PRIMITIVES.get(ruling.primitive)
    kind = primitive.result if primitive else None
    if kind is None and ruling.value is not None:
        kind = setup.plan.type(ruling.value).dtype

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
        _operand(setup, ruling, i, operand, kind, step, places)
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
    places: Places,
) -> OperandLine:
    plan = setup.plan
    source = step.operands[index] if step and index < len(step.operands) else None
    label, meaning, origin = ascii_lowercase[index % 26], "", "agreed before"
    if ruling.primitive == "fma" and index == FMA_ACCUMULATOR:
        label = "acc"
    if operand.source == "constant":
        meaning, origin = "constant", "from the program"
    elif operand.source == "outside":
        meaning, origin = "outside its table", "reads 0"
    elif operand.source == "element" and operand.value is not None:
        value = int(operand.value)
        type_ = plan.type(value)
        kind = kind or type_.dtype
        meaning = _element_name(plan, value, operand.element or 0, places)
        how = "loaded" if value < len(plan.loads) else f"opened from value {value:,}"
        origin = f"{how}, in both traces"
    elif isinstance(source, Entry | Outer):
        meaning = f"partial value {source.index:,}"
    word = int(operand.word)
    return OperandLine(label, meaning, words.element(kind, word), words.pattern(kind, word), origin)
