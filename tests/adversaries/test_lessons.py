"""What others paid for: each failure of another system, and that it cannot happen here.

The failures are those of dispute games, rollups and training networks that were published by
those who had them. Where a rule has its tests elsewhere, the lesson names them in ``ELSEWHERE``;
the rest is here.
"""

from __future__ import annotations

import ast
import pickle
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from identic.node.blobs import Blobs
from identic.node.execution.states import unpack_state
from identic.node.identity import KEY_FILE, Identity
from identic.node.mirror import Mirror
from identic.proofs.envelope import seal
from identic.proofs.merkle import IncrementalTree
from identic.proofs.signatures import sign, verify
from identic.protocol.dispute.moves import Side, SignedMove
from identic.protocol.dispute.state import Phase as Turn
from identic.protocol.encoding import decode, encode
from identic.protocol.errors import LocalError, ProtocolError
from identic.protocol.hashing import Domain, leaf_hash
from identic.protocol.ids import Unsigned
from identic.protocol.job.entries import LogEntry
from identic.protocol.job.messages import DisputeMove, SignedMessage, Statement
from identic.protocol.job.state import Phase
from identic.protocol.program.codec import load
from identic.protocol.program.validate import Limits
from identic.protocol.settlement.ledger import Bond, Burned, Reason
from tests.adversaries.lies import wrong_element
from tests.adversaries.moves import signed
from tests.helpers.arena import Arena, as_it_is, honestly, silent, tale
from tests.helpers.small_run import small_run
from tests.helpers.wild import wild
from tests.lint.tree import ROOT
from tests.node.coordinator.village import GRANT, KEYS, PRICES, Run, party, posting

ELSEWHERE: dict[str, tuple[str, ...]] = {
    "no clock": (
        "tests/protocol/dispute/test_silence.py::test_dsp_12__silence_loses_at_every_level",
        "tests/protocol/dispute/test_clocks.py::test_dsp_17__slow_drip_ends_within_the_bound",
    ),
    "kernel bits in a minor release": (
        "tests/protocol/job/test_terms.py::test_job_1__terms_beyond_a_limit_are_refused",
        "tests/node/cli/test_doctor.py::test_every_path_gives_the_known_bits",
        "tests/kernels/test_vectors.py::test_op_8__both_backends_give_the_vectors",
    ),
    "incomplete reference data": (
        "tests/node/participant/test_doubt.py::test_exe_21__job_33__without_its_data_a_verifier_gives_its_seat_back",
        "tests/node/participant/test_doubt.py::test_exe_21__a_flipped_bit_accuses_nobody",
        "tests/node/participant/test_doubt.py::test_exe_21__without_its_data_a_whistleblower_is_silent",
    ),
    "withheld data": (
        "tests/protocol/dispute/test_silence.py::test_dsp_12__silence_loses_at_every_level",
        "tests/protocol/job/test_asks.py::test_job_31__a_solver_that_withholds_a_state_is_late",
    ),
    "unpickled index": ("tests/lint/test_layers.py::test_nothing_runs_code_found_in_data",),
    "silent death": (
        "tests/node/execution/test_worker.py::test_exe_9__a_killed_worker_is_told_in_words",
        "tests/node/test_daemon.py::test_a_failing_role_is_shown_and_started_again",
    ),
    "swallowed errors": (
        "tests/node/participant/test_participant.py::test_exe_10__what_this_machine_cannot_do_is_tried_again_and_shown",
        "tests/node/coordinator/test_service.py::test_a_job_in_trouble_does_not_hold_up_the_others",
    ),
    "log rewritten": (
        "tests/node/participant/test_participant.py::test_com_8__a_party_tells_of_a_rewritten_log",
    ),
}
"""Tests of lessons that lie with what they are about."""


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The run of the program."""
    return tale(Blobs(tmp_path_factory.mktemp("honest"), 1 << 30), honestly)


@pytest.fixture
def arena(tmp_path: Path, honest: Run) -> Iterator[Arena]:
    """A village."""
    made = Arena(tmp_path, honest)
    yield made
    made.close()


def disputed(arena: Arena, marks: int = 4) -> Run:
    """A liar's run, committed to and challenged; returns it."""
    false = tale(arena.blobs, wrong_element)
    arena.post().accept().commit(false, upto=marks)
    arena.challenge("anna", arena.honest)
    return false


@pytest.mark.parametrize("lesson", ELSEWHERE)
def test_the_tests_that_a_lesson_names_exist(lesson: str) -> None:
    for where in ELSEWHERE[lesson]:
        path, _, name = where.partition("::")
        names = {
            node.name
            for node in ast.walk(ast.parse((ROOT / path).read_text()))
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        }
        assert name in names, where


# ---- disputes that did not end, and winners that lost ---------------------------------------


def test_lesson_no_clock__a_dispute_that_nobody_plays_ends(arena: Arena) -> None:
    """A dispute game without clocks (opML) could be left hanging by whoever was about to lose."""
    false = disputed(arena)
    while arena.case.dispute.ruling is None:
        assert arena.host.next_deadline() is not None
        arena.wait()
    assert arena.rulings() == [("DSP-13", "run")]
    assert arena.lost("solver") == arena.lost("anna") == 0
    # Nobody was told to be right, and the next challenge is played like any other.
    arena.challenge("bert", arena.honest)
    arena.duel({"solver": false, "bert": arena.honest})
    assert arena.lost("solver") == arena.bond("solver")


def test_lesson_late_call__a_winner_is_not_harmed_by_a_late_call(arena: Arena) -> None:
    """A winner was frozen because it called for time too late (Dave)."""
    disputed(arena)
    (move,) = as_it_is(arena.case.dispute, Side.CHALLENGER, arena.execution(arena.honest))
    arena.say("anna", DisputeMove(arena.case.id, signed("anna", arena.case.id, 0, move)))
    # Nobody calls for a year, the coordinator included.
    arena.clock.now += 365 * 24 * 3600 * 1000
    arena.host.settle_duties()
    assert arena.rulings() == [("DSP-12", "run")]
    assert arena.money("anna") == GRANT + PRICES.solver_bond // 2
    arena.settle()
    assert arena.job.phase is Phase.SETTLED


# ---- money that could not be paid, or went to nobody ----------------------------------------


def test_lesson_failing_payee__no_payment_asks_its_receiver(arena: Arena) -> None:
    """One payee that refused its payment held up the settlement of all others (Dave).

    Here a payment is two numbers of the ledger. Whoever is paid may have left, may have no
    machine any more, and may be owed nothing: the settlement is one entry, made once.
    """
    arena.judged(arena.honest)
    arena.wait()
    paid = [t for t in arena.host.board.ledger.transactions if t.reason is Reason.REWARD]
    assert {t.party for t in paid} == {party("solver"), party("anna"), party("bert")}
    size = arena.host.log.size
    assert arena.host.settle_duties() == 0
    assert arena.host.log.size == size
    assert arena.host.next_deadline() is None


@pytest.mark.parametrize("silence", [True, False])
def test_lesson_bond_to_nobody__every_bond_has_an_end(arena: Arena, silence: bool) -> None:
    """A bond stayed where nobody could claim it, since no challenger had taken part (Optimism)."""
    false = disputed(arena)
    runs = {"solver": false, "anna": arena.honest}
    if silence:
        arena.duel(runs, dict.fromkeys(runs, silent))
    else:
        arena.duel(runs)
    while arena.job.phase is not Phase.OPEN:
        arena.wait()
    arena.settle()
    arena.check(("solver",))
    ledger = arena.host.board.ledger
    assert [account for account in ledger.balances if isinstance(account, Bond)] == []
    assert ledger.of(Burned()) == (0 if silence else PRICES.solver_bond // 2)
    # The bond of a solver that was silent is its own and the submitter's, to whom it was late.
    late = PRICES.solver_bond // 8
    assert arena.lost("solver") == (late if silence else PRICES.solver_bond)


# ---- numbers that nobody had looked at ------------------------------------------------------


def statements(arena: Arena) -> list[tuple[str, Statement]]:
    """All that parties have said so far."""
    said = []
    for index in range(arena.host.log.size):
        event = decode(LogEntry, arena.host.log.read(index, 1)[0]).event
        if isinstance(event, SignedMessage):
            names = {key.party: name for name, key in KEYS.items()}
            said.append((names[event.message.party], event.message.statement))
    return said


def test_lesson_unchecked_index__no_number_of_a_peer_crashes_the_coordinator(
    arena: Arena,
) -> None:
    """An index in a message, looked up without a check, ended every client (Psyche)."""
    false = disputed(arena)
    arena.duel({"solver": false, "anna": arena.honest})
    said = statements(arena)
    tried = 0
    board = arena.host.board
    for name, statement in said:
        for other in wild(statement):
            message = seal(KEYS[name], party("coordinator"), 10**6 + tried, other)
            tried += 1
            try:
                arena.host.inspect(message)
                arena.host._applied(arena.host._entry(message))
            except ProtocolError:
                continue
    assert tried > 500
    assert arena.host.board is board


def test_lesson_unchecked_index__no_number_of_a_move_crashes_the_referee(arena: Arena) -> None:
    false = disputed(arena)
    executions = {"solver": arena.execution(false), "anna": arena.execution(arena.honest)}
    tried = 0
    while (case := arena.case).dispute.ruling is None:
        for name, execution in executions.items():
            case = arena.case
            side = arena.side(case, name)
            assert side is not None
            if side not in case.dispute.due:
                continue
            (move,) = as_it_is(case.dispute, side, execution)
            for other in wild(move):
                tried += 1
                made = signed(name, case.id, int(case.dispute.turn), other)
                harmless(arena, name, DisputeMove(case.id, made))
            made = signed(name, case.id, int(case.dispute.turn), move)
            for turn in wild(made.body.turn):
                body = replace(made.body, turn=turn)
                other_turn = SignedMove(body, sign(KEYS[name], Domain.MOVE, body))
                harmless(arena, name, DisputeMove(case.id, other_turn))
            evidence = case.dispute.phase is Turn.AWAIT_EVIDENCE
            arena.say(name, DisputeMove(case.id, made))
            assert not evidence or arena.case.over
    assert tried > 50


def harmless(arena: Arena, name: str, said: DisputeMove) -> None:
    """Judge a move on the present board without keeping what comes of it."""
    message = seal(KEYS[name], party("coordinator"), 1, said)
    try:
        arena.host._applied(arena.host._entry(message))
    except ProtocolError:
        return


def test_lesson_unchecked_index__no_number_of_a_coordinator_crashes_a_client(
    arena: Arena,
) -> None:
    """A client takes each entry or refuses it by a rule, whatever the coordinator writes."""
    false = disputed(arena)
    arena.duel({"solver": false, "anna": arena.honest})
    arena.settle()
    mirror = Mirror(party("coordinator"), arena.host._programs.plan)
    tried = refused = 0
    for index in range(arena.host.log.size):
        data = arena.host.log.read(index, 1)[0]
        entry, board, root = decode(LogEntry, data), mirror.board, mirror.root
        others = () if isinstance(entry.event, SignedMessage) else wild(entry)
        for other in others:
            tried += 1
            try:
                mirror.take(encode(other))
            except ProtocolError:
                refused += 1
                assert (mirror.board, mirror.root) == (board, root)
            else:
                # Another time or amount of the first deposit is no breach; take it back.
                mirror.board, mirror._tree = board, tree_of(arena, index)
        mirror.take(data)
    assert refused > tried // 2 > 50


def tree_of(arena: Arena, size: int) -> IncrementalTree:
    """The tree over the first entries of the log."""
    tree = IncrementalTree()
    for data in arena.host.log.read(0, size) if size else ():
        tree.append(leaf_hash(data))
    return tree


# ---- commitments and files ------------------------------------------------------------------


def test_lesson_cadences__equal_states_have_equal_roots_at_any_cadence() -> None:
    """Hashes chained over checkpoints could not be compared across cadences (Gensyn)."""
    often, seldom = small_run(cadence=1), small_run(cadence=2)
    steps = [int(seldom.terms.step_of(mark)) for mark in range(seldom.terms.marks)]
    assert seldom.good.run_leaves() == [often.good.run_leaves()[step] for step in steps]
    assert often.terms != seldom.terms


class Trap:
    """A value that writes a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return (Path.touch, (self.path,))


def test_lesson_unpickled_index__a_stored_file_is_bytes_and_never_code(tmp_path: Path) -> None:
    """The index of a checkpoint was unpickled, and so ran whatever its author liked (Gensyn)."""
    sprung = tmp_path / "sprung"
    trap = pickle.dumps(Trap(sprung))
    program = load(posting().blobs["program"], Limits())
    size = len(posting().blobs["state"])
    for blob in (trap, trap.ljust(size, b"\0"), len(trap).to_bytes(4, "big") + trap):
        with pytest.raises(ProtocolError):
            unpack_state(program, blob)
        with pytest.raises(ProtocolError):
            load(blob, Limits())
    assert not sprung.exists()
    pickle.loads(trap)  # noqa: S301 - to see that the trap works
    assert sprung.exists()


# ---- operators of nodes ---------------------------------------------------------------------


def test_lesson_key_backup__one_file_brings_an_identity_back(tmp_path: Path) -> None:
    """A lost key was a lost identity with all it had earned, and nobody was told to keep one."""
    made = Identity.create(tmp_path / "node", "ada")
    shutil.copy(tmp_path / "node" / KEY_FILE, tmp_path / "offline copy")
    shutil.rmtree(tmp_path / "node")
    with pytest.raises(LocalError):
        Identity.load(tmp_path / "node", "ada")
    (tmp_path / "node").mkdir()
    shutil.copy(tmp_path / "offline copy", tmp_path / "node" / KEY_FILE)
    again = Identity.load(tmp_path / "node", "ada")
    assert again.party == made.party
    said = Unsigned(7)
    verify(made.party, Domain.MESSAGE, said, sign(again.signing_key, Domain.MESSAGE, said))
