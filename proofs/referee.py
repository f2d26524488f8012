"""The referee: answers the one question that is left, by numbered checks.

Established by an accepted report:

1. the evidence is small and holds exactly the openings needed (REF-1, REF-3);
2. every opened leaf, tensor and chunk is under a digest that both sides agreed to
   (REF-4, REF-5, REF-6);
3. the answer follows from these, the terms and the program (REF-7 to REF-12).

The caller must have checked the moves that led to the question (``arbiter.py``), and that
the plan is the unrolled program of the terms. The work is bounded by the evidence: no
operator is run, and nothing is imported that could. Spec: docs/spec/dispute.md.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from identic.proofs.openings import Reader
from identic.proofs.report import Checks, Refused, Report
from identic.proofs.tensors import tensor_digest
from identic.protocol.commitments import digest_of
from identic.protocol.dispute.elements import planned
from identic.protocol.dispute.moves import MAX_EVIDENCE_BYTES, Evidence, Side
from identic.protocol.dispute.questions import (
    EmptyQuestion,
    HeaderQuestion,
    LoadQuestion,
    Question,
    StartQuestion,
    StateQuestion,
    StepQuestion,
)
from identic.protocol.dispute.setup import Setup
from identic.protocol.dispute.state import Finding, Operand
from identic.protocol.hashing import EMPTY_ROOT
from identic.protocol.ids import Count, Digest, TraceIndex, Unsigned
from identic.protocol.ops import folds
from identic.protocol.ops.evaluate import looked_position
from identic.protocol.ops.primitives import PRIMITIVES
from identic.protocol.program.context import context_bytes
from identic.protocol.program.plan import Source
from identic.protocol.program.types import CONTEXT_TYPE


@dataclass(frozen=True)
class Judgement:
    """What the referee found."""

    report: Report
    finding: Finding | None
    """The answer; ``None`` when the evidence was refused."""


def judge(setup: Setup, question: Question, evidence: Evidence) -> Judgement:
    """Answer a question from evidence, or refuse the evidence; never raises for either."""
    checks = Checks()
    reader = Reader(setup, evidence, checks)
    try:
        # REF-1: evidence is at most 64 KiB.
        small = reader.size <= MAX_EVIDENCE_BYTES
        checks.add("REF-1", f"evidence of {reader.size} bytes is small", got=small, want=True)
        finding = _answer(reader, question)
        reader.finish()
    except Refused:
        return Judgement(checks.report, None)
    _conclude(checks, question, finding)
    return Judgement(checks.report, replace(finding, read_bytes=Count(reader.size)))


def _answer(reader: Reader, question: Question) -> Finding:
    setup = reader.setup
    if isinstance(question, StartQuestion):
        # REF-7: a run starts from the initial state of the terms.
        return _digest("REF-7", setup.terms.initial_state)
    if isinstance(question, LoadQuestion):
        return _digest("REF-8", _loaded(reader, question))
    if isinstance(question, EmptyQuestion):
        # REF-9: a result without elements has the digest of its type.
        return _digest("REF-9", digest_of(setup.plan.type(question.value), EMPTY_ROOT))
    if isinstance(question, HeaderQuestion):
        # REF-10: the new state's header follows from terms, program and step.
        return _digest("REF-10", setup.header(question.step + 1))
    if isinstance(question, StateQuestion):
        # REF-11: a tensor of the new state is the agreed value that the plan names.
        return _digest("REF-11", reader.trace(question.step, question.place))
    return _primitive(reader, question)


def _conclude(checks: Checks, question: Question, finding: Finding) -> None:
    """Put the answer, and how each claim compares with it, at the end of the report."""
    # REF-14: a report says what was checked, what follows, and who claimed that.
    words = finding.computed.hex()
    if finding.primitive:
        operands = ", ".join(f"{operand.word:x}" for operand in finding.operands)
        words = f"{finding.primitive}({operands}) = {int(words, 16):x}"
    checks.note(finding.rule, f"the answer to the {question.name} question is {words}")
    for side in Side:
        claim = question.claims.of(side)
        said = claim.to_bytes(8, "big") if isinstance(claim, int) else bytes(claim)
        same = said == finding.computed
        # REF-2: a side whose claim is not the computed answer is wrong.
        checks.note(
            "REF-2", f"the {side.name.lower()}'s claim is {'' if same else 'not '}the answer"
        )


def _digest(rule: str, digest: Digest) -> Finding:
    return Finding(rule, bytes(digest), "", (), Count(0))


def _loaded(reader: Reader, question: LoadQuestion) -> Digest:
    # REF-8: a load is the tensor of the state before, of the terms, or the context.
    setup = reader.setup
    load = setup.plan.loads[question.value]
    if load.source is Source.STATE:
        return reader.state_tensor(reader.mark(question.before), load.index)
    if load.source is Source.DATA:
        return setup.terms.data[load.index]
    data = context_bytes(setup.terms.seed, question.step, load.index)
    return tensor_digest(CONTEXT_TYPE, data)


# ---- one primitive step ---------------------------------------------------------------------


def _primitive(reader: Reader, question: StepQuestion) -> Finding:
    row = PRIMITIVES[question.primitive.primitive]
    read = [_operand(reader, question, operand) for operand in question.primitive.operands]
    words = []
    for operand, dtype in zip(read, row.operands, strict=True):
        # REF-12: the answer is the primitive step on the agreed operands, cut to their widths.
        words.append(int(operand.word) if dtype is None else dtype.pattern(int(operand.word)))
    # REF-13: one primitive step is all that is computed.
    computed = row.apply(tuple(words))
    return Finding("REF-12", computed.to_bytes(8, "big"), row.name, tuple(read), Count(0))


def _operand(reader: Reader, question: StepQuestion, operand: folds.Operand) -> Operand:
    call = planned(reader.setup, question.value)
    if isinstance(operand, folds.Constant):
        return Operand("constant", Unsigned(operand.word), None, None)
    if isinstance(operand, folds.Entry | folds.Outer):
        return Operand("agreed", Unsigned(question.agreed_word(operand)), None, None)
    if isinstance(operand, folds.Element):
        return _element(reader, question, operand.input, operand.index)
    index = reader.word(question, operand.at.input, operand.at.index)
    position = looked_position(call.call, operand, index)
    if position is None:
        return Operand("outside", Unsigned(0), TraceIndex(call.inputs[operand.input]), None)
    return _element(reader, question, operand.input, position)


def _element(reader: Reader, question: StepQuestion, tensor: int, element: int) -> Operand:
    word = reader.word(question, tensor, element)
    value = planned(reader.setup, question.value).inputs[tensor]
    return Operand("element", Unsigned(word), TraceIndex(value), Unsigned(element))
