"""Many parties at once: floods of claims, identities without number, friends among the honest."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil, log2
from typing import ClassVar

from identic.kernels.arrays import Array
from identic.kernels.executor import Observer
from identic.node.execution.elements import with_word, word_at
from identic.node.execution.states import Arrays
from identic.protocol.dispute.bounds import worst
from identic.protocol.dispute.clocks import longest_ms
from identic.protocol.job.messages import Enrol, Leave
from identic.protocol.job.state import Phase
from tests.adversaries.adversary import Adversary, Cost, listed
from tests.adversaries.lies import STEP, wrong_element
from tests.helpers.arena import Arena, Crooked, Tale, tale
from tests.node.coordinator.village import CLOCKS, KEYS, PRICES, Run

VOUCHERS = ("solver", "anna", "bert")


def another(arena: Arena, number: int, step: int = STEP) -> Tale:
    """A false run of its own for each number: one element of a new parameter is wrong."""

    def way(trainer: Crooked, state: Arrays, at: int, observer: Observer | None) -> Arrays:
        parameter = trainer.job.plan.outputs[0]

        def watch(value: int, array: Array) -> Array:
            if value == parameter:
                array = with_word(array, number, word_at(array, number) ^ 1)
            return array if observer is None else observer(value, array)

        return trainer.truly(state, at, watch if at == step else observer)

    false = tale(arena.blobs, way)
    assert false.roots[-1] != arena.honest.roots[-1]
    return false


def contest(arena: Arena, runs: Mapping[str, Run]) -> None:
    """Let these parties play until nobody doubts any more; others keep silent."""
    while arena.job.contest is not None:
        arena.play(runs)
        if arena.job.contest is not None:
            arena.wait()


class Flood(Adversary):
    """Six parties with a claim each against an honest run, in the window."""

    cost = Cost.SHARED
    liars = tuple(f"eve {number}" for number in range(6))

    def flood(self, arena: Arena, *, play: bool) -> None:
        """Enter all claims at once, and play them, or not."""
        arena.judged(arena.honest)
        began = arena.clock.now
        false = {name: another(arena, number) for number, name in enumerate(self.liars)}
        for name, run in false.items():
            arena.challenge(name, run)
        honest = dict.fromkeys(VOUCHERS, arena.honest)
        contest(arena, {**honest, **false} if play else honest)
        arena.wait()
        assert arena.job.phase is Phase.SETTLED
        # JOB-26: the delay grows with the logarithm of their number.
        setups = [case.dispute.setup for case in arena.host.board.cases.values()]
        most = worst(setups[0].terms, setups[0].plan).total.rounds
        longest = max(longest_ms(setup, most) for setup in setups)
        rounds = ceil(log2(len(self.liars) + 1))
        assert arena.clock.now - began <= 2 * CLOCKS.window_ms + rounds * longest


@listed
class PlayedFlood(Flood):
    """All claims are played to the end."""

    name = "flood of challenges"
    tries = "Six parties claim six different runs against an honest one, and play all of them."
    stopped = ("REF-12 at primitive",) * 6
    losses: ClassVar[Mapping[str, int]] = dict(
        zip(Flood.liars, (50, 50, 25, 50, 0, 50), strict=True)
    )

    def attack(self, arena: Arena) -> None:
        """Play all."""
        self.flood(arena, play=True)


@listed
class SilentFlood(Flood):
    """No claim is played."""

    name = "flood of silent challenges"
    tries = (
        "Six parties claim six different runs against an honest one, and none of them moves. "
        "Who meets a friend leaves with its bond, since nobody can tell."
    )
    stopped = ("DSP-12 at run", "DSP-13 at run", "DSP-13 at run", "DSP-12 at run")
    losses: ClassVar[Mapping[str, int]] = dict(zip(Flood.liars, (50, 0, 0, 0, 0, 50), strict=True))

    def attack(self, arena: Arena) -> None:
        """Play none."""
        self.flood(arena, play=False)


@listed
class SybilVerifiers(Adversary):
    """One owner has all the verifiers."""

    drawn: tuple[str, ...] = ()

    name = "Sybil verifiers"
    tries = "Ten identities of one owner enrol, are drawn, and vouch for its false run."
    stopped = ("REF-12 at primitive",) * 3
    cost = Cost.BOND
    liars = ("solver", *(f"sybil {number}" for number in range(10)))

    def attack(self, arena: Arena) -> None:
        """Take all seats; one stranger looks."""
        false = tale(arena.blobs, wrong_element)
        arena.post()
        for name in ("anna", "bert"):
            arena.say(name, Leave())
        for name in self.liars[1:]:
            arena.say(name, Enrol())
        arena.accept().commit(false).finish(false)
        for name in self.seated(arena):
            arena.seal_verdict(name, false)
        for name in self.seated(arena):
            arena.tell_verdict(name, false)
        arena.challenge("watcher", arena.honest)
        self.drawn = ("solver", *self.seated(arena))
        contest(arena, {**dict.fromkeys(self.drawn, false), "watcher": arena.honest})
        for name in self.liars[1:]:
            arena.say(name, Leave())
        for name in ("anna", "bert"):
            arena.say(name, Enrol())

    def expected(self, arena: Arena, liar: str) -> int:
        """A verifier's bond for each that was drawn; the others have risked nothing."""
        if liar != "solver" and liar in self.drawn:
            return int(PRICES.verifier_bond)
        return super().expected(arena, liar) if liar in self.drawn else 0

    def seated(self, arena: Arena) -> tuple[str, ...]:
        """Names of the verifiers."""
        names = {KEYS[name].party: name for name in self.liars}
        return tuple(names[seat.party] for seat in arena.job.verifiers)


@listed
class FriendInTheTeam(Adversary):
    """A friend of the liar makes the honest claim, to lose it."""

    name = "friend in an honest team"
    tries = (
        "A friend of the lying solver makes the same claim as the honest challenger and is silent; "
        "the solver waits with its other dispute until the friend has lost."
    )
    stopped = ("DSP-12 at run", "REF-12 at primitive")
    cost = Cost.SHARED
    liars = ("solver", "eve")
    losses: ClassVar[Mapping[str, int]] = {"solver": 400 - 25, "eve": 50}

    def attack(self, arena: Arena) -> None:
        """Join the honest claim; let it fall in one dispute, and hope for the other."""
        false = tale(arena.blobs, wrong_element)
        arena.post().accept().commit(false, upto=4)
        arena.challenge("eve", arena.honest)
        arena.challenge("anna", arena.honest)
        arena.move("solver", false, arena.between("solver", "eve"))
        arena.move("anna", arena.honest, arena.between("solver", "anna"))
        deadline = arena.host.next_deadline()
        assert deadline is not None
        arena.clock.now = int(deadline) - 1
        arena.move("solver", false, arena.between("solver", "anna"))
        arena.wait()
        assert arena.between("solver", "eve").over
        contest(arena, {"solver": false, "anna": arena.honest})


@listed
class ShillChallenge(Adversary):
    """A friend loses a dispute, so that the lie seems confirmed."""

    name = "challenge that is to be lost"
    tries = (
        "A friend of the lying solver challenges first, with a lie, and loses, as if that "
        "confirmed the run."
    )
    stopped = ("REF-12 at primitive", "REF-12 at primitive")
    cost = Cost.SHARED
    liars = ("solver", "eve")
    losses: ClassVar[Mapping[str, int]] = {"solver": 400 - 25, "eve": 50}

    def attack(self, arena: Arena) -> None:
        """Claim an earlier difference that is none; the honest challenge comes after it."""
        false, other = tale(arena.blobs, wrong_element), another(arena, 2, step=1)
        arena.post().accept().commit(false, upto=4)
        arena.challenge("eve", other)
        arena.challenge("anna", arena.honest)
        contest(arena, {"solver": false, "eve": other, "anna": arena.honest})


@listed
class EarlierLie(Adversary):
    """A friend's claim lies before the true one."""

    name = "earlier claim"
    tries = (
        "A friend of the lying solver claims a difference before the true one, which an honest "
        "challenger has to play as well."
    )
    stopped = ("REF-12 at primitive", "REF-12 at primitive")
    cost = Cost.BOND
    liars = ("solver", "eve")

    def attack(self, arena: Arena) -> None:
        """Enter after the honest claim, so that the two meet when the solver has fallen."""
        false, other = tale(arena.blobs, wrong_element), another(arena, 2, step=1)
        arena.post().accept().commit(false, upto=4)
        arena.challenge("anna", arena.honest)
        arena.challenge("eve", other)
        contest(arena, {"solver": false, "eve": other, "anna": arena.honest})
