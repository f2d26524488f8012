"""Transcripts: replayed from their bytes alone, and refused for any other byte."""

from dataclasses import replace
from functools import cache

import pytest

from identic.proofs import transcript
from identic.proofs.transcript import Transcript
from identic.protocol.dispute.moves import Side
from identic.protocol.encoding import encode
from identic.protocol.errors import ProtocolError
from identic.protocol.hashing import sha256
from identic.protocol.ids import Count, Millis
from identic.protocol.job.entries import Verdicts
from tests.helpers.programs import mlp
from tests.helpers.signed_game import (
    COORDINATOR,
    KEYS,
    STRANGER,
    Played,
    finish,
    late,
    opened,
)
from tests.helpers.small_run import tiny_run

RUN = tiny_run()
BAD = RUN.lying(RUN.flipped(0, RUN.value("mul")))


@cache
def played() -> Played:
    """A dispute down to a primitive step."""
    start = opened(RUN, BAD.run_leaves(), RUN.good.run_leaves())
    return finish(start, BAD, RUN.good)


def timed_out() -> Played:
    """A dispute that ends by time."""
    return late(opened(RUN, BAD.run_leaves(), RUN.good.run_leaves()))


def signed(record: Transcript) -> bytes:
    """The record as its coordinator writes it."""
    return transcript.write(COORDINATOR, record)


def test_rcp_3__a_replay_comes_to_the_same_ruling() -> None:
    for game in (played(), timed_out()):
        data = signed(game.transcript())
        replayed = transcript.replay(data, COORDINATOR.party)
        assert replayed.ruling == game.dispute.ruling
        assert replayed.dispute.ruling == game.dispute.ruling
        assert replayed.report == game.report
        assert encode(replayed.plan.program) == encode(RUN.program)
    assert played().transcript().ruling.verdict is Verdicts.WRONG


def test_rcp_1__every_changed_byte_is_refused() -> None:
    data = signed(played().transcript())
    for at in range(len(data)):
        changed = data[:at] + bytes([data[at] ^ (1 << at % 8)]) + data[at + 1 :]
        with pytest.raises(ProtocolError):
            transcript.replay(changed)


def test_rcp_1__cut_or_lengthened_files_are_refused() -> None:
    data = signed(played().transcript())
    for wrong in (b"", data[:-1], data + b"\0", data[1:], data * 2):
        with pytest.raises(ProtocolError):
            transcript.replay(wrong)


def test_rcp_1__another_coordinator_or_version_is_refused() -> None:
    record = played().transcript()
    with pytest.raises(ProtocolError) as refused:
        transcript.replay(signed(record), STRANGER.party)
    assert refused.value.rule == "RCP-1"
    with pytest.raises(ProtocolError) as refused:
        transcript.replay(signed(replace(record, version=Count(1))))
    assert refused.value.rule == "RCP-1"
    with pytest.raises(ProtocolError) as refused:
        transcript.replay(transcript.write(STRANGER, record))
    assert refused.value.rule == "COM-9"


def test_rcp_2__another_program_is_refused() -> None:
    other = mlp(rows=6, width=3, hidden=2, classes=2, batch=2, shards=1, steps=3)
    record = replace(played().transcript(), program=encode(other))
    with pytest.raises(ProtocolError) as refused:
        transcript.replay(signed(record))
    assert refused.value.rule == "RCP-2"


def test_rcp_3__a_ruling_that_does_not_follow_is_refused() -> None:
    record = played().transcript()
    ruling = record.ruling
    for wrong in (
        replace(ruling, loser=Side.CHALLENGER),
        replace(ruling, loser=None),
        replace(ruling, verdict=Verdicts.LATE),
        replace(ruling, rule="REF-8"),
        replace(ruling, computed=b"\1" * 8),
        replace(ruling, rounds=ruling.rounds[:-1]),
        replace(ruling, operands=ruling.operands[:-1]),
        replace(ruling, at=Millis(ruling.at + 1)),
    ):
        with pytest.raises(ProtocolError) as refused:
            transcript.replay(signed(replace(record, ruling=wrong)))
        assert refused.value.rule == "RCP-3"


def test_rcp_3__moves_left_out_reordered_or_forged_are_refused() -> None:
    record = played().transcript()
    moves = record.moves
    forged = replace(
        moves[0],
        move=replace(
            moves[0].move, body=replace(moves[0].move.body, party=KEYS[Side.DEFENDER].party)
        ),
    )
    for wrong in (
        moves[:-1],
        moves[1:],
        moves[::-1],
        (moves[0], *moves),
        (forged, *moves[1:]),
        (replace(moves[0], at=Millis(moves[0].at + 10**9)), *moves[1:]),
        (*moves, moves[-1]),
    ):
        with pytest.raises(ProtocolError):
            transcript.replay(signed(replace(record, moves=wrong)))
    called = replace(record, called=Millis(record.ruling.at + 10**9))
    with pytest.raises(ProtocolError) as refused:
        transcript.replay(signed(called))
    assert refused.value.rule == "DSP-1"


def test_a_transcript_does_not_name_what_it_does_not_know() -> None:
    ruling = timed_out().transcript().ruling
    assert (ruling.step, ruling.value, ruling.element) == (None, None, None)
    assert (ruling.defender, ruling.challenger, ruling.computed) == (b"", b"", b"")
    assert sha256(signed(timed_out().transcript())) == sha256(signed(timed_out().transcript()))
