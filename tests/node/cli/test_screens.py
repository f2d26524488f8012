"""Screens made of plain values."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console
from rich.text import Text

from identic.node.cli.output import Lines, Output
from identic.node.cli.screens import descent, ledger, progress, report, status
from identic.node.cli.screens.ledger import AccountLine, LedgerView
from identic.node.cli.screens.progress import JobView, LiveJob, PartyView, Transfer
from identic.node.cli.screens.report import CheckLine, Outcome
from identic.node.cli.views import job_view
from identic.node.views import NodeStatus, PartyProgress, RoleState, RoleStatus
from identic.protocol.dispute.moves import Side
from identic.protocol.ids import PartyId
from identic.protocol.job.messages import CannotTell
from tests.helpers.signed_game import Played, finish, late, opened
from tests.helpers.small_run import small_run
from tests.protocol.job.world import ANNA, JOB, WATCHER, trained

VIEW = JobView(
    name="j-7f3a91",
    phase="training",
    steps=2000,
    parties=(
        PartyView("s-aaaaaa", "solver", 1112, rate=4.7, loss=2.318),
        PartyView("v-bbbbbb", "verifier", 1110, verdict="agrees"),
    ),
    losses=(5.0, 4.0, 3.0),
    committed=1112,
    log_size=902,
    tokens=2048,
)


def plain(lines: Lines) -> str:
    return "\n".join(x.plain if isinstance(x, Text) else x for x in lines)


# ---- jobs -----------------------------------------------------------------------------------


def test_a_job_shows_parties_steps_speed_and_verdicts() -> None:
    text = plain(progress.lines(VIEW))
    for part in ("1,112/2,000", "loss 2.318", "9,626 tok/s", "eta 3 min", "reproduces", "902"):
        assert part in text


def test_a_verifier_that_cannot_tell_is_shown_with_its_reason() -> None:
    world = trained()
    world.say(ANNA, CannotTell(JOB, world.job.attempt))
    reason = PartyProgress(ANNA, "verifier", 3, None, 0.0, "cannot tell: data blob 0 is missing", 0)
    (line,) = [p for p in job_view(world.job, [reason]).parties if p.verdict == "cannot tell"]
    assert (line.step, line.activity) == (3, reason.activity)
    text = plain(progress.lines(replace(VIEW, parties=(line,))))
    assert "cannot tell" in text


def test_an_alarm_of_somebody_who_watches_is_shown() -> None:
    said = PartyProgress(WATCHER, "whistleblower", 0, None, 0.0, "cannot tell: mark 2", 0)
    shown = [p.activity for p in job_view(trained().job, [said]).parties]
    assert said.activity in shown
    assert "cannot tell: mark 2" in plain(progress.lines(job_view(trained().job, [said])))


@pytest.mark.parametrize("width", [80, 100, 120])
def test_a_party_s_line_fits_the_terminal(width: int) -> None:
    busy = PartyView("s-aaaaaa", "solver", 1999, rate=4.7, loss=12.318)
    line = progress.party_line(replace(VIEW, parties=(busy,)), busy, width)
    assert line.cell_len <= width


def test_a_job_without_tokens_counts_steps() -> None:
    assert "4.7 steps/s" in plain(progress.lines(replace(VIEW, tokens=0)))


def test_a_pipe_gets_a_line_for_each_change_that_matters() -> None:
    out = io.StringIO()
    with LiveJob(Output(stdout=out)) as live:
        for step in range(1112, 1130):
            solver = replace(VIEW.parties[0], step=step)
            live.show(replace(VIEW, parties=(solver, VIEW.parties[1])))
        live.show(replace(VIEW, phase="verifying"))
        live.show(replace(VIEW, phase="verifying"))
    lines = out.getvalue().splitlines()
    assert len(lines) == 2
    assert lines[1].startswith("j-7f3a91 verifying")


def test_a_terminal_is_drawn_in_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    output = Output(stdout=io.StringIO())
    output.told = Console(file=io.StringIO(), force_terminal=True, width=90, highlight=False)
    assert output.live
    with LiveJob(output) as live, Transfer(output, "uploading", 10) as transfer:
        transfer.advance(5)
        live.show(VIEW)
        live.show(replace(VIEW, phase="settled"))
    drawn = output.told.file
    assert isinstance(drawn, io.StringIO)
    assert "settled" in drawn.getvalue()


# ---- disputes -------------------------------------------------------------------------------


def played(op: str, number: int, element: int) -> Played:
    """A dispute over a lie in an element of an operator's result."""
    run = small_run()
    bad = run.lying(run.flipped(2, run.value(op, number), element))
    return finish(opened(run, bad.run_leaves(), run.good.run_leaves()), bad, run.good)


def view_of(game: Played, places: descent.Places | None = None) -> descent.DisputeView:
    assert game.dispute.ruling is not None
    return descent.describe(game.dispute.setup, game.dispute.ruling, places=places)


def test_a_dispute_names_states_operator_element_and_operands() -> None:
    game = played("sum_first", 0, 0)
    run = small_run()
    view = view_of(game, {run.value("sum_first"): "first.bias  (train.py:7)"})
    text = plain(descent.lines(view))
    for part in (
        "states 2 to 4",
        "step 2→3",
        "sum_first  first.bias  (train.py:7)",
        "add.float32( a, b )",
        "partial value 0",
        "opened from value",
        "the referee computes",
        "the solver s-",
        "is wrong",
    ):
        assert part in text
    assert view.loser == "defender"
    assert view.verdict == "wrong"
    assert len(view.levels) == len(game.dispute.ruling.rounds if game.dispute.ruling else ())


def test_the_agreed_claim_is_the_referee_s() -> None:
    claims = view_of(played("exp", 0, 0)).claims
    assert [claim.right for claim in claims] == [False, True, True]
    assert claims[1].hex == claims[2].hex


@pytest.mark.parametrize("op", ["shuffled_index", "where", "eq", "slice", "full", "gt", "div"])
def test_every_kind_of_step_can_be_shown(op: str) -> None:
    view = view_of(played(op, 0, 0))
    assert view.formula
    assert "is wrong" in plain(descent.lines(view))


def test_a_ruling_by_time_names_who_was_late_or_that_nobody_can_tell() -> None:
    run = small_run()
    bad = run.lying(run.flipped(2, run.value("exp"), 0))
    game = late(opened(run, bad.run_leaves(), run.good.run_leaves()))
    assert "it cannot be told" in plain(descent.lines(view_of(game)))
    ruling = game.dispute.ruling
    assert ruling is not None
    assert ruling.loser is None
    told = replace(view_of(game), verdict="late", loser="challenger")
    assert "did not move in time" in plain(descent.lines(told))


def test_money_and_transcript_follow_the_ruling() -> None:
    view = replace(view_of(played("exp", 0, 0)), money=("slashed",), transcript="d.identic")
    last = plain(descent.lines(view)).splitlines()[-2:]
    assert last[0].strip() == "slashed"
    assert last[1].endswith("identic dispute replay d.identic")


def test_both_sides_have_a_word() -> None:
    assert set(descent.SIDES) == set(Side)


# ---- the rest -------------------------------------------------------------------------------


def test_a_ledger_says_whether_it_sums_to_zero() -> None:
    view = LedgerView((AccountLine("s-1", 5_000_000, 0),), 1_000_000, 0, 6_000_000, 0, 7)
    assert "✓ issued 6.0" in plain(ledger.lines(view))
    assert "✗" in plain(ledger.lines(replace(view, total=1)))


def test_a_remedy_follows_a_check_that_is_not_fine() -> None:
    checks = (
        CheckLine("memory", Outcome.FINE, "enough", "unseen"),
        CheckLine("disk", Outcome.NO, "full", "free some"),
    )
    text = plain(report.lines(checks)).splitlines()
    assert len(text) == 3
    assert text[2].strip() == "free some"
    assert [v["outcome"] for v in report.value(checks)] == ["fine", "no"]


def test_a_node_shows_its_last_error_in_words() -> None:
    role = RoleStatus("solver", RoleState.WAITING, 2, "the disk is full", 1, {"at work on": "x"})
    found = NodeStatus(PartyId(bytes(32)), "n", "0.1.0", 1, 0, 90_000, (role,), 8, 4, 50, 10, 5, 3)
    text = plain(status.lines(found))
    for part in (
        "solver",
        "starts again",
        "2 restarts",
        "the disk is full",
        "at work on: x",
        "3 known",
    ):
        assert part in text
