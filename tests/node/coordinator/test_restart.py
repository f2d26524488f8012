"""A coordinator that is killed at any entry goes on as if it had not been."""

import dataclasses
from pathlib import Path

import pytest

from identic.node.coordinator.board import Board
from identic.node.coordinator.heart import Heart
from identic.node.coordinator.host import Host
from identic.node.storage.sqlite import SqliteStorage
from identic.protocol.encoding import decode, encode
from identic.protocol.errors import LocalError
from identic.protocol.hashing import sha256
from identic.protocol.ids import Credits, Digest
from identic.protocol.job.entries import Deposit, LogEntry, Settled
from identic.protocol.job.messages import SignedMessage
from identic.protocol.job.state import Phase
from tests.node.coordinator.village import GRANT, KEYS, HandClock, Run, Village


def eventful(village: Village, honest: Run, false: Run) -> None:
    """A liar, a dispute, a second solver, a false challenge that runs out, a settlement."""
    village.post().accept().commit(false, upto=3)
    village.challenge("anna", honest)
    village.play({"solver": false, "anna": honest})
    village.accept("second").commit(honest, "second").finish(honest, "second")
    village.seal_verdict("anna", honest).seal_verdict("bert", honest)
    village.tell_verdict("anna", honest)
    village.challenge("watcher", false)
    for name in ("second", "anna"):
        village.move(name, honest, village.between(name, "watcher"))
    village.wait()
    village.tell_verdict("bert", honest)
    village.wait()


def words(board: Board) -> tuple[object, ...]:
    """Everything of a board that can be compared."""
    plain = [getattr(board, f.name) for f in dataclasses.fields(board) if f.name != "cases"]
    cases = [
        (c.id, c.opened, c.moves, c.called, c.transcript, c.void, c.dispute.phase, c.dispute.rounds)
        for c in board.cases.values()
    ]
    return (*plain, cases, [c.dispute.ruling for c in board.cases.values()])


def by_coordinator(data: bytes) -> bool:
    """Whether an entry is one that the coordinator owes, not a message nor a welcome."""
    return not isinstance(decode(LogEntry, data).event, SignedMessage | Deposit)


def test_job_4__killed_at_every_entry_it_goes_on_with_the_same(
    village: Village, honest: Run, false: Run, tmp_path: Path
) -> None:
    eventful(village, honest, false)
    assert village.job.phase is Phase.SETTLED
    entries = village.storage.read(0, 10_000)
    assert sum(by_coordinator(data) for data in entries) >= 8
    times = [int(decode(LogEntry, data).at) for data in entries]
    for size in range(len(entries) + 1):
        storage = SqliteStorage(tmp_path / f"cut {size}")
        for data in entries[:size]:
            storage.append(data, sha256(data))
        clock = HandClock()
        clock.now = times[size] if size < len(entries) else village.clock.now
        # It was at work up to then.
        Heart(storage).beat(clock.now, keep=True)
        host = Host(storage, village.blobs, KEYS["coordinator"], clock, grant=GRANT)
        assert host.log.size == size
        host.settle_duties()
        written = storage.read(size, 10_000)
        expected = []
        for data in entries[size:]:
            if not by_coordinator(data):
                break
            expected.append(data)
        assert [decode(LogEntry, d) for d in written] == [decode(LogEntry, d) for d in expected]
        if size == len(entries):
            assert words(host.board) == words(village.host.board)
            assert host.log.root == village.host.log.root
        storage.close()


def test_job_4__a_restart_changes_nothing(village: Village, honest: Run) -> None:
    village.judged(honest)
    before = words(village.host.board)
    village.restart()
    assert words(village.host.board) == before
    village.wait()
    assert isinstance(
        decode(LogEntry, village.storage.read(village.host.log.size - 1, 1)[0]).event, Settled
    )


@pytest.mark.parametrize("change", ["skipped", "foreign", "garbage"])
def test_job_4__a_log_that_does_not_follow_from_itself_is_refused(
    village: Village, honest: Run, tmp_path: Path, change: str
) -> None:
    village.judged(honest)
    entries = list(village.storage.read(0, 10_000))
    if change == "skipped":
        del entries[5]
    elif change == "garbage":
        entries[5] = b"garbage"
    else:
        entry = decode(LogEntry, entries[0])
        assert isinstance(entry.event, Deposit)
        more = dataclasses.replace(entry.event, amount=Credits(1))
        entries[0] = encode(dataclasses.replace(entry, event=more))
    storage = SqliteStorage(tmp_path / "changed")
    for data in entries:
        storage.append(data, Digest(sha256(data)))
    with pytest.raises(LocalError):
        Host(storage, village.blobs, KEYS["coordinator"], village.clock, grant=GRANT)
    storage.close()
