"""A coordinator and its parties in one process: real programs and runs, a clock by hand.

Parties hand their messages to the host directly. Runs are executed once and shared by all
tests: one honest, one with a wrong element at a known place.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
from safetensors.numpy import load, save

from identic.kernels.executor import Executor
from identic.kernels.reference_backend import ReferenceBackend
from identic.node.blobs import Blobs
from identic.node.coordinator.cases import Case
from identic.node.coordinator.host import Host
from identic.node.coordinator.policy import Policy
from identic.node.execution.forced import ForcedError
from identic.node.execution.loaded import LoadedJob, load_job, load_state
from identic.node.execution.rerun import Rerun
from identic.node.execution.states import commit_state, pack_state, unpack_tensors
from identic.node.execution.training import Trainer, store_model, store_state
from identic.node.storage.sqlite import SqliteStorage
from identic.proofs import arbiter
from identic.proofs.envelope import seal
from identic.proofs.runlog import run_root
from identic.proofs.signatures import SigningKey
from identic.proofs.tensors import tensor_digest
from identic.protocol.commitments import RunHead, StateHeader
from identic.protocol.dispute.moves import Side
from identic.protocol.dispute.player import next_move
from identic.protocol.encoding import encode
from identic.protocol.hashing import sha256
from identic.protocol.ids import Count, Credits, Digest, JobId, Millis, PartyId, StepIndex, Unsigned
from identic.protocol.job.messages import (
    AcceptJob,
    Artifacts,
    Challenge,
    Commit,
    CommitVerdict,
    DisputeMove,
    Enrol,
    Finish,
    Mark,
    RevealVerdict,
    Statement,
    Stored,
    SubmitJob,
    Verdict,
    verdict_digest,
    work_digest,
)
from identic.protocol.job.state import Job
from identic.protocol.job.terms import Clocks, JobTerms, Prices, job_id
from identic.protocol.program.codec import program_digest
from tests.helpers.programs import mlp, mlp_data, mlp_state

GRANT = Credits(10_000)
START = 1_700_000_000_000
NAMES = ("coordinator", "submitter", "solver", "anna", "bert", "watcher", "second")


class Keys(dict[str, SigningKey]):
    """Keys by name; a stranger's follows from its name."""

    def __missing__(self, name: str) -> SigningKey:
        made = self[name] = SigningKey(sha256(name.encode()))
        return made


KEYS = Keys({name: SigningKey(bytes([number]) * 32) for number, name in enumerate(NAMES, 1)})
PRICES = Prices(Credits(100), Credits(40), Credits(400), Credits(200), Credits(50))
CLOCKS = Clocks(Millis(1_000), Millis(10_000), Millis(5_000), Millis(9_500))
LIE = ForcedError(StepIndex(3), Count(0), Count(1), (Count(3),), Unsigned(1 << 22))
"""Where the false run goes wrong; the value is filled in from the plan."""


class HandClock:
    """A clock that moves when it is told to."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> int:
        return self.now


@dataclass(frozen=True)
class Posting:
    """A job as its submitter has it: what to say, and the blobs to bring."""

    said: SubmitJob
    blobs: Mapping[str, bytes]

    @property
    def job(self) -> JobId:
        """The job's id."""
        return job_id(self.said.terms)


@cache
def posting() -> Posting:
    """The job of all tests: a small perceptron, seven steps, a mark each two."""
    program = mlp()
    digest = program_digest(program)
    state = unpack_tensors(program.state, b"".join(mlp_state(program)))
    header = StateHeader(digest, Unsigned(5), StepIndex(0), Count(0))
    data = mlp_data(program)
    terms = JobTerms(
        version=Count(1),
        submitter=KEYS["submitter"].party,
        program=digest,
        initial_state=commit_state(header, program.state, state).root,
        data=tuple(
            tensor_digest(v.type, memoryview(d)) for v, d in zip(program.data, data, strict=True)
        ),
        seed=Unsigned(5),
        steps=Count(7),
        cadence=Count(2),
        checkpoint=Count(2),
        kernel_set=Count(1),
        verifiers=Count(2),
        prices=PRICES,
        clocks=CLOCKS,
        nonce=Digest(bytes(32)),
    )
    blobs = {"program": encode(program), "state": pack_state(header, state)}
    blobs |= {f"data {i}": d for i, d in enumerate(data)}
    names = {name: sha256(data) for name, data in blobs.items()}
    artifacts = Artifacts(
        names["program"], names["state"], tuple(names[f"data {i}"] for i in range(len(data)))
    )
    return Posting(SubmitJob(terms, artifacts), blobs)


@dataclass(frozen=True)
class Run:
    """A finished run of the job, with everything a solver would have."""

    forced: ForcedError | None
    marks: tuple[Mark, ...]
    """Mark 0 with no loss, then the committed ones."""
    states: tuple[bytes, ...]
    """Stored state at each mark."""
    model: bytes

    @property
    def roots(self) -> list[Digest]:
        """State roots at the marks."""
        return [mark.state_root for mark in self.marks]

    def head(self, marks: int = 5) -> RunHead:
        """Head over the first marks."""
        terms = posting().said.terms
        root = run_root(self.roots[:marks], terms.cadence, terms.steps)
        return RunHead(posting().job, Count(marks), root)


class Village:
    """The coordinator's machine with everybody around it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.clock = HandClock()
        self.blobs = Blobs(folder / "blobs", 1 << 30)
        self._nonces = itertools.count()
        self.storage = SqliteStorage(folder / "state")
        self.host = self.open_host()

    def open_host(self, policy: Policy | None = None) -> Host:
        """A coordinator over the files as they are."""
        key = KEYS["coordinator"]
        return Host(self.storage, self.blobs, key, self.clock, grant=GRANT, policy=policy)

    def restart(self, policy: Policy | None = None) -> None:
        """Kill the coordinator and start it again from its files."""
        self.storage.close()
        self.storage = SqliteStorage(self.folder / "state")
        self.host = self.open_host(policy)

    def close(self) -> None:
        """Let go of the files."""
        self.storage.close()

    # ---- messages ---------------------------------------------------------------------------

    def say(self, name: str, said: Statement) -> int:
        """A party makes a statement; the coordinator then does what it owes."""
        signed = seal(KEYS[name], KEYS["coordinator"].party, next(self._nonces), said)
        self.host.welcome(KEYS[name].party)
        self.host.inspect(signed)
        index = self.host.submit(signed)
        self.host.settle_duties()
        return index

    def wait(self, milliseconds: int = 0) -> None:
        """Time passes, by default to the next deadline; the coordinator does what it owes."""
        deadline = self.host.next_deadline()
        later = self.clock.now + milliseconds
        self.clock.now = later if milliseconds or deadline is None else int(deadline)
        self.host.settle_duties()

    @property
    def job(self) -> Job:
        """The job on the board."""
        return self.host.board.job(posting().job)

    @property
    def case(self) -> Case:
        """The last dispute."""
        return list(self.host.board.cases.values())[-1]

    def money(self, name: str) -> int:
        """Everything a party has, bonds included."""
        ledger, party = self.host.board.ledger, KEYS[name].party
        return ledger.balance(party) + ledger.at_risk(party)

    # ---- the usual course -------------------------------------------------------------------

    def post(self) -> Village:
        """Verifiers enrol; the submitter uploads and posts."""
        for name in ("anna", "bert"):
            self.say(name, Enrol())
        for data in posting().blobs.values():
            self.blobs.put(data)
        self.say("submitter", posting().said)
        return self

    def accept(self, solver: str = "solver") -> Village:
        """A solver takes the job."""
        self.say(solver, AcceptJob(posting().job, self.job.attempt))
        return self

    def commit(self, run: Run, solver: str = "solver", upto: int = 5) -> Village:
        """The solver commits to a run's marks one by one and stores the checkpoint."""
        for index in range(len(self.job.marks), upto):
            self.say(solver, self.commitment(run, index))
            if index == 2:
                blob = self.blobs.put(run.states[index])
                self.say(solver, Stored(posting().job, self.job.attempt, Count(index), blob))
        return self

    def commitment(self, run: Run, index: int) -> Commit:
        """The commitment to one mark."""
        marks = (run.marks[index],)
        attempt = self.job.attempt
        return Commit(posting().job, attempt, Count(index), marks, run.head(index + 1))

    def finish(self, run: Run, solver: str = "solver") -> Village:
        """The solver brings the model and the last state."""
        files = (self.blobs.put(run.model), self.blobs.put(run.states[-1]))
        self.say(solver, Finish(posting().job, self.job.attempt, run.head(), *files))
        return self

    def verdict(self, name: str, run: Run) -> Verdict:
        """What a verifier that computed ``run`` finds."""
        party = KEYS[name].party
        agrees = run.head() == self.job.head
        return Verdict(posting().job, self.job.attempt, party, run.head(), agrees, sha256(party))

    def seal_verdict(self, name: str, run: Run) -> Village:
        """A verifier seals its verdict."""
        digest = verdict_digest(self.verdict(name, run))
        self.say(name, CommitVerdict(posting().job, self.job.attempt, digest))
        return self

    def tell_verdict(self, name: str, run: Run) -> Village:
        """A verifier tells its verdict, with the trace root of the beacon's step."""
        assert self.job.beacon is not None
        v = self.verdict(name, run)
        work = work_digest(v.party, self.execution(run).trace_root(int(self.job.beacon)))
        self.say(name, RevealVerdict(v.job, v.attempt, v.head, v.agrees, v.salt, work))
        return self

    def judged(self, run: Run) -> Village:
        """A finished run for which both verifiers vouch."""
        self.post().accept().commit(run).finish(run)
        self.seal_verdict("anna", run).seal_verdict("bert", run)
        return self.tell_verdict("anna", run).tell_verdict("bert", run)

    # ---- disputes ---------------------------------------------------------------------------

    def challenge(self, name: str, run: Run) -> Village:
        """A doubter claims another run, at the first mark on which it differs."""
        pairs = zip(run.roots, (m.state_root for m in self.job.marks), strict=False)
        differs = [mark for mark, (own, theirs) in enumerate(pairs) if own != theirs]
        mark = differs[0] if differs else len(self.job.marks) - 1
        said = Challenge(posting().job, self.job.attempt, Count(mark), run.roots[mark])
        self.say(name, said)
        return self

    def execution(self, run: Run) -> Rerun:
        """What a party that computed ``run`` can answer."""
        for state in (*run.states, *posting().blobs.values()):
            self.blobs.put(state)
        trainer = trainer_of(self.blobs, run.forced)
        stored = {mark: sha256(state) for mark, state in enumerate(run.states)}
        return Rerun(trainer, self.blobs, run.roots, stored)

    def move(self, name: str, run: Run, case: Case | None = None) -> bool:
        """A party makes its move in a dispute, the last one by default, if it is due."""
        case = case or self.case
        dispute = case.dispute
        sides = {case.opened.defender: Side.DEFENDER, case.opened.challenger: Side.CHALLENGER}
        side = sides.get(KEYS[name].party)
        move = None if side is None else next_move(dispute, side, self.execution(run))
        if move is None:
            return False
        signed = arbiter.sign_move(KEYS[name], dispute, move)
        self.say(name, DisputeMove(case.id, signed))
        return True

    @property
    def played(self) -> list[Case]:
        """The disputes that are played, in the order in which they were set up."""
        cases = self.host.board.cases.values()
        return [c for c in cases if not c.void and c.transcript is None]

    def play(self, runs: Mapping[str, Run]) -> Village:
        """These parties play their runs in all disputes, until nothing is left for them to do."""
        moved = True
        while moved:
            moved = False
            for name in [case.id for case in self.played]:
                for who, run in runs.items():
                    case = self.host.board.case(name)
                    over = case.void or case.over
                    moved |= not over and self.move(who, run, case)
        return self

    def between(self, one: str, other: str) -> Case:
        """The last dispute between two parties."""
        wanted = {KEYS[one].party, KEYS[other].party}
        found = [
            case
            for case in self.host.board.cases.values()
            if {case.opened.defender, case.opened.challenger} == wanted
        ]
        return found[-1]


def trainer_of(blobs: Blobs, forced: ForcedError | None) -> Trainer:
    """Something that executes the job's steps."""
    job: LoadedJob = load_job(posting().said.terms, posting().said.artifacts, blobs)
    return Trainer(job, Executor(job.plan, ReferenceBackend()), forced)


def execute(folder: Path, *, lie: bool) -> Run:
    """Execute the job, or a false version of it."""
    blobs = Blobs(folder, 1 << 30)
    for data in posting().blobs.values():
        blobs.put(data)
    forced = lie_in(trainer_of(blobs, None).job) if lie else None
    return Run(forced, *trained(trainer_of(blobs, forced), blobs))


def trained(trainer: Trainer, blobs: Blobs) -> tuple[tuple[Mark, ...], tuple[bytes, ...], bytes]:
    """Marks, stored states and model file of a whole run."""
    job = trainer.job
    state = load_state(job, blobs, posting().said.artifacts.state, 0, job.terms.initial_state)
    nothing = Mark(StepIndex(0), job.terms.initial_state, Unsigned(0), ())
    marks, states = [nothing], [blobs.read(store_state(job, blobs, 0, state), 1 << 24)]
    for index in range(1, job.terms.marks):
        first, last = int(job.terms.step_of(index - 1)), int(job.terms.step_of(index))
        state = trainer.advance(state, first, last)
        marks.append(trainer.mark(state, index))
        states.append(blobs.read(store_state(job, blobs, last, state), 1 << 24))
    model = blobs.read(store_model(job, blobs, state), 1 << 24)
    return tuple(marks), tuple(states), model


def lie_in(job: LoadedJob) -> ForcedError:
    """One wrong fused multiply-add: in the gradient of the second layer's weights, in step 3."""
    plan = job.plan
    products = [
        value
        for value in range(len(plan.loads), plan.values)
        if (planned := plan.call(value)) is not None and planned.call.op.name == "matmul"
    ]
    return replace(LIE, value=Count(products[2]))


def model_with(run: Run, name: str) -> bytes:
    """The run's model with one number of one tensor changed."""
    tensors = {key: np.array(value) for key, value in load(run.model).items()}
    tensors[name].reshape(-1)[0] += 1
    return save(tensors)


def party(name: str) -> PartyId:
    """Identity of one of the village."""
    return KEYS[name].party
