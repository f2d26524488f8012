"""Parties that do not do their part: false challengers, careless verifiers, a restart."""

from __future__ import annotations

from identic.protocol.hashing import sha256
from identic.protocol.ids import Count
from identic.protocol.job.messages import (
    Ask,
    CannotTell,
    CommitVerdict,
    RevealVerdict,
    Served,
    verdict_digest,
)
from tests.adversaries.adversary import Adversary, Cost, listed
from tests.adversaries.lies import wrong_element
from tests.adversaries.moves import Meddler
from tests.helpers.arena import Arena, tale

VOUCHERS = ("solver", "anna", "bert")


@listed
class FalseChallenge(Adversary):
    """Challenges an honest run."""

    name = "false challenge"
    tries = (
        "It challenges a run that two verifiers vouch for, with one wrong element, and "
        "plays that to the end."
    )
    stopped = ("REF-12 at primitive",)
    cost = Cost.BOND
    liars = ("watcher",)

    def attack(self, arena: Arena) -> None:
        """Challenge a finished run."""
        false = tale(arena.blobs, wrong_element)
        arena.judged(arena.honest).challenge("watcher", false)
        arena.play({**dict.fromkeys(VOUCHERS, arena.honest), "watcher": false})


@listed
class AbandonedChallenge(FalseChallenge):
    """Challenges, and goes away."""

    name = "challenger that abandons"
    tries = "It challenges an honest run, so that its clocks stand still, and is not seen again."
    stopped = ("DSP-12 at run",)

    def attack(self, arena: Arena) -> None:
        """Challenge; do not move."""
        false = tale(arena.blobs, wrong_element)
        arena.judged(arena.honest).challenge("watcher", false)
        arena.play(dict.fromkeys(VOUCHERS, arena.honest)).wait()


@listed
class ColludingVerifier(Adversary):
    """Vouches for the false run of a friend."""

    name = "colluding verifier"
    tries = (
        "Both verifiers vouch for the false run of their friend, and answer for it with its moves."
    )
    stopped = ("REF-12 at primitive",) * 3
    cost = Cost.BOND
    liars = ("solver", "anna", "bert")

    def attack(self, arena: Arena) -> None:
        """Agree with the false run; a stranger looks, and all fall."""
        false = tale(arena.blobs, wrong_element)
        arena.judged(false).challenge("watcher", arena.honest)
        runs = dict.fromkeys(self.liars, false) | {"watcher": arena.honest}
        arena.play(runs)


@listed
class CopyingVerifier(Adversary):
    """Takes another verifier's words for its own."""

    name = "copying verifier"
    tries = (
        "It seals the other verifier's digest and tells that verdict, with its salt and its work."
    )
    stopped = ("JOB-14",)
    cost = Cost.FEE
    liars = ("bert",)

    def attack(self, arena: Arena) -> None:
        """Copy what the other one seals and tells."""
        run = arena.honest
        arena.post().accept().commit(run).finish(run).seal_verdict("anna", run)
        job, (anna,) = arena.job, [s for s in arena.job.verifiers if s.sealed]
        assert anna.sealed is not None
        arena.say("bert", CommitVerdict(job.id, job.attempt, anna.sealed))
        arena.tell_verdict("anna", run)
        told = next(s.verdict for s in arena.job.verifiers if s.verdict)
        again = RevealVerdict(job.id, job.attempt, told.head, told.agrees, told.salt, told.work)
        arena.attempt("bert", again)
        arena.wait()
        assert [seat.late for seat in arena.job.verifiers if not seat.verdict] == [True]


@listed
class CoordinatorRestart(Meddler):
    """Hopes that the coordinator forgets."""

    name = "coordinator restart in between"
    tries = "The coordinator is killed and started again before each move of a dispute."
    stopped = ("REF-12 at primitive",)

    def meddle(self, arena: Arena) -> None:
        """Start the coordinator again from its files."""
        before = arena.host.board
        arena.restart()
        after = arena.host.board
        assert (after.jobs, after.ledger) == (before.jobs, before.ledger)
        for one, other in zip(before.cases.values(), after.cases.values(), strict=True):
            assert (one.moves, one.dispute.rounds) == (other.moves, other.dispute.rounds)


@listed
class WithheldState(Adversary):
    """Does not store again what was lost."""

    name = "withheld state"
    tries = (
        "The coordinator has lost a stored state and a verifier asks for it; the solver says that "
        "it is stored again, without storing it."
    )
    stopped = ("NET-8",)
    cost = Cost.PART

    def attack(self, arena: Arena) -> None:
        """Answer with words only, until time is called."""
        run = arena.honest
        arena.post().accept().commit(run).finish(run)
        job, mark = arena.job, Count(2)
        arena.blobs.remove(sha256(run.states[mark]))
        arena.say("bert", Ask(job.id, job.attempt, mark))
        arena.attempt("solver", Served(job.id, job.attempt, mark))
        arena.wait()


@listed
class NeedlessAsks(Adversary):
    """Asks for states to win time."""

    name = "needless asks"
    tries = (
        "It asks for states that are there, for one that was never to be stored, and as the "
        "solver for its own, to stop the clocks."
    )
    stopped = ("JOB-30",)
    cost = Cost.NOTHING
    liars = ("watcher", "solver")

    def attack(self, arena: Arena) -> None:
        """Ask in the window; nothing waits."""
        arena.judged(arena.honest)
        job, deadline = arena.job, arena.job.deadline
        for who, mark in (("watcher", 2), ("watcher", 4), ("watcher", 1), ("solver", 2)):
            arena.attempt(who, Ask(job.id, job.attempt, Count(mark)))
        assert arena.job.deadline == deadline


@listed
class PickyVerifier(Adversary):
    """Gives its seat back, and wants it again."""

    name = "picky verifier"
    tries = (
        "It gives its seat back as if it could not tell, and then seals a verdict after all, when "
        "it has seen who else judges."
    )
    stopped = ("JOB-6",)
    cost = Cost.FEE
    liars = ("bert",)

    def attack(self, arena: Arena) -> None:
        """Leave the seat; the other verifier judges alone."""
        run = arena.honest
        arena.post().accept().commit(run).finish(run)
        job = arena.job
        digest = verdict_digest(arena.verdict("bert", run))
        arena.say("bert", CannotTell(job.id, job.attempt))
        arena.seal_verdict("anna", run)
        arena.attempt("bert", CommitVerdict(job.id, job.attempt, digest))
