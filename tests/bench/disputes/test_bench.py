"""The table of disputes: every lie is told as it is meant, and found where it is told."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from identic.kernels.arrays import from_bytes
from identic.kernels.cpu_backend import CpuBackend
from identic.kernels.executor import Executor
from identic.node.execution.loaded import load_job
from identic.node.execution.rerun import Rerun
from identic.node.execution.training import Trainer
from identic.node.submission import Conditions, prepare
from identic.proofs import arbiter
from identic.proofs.runlog import run_root
from identic.protocol.commitments import RunHead
from identic.protocol.dispute.bounds import course
from identic.protocol.dispute.moves import Side
from identic.protocol.dispute.setup import Opening, Setup
from identic.protocol.dispute.state import Ruling
from identic.protocol.encoding import decode, encode
from identic.protocol.hashing import sha256
from identic.protocol.ids import Count, Digest, Millis, PartyId
from identic.protocol.job.terms import job_id
from identic.protocol.program.unroll import unroll
from tests.bench.disputes import machine, staging
from tests.bench.disputes.lies import Lie, Patched, lies, told
from tests.bench.disputes.rows import Row, markdown, seconds, size
from tests.bench.disputes.staging import Model, Staged
from tests.bench.disputes.switch import Port, Switch
from tests.helpers.programs import mlp, mlp_data, mlp_state
from tests.helpers.signed_game import KEYS
from tests.lint.tree import ROOT

PROGRAM = mlp(steps=4)
PLAN = unroll(PROGRAM)
STEPS = 4
LIES = lies(PLAN, STEPS - 1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A staged job of a small perceptron."""
    path = tmp_path_factory.mktemp("staged")
    state = [from_bytes(v.type, b) for v, b in zip(PROGRAM.state, mlp_state(PROGRAM), strict=True)]
    data = [from_bytes(v.type, b) for v, b in zip(PROGRAM.data, mlp_data(PROGRAM), strict=True)]
    conditions = Conditions(
        STEPS, staging.PRICES, staging.CLOCKS, cadence=2, checkpoint=1024, verifiers=1
    )
    made = prepare(staging.blobs(path), PartyId(bytes(32)), PROGRAM, state, data, conditions)
    model = Model("small", "small", "", STEPS, 2)
    staging.trained(model, path, made.terms, made.artifacts, lambda _: None)
    return path


def execution(folder: Path, staged: Staged, lie: Lie | None) -> Rerun:
    """What a party has, as ``party.py`` makes it."""
    store = staging.blobs(folder)
    job = load_job(staged.terms, staged.artifacts, store)
    forced = None if lie is None else lie.forced(job.plan)
    trainer = Trainer(job, Executor(job.plan, CpuBackend()), forced)
    stored = {int(kept.mark): kept.blob for kept in staged.stored}
    if lie is None:
        return Rerun(trainer, store, staged.roots, stored, 1 << 24)
    if forced is None:
        patched = Patched(trainer, store, staged.roots[:-1], stored, 1 << 24)
        patched.lie(lie.fault)
        return patched
    rerun = Rerun(trainer, store, staged.roots[:-1], stored)
    claimed = trainer.mark(rerun.state_after(STEPS), staged.terms.last_mark)
    own = (*staged.roots[:-1], claimed.state_root)
    return Rerun(trainer, store, own, stored, 1 << 24)


def head(staged: Staged, roots: list[Digest]) -> RunHead:
    """Run head over state roots."""
    root = run_root(roots, staged.terms.cadence, staged.terms.steps)
    return RunHead(job_id(staged.terms), Count(len(roots)), root)


def played(staged: Staged, liar: Rerun, honest: Rerun) -> tuple[Setup, Ruling]:
    """The dispute, through the arbiter."""
    opening = Opening(
        dispute=sha256(b"bench"),
        defender=KEYS[Side.DEFENDER].party,
        challenger=KEYS[Side.CHALLENGER].party,
        defender_head=head(staged, list(liar.run_leaves())),
        challenger_head=head(staged, list(honest.run_leaves())),
        at=Millis(1),
        step_ms=Millis(1),
        load=Count(1),
    )
    setup = Setup(staged.terms, PLAN, opening)
    dispute = arbiter.start(setup).dispute
    sides = {Side.DEFENDER: liar, Side.CHALLENGER: honest}
    while dispute.ruling is None:
        side = dispute.due[-1]
        move = told(dispute, side, sides[side])
        assert move is not None
        signed = arbiter.sign_move(KEYS[side], dispute, move)
        dispute = arbiter.apply(dispute, signed, Millis(dispute.now + 1)).dispute
    return setup, dispute.ruling


@pytest.mark.parametrize("number", range(len(LIES)), ids=[lie.name for lie in LIES])
def test_a_lie_is_found_where_it_is_told(number: int, folder: Path) -> None:
    staged, lie = staging.load(folder), LIES[number]
    liar, honest = execution(folder, staged, lie), execution(folder, staged, None)
    assert list(liar.run_leaves())[:-1] == list(honest.run_leaves())[:-1]
    setup, ruling = played(staged, liar, honest)
    assert ruling.loser is Side.DEFENDER
    assert ruling.step == STEPS - 1
    found = course(setup.terms, PLAN, lie.fault)
    assert [r.level for r in ruling.rounds] == [e.level for e in found.rounds]
    if lie.forced(PLAN) is not None:
        place = (ruling.value, ruling.element, tuple(ruling.path))
        assert place == (lie.fault.value, lie.fault.element, lie.fault.path)


def test_the_lies_are_at_every_level() -> None:
    names = {lie.name for lie in LIES}
    assert {"load of a parameter", "load of the data", "state header", "state tensor"} <= names
    assert {"matrix product", "softmax (exp)", "optimizer (new parameter)"} <= names
    assert len(names) == len(LIES)


def test_a_claimed_mark_opens_its_loss(folder: Path) -> None:
    staged = staging.load(folder)
    for lie in LIES[2:4]:
        store = staging.blobs(folder)
        job = load_job(staged.terms, staged.artifacts, store)
        trainer = Trainer(job, Executor(job.plan, CpuBackend()))
        stored = {int(kept.mark): kept.blob for kept in staged.stored}
        claimed = Patched(trainer, store, staged.roots[:-1], stored).lie(lie.fault)
        assert claimed.loss == staged.marks[-1].loss
        assert claimed.state_root != staged.marks[-1].state_root
        assert len(claimed.path) == len(staged.marks[-1].path)


def test_what_is_staged_is_read_again(folder: Path) -> None:
    staged = staging.load(folder)
    assert decode(Staged, encode(staged)) == staged
    assert staged.roots[0] == staged.terms.initial_state
    assert len(staged.roots) == staged.terms.marks


def test_a_ruling_is_measured_without_heavy_modules() -> None:
    file = ROOT / "tests" / "proofs" / "transcripts" / "v2" / "primitive.identic"
    command = [sys.executable, "-m", "tests.bench.disputes.referee", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    found = json.loads(done.stdout)
    assert found["heavy"] == []
    assert found["referee_ms"] > 0
    assert found["defender_bytes"] > 0


# ---- the switch -----------------------------------------------------------------------------


def frame(to: int, of: int, words: bytes = b"x") -> bytes:
    """An Ethernet frame between numbered addresses; 255 is everybody."""
    place = bytes([255] * 6) if to == 255 else bytes([2, 0, 0, 0, 0, to])
    return place + bytes([2, 0, 0, 0, 0, of]) + b"\x08\x00" + words


class Cable:
    """A device and its other end."""

    def __init__(self, name: str, *, outside: bool = False) -> None:
        self.near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        for end in (self.near, far):
            end.setblocking(False)
        self._far = far
        self.port = Port(name, far.fileno(), outside)

    def send(self, frame: bytes) -> None:
        """Put a frame on the wire."""
        self.near.send(frame)

    def received(self) -> list[bytes]:
        """Frames that have come."""
        found = []
        while True:
            try:
                found.append(self.near.recv(2048))
            except BlockingIOError:
                return found


async def passed(loss: float, outside: bool = False) -> list[list[bytes]]:
    """What three devices receive of a broadcast, and of an answer to it."""
    cables = [Cable("a"), Cable("b"), Cable("c", outside=outside)]
    switch = Switch(0.0, loss)
    for cable in cables:
        switch.add(cable.port)
    for cable, sent in ((cables[0], frame(255, 1)), (cables[1], frame(1, 2))):
        cable.send(sent)
        for _ in range(4):
            await asyncio.sleep(0)
    switch.close()
    return [cable.received() for cable in cables]


async def test_the_switch_learns_who_is_where() -> None:
    assert await passed(0.0) == [[frame(1, 2)], [frame(255, 1)], [frame(255, 1)]]


async def test_a_lossy_link_loses_frames_but_not_those_of_the_outside() -> None:
    assert await passed(1.0) == [[], [], []]
    assert await passed(1.0, outside=True) == [[], [], [frame(255, 1)]]


# ---- the table ------------------------------------------------------------------------------

ROW = Row(
    model="a model",
    link="loopback",
    lie="matrix product",
    operator="matmul",
    level="fold",
    rule="REF-12",
    rounds=6,
    liar_bytes=111_000,
    honest_bytes=110_000,
    wall_s=0.25,
    rerun_s=0.2,
    rerun_cpu_s=0.2,
    steps_again=4,
    step_s=0.05,
    coordinator_cpu_s=0.01,
    referee_ms=0.31,
    evidence_bytes=8_700,
    memory_bytes=1_200_000_000,
    load=1.0,
)


def test_rows_are_kept_and_read_again() -> None:
    assert Row(**json.loads(json.dumps(asdict(ROW)))) == ROW


def test_a_table_has_a_line_for_each_lie_and_a_time_for_each_link() -> None:
    slow = replace(ROW, link="50 ms", wall_s=1.5)
    other = replace(ROW, lie="state tensor", operator="", rule="REF-11")
    text = markdown({"processor": "one"}, [ROW, slow, other], {"loopback": "l", "50 ms": "w"})
    lines = [line for line in text.splitlines() if line.startswith("|")]
    assert len(lines) == 4
    assert len({line.count("|") for line in lines}) == 1
    assert "| 250 ms | 1.5 s |" in lines[2]
    assert "`matmul`" in lines[2]
    assert "| 250 ms |  |" in lines[3]
    assert "- w" in text


def test_figures_have_units() -> None:
    assert [seconds(s) for s in (0.0012, 0.5, 1.0, 12.34)] == ["1 ms", "500 ms", "1 s", "12.3 s"]
    assert [size(n) for n in (12, 8_700, 3_000_000, 1_230_000_000)] == [
        "12 B",
        "8.7 kB",
        "3 MB",
        "1.23 GB",
    ]


def test_rows_of_another_machine_are_not_taken_over() -> None:
    here = machine.describe(1)
    assert machine.same(here, {**here, "load before": "another"})
    assert not machine.same({**here, "processor": "another"}, here)
