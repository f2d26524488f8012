"""The coordinator's village as a place for attacks: false runs, refusals that are noted, clocks.

``Tale`` is a run that went another way than the program says, with a trainer that goes that way
again whenever it is asked, so that a liar answers in a dispute as an honest party does.
``Arena`` notes what was refused to the liars and how disputes ended; the honest parties of the
village do what they always do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from identic.kernels.cpu_backend import CpuBackend
from identic.kernels.executor import Executor, Observer
from identic.node.blobs import Blobs
from identic.node.coordinator.cases import Case
from identic.node.execution.elements import word_at
from identic.node.execution.loaded import LoadedJob, load_job
from identic.node.execution.rerun import Rerun
from identic.node.execution.states import Arrays
from identic.node.execution.training import Trainer
from identic.proofs import arbiter
from identic.protocol.dispute.moves import Move, Side
from identic.protocol.dispute.player import next_move
from identic.protocol.dispute.state import Dispute, Ruling
from identic.protocol.errors import ProtocolError
from identic.protocol.hashing import sha256
from identic.protocol.ids import Digest
from identic.protocol.job.messages import DisputeId, DisputeMove, Statement
from identic.protocol.job.state import Phase
from identic.protocol.settlement.ledger import Issued
from tests.node.coordinator.village import GRANT, KEYS, PRICES, Run, Village, posting, trained

Way = Callable[["Crooked", Arrays, int, Observer | None], Arrays]
"""How a liar makes the state after a step; ``Crooked.truly`` is the honest way."""


class Crooked(Trainer):
    """A trainer that makes steps in a liar's way, the same again each time."""

    def __init__(self, job: LoadedJob, executor: Executor, way: Way) -> None:
        super().__init__(job, executor)
        self._way = way

    def step(
        self,
        state: Arrays,
        step: int,
        observer: Observer | None = None,
        *,
        give: bool = False,
    ) -> Arrays:
        """The state after a step, as the liar has it."""
        del give
        return self._way(self, state, step, observer)

    def truly(
        self,
        state: Arrays,
        step: int,
        observer: Observer | None = None,
        *,
        data: Sequence[object] | None = None,
        seed: int | None = None,
    ) -> Arrays:
        """The step of the program, on other data or another seed where these are given."""
        data = self.job.data if data is None else data
        seed = int(self.job.terms.seed) if seed is None else seed
        return self.executor.step(state, data, seed, step, observer)  # type: ignore[arg-type]


class Story(Rerun):
    """Answers as the liar's run has it, down to partial results that end in what it claims."""

    def _states_around(self, step: int, before: Arrays, trace: Sequence[Digest]) -> Digest:
        """Root of the state after a step as the liar has it, whatever the trace says."""
        del trace
        after = self._trainer.step(before, step)
        return self._job.commit(step + 1, after).root

    def entries(
        self, step: int, value: int, element: int, path: tuple[int, ...]
    ) -> tuple[int, ...]:
        """Honest partial results of the operands, with the claimed word last."""
        words = tuple(super().entries(step, value, element, path))
        planned = self.plan.call(value)
        assert planned is not None
        fold, last = planned.call.op.fold(planned.call, element), True
        for index in path:
            last = last and index == fold.length - 1
            fold = fold.entry(index).fold  # type: ignore[union-attr]
        return (*words[:-1], word_at(self.tensor(step, value), element)) if last else words


def honestly(trainer: Crooked, state: Arrays, step: int, observer: Observer | None) -> Arrays:
    """No lie at all."""
    return trainer.truly(state, step, observer)


@dataclass(frozen=True)
class Tale(Run):
    """A false run, and how it was made."""

    way: Way = honestly
    story: type[Story] = Story

    def answers(self, blobs: Blobs) -> Story:
        """What its author answers in a dispute."""
        stored = {mark: sha256(state) for mark, state in enumerate(self.states)}
        return self.story(crooked(blobs, self.way), blobs, self.roots, stored)


def crooked(blobs: Blobs, way: Way) -> Crooked:
    """A liar's trainer of the village's job."""
    job = load_job(posting().said.terms, posting().said.artifacts, blobs)
    return Crooked(job, Executor(job.plan, CpuBackend()), way)


def tale(blobs: Blobs, way: Way, story: type[Story] = Story) -> Tale:
    """Execute the job in a liar's way."""
    for data in posting().blobs.values():
        blobs.put(data)
    return Tale(None, *trained(crooked(blobs, way), blobs), way, story)


Strategy = Callable[[Dispute, Side, Rerun], Sequence[Move]]
"""The moves that somebody tries in a round, one after the other until one counts."""


def as_it_is(dispute: Dispute, side: Side, execution: Rerun) -> Sequence[Move]:
    """The move that one's own run gives."""
    move = next_move(dispute, side, execution)
    return () if move is None else (move,)


def silent(dispute: Dispute, side: Side, execution: Rerun) -> Sequence[Move]:
    """No move."""
    del dispute, side, execution
    return ()


class Arena(Village):
    """The village under attack.

    Attributes:
        honest: the run of the program.
        refused: rules by which something was refused to a liar, in order.
    """

    def __init__(self, folder: Path, honest: Run) -> None:
        super().__init__(folder)
        self.honest = honest
        self.refused: list[str] = []

    # ---- attempts ---------------------------------------------------------------------------

    def attempt(self, who: str, said: Statement) -> bool:
        """Let a liar say something; tells whether it counted, and notes the rule if not.

        A refusal leaves the log and the board as they were.
        """
        self.host.welcome(KEYS[who].party)
        size, board = self.host.log.size, self.host.board
        try:
            self.say(who, said)
        except ProtocolError as refusal:
            self.refused.append(refusal.rule)
            assert (self.host.log.size, self.host.board) == (size, board)
            return False
        return True

    # ---- disputes ---------------------------------------------------------------------------

    def execution(self, run: Run) -> Rerun:
        """What a party that computed ``run`` can answer."""
        if isinstance(run, Tale):
            for state in (*run.states, *posting().blobs.values()):
                self.blobs.put(state)
            return run.answers(self.blobs)
        return super().execution(run)

    def duel(
        self,
        runs: Mapping[str, Run],
        strategies: Mapping[str, Strategy] | None = None,
        case: DisputeId | None = None,
        between: Callable[[], None] = lambda: None,
    ) -> Ruling:
        """Play the last dispute, or a named one, to its ruling.

        Args:
            runs: what each party computed.
            strategies: of those that do not play as their run is; their refusals are noted.
            case: the dispute.
            between: called before each move.
        """
        name = case or self.case.id
        executions = {who: self.execution(run) for who, run in runs.items()}
        while (found := self.host.board.case(name)).transcript is None:
            before = len(found.moves)
            for who, execution in executions.items():
                between()
                self._turn(name, who, execution, (strategies or {}).get(who))
            after = self.host.board.case(name)
            if after.transcript is None and before == len(after.moves):
                self.wait()
        ruling = found.dispute.ruling
        assert ruling is not None
        return ruling

    def _turn(self, name: DisputeId, who: str, execution: Rerun, strategy: Strategy | None) -> None:
        case = self.host.board.case(name)
        side = self.side(case, who)
        if side is None or side not in case.dispute.due:
            return
        for move in (strategy or as_it_is)(case.dispute, side, execution):
            signed = arbiter.sign_move(KEYS[who], case.dispute, move)
            said = DisputeMove(case.id, signed)
            if strategy is None:
                self.say(who, said)
                return
            if self.attempt(who, said):
                return

    @staticmethod
    def side(case: Case, who: str) -> Side | None:
        """The side that somebody plays in a dispute."""
        parties = {case.opened.defender: Side.DEFENDER, case.opened.challenger: Side.CHALLENGER}
        return parties.get(KEYS[who].party)

    # ---- afterwards -------------------------------------------------------------------------

    def rulings(self) -> list[tuple[str, str]]:
        """Rule and level of each ruling, in the order of the disputes."""
        cases = self.host.board.cases.values()
        found = [case.dispute.ruling for case in cases if case.transcript is not None]
        return [(ruling.rule, ruling.level) for ruling in found if ruling is not None]

    def settle(self) -> None:
        """Let honest parties bring the job to its end, with a new solver if it needs one."""
        if self.job.phase is Phase.OPEN:
            self.accept("second").commit(self.honest, "second").finish(self.honest, "second")
        elif self.job.finish is None:
            self.commit(self.honest).finish(self.honest)
        for name in ("anna", "bert"):
            seat = self.job.seat(KEYS[name].party)
            if seat is not None and seat.sealed is None:
                self.seal_verdict(name, self.honest)
        for name in ("anna", "bert"):
            seat = self.job.seat(KEYS[name].party)
            if seat is not None and seat.verdict is None and not seat.late:
                self.tell_verdict(name, self.honest)
        self.wait()

    def check(self, liars: Sequence[str]) -> None:
        """What holds after any attack: money is conserved and nobody honest has lost any."""
        board = self.host.board
        assert sum(board.ledger.balances.values()) == 0
        assert -board.ledger.of(Issued()) == GRANT * len(board.known)
        names = {key.party: name for name, key in KEYS.items()}
        for party in board.known:
            name = names[party]
            spent = posting().said.terms.escrow if name == "submitter" else 0
            if name not in liars:
                assert self.money(name) >= GRANT - spent, name

    def lost(self, name: str) -> int:
        """What somebody has less than in the beginning, bonds included."""
        return GRANT - self.money(name)

    def bond(self, name: str) -> int:
        """The bond of somebody's part."""
        bonds = {"solver": PRICES.solver_bond, "second": PRICES.solver_bond}
        bonds |= {"anna": PRICES.verifier_bond, "bert": PRICES.verifier_bond}
        return int(bonds.get(name, PRICES.challenger_bond))
