"""What a ruling takes, for every operator: one primitive step, small evidence, little hashing.

No time is asserted here; ``make bench-dispute`` measures it.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from identic.proofs import openings, referee, transcript
from identic.proofs.referee import judge
from identic.proofs.report import Report
from identic.protocol import hashing
from identic.protocol.dispute import bounds
from identic.protocol.dispute.machine import MoveMade, open_dispute, step
from identic.protocol.dispute.moves import MAX_EVIDENCE_BYTES, Evidence, Side
from identic.protocol.dispute.player import evidence
from identic.protocol.dispute.questions import Question, StepQuestion
from identic.protocol.dispute.setup import Setup
from identic.protocol.encoding import encode
from identic.protocol.hashing import sha256
from identic.protocol.ops import TABLE
from identic.protocol.ops.folds import Fold, Nested, Step
from identic.protocol.ops.primitives import PRIMITIVES
from identic.protocol.tensors import CHUNK_BYTES, MAX_BYTES
from tests.helpers.calls import BUILDERS, Maker
from tests.helpers.duel import Subject
from tests.helpers.execution import Lie, MemoryExecution, StateLie
from tests.helpers.game import honest, setup_between
from tests.helpers.one_operator import Job, job_of
from tests.helpers.small_run import small_run

RUN = small_run()

MOST_LEAVES = 1 << 20
"""Values of a step, more than any program has."""

HASHED_PER_BYTE = 3
"""Bytes hashed for a byte of evidence, at most: a sibling of 32 bytes goes into a node of 65."""


def jobs(name: str, count: int = 3) -> Iterator[Job]:
    """Jobs about one operator whose results have elements."""
    seed = found = 0
    while found < count:
        seed += 1
        made = BUILDERS[name](Maker(seed))
        if made.call.output.elements and sum(t.elements for t in made.call.inputs) < 500:
            found += 1
            yield job_of(made)


def steps(fold: Fold) -> Iterator[tuple[tuple[int, ...], Step]]:
    """Every primitive step of a fold with its path; of long folds those near the ends."""
    near = {*range(min(8, fold.length)), *range(max(0, fold.length - 8), fold.length)}
    for index in sorted(near):
        entry = fold.entry(index)
        if isinstance(entry, Nested):
            yield from (((index, *path), inner) for path, inner in steps(entry.fold))
        else:
            yield (index,), entry


def question_of(subject: Subject, liar: MemoryExecution, width: int) -> tuple[Setup, Question]:
    """The question that a dispute with this liar ends in."""
    roots = (liar.run_leaves(), subject.good.run_leaves())
    setup = setup_between(subject.terms, subject.plan, *roots, width=width)
    state, _ = open_dispute(setup)
    while state.question is None:
        for side, execution in ((Side.DEFENDER, liar), (Side.CHALLENGER, subject.good)):
            move = honest(execution)(state, side)
            assert move is not None
            state, _ = step(state, MoveMade(state.now, side, move))
    return setup, state.question


@dataclass
class Counter:
    """Counts what a ruling computes."""

    hashed: int = 0
    applied: list[str] = field(default_factory=list)

    def sha256(self, data: Any = b"") -> Any:
        """SHA-256 that counts."""
        counter, real = self, hashlib.sha256(data)
        self.hashed += len(data)

        class Counted:
            def update(self, more: Any) -> None:
                counter.hashed += len(more)
                real.update(more)

            def digest(self) -> bytes:
                return real.digest()

        return Counted()


@pytest.fixture
def counter(monkeypatch: pytest.MonkeyPatch) -> Counter:
    """Counts hashed bytes and primitive steps."""
    found = Counter()

    class Hashlib:
        sha256 = staticmethod(found.sha256)

    def counted(name: str, apply: Callable[[Any], int]) -> Callable[[Any], int]:
        def run(words: Any) -> int:
            found.applied.append(name)
            return apply(words)

        return run

    rows = {n: replace(row, apply=counted(n, row.apply)) for n, row in PRIMITIVES.items()}
    monkeypatch.setattr(hashing, "hashlib", Hashlib)
    monkeypatch.setattr(referee, "PRIMITIVES", rows)
    return found


@pytest.mark.parametrize("name", sorted(TABLE))
def test_ref_13__a_ruling_is_one_primitive_step_and_little_hashing(
    name: str, counter: Counter
) -> None:
    ruled = 0
    for job in jobs(name):
        call = job.plan.calls[0].call
        for element in {0, call.output.elements - 1}:
            path, _ = list(steps(call.op.fold(call, element)))[-1]
            right = job.good.entries(0, job.value, element, path[:-1])[path[-1]]
            liar = job.lying(Lie(0, job.value, element, path, right ^ 1))
            if liar.run_leaves() == job.good.run_leaves():
                continue
            setup, question = question_of(job, liar, 2)
            given = evidence(setup, question, job.good)
            counter.hashed, counter.applied = 0, []
            judgement = judge(setup, question, given)
            assert judgement.finding is not None
            assert counter.applied == [judgement.finding.primitive]
            assert counter.hashed <= HASHED_PER_BYTE * len(encode(given)) + 2048
            ruled += 1
    assert ruled


@pytest.mark.parametrize("name", sorted(TABLE))
def test_ref_1__evidence_for_any_step_of_any_tensors_fits(name: str) -> None:
    chunk = 24 + CHUNK_BYTES + 32 * (MAX_BYTES // CHUNK_BYTES - 1).bit_length()
    leaf = 44 + 32 * (MOST_LEAVES - 1).bit_length()
    for job in jobs(name):
        call = job.plan.calls[0].call
        for element in {0, call.output.elements // 2, call.output.elements - 1}:
            for _, primitive in steps(call.op.fold(call, element)):
                read = [n for o in primitive.operands for n in bounds._reads(o)]
                size = 12 + len(read) * chunk + len(set(read)) * leaf
                assert size <= MAX_EVIDENCE_BYTES
                assert len(primitive.operands) <= 8
                assert primitive.primitive in PRIMITIVES


def test_op_8__every_operator_that_is_executed_is_ruled_on() -> None:
    ruled = set()
    for name in TABLE:
        for job in jobs(name, 12):
            if name in ruled:
                break
            call = job.plan.calls[0].call
            right = job.good.entries(0, job.value, 0, ())[-1]
            liar = job.lying(Lie(0, job.value, 0, (), right ^ 1))
            if liar.run_leaves() == job.good.run_leaves():
                continue
            setup, question = question_of(job, liar, 2048)
            judgement = judge(setup, question, evidence(setup, question, job.good))
            assert isinstance(question, StepQuestion)
            assert judgement.finding is not None
            assert int.from_bytes(judgement.finding.computed, "big") == question.claims.challenger
            assert judgement.finding.primitive in PRIMITIVES
            ruled.add(call.op.name)
    assert ruled == set(TABLE)


# ---- the report -----------------------------------------------------------------------------


def reports() -> Iterator[tuple[Question, Evidence, Report]]:
    """Reports about every kind of question, with wide and with narrow trees."""
    other = sha256(b"other")
    start = RUN.lying()
    start.roots[0] = other
    liars = [
        start,
        RUN.lying(RUN.flipped(2, 0)),
        RUN.lying(RUN.flipped(2, RUN.load("labels"))),
        RUN.lying(StateLie(3, 1, other)),
        RUN.lying(RUN.flipped(3, RUN.value("matmul", 2))),
    ]
    for liar in liars:
        for width in (4, 2048):
            setup, question = question_of(RUN, liar, width)
            given = Evidence((), (), ())
            if not question.immediate:
                given = evidence(setup, question, RUN.good)
            yield question, given, judge(setup, question, given).report
    setup, question = question_of(RUN, RUN.lying(StateLie(3, -1, other)), 2048)
    yield question, Evidence((), (), ()), judge(setup, question, Evidence((), (), ())).report


def test_ref_14__a_report_has_every_check_and_the_answer() -> None:
    sources = "".join(Path(str(module.__file__)).read_text() for module in (referee, openings))
    # No operator of this run gives a result without elements; the last two are about rulings.
    stated = set(re.findall(r"# (REF-\d+):", sources)) - {"REF-9", "REF-13", "REF-14"}
    seen = set()
    for question, given, report in reports():
        rules = [check.rule for check in report.checks]
        assert rules[0] == "REF-1"
        assert rules[-2:] == ["REF-2", "REF-2"]
        assert len(report.checks) == len({(c.rule, c.what) for c in report.checks})
        assert question.name in report.checks[-3].what
        answers = [check.what.endswith("is the answer") for check in report.checks[-2:]]
        assert answers == [False, True]
        # Each opening was needed, was the right one, and leads to what is agreed.
        openings_ = len(given.leaves) + len(given.states) + len(given.chunks)
        assert rules.count("REF-3") == 2 * openings_ + 1
        assert rules.count("REF-4") == len(given.leaves)
        assert rules.count("REF-5") == 2 * len(given.chunks)
        assert rules.count("REF-6") == len(given.states)
        seen |= set(rules)
    assert seen == stated


def test_ref_13__a_transcript_is_judged_without_kernels_numpy_and_torch() -> None:
    stored = sorted((Path(__file__).parent / "transcripts").rglob("*.identic"))
    code = (
        "import sys, pathlib; from identic.proofs.transcript import replay; "
        "[replay(pathlib.Path(f).read_bytes()) for f in sys.argv[1:]]; "
        "print(sorted(n for n in sys.modules if n.split('.')[0] in ('numpy', 'torch', 'cupy')"
        " or n.startswith(('identic.kernels', 'identic.node'))))"
    )
    command = [sys.executable, "-c", code, *map(str, stored)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
    assert max(int(f.parent.name[1:]) for f in stored) == transcript.VERSION
