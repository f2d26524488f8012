"""The referee refuses evidence that shows nothing, names the check, and stays small."""

import subprocess
import sys
from dataclasses import replace

import pytest

from identic.proofs.referee import judge
from identic.protocol.dispute.machine import Judge, MoveMade, open_dispute, step
from identic.protocol.dispute.moves import (
    MAX_EVIDENCE_BYTES,
    NO_EVIDENCE,
    ChunkOpening,
    Evidence,
    Pair,
    Side,
)
from identic.protocol.dispute.player import evidence
from identic.protocol.dispute.questions import Agreed, Published, Question, StepQuestion
from identic.protocol.dispute.setup import Setup
from identic.protocol.encoding import encode
from identic.protocol.errors import IllegalMove
from identic.protocol.hashing import sha256
from identic.protocol.ids import Count, Digest, Millis, TraceIndex, Unsigned
from identic.protocol.job.entries import Verdicts
from identic.protocol.ops.folds import Entry, Step
from tests.helpers.execution import Lie, MemoryExecution
from tests.helpers.game import honest, play, setup_between, silent_from
from tests.helpers.small_run import small_run

RUN = small_run()


def question_about(liar: MemoryExecution, width: int) -> tuple[Setup, Question]:
    """The question that a dispute about a lie ends in."""
    roots = (liar.run_leaves(), RUN.good.run_leaves())
    setup = setup_between(RUN.terms, RUN.plan, *roots, width=width)
    state, _ = open_dispute(setup)
    while state.question is None:
        for side, execution in ((Side.DEFENDER, liar), (Side.CHALLENGER, RUN.good)):
            move = honest(execution)(state, side)
            assert move is not None
            state, _ = step(state, MoveMade(state.now, side, move))
    return setup, state.question


STEP_LIE = RUN.lying(RUN.flipped(1, RUN.value("matmul", 2)))
LOAD_LIE = RUN.lying(RUN.flipped(2, 0))


def refused(setup: Setup, question: Question, given: Evidence) -> str:
    """Rule of the check that fails."""
    judgement = judge(setup, question, given)
    assert judgement.finding is None
    assert judgement.report.failed is not None
    assert not judgement.report.ok
    return judgement.report.failed.rule


def test_an_answer_comes_with_every_check() -> None:
    setup, question = question_about(STEP_LIE, 4)
    given = evidence(setup, question, RUN.good)
    judgement = judge(setup, question, given)
    assert judgement.report.ok
    assert judgement.finding is not None
    assert judgement.finding.read_bytes == len(encode(given))
    assert {check.rule for check in judgement.report.checks} == {
        "REF-1",
        "REF-2",
        "REF-3",
        "REF-4",
        "REF-5",
        "REF-12",
    }
    assert [operand.source for operand in judgement.finding.operands] == [
        "element",
        "element",
        "agreed",
    ]


def test_both_sides_can_give_the_same_evidence() -> None:
    for liar in (STEP_LIE, LOAD_LIE):
        for width in (4, 2048):
            setup, question = question_about(liar, width)
            answers = [
                judge(setup, question, evidence(setup, question, execution)).finding
                for execution in (liar, RUN.good)
            ]
            assert answers[1] is not None
            if answers[0] is not None:
                assert answers[0].computed == answers[1].computed


def test_ref_1__evidence_beyond_64_kib_is_refused() -> None:
    setup, question = question_about(STEP_LIE, 2048)
    given = evidence(setup, question, RUN.good)
    chunk = given.chunks[0]
    huge = replace(given, chunks=(replace(chunk, data=bytes(MAX_EVIDENCE_BYTES)), *given.chunks))
    assert refused(setup, question, huge) == "REF-1"
    roots = (STEP_LIE.run_leaves(), RUN.good.run_leaves())
    state = play(
        setup_between(RUN.terms, RUN.plan, *roots),
        lambda d, s: huge if d.question else honest(STEP_LIE)(d, s),
        lambda d, s: None if d.question else honest(RUN.good)(d, s),
    )
    assert [error.rule for _, error in state.refused] == ["REF-1"]
    assert state.ruling.verdict is Verdicts.CANNOT_TELL


def test_ref_3__evidence_is_exactly_what_is_needed() -> None:
    setup, question = question_about(STEP_LIE, 4)
    given = evidence(setup, question, RUN.good)
    assert len(given.chunks) == 2
    assert given.leaves
    first, second = given.chunks
    for wrong in (
        NO_EVIDENCE,
        replace(given, chunks=(first,)),
        replace(given, chunks=(second, first)),
        replace(given, chunks=(first, second, second)),
        replace(given, leaves=given.leaves[:-1]),
        replace(given, leaves=(*given.leaves, given.leaves[0])),
        replace(given, leaves=(replace(given.leaves[0], index=Unsigned(1)), *given.leaves[1:])),
        replace(given, chunks=(replace(first, value=TraceIndex(first.value + 1)), second)),
        replace(given, chunks=(replace(first, chunk=Count(1)), second)),
    ):
        assert refused(setup, question, wrong) == "REF-3"
    setup, question = question_about(LOAD_LIE, 4)
    given = evidence(setup, question, RUN.good)
    for wrong in (
        NO_EVIDENCE,
        replace(given, states=(replace(given.states[0], index=Unsigned(1)),)),
        replace(given, states=given.states * 2),
    ):
        assert refused(setup, question, wrong) == "REF-3"


def test_ref_4__a_leaf_leads_to_its_agreed_block() -> None:
    setup, question = question_about(STEP_LIE, 4)
    given = evidence(setup, question, RUN.good)
    leaf = given.leaves[0]
    for wrong in (
        replace(leaf, digest=sha256(b"other")),
        replace(leaf, path=(*leaf.path[:-1], sha256(b"other"))),
        replace(leaf, path=leaf.path[:-1]),
        replace(leaf, path=(*leaf.path, sha256(b"other"))),
    ):
        changed = replace(given, leaves=(wrong, *given.leaves[1:]))
        assert refused(setup, question, changed) == "REF-4"


def test_ref_5__a_chunk_leads_to_its_tensor() -> None:
    setup, question = question_about(STEP_LIE, 2048)
    given = evidence(setup, question, RUN.good)
    first, *others = given.chunks
    wrongs: list[ChunkOpening] = [
        replace(first, data=first.data[:-1]),
        replace(first, data=first.data + b"\0"),
        replace(first, path=(sha256(b"other"),)),
    ]
    for at in range(len(first.data)):
        data = bytearray(first.data)
        data[at] ^= 1
        wrongs.append(replace(first, data=bytes(data)))
    for wrong in wrongs:
        assert refused(setup, question, replace(given, chunks=(wrong, *others))) == "REF-5"


def test_ref_6__a_tensor_leads_to_its_state() -> None:
    setup, question = question_about(LOAD_LIE, 2048)
    given = evidence(setup, question, RUN.good)
    state = given.states[0]
    for wrong in (
        replace(state, digest=sha256(b"other")),
        replace(state, path=state.path[:-1]),
        replace(state, path=(*state.path[:-1], sha256(b"other"))),
    ):
        assert refused(setup, question, replace(given, states=(wrong,))) == "REF-6"


def test_false_evidence_first_does_not_help_a_liar() -> None:
    roots = (STEP_LIE.run_leaves(), RUN.good.run_leaves())
    setup = setup_between(RUN.terms, RUN.plan, *roots)
    game = play(
        setup,
        lambda d, s: NO_EVIDENCE if d.question else honest(STEP_LIE)(d, s),
        honest(RUN.good),
    )
    assert [(side, error.rule) for side, error in game.refused] == [(Side.DEFENDER, "REF-3")]
    assert game.ruling.loser is Side.DEFENDER


def test_dsp_13__without_evidence_nobody_can_tell() -> None:
    roots = (STEP_LIE.run_leaves(), RUN.good.run_leaves())
    setup = setup_between(RUN.terms, RUN.plan, *roots)
    turns = len(play(setup, honest(STEP_LIE), honest(RUN.good)).ruling.rounds)
    game = play(setup, silent_from(honest(STEP_LIE), turns), silent_from(honest(RUN.good), turns))
    assert (game.ruling.verdict, game.ruling.level) == (Verdicts.CANNOT_TELL, "evidence")


def test_ref_12__agreed_words_of_any_width_have_an_answer() -> None:
    """Two liars can agree on words that no float32 has; the referee still answers."""
    setup, question = question_about(STEP_LIE, 2048)
    assert isinstance(question, StepQuestion)
    hostile = replace(
        question,
        primitive=Step("fma", (Entry(0), Entry(0), Entry(1))),
        entries=(0xFFFF_FFFF_3F80_0000, 0x1_0000_0000),
        claims=Pair(1, 2),
    )
    judgement = judge(setup, hostile, NO_EVIDENCE)
    assert judgement.finding is not None
    assert int.from_bytes(judgement.finding.computed, "big") == 0x3F800000


def test_ref_5__an_agreed_digest_of_nothing_cannot_be_opened() -> None:
    setup, question = question_about(STEP_LIE, 2048)
    assert isinstance(question, StepQuestion)
    items = tuple(Digest(bytes([1] * 32)) for _ in range(question.value))
    nothing = Agreed((Published(0, 1, question.value, items),))
    given = evidence(setup, question, RUN.good)
    assert refused(setup, replace(question, trace=nothing), given) == "REF-5"


@pytest.mark.parametrize("module", ["proofs.referee", "proofs.transcript", "proofs.receipt"])
def test_a_referee_runs_without_kernels_numpy_and_torch(module: str) -> None:
    code = (
        f"import sys, identic.{module}; "
        "print(sorted(n for n in sys.modules if n.split('.')[0] in ('numpy', 'torch', 'cupy')"
        " or n.startswith(('identic.kernels', 'identic.node'))))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_refusal_leaves_the_question_open() -> None:
    setup, question = question_about(STEP_LIE, 2048)
    state, _ = open_dispute(setup)
    while state.question is None:
        for side, execution in ((Side.DEFENDER, STEP_LIE), (Side.CHALLENGER, RUN.good)):
            move = honest(execution)(state, side)
            assert move is not None
            state, _ = step(state, MoveMade(state.now, side, move))
    made = MoveMade(Millis(state.now + 1), Side.DEFENDER, NO_EVIDENCE)
    _, commands = step(state, made)
    assert commands == (Judge(question, NO_EVIDENCE),)
    with pytest.raises(IllegalMove):
        step(state, MoveMade(Millis(state.deadline + 1), Side.DEFENDER, NO_EVIDENCE))


def test_the_evidence_does_not_grow_with_the_operator() -> None:
    found = [
        play(
            setup_between(RUN.terms, RUN.plan, liar.run_leaves(), RUN.good.run_leaves()),
            honest(liar),
            honest(RUN.good),
        ).ruling.read_bytes
        for liar in (STEP_LIE, RUN.lying(Lie(3, RUN.plan.outputs[0], 0, (), 5)))
    ]
    assert max(found) < 1_000
