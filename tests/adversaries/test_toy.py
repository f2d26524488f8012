"""Random crowds about the toy job, on the real board: the one honest party is never harmed.

Liars lie at random places, claim at random marks, answer with garbage, late, or not at all.
Whatever they do, the honest claim wins, no honest money is lost, all money is accounted for,
and rounds and time stay within their bounds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from math import ceil, log2

from hypothesis import given, settings
from hypothesis import strategies as st

from identic.protocol.dispute.clocks import longest_ms
from identic.protocol.dispute.levels import RunLevel
from identic.protocol.dispute.moves import Children, Move, Side
from identic.protocol.dispute.state import Dispute
from identic.protocol.ids import Digest
from identic.protocol.job.entries import Verdicts
from identic.protocol.job.state import Phase
from tests.helpers.effort import examples
from tests.helpers.game import honest, most_rounds
from tests.helpers.scripted import Chooser, Scripted, every
from tests.helpers.toy import FUNDS, GOOD, TERMS, Delay, Plays, Toy
from tests.protocol.dispute.test_every_game import garbage

HONEST = honest(GOOD)
BOND = int(TERMS.prices.challenger_bond)
SOLVER_BOND = int(TERMS.prices.solver_bond)


def scripted(pick: Callable[[int], int]) -> Scripted:
    """A script with its first lie after mark 0, which nobody can claim another state of."""
    first = True

    def after_start(options: int) -> int:
        nonlocal first
        start, first = first, False
        return 1 + pick(options - 1) if start else pick(options)

    return Scripted(GOOD, after_start)


def at_once(dispute: Dispute, side: Side) -> int:
    """Moves without delay."""
    del dispute, side
    return 0


class Liar:
    """A claim at a mark, and a script for what lies below it.

    Args:
        script: what it says.
        solver: the marks of the run, which it claims up to its own.
        twist: what it makes of a move.
    """

    def __init__(
        self,
        script: Scripted,
        solver: list[Digest],
        twist: Callable[[Move | None], Move | None] = lambda move: move,
    ) -> None:
        self.script, self.solver, self.twist = script, solver, twist
        differs = (m for m, (a, b) in enumerate(zip(solver, script.leaves, strict=True)) if a != b)
        self.mark = next(differs, len(solver))

    def __call__(self, dispute: Dispute, side: Side) -> Move | None:
        """What its claim asks for at the run, below what the script says."""
        level = dispute.level
        if isinstance(level, RunLevel):
            claimed = [*self.solver[: self.mark], *self.script.leaves[self.mark :]]
            return self.twist(
                Children(level.publish(dispute.setup, claimed[: dispute.setup.marks]))
            )
        return self.twist(self.script(dispute, side))


def check(toy: Toy, liars: list[str], began: int) -> None:
    """What holds at the end of every contest."""
    assert toy.conserved
    assert toy.money("honest") >= FUNDS
    assert toy.money("submitter") >= FUNDS - int(TERMS.escrow)
    cases = toy.board.cases.values()
    for case in cases:
        ruling = case.dispute.ruling
        assert case.void or ruling is not None
        assert ruling is None or len(ruling.rounds) <= most_rounds(case.dispute.setup)
    if cases:
        longest = max(longest_ms(c.dispute.setup, most_rounds(c.dispute.setup)) for c in cases)
        rounds = ceil(log2(len(liars) + 2))
        assert toy.now - began <= int(TERMS.clocks.window_ms) + rounds * longest


# ---- every lie of a solver, and of a challenger ---------------------------------------------


def test_dsp_15__every_lie_of_a_solver_or_a_challenger_loses_its_bond_on_the_board() -> None:
    ends: Counter[tuple[bool, Verdicts]] = Counter()

    def run(chooser: Chooser) -> None:
        accused = sum(ends.values()) % 2 == 0
        toy = Toy(("honest", "liar"))
        script = scripted(chooser.pick)
        began = toy.now
        solver, doubter = ("liar", "honest") if accused else ("honest", "liar")
        leaves = {"liar": list(script.leaves), "honest": GOOD.run_leaves()}
        toy.train(solver, leaves[solver])
        assert toy.claim(doubter, leaves[doubter])
        liar = Liar(script, leaves[solver])
        toy.play({"honest": (HONEST, at_once), "liar": (liar, at_once)})
        check(toy, ["liar"], began)
        bond = SOLVER_BOND if accused else BOND
        assert toy.money("liar") == FUNDS - bond
        assert toy.money("honest") == FUNDS + bond // 2
        assert toy.job.attempt == (2 if accused else 1)
        (case,) = toy.board.cases.values()
        assert case.dispute.ruling is not None
        ends[accused, case.dispute.ruling.verdict] += 1

    assert len(list(every(run))) == 115
    assert set(ends) == {(a, v) for a in (True, False) for v in (Verdicts.WRONG, Verdicts.LATE)}


# ---- random crowds --------------------------------------------------------------------------


def delays(data: st.DataObject) -> Delay:
    """Moves at once, within the allowance, at the last moment, or never."""

    def delay(dispute: Dispute, side: Side) -> int | None:
        clock = dispute.clock
        left = int(clock.deadline(side)) - int(dispute.now)
        return data.draw(st.sampled_from([0, 0, 0, int(clock.allowance), left, left + 1, None]))

    return delay


def crowd(data: st.DataObject, solver: list[Digest]) -> dict[str, tuple[Plays, Delay]]:
    """Some liars, each with its own claim, or the same as another's."""
    players: dict[str, tuple[Plays, Delay]] = {}
    for number in range(data.draw(st.integers(0, 4))):
        script = scripted(lambda options: data.draw(st.integers(0, options - 1)))
        twist = (lambda m: data.draw(garbage(m))) if data.draw(st.booleans()) else (lambda m: m)
        players[f"liar {number}"] = (Liar(script, solver, twist), delays(data))
    return players


@settings(max_examples=examples(60), deadline=None)
@given(data=st.data(), lies=st.booleans())
def test_job_25__job_26__in_any_crowd_the_honest_party_wins_and_loses_nothing(
    data: st.DataObject, lies: bool
) -> None:
    """The honest party is the solver among false challengers, or one challenger of a liar."""
    names = [f"liar {number}" for number in range(5)]
    toy = Toy(("honest", *names))
    script = scripted(lambda options: data.draw(st.integers(0, options - 1)))
    leaves = list(script.leaves) if lies else GOOD.run_leaves()
    solver = "liar 4" if lies else "honest"
    toy.train(solver, leaves)
    players = crowd(data, leaves)
    if lies:
        players["liar 4"] = (Liar(script, leaves), delays(data))
    began = toy.now
    order = [name for name in players if name != solver]
    if lies:
        order.insert(data.draw(st.integers(0, len(order))), "honest")
    players["honest"] = (HONEST, at_once)
    entered = []
    for name in order:
        plays = players[name][0]
        claimed = GOOD.run_leaves()
        if isinstance(plays, Liar):
            claimed = [*plays.solver[: plays.mark], *plays.script.leaves[plays.mark :]]
        if toy.claim(name, claimed) is not None:
            entered.append(name)
    assert not lies or "honest" in entered
    toy.play(players)
    check(toy, entered, began)
    assert toy.job.contest is None
    if lies:
        assert (toy.job.phase, toy.job.attempt) == (Phase.OPEN, 2)
        assert toy.money("liar 4") < FUNDS
    else:
        assert (toy.job.phase, toy.job.attempt) == (Phase.TRAINING, 1)
        assert toy.job.solver is not None
    for name in names[:4]:
        assert toy.money(name) <= FUNDS + 4 * BOND // 2 + SOLVER_BOND // 2
