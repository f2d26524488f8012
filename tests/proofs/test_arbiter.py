"""Signed moves: whose, in which dispute, in which round."""

from dataclasses import replace

import pytest

from identic.proofs import arbiter
from identic.proofs.signatures import sign
from identic.protocol.dispute.moves import Evidence, MoveBody, Side, SignedMove
from identic.protocol.dispute.state import Phase
from identic.protocol.errors import Code, IllegalMove, ProtocolError
from identic.protocol.hashing import Domain, sha256
from identic.protocol.ids import Count, Millis
from tests.helpers.signed_game import KEYS, STRANGER, finish, late, opened, signed
from tests.helpers.small_run import small_run

RUN = small_run(shards=1, steps=2, cadence=1)
BAD = RUN.lying(RUN.flipped(1, RUN.value("matmul", 2)))
START = opened(RUN, BAD.run_leaves(), RUN.good.run_leaves())
MOVE = signed(START, Side.CHALLENGER, RUN.good)
NOW = Millis(START.dispute.now + 1)


def signed_again(body: MoveBody) -> SignedMove:
    """The body with its party's own signature."""
    key = next(k for k in (*KEYS.values(), STRANGER) if k.party == body.party)
    return SignedMove(body, sign(key, Domain.MOVE, body))


def test_dsp_14__a_move_counts_in_its_own_dispute_round_and_side_only() -> None:
    body = MOVE.body
    for wrong in (
        replace(body, dispute=sha256(b"another dispute")),
        replace(body, turn=Count(1)),
        replace(body, party=STRANGER.party),
    ):
        with pytest.raises(IllegalMove) as refused:
            arbiter.apply(START.dispute, signed_again(wrong), NOW)
        assert refused.value.rule == "DSP-14"
    after = arbiter.apply(START.dispute, MOVE, NOW).dispute
    assert after.phase is Phase.AWAIT_DEFENDER


def test_dsp_14__a_move_of_an_earlier_round_is_not_taken_again() -> None:
    state = arbiter.apply(START.dispute, MOVE, NOW).dispute
    state = arbiter.apply(state, signed(START, Side.DEFENDER, BAD), NOW).dispute
    assert state.turn == 1
    with pytest.raises(IllegalMove) as refused:
        arbiter.apply(state, MOVE, NOW)
    assert refused.value.rule == "DSP-14"


def test_dsp_14__a_signature_of_someone_else_is_refused() -> None:
    stolen = replace(MOVE, body=replace(MOVE.body, party=KEYS[Side.DEFENDER].party))
    forged = SignedMove(MOVE.body, sign(STRANGER, Domain.MOVE, MOVE.body))
    other_label = SignedMove(MOVE.body, sign(KEYS[Side.CHALLENGER], Domain.MESSAGE, MOVE.body))
    for wrong in (stolen, forged, other_label):
        with pytest.raises(ProtocolError) as refused:
            arbiter.apply(START.dispute, wrong, NOW)
        assert (refused.value.rule, refused.value.code) == ("COM-9", Code.BAD_SIGNATURE)


def test_the_referee_answers_within_the_move_that_brings_the_evidence() -> None:
    played = finish(START, BAD, RUN.good)
    assert played.dispute.ruling is not None
    assert played.dispute.ruling.loser is Side.DEFENDER
    assert isinstance(played.moves[-1].move.body.move, Evidence)
    assert played.report is not None
    assert played.report.ok
    rules = {check.rule for check in played.report.checks}
    assert rules == {"REF-1", "REF-2", "REF-3", "REF-5", "REF-12"}


def test_time_is_called_through_the_arbiter() -> None:
    with pytest.raises(IllegalMove):
        arbiter.call_time(START.dispute, START.dispute.deadline)
    assert late(START).dispute.phase is Phase.RULED
