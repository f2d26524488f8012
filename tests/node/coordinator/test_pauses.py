"""A coordinator that was away says so first, and nobody is late by its absence."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from identic.node.coordinator import board as boards
from identic.node.coordinator.heart import BEAT_MS, FROZEN_MS, SPACE
from identic.node.coordinator.host import Host
from identic.node.coordinator.service import Coordinator
from identic.node.execution.playing import replayed
from identic.node.mirror import Mirror
from identic.node.participant.cases import record_of
from identic.node.storage.sqlite import SqliteStorage
from identic.proofs.envelope import seal
from identic.proofs.transcript import SignedTranscript, replay, write
from identic.protocol.dispute.moves import Side
from identic.protocol.encoding import decode, encode
from identic.protocol.errors import ProtocolError
from identic.protocol.hashing import sha256
from identic.protocol.ids import Count, Millis
from identic.protocol.job.entries import LogEntry, Resumed, Verdicts
from identic.protocol.job.messages import Ask, Served
from identic.protocol.job.state import Phase
from tests.node.coordinator.village import GRANT, KEYS, Run, Village

AWAY = 3_600_000


def entries(host: Host) -> list[LogEntry]:
    """The whole log."""
    return [decode(LogEntry, data) for data in host.log.read(0, 10_000)]


def pauses(host: Host) -> list[tuple[int, int]]:
    """Beginning and end of each pause in the log."""
    return [(int(e.event.since), int(e.at)) for e in entries(host) if isinstance(e.event, Resumed)]


def disputed(village: Village, honest: Run, false: Run) -> Village:
    """A solver that vouches for a false run is challenged, and both have moved once."""
    village.post().accept().commit(false, upto=3)
    village.challenge("anna", honest)
    village.move("solver", false)
    village.move("anna", honest)
    return village


def test_job_27__after_a_restart_clocks_go_on_where_they_stood(
    village: Village, honest: Run, false: Run
) -> None:
    disputed(village, honest, false)
    village.clock.now += BEAT_MS + 400
    village.host.wake()
    before = village.case.dispute.clock
    village.clock.now += AWAY
    village.restart()
    ((since, at),) = pauses(village.host)
    assert (since, at) == (village.clock.now - AWAY, village.clock.now)
    assert isinstance(entries(village.host)[-1].event, Resumed)
    after = village.case.dispute.clock
    assert [after.deadline(s) - before.deadline(s) for s in Side] == [AWAY, AWAY]
    assert after.reserves == before.reserves
    village.play({"solver": false, "anna": honest})
    assert village.job.phase is Phase.OPEN


def test_job_27__the_clock_of_a_job_goes_on_where_it_stood(village: Village, honest: Run) -> None:
    village.post().accept().commit(honest, upto=3)
    before = village.job.deadline
    assert before is not None
    village.clock.now += AWAY
    village.restart()
    assert village.job.deadline == before + AWAY
    assert village.job.accepted_at == village.clock.now - AWAY
    village.host.settle_duties()
    assert (village.job.phase, village.job.attempt) == (Phase.TRAINING, Count(1))
    village.wait()
    assert village.job.attempt == Count(2)


def test_job_27__time_at_work_is_no_pause(village: Village, honest: Run) -> None:
    """The time of the last beat counts, not that of the last entry."""
    village.post().accept().commit(honest, upto=3)
    for _ in range(4):
        village.clock.now += BEAT_MS
        village.host.wake()
    village.clock.now += 7
    village.restart()
    assert pauses(village.host) == [(village.clock.now - 7, village.clock.now)]


def test_job_27__without_a_clock_that_runs_there_is_no_pause(village: Village) -> None:
    village.post()
    village.clock.now += AWAY
    village.host.wake()
    village.restart()
    assert pauses(village.host) == []


def test_job_27__the_heart_is_stored_about_each_second(village: Village) -> None:
    village.post().accept()
    kept = []
    for _ in range(100):
        village.clock.now += BEAT_MS // 10
        village.host.wake()
        kept.append(village.storage.get(SPACE, b""))
    assert 9 <= len(set(kept)) <= 11
    last = int.from_bytes(kept[-1] or b"", "big")
    assert village.clock.now - BEAT_MS <= last <= village.clock.now


async def test_job_27__a_frozen_coordinator_says_so_before_it_takes_anything_in(
    village: Village, honest: Run
) -> None:
    village.post().accept().commit(honest, upto=3)
    coordinator = Coordinator(village.host, village.clock)
    await coordinator.tick()
    before = village.job.deadline
    assert before is not None
    village.clock.now += FROZEN_MS
    await coordinator.tick()
    assert pauses(village.host) == []
    # Stopped for longer than the solver may be silent; its next message arrives first.
    village.clock.now += AWAY
    solver = KEYS["solver"]
    said = seal(solver, KEYS["coordinator"].party, 77, village.commitment(honest, 3))
    await coordinator.append(solver.party, encode(said))
    await coordinator.close()
    assert pauses(village.host) == [(village.clock.now - AWAY, village.clock.now)]
    assert isinstance(entries(village.host)[-2].event, Resumed)
    assert village.job.phase is Phase.TRAINING
    assert len(village.job.marks) == 4


async def test_job_27__a_running_coordinator_keeps_its_heart(
    village: Village, monkeypatch: pytest.MonkeyPatch
) -> None:
    village.post().accept()
    coordinator = Coordinator(village.host, village.clock)
    village.clock.now += 2 * BEAT_MS
    beaten = asyncio.Event()
    loop, put = asyncio.get_running_loop(), village.storage.put

    def noticed(space: str, name: bytes, value: bytes | None) -> None:
        put(space, name, value)
        loop.call_soon_threadsafe(beaten.set)

    monkeypatch.setattr(village.storage, "put", noticed)
    running = asyncio.create_task(coordinator.run())
    await beaten.wait()
    running.cancel()
    await asyncio.wait({running})
    await coordinator.close()
    assert village.storage.get(SPACE, b"") == village.clock.now.to_bytes(8, "big")


def test_job_27__a_slow_receipt_costs_nobody_time(
    village: Village, honest: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    village.judged(honest)
    real = village.host._documents.receipt

    def slow(*arguments: object) -> object:
        village.clock.now += AWAY
        return real(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(village.host._documents, "receipt", slow)
    village.wait()
    assert village.job.phase is Phase.SETTLED
    assert pauses(village.host) == [(village.clock.now - AWAY, village.clock.now)]


@pytest.mark.parametrize("since", [-1, 1_000, 2_000])
def test_job_27__a_pause_before_the_last_entry_or_of_no_length_is_refused(
    village: Village, since: int
) -> None:
    """Whoever reads the log checks the coordinator."""
    village.post().accept()
    board, root = village.host.board, village.host.log.root
    at = Millis(board.now + 1_000)
    entry = LogEntry(Count(village.host.log.size), at, Resumed(Millis(board.now + since)))
    with pytest.raises(ProtocolError) as refused:
        boards.apply(board, entry, root, village.host._programs.plan)
    assert refused.value.rule == "JOB-27"


def test_job_27__whoever_reads_the_log_knows_the_same_deadlines(
    village: Village, honest: Run, false: Run, tmp_path: Path
) -> None:
    disputed(village, honest, false)
    village.clock.now += AWAY
    village.restart()
    mirror = Mirror(KEYS["coordinator"].party, village.host._programs.plan)
    for data in village.host.log.read(0, 10_000):
        mirror.take(data)
    (case,) = mirror.board.cases.values()
    assert case.dispute.clock == village.case.dispute.clock
    assert mirror.root == village.host.log.root
    # So does a worker, which is handed the record.
    setup = case.dispute.setup
    assert replayed(record_of(case), setup.terms, setup.plan).clock == case.dispute.clock
    # And a coordinator that replays its log.
    storage = SqliteStorage(tmp_path / "copy")
    for data in village.host.log.read(0, 10_000):
        storage.append(data, sha256(data))
    host = Host(storage, village.blobs, KEYS["coordinator"], village.clock, grant=GRANT)
    assert host.board.case(case.id).dispute.clock == case.dispute.clock
    storage.close()


def test_rcp_3__a_transcript_tells_the_pauses(village: Village, honest: Run, false: Run) -> None:
    disputed(village, honest, false)
    village.clock.now += AWAY
    village.restart()
    village.move("anna", honest)
    village.clock.now = int(village.case.dispute.deadline) + 1
    village.host.settle_duties()
    digest = village.case.transcript
    assert digest is not None
    data = village.blobs.read(digest, 1 << 27)
    told = replay(data, KEYS["coordinator"].party)
    assert (told.ruling.verdict, told.ruling.loser) == (Verdicts.LATE, Side.DEFENDER)
    record = decode(SignedTranscript, data).transcript
    (pause,) = record.pauses
    assert pause.length_ms == AWAY
    for wrong in (
        (),
        (pause, pause),
        (replace(pause, since=Millis(pause.since - 5_000)),),
        (replace(pause, at=Millis(pause.at + 1)),),
        (replace(pause, at=Millis(pause.at - 20_000)),),
    ):
        with pytest.raises(ProtocolError):
            replay(write(KEYS["coordinator"], replace(record, pauses=wrong)))


def test_job_27__the_time_for_claims_to_enter_moves_on(
    village: Village, honest: Run, false: Run
) -> None:
    village.judged(honest).challenge("watcher", false)
    contest = village.job.contest
    assert contest is not None
    village.clock.now += AWAY
    village.restart()
    assert village.job.contest is not None
    assert village.job.contest.entry_until == contest.entry_until + AWAY
    assert village.job.entry_until == contest.entry_until + AWAY
    village.play({"solver": honest, "watcher": false})
    assert village.job.deadline == contest.entry_until + AWAY


def test_job_27__the_clock_of_a_state_that_is_asked_for_moves_on(
    village: Village, honest: Run
) -> None:
    village.judged(honest)
    (stored,) = village.job.stored[:1]
    village.blobs.remove(stored.blob)
    village.say("bert", Ask(village.job.id, village.job.attempt, stored.mark))
    ask, window = village.job.ask, village.job.deadline
    assert ask is not None
    assert window is not None
    village.clock.now += AWAY
    village.restart()
    assert village.job.ask == replace(
        ask, at=Millis(ask.at + AWAY), deadline=Millis(ask.deadline + AWAY)
    )
    assert village.job.due_at == ask.deadline + AWAY
    # Of the window nothing is gone, though it stood still for the state and for the coordinator.
    village.clock.now += 300
    village.blobs.put(honest.states[int(stored.mark)])
    village.say("solver", Served(village.job.id, village.job.attempt, stored.mark))
    assert village.job.deadline == window + AWAY + 300
