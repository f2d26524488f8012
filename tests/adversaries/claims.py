"""Statements that nothing stands behind: roots, losses, files and heads that are made up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from identic.node.execution.rerun import Rerun
from identic.proofs import merkle
from identic.protocol.commitments import digest_of, header_digest, state_leaf, state_root_of
from identic.protocol.dispute.levels import StateLevel
from identic.protocol.dispute.moves import Children, Move, Side
from identic.protocol.dispute.setup import header_after
from identic.protocol.dispute.state import Dispute
from identic.protocol.hashing import leaf_hash, sha256
from identic.protocol.ids import Count, Digest, Unsigned
from identic.protocol.job.messages import (
    Challenge,
    Commit,
    Finish,
    Mark,
    RevealVerdict,
    work_digest,
)
from identic.protocol.program.types import LOSS_TYPE
from tests.adversaries.adversary import Adversary, Cost, listed
from tests.adversaries.lies import wrong_element
from tests.helpers.arena import Arena, Story, Tale, as_it_is, honestly, tale
from tests.node.coordinator.village import Run, model_with, party

ZERO = Digest(bytes(32))
MARK = 3
"""The mark that is made up; the step after the one before it is the first of the lie."""


def told(arena: Arena, marks: Sequence[Mark], story: type[Story]) -> Tale:
    """A run whose marks are made up, that its author tries to defend."""
    return replace(tale(arena.blobs, honestly), marks=tuple(marks), story=story)


def commitment(arena: Arena, *marks: Mark, head: Run | None = None) -> Commit:
    """The solver's next commitment."""
    job, first = arena.job, len(arena.job.marks)
    before = tuple(Mark(m.step, m.state_root, m.loss, ()) for m in job.marks[:first])
    claimed = head or Run(None, (*before, *marks), (), b"")
    return Commit(job.id, job.attempt, Count(first), marks, claimed.head(first + len(marks)))


# ---- roots ----------------------------------------------------------------------------------


class Stopped(Story):
    """Says that nothing has changed since the mark before."""

    def interval_roots(self, mark: int) -> Sequence[Digest]:
        """The old root, once for each step."""
        return [self.run_leaves()[MARK]] * len(super().interval_roots(mark))

    def trace_leaves(self, step: int) -> Sequence[Digest]:
        """The step's values, then the old root."""
        return (*super().trace_leaves(step)[:-1], self.run_leaves()[MARK])

    def _reproduced(self, step: int, root: Digest) -> None:
        """A liar does not mind."""


@listed
class EarlyStop(Adversary):
    """Stops, and repeats the last root."""

    name = "early stop with copied roots"
    tries = (
        "It stops in the middle, gives the last root again for all marks that follow, and "
        "opens it as the old state."
    )
    stopped = ("EXE-3", "REF-10 at header")
    cost = Cost.BOND

    def attack(self, arena: Arena) -> None:
        """Commit to copies; hand in the old state as the last one; open the old header."""
        honest = arena.honest
        last = honest.marks[MARK - 1]
        copies = [replace(last, step=mark.step) for mark in honest.marks[MARK:]]
        false = told(arena, (*honest.marks[:MARK], *copies), Stopped)
        arena.post().accept().commit(false)
        blobs = (arena.blobs.put(false.model), arena.blobs.put(false.states[MARK - 1]))
        job = arena.job
        arena.attempt("solver", Finish(job.id, job.attempt, false.head(), *blobs))
        arena.challenge("anna", honest)
        arena.duel({"solver": false, "anna": honest}, {"solver": old_state})


def old_state(dispute: Dispute, side: Side, execution: Rerun) -> Sequence[Move]:
    """Open the state as that of the mark before, to which its root belongs."""
    if isinstance(dispute.level, StateLevel):
        old = execution.terms.step_of(MARK - 1)
        header = header_digest(header_after(execution.terms, execution.plan, old))
        leaves = (header, *execution.state_digests(old))
        return (Children(dispute.level.publish(dispute.setup, leaves)),)
    return as_it_is(dispute, side, execution)


@listed
class AllZeroRoot(Adversary):
    """Commits to 32 zero bytes."""

    name = "all-zero root"
    tries = "It commits to a root of zero bytes, with the true loss and its path."
    stopped = ("JOB-10",)
    cost = Cost.PART

    def attack(self, arena: Arena) -> None:
        """Commit; say nothing else."""
        arena.post().accept()
        mark = replace(arena.honest.marks[1], state_root=ZERO)
        arena.attempt("solver", commitment(arena, mark))
        arena.wait()


class Baseless(Story):
    """Claims a root that no state has."""

    def interval_roots(self, mark: int) -> Sequence[Digest]:
        """Honest roots, then the claim."""
        return [*super().interval_roots(mark)[:-1], self.run_leaves()[mark]]

    def trace_leaves(self, step: int) -> Sequence[Digest]:
        """Honest values; a claim where the mark is."""
        *values, after = super().trace_leaves(step)
        claimed = step + 1 == self.terms.step_of(MARK)
        return (*values, self.run_leaves()[MARK] if claimed else after)

    def _reproduced(self, step: int, root: Digest) -> None:
        """A liar does not mind."""


@listed
class AllZeroChallenge(Adversary):
    """Challenges with 32 zero bytes."""

    name = "all-zero challenge"
    tries = "It challenges an honest run with a root of zero bytes."
    stopped = ("DSP-6", "DSP-12 at state")
    cost = Cost.BOND
    liars = ("watcher",)

    def attack(self, arena: Arena) -> None:
        """Challenge; open what there is."""
        honest = arena.honest
        zero = replace(honest.marks[MARK], state_root=ZERO)
        false = told(arena, (*honest.marks[:MARK], zero), Baseless)
        arena.post().accept().commit(honest, upto=4).challenge("watcher", false)
        arena.duel({"watcher": false, "solver": honest}, {"watcher": as_it_is})


@listed
class UnopenableRoot(Adversary):
    """Commits to a root of which only the loss is known."""

    name = "root that nobody can open"
    tries = (
        "It commits to a root made of the true loss and random siblings, so that the loss "
        "opens and nothing else."
    )
    stopped = ("DSP-6", "DSP-12 at state")
    cost = Cost.BOND

    def attack(self, arena: Arena) -> None:
        """Commit; open in the dispute what there is."""
        honest = arena.honest
        mark = unopenable(honest.marks[MARK])
        false = told(arena, (*honest.marks[:MARK], mark), Baseless)
        arena.post().accept().commit(honest, upto=MARK)
        arena.say("solver", commitment(arena, mark))
        arena.challenge("anna", honest)
        arena.duel({"solver": false, "anna": honest}, {"solver": as_it_is})


def unopenable(mark: Mark) -> Mark:
    """The mark with a root over its loss and random siblings."""
    path = tuple(sha256(sibling) for sibling in mark.path)
    digest = digest_of(LOSS_TYPE, leaf_hash(int(mark.loss).to_bytes(4, "little")))
    tensors = 9
    root = merkle.root_from_path(state_leaf(tensors, digest), tensors, tensors + 1, path)
    return replace(mark, state_root=state_root_of(root), path=path)


@listed
class EqualState(Adversary):
    """Claims another way to the same states."""

    name = "equal state with a different trace"
    tries = (
        "A challenger claims that the states are right and their traces wrong; a verifier "
        "that agrees shows another trace of the beacon's step."
    )
    stopped = ("JOB-16",)
    cost = Cost.NOTHING
    liars = ("watcher", "bert")

    def attack(self, arena: Arena) -> None:
        """Challenge with the solver's own log; tell a verdict with the digest of another trace."""
        run = arena.honest
        arena.post().accept().commit(run).finish(run)
        job = arena.job
        claim = Challenge(job.id, job.attempt, Count(4), run.roots[4])
        arena.attempt("watcher", claim)
        arena.seal_verdict("anna", run).seal_verdict("bert", run).tell_verdict("anna", run)
        v = arena.verdict("bert", run)
        work = work_digest(v.party, sha256(b"another trace"))
        arena.say("bert", RevealVerdict(v.job, v.attempt, v.head, v.agrees, v.salt, work))
        # Whoever executes the beacon's step sees whose trace is another one.
        assert arena.job.beacon is not None
        root = arena.execution(run).trace_root(int(arena.job.beacon))
        works = {seat.party: seat.verdict and seat.verdict.work for seat in arena.job.verifiers}
        assert works[party("anna")] == work_digest(party("anna"), root)
        assert works[party("bert")] != work_digest(party("bert"), root)


# ---- losses and files -----------------------------------------------------------------------


@listed
class WrongLoss(Adversary):
    """Reports losses that are not those of its states."""

    name = "wrong loss report"
    tries = (
        "It reports a smaller loss, the loss of another mark with its path, and a loss that"
        " is no float32."
    )
    stopped = ("JOB-10", "JOB-9")
    cost = Cost.PART

    def attack(self, arena: Arena) -> None:
        """Commit to true roots with false losses; say nothing else."""
        arena.post().accept()
        true, other = arena.honest.marks[1:3]
        for loss, path in (
            (Unsigned(0x3DCCCCCD), true.path),
            (other.loss, other.path),
            (Unsigned(int(true.loss) + (1 << 32)), true.path),
        ):
            mark = replace(true, loss=loss, path=path)
            arena.attempt("solver", commitment(arena, mark))
        arena.wait()


@listed
class TamperedModel(Adversary):
    """Hands in another model than the run's."""

    name = "tampered final model"
    tries = (
        "After an honest run it hands in a model with one number changed, the model of an "
        "earlier state, and an earlier state."
    )
    stopped = ("JOB-12", "EXE-3")
    cost = Cost.PART

    def attack(self, arena: Arena) -> None:
        """Finish with false files; say nothing else."""
        run = arena.honest
        arena.post().accept().commit(run)
        job, last = arena.job, arena.blobs.put(run.states[-1])
        earlier = replace(run, states=run.states[:-1])
        for model, state in (
            (model_with(run, "out.bias"), last),
            (run.model + b" ", last),
            (run.model, arena.blobs.put(earlier.states[-1])),
        ):
            said = Finish(job.id, job.attempt, run.head(), arena.blobs.put(model), state)
            arena.attempt("solver", said)
        arena.wait()


# ---- two faces ------------------------------------------------------------------------------


@listed
class Equivocation(Adversary):
    """Tells one verifier this and another that."""

    name = "lies that differ per verifier"
    tries = (
        "It commits to a false run, then to the honest one for the same marks, and defends "
        "each claim with the other's moves."
    )
    stopped = ("JOB-9", "JOB-3", "DSP-6", "REF-12 at primitive")
    cost = Cost.BOND

    def attack(self, arena: Arena) -> None:
        """Contradict itself in the log, then in the dispute."""
        honest, false = arena.honest, tale(arena.blobs, wrong_element)
        arena.post().accept().commit(false, upto=3)
        again = replace(arena.commitment(honest, 2), first_mark=Count(2))
        arena.attempt("solver", again)
        arena.attempt("solver", arena.commitment(honest, 3))
        arena.commit(false, upto=4)
        arena.challenge("anna", honest)
        face = arena.execution(honest)

        def both(dispute: Dispute, side: Side, execution: Rerun) -> Sequence[Move]:
            if not dispute.rounds:
                return (*as_it_is(dispute, side, face), *as_it_is(dispute, side, execution))
            return as_it_is(dispute, side, execution)

        arena.duel({"solver": false, "anna": honest}, {"solver": both})
