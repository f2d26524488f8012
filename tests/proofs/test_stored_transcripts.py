"""Transcripts that earlier software wrote: each is replayed to the ruling it had then.

The files under ``transcripts/`` are never written again. ``python -m
tests.proofs.test_stored_transcripts`` writes those of the present version, once, before the
format changes the next time; ``rulings.json`` lists what all of them lead to.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from identic.proofs import arbiter, transcript, transcript_v1
from identic.proofs.signatures import sign
from identic.proofs.transcript import TimedMove, replay
from identic.protocol.dispute.moves import Side
from identic.protocol.dispute.state import Ruling
from identic.protocol.encoding import decode, encode
from identic.protocol.errors import Code, ProtocolError
from identic.protocol.hashing import Domain, sha256
from identic.protocol.ids import Count, Millis
from tests.helpers.execution import Lie, MemoryExecution, StateLie
from tests.helpers.signed_game import (
    COORDINATOR,
    Played,
    finish,
    late,
    opened,
    paused,
    signed,
)
from tests.helpers.small_run import small_run

FOLDER = Path(__file__).parent / "transcripts"
RULINGS = FOLDER / "rulings.json"
STORED = json.loads(RULINGS.read_text()) if RULINGS.exists() else {}


def told(ruling: Ruling) -> dict[str, Any]:
    """What is remembered of a ruling: everything that it says."""
    return {
        "verdict": ruling.verdict.name,
        "loser": ruling.loser.name if ruling.loser else None,
        "rule": ruling.rule,
        "level": ruling.level,
        "rounds": len(ruling.rounds),
        "computed": ruling.computed.hex(),
        "ruling": hashlib.sha256(encode(ruling)).hexdigest(),
    }


def read(name: str) -> bytes:
    """A stored file."""
    return (FOLDER / name).read_bytes()


def version_1(name: str) -> transcript_v1.OldTranscript:
    """The record of a stored file of version 1."""
    return decode(transcript_v1.OldSigned, read(name)).transcript


def signed_again(record: transcript_v1.OldTranscript) -> bytes:
    """A changed record of version 1 as its coordinator would have written it."""
    return encode(transcript_v1.OldSigned(record, sign(COORDINATOR, Domain.TRANSCRIPT, record)))


@pytest.mark.parametrize("name", sorted(STORED))
def test_rcp_12__stored_transcripts_lead_to_the_ruling_they_had(name: str) -> None:
    data, want = read(name), STORED[name]
    assert hashlib.sha256(data).hexdigest() == want["file"]
    judged = replay(data, COORDINATOR.party)
    assert {**told(judged.ruling), "file": want["file"]} == want
    assert judged.dispute.ruling == judged.ruling
    assert f"v{int(judged.transcript.version)}" == Path(name).parent.name
    assert judged.report is None or judged.report.ok


def test_every_stored_file_is_listed_and_every_version_has_some() -> None:
    files = {str(path.relative_to(FOLDER)) for path in FOLDER.rglob("*.identic")}
    assert files == set(STORED)
    versions = {Path(name).parent.name for name in files}
    assert versions == {f"v{n}" for n in range(1, transcript.VERSION + 1)}


@pytest.mark.parametrize("name", sorted(STORED))
def test_rcp_1__a_changed_byte_of_a_stored_file_is_refused(name: str) -> None:
    data = read(name)
    for at in range(0, len(data), 97):
        with pytest.raises(ProtocolError):
            replay(data[:at] + bytes([data[at] ^ 1 << at % 8]) + data[at + 1 :])


@pytest.mark.parametrize("version", [0, transcript.VERSION + 1, 1000])
def test_rcp_1__a_version_that_is_not_known_is_refused_with_those_that_are(version: int) -> None:
    data = read(next(iter(STORED)))
    with pytest.raises(ProtocolError) as refused:
        replay(version.to_bytes(8, "big") + data[8:])
    assert (refused.value.rule, refused.value.code) == ("RCP-1", Code.UNSUPPORTED)
    assert f"version 1 or {transcript.VERSION}" in refused.value.want


@pytest.mark.parametrize("data", [b"", b"PK\x03\x04", b"#!/bin/sh\nexit", bytes([255] * 100)])
def test_rcp_1__what_is_no_transcript_is_not_taken_for_a_version(data: bytes) -> None:
    with pytest.raises(ProtocolError) as refused:
        replay(data)
    assert (refused.value.rule, refused.value.code) == ("RCP-1", Code.MALFORMED)


@pytest.mark.parametrize("name", sorted(STORED))
def test_rcp_1__a_file_cut_short_is_damaged_whatever_its_version(name: str) -> None:
    with pytest.raises(ProtocolError) as refused:
        replay(read(name)[:-100])
    assert (refused.value.rule, refused.value.code) == ("RCP-1", Code.MALFORMED)


def test_rcp_12__moves_of_version_1_have_its_clocks() -> None:
    record = version_1("v1/primitive.identic")
    clocks = record.terms.clocks
    began = [record.opening.at, *(second.at for second in record.moves[1::2])]
    for turn, start in enumerate(began):
        allowed = clocks.move_ms if turn == 0 else clocks.rerun_ms
        # The second move of the round, or the evidence; everything after it comes later, too.
        last = min(2 * turn + 1, len(record.moves) - 1)
        for at, rule in ((start + allowed, "RCP-3"), (start + allowed + 1, "DSP-9")):
            shift = at - record.moves[last].at
            moves = (
                *record.moves[:last],
                *(replace(m, at=Millis(m.at + shift)) for m in record.moves[last:]),
            )
            with pytest.raises(ProtocolError) as refused:
                replay(signed_again(replace(record, moves=moves)))
            # In time, every move is legal, and only the time of the ruling is another.
            assert refused.value.rule == rule


def test_rcp_12__time_of_version_1_is_called_after_its_deadline() -> None:
    record = version_1("v1/cannot-tell.identic")
    deadline = record.opening.at + record.terms.clocks.move_ms
    assert record.called == deadline + 1
    with pytest.raises(ProtocolError) as refused:
        replay(signed_again(replace(record, called=Millis(deadline))))
    assert refused.value.rule == "DSP-12"


def test_rcp_12__claims_of_version_1_are_about_its_own_terms() -> None:
    record = version_1("v1/load.identic")
    other = replace(record, terms=replace(record.terms, nonce=sha256(b"another job")))
    with pytest.raises(ProtocolError) as refused:
        replay(signed_again(other))
    assert refused.value.rule == "RCP-12"


# ---- writing those of the present version -----------------------------------------------------


def _against(liar: MemoryExecution) -> Played:
    run = small_run()
    return opened(run, liar.run_leaves(), run.good.run_leaves())


def _wrong(*lies: Lie | StateLie) -> Played:
    run = small_run()
    liar = run.lying(*lies)
    return finish(_against(liar), liar, run.good)


def _paused() -> Played:
    run = small_run()
    liar = run.lying(run.flipped(2, run.value("exp")))
    return finish(paused(_against(liar), 10**9), liar, run.good)


def _late() -> Played:
    run = small_run()
    start = _against(run.lying(run.flipped(2, run.value("exp"))))
    at, move = Millis(start.dispute.now + 40), signed(start, Side.CHALLENGER, run.good)
    progress = arbiter.apply(start.dispute, move, at)
    return late(replace(start, dispute=progress.dispute, moves=(TimedMove(at, move),)))


def games() -> dict[str, Callable[[], Played]]:
    """A dispute of every kind of end."""
    run = small_run()
    return {
        "cannot-tell": lambda: late(_against(run.lying(run.flipped(2, run.value("exp"))))),
        "late": _late,
        "load": lambda: _wrong(run.flipped(2, 0)),
        "paused": _paused,
        "primitive": lambda: _wrong(Lie(2, run.value("matmul"), 0, (1,), 0x3F400000)),
        "state": lambda: _wrong(StateLie(3, 1, sha256(b"other"))),
    }


def main() -> int:
    """Write the files of the present version, unless they are there, and list all rulings."""
    folder = FOLDER / f"v{transcript.VERSION}"
    if not any(folder.glob("*.identic")):
        folder.mkdir(parents=True, exist_ok=True)
        for name, game in games().items():
            record = replace(game().transcript(), version=Count(transcript.VERSION))
            (folder / f"{name}.identic").write_bytes(transcript.write(COORDINATOR, record))
    stored = {}
    for path in sorted(FOLDER.rglob("*.identic")):
        data = path.read_bytes()
        found = {**told(replay(data).ruling), "file": hashlib.sha256(data).hexdigest()}
        stored[str(path.relative_to(FOLDER))] = found
    RULINGS.write_text(json.dumps(stored, indent=1) + "\n")
    sys.stdout.write(f"{len(stored)} transcripts under {FOLDER}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
