"""The SQLite storage: what was returned from is there after a kill; faults are told in words."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from identic.node.storage.disk import FolderLock
from identic.node.storage.sqlite import FILE, SqliteStorage
from identic.protocol.errors import LocalError
from identic.protocol.hashing import sha256
from identic.protocol.ids import Digest
from tests.helpers.effort import examples

APPEND_FOR_EVER = """
import sys
from pathlib import Path
from identic.node.storage.sqlite import SqliteStorage
from identic.protocol.hashing import sha256
storage = SqliteStorage(Path(sys.argv[1]))
index = storage.size()
while True:
    entry = b"entry %d " % index + bytes(index % 5000)
    assert storage.append(entry, sha256(entry)).index == index
    storage.put("marks", b"last", b"%d" % index)
    print(index, flush=True)
    index += 1
"""


def entry_of(index: int) -> bytes:
    return b"entry %d " % index + bytes(index % 5000)


def test_msg_3__a_repeated_message_keeps_its_place(tmp_path: Path) -> None:
    storage = SqliteStorage(tmp_path)
    first, second = Digest(b"1" * 32), Digest(b"2" * 32)
    assert storage.append(b"a", first).new
    assert storage.append(b"b", second).index == 1
    again = storage.append(b"a, at another time", first)
    assert (again.index, again.new) == (0, False)
    assert list(storage.read(0, 10)) == [b"a", b"b"]
    assert (storage.find(second), storage.find(Digest(bytes(32)))) == (1, None)
    storage.close()


def test_entries_and_values_survive_a_restart(tmp_path: Path) -> None:
    storage = SqliteStorage(tmp_path)
    for index in range(5):
        storage.append(entry_of(index), sha256(entry_of(index)))
    storage.put("a", b"x", b"1")
    storage.put("a", b"w", b"2")
    storage.put("b", b"x", b"3")
    storage.put("b", b"x", None)
    storage.close()
    storage = SqliteStorage(tmp_path)
    assert storage.size() == 5
    assert list(storage.read(1, 2)) == [entry_of(1), entry_of(2)]
    assert list(storage.read(5, 2)) == []
    assert list(storage.items("a")) == [(b"w", b"2"), (b"x", b"1")]
    assert (storage.get("a", b"x"), storage.get("b", b"x")) == (b"1", None)
    storage.close()


def test_what_was_acknowledged_survives_a_kill(tmp_path: Path) -> None:
    acknowledged = -1
    for round_ in range(3):
        process = subprocess.Popen(
            [sys.executable, "-c", APPEND_FOR_EVER, str(tmp_path)],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        for _ in range(20 + 13 * round_):
            acknowledged = int(process.stdout.readline())
        process.send_signal(signal.SIGKILL)
        rest = process.stdout.read().split()
        process.wait(30)
        acknowledged = int(rest[-1]) if rest else acknowledged
        storage = SqliteStorage(tmp_path)
        # At most the one append that was under way is there on top.
        assert acknowledged < storage.size() <= acknowledged + 2
        entries = storage.read(0, storage.size())
        assert list(entries) == [entry_of(index) for index in range(storage.size())]
        assert int(storage.get("marks", b"last") or b"-1") in {acknowledged, acknowledged + 1}
        storage.close()


def test_a_second_process_is_refused(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", APPEND_FOR_EVER, str(tmp_path)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        with pytest.raises(LocalError) as refusal:
            SqliteStorage(tmp_path)
        assert str(process.pid) in refusal.value.problem
        assert str(tmp_path) in refusal.value.problem
        process.kill()
        process.stdout.read()
    SqliteStorage(tmp_path).close()


def test_a_lock_ends_with_its_release(tmp_path: Path) -> None:
    lock = FolderLock.take(tmp_path)
    with pytest.raises(LocalError):
        FolderLock.take(tmp_path)
    lock.release()
    lock.release()
    FolderLock.take(tmp_path).release()


def test_a_full_disk_is_named_and_changes_nothing(tmp_path: Path) -> None:
    storage = SqliteStorage(tmp_path)
    storage.append(b"a", Digest(b"1" * 32))
    pages = storage._db.execute("PRAGMA page_count").fetchone()[0]
    storage._db.execute(f"PRAGMA max_page_count = {pages + 1}")
    with pytest.raises(LocalError) as refusal:
        storage.append(bytes(1 << 20), Digest(b"2" * 32))
    assert FILE in refusal.value.problem
    assert "bytes free" in refusal.value.problem
    assert storage.size() == 1
    storage._db.execute(f"PRAGMA max_page_count = {1 << 30}")
    assert storage.append(b"b", Digest(b"2" * 32)).index == 1
    storage.close()


def test_a_changed_entry_is_noticed(tmp_path: Path) -> None:
    storage = SqliteStorage(tmp_path)
    storage.append(b"a", Digest(b"1" * 32))
    storage.append(b"b", Digest(b"2" * 32))
    storage.close()
    with sqlite3.connect(tmp_path / FILE) as database:
        database.execute("UPDATE entry SET body = ? WHERE position = 1", (b"c",))
    storage = SqliteStorage(tmp_path)
    assert list(storage.read(0, 1)) == [b"a"]
    with pytest.raises(LocalError) as refusal:
        storage.read(0, 2)
    assert "entry 1" in refusal.value.problem
    storage.close()


@pytest.mark.parametrize(
    "content", [b"not a database at all" * 100, b"SQLite format 3\0" + bytes(99)]
)
def test_a_damaged_file_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / FILE).write_bytes(content)
    with pytest.raises(LocalError) as refusal:
        SqliteStorage(tmp_path)
    assert FILE in refusal.value.problem
    # The refusal lets go of the folder.
    FolderLock.take(tmp_path).release()


def test_a_file_of_another_version_is_refused(tmp_path: Path) -> None:
    SqliteStorage(tmp_path).close()
    with sqlite3.connect(tmp_path / FILE) as database:
        database.execute("PRAGMA user_version = 99")
    with pytest.raises(LocalError) as refusal:
        SqliteStorage(tmp_path)
    assert "99" in refusal.value.problem


@settings(max_examples=examples(25), deadline=None)
@given(st.lists(st.tuples(st.integers(0, 9), st.binary(max_size=40)), max_size=30))
def test_the_log_is_the_list_of_first_appends(
    tmp_path_factory: pytest.TempPathFactory, appends: list[tuple[int, bytes]]
) -> None:
    storage = SqliteStorage(tmp_path_factory.mktemp("log"))
    model: list[bytes] = []
    places: dict[int, int] = {}
    for key, entry in appends:
        appended = storage.append(entry, sha256(b"%d" % key))
        assert appended.new == (key not in places)
        if appended.new:
            places[key] = len(model)
            model.append(entry)
        assert appended.index == places[key]
    assert list(storage.read(0, 99)) == model
    storage.close()
