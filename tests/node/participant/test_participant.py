"""A party's tasks: tried again, ended early, shown; and a log that must lead to its heads."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from identic.node.config import Config, write_example
from identic.node.daemon import Daemon
from identic.node.identity import Identity
from identic.node.mirror import Mirror
from identic.node.participant import base
from identic.node.participant.base import Participant
from identic.node.participant.heads import SPACE, Heads
from identic.node.role import Context
from identic.node.storage.sqlite import SqliteStorage
from identic.node.views import RoleStatus, SignedHead
from identic.proofs.merkle import IncrementalTree
from identic.proofs.signatures import SigningKey, sign
from identic.protocol.encoding import decode, encode
from identic.protocol.errors import Code, LocalError, ProtocolError
from identic.protocol.hashing import Domain, leaf_hash
from identic.protocol.ids import Count, Millis
from identic.protocol.job.entries import LogHead
from identic.protocol.job.messages import Enrol, Leave


@dataclass
class Orders:
    """What the test's role is to do, and what became of it."""

    react: Callable[[Probe], None] = lambda _: None
    seen: list[str] = field(default_factory=list)
    happened: asyncio.Event = field(default_factory=asyncio.Event)
    probe: Probe | None = None


class Probe(Participant):
    """A party that does what a test says."""

    name = "verifier"

    def __init__(self, context: Context, orders: Orders) -> None:
        super().__init__(context)
        self.orders = orders
        orders.probe = self

    def react(self) -> None:
        self.orders.react(self)

    def note(self, what: str) -> None:
        """Tell the test."""
        self.orders.seen.append(what)
        self.orders.happened.set()


@dataclass
class Pair:
    """A coordinator and a party, in this process."""

    hub: Daemon
    party: Daemon
    orders: Orders

    @property
    def probe(self) -> Probe:
        """The party's role."""
        assert self.orders.probe is not None
        return self.orders.probe

    async def role(self) -> RoleStatus:
        """What the party's node says of its role."""
        status = await self.party.status(self.party.context.identity.party)
        return status.roles[0]

    async def until(self, condition: Callable[[RoleStatus], bool]) -> RoleStatus:
        """Look at the role until it is as wished."""
        while not condition(status := await self.role()):  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0)
        return status


def configured(folder: Path, role: str, hub: str = "127.0.0.1:0") -> Config:
    """A configuration with keys."""
    path = folder / f"{role}.toml"
    if not path.exists():
        text = write_example(role, role)
        here = f"127.0.0.1:{7400 + ['coordinator', '', 'verifier'].index(role)}"
        text = text.replace(f'listen = "{here}"', 'listen = "127.0.0.1:0"')
        text = text.replace('coordinator = "127.0.0.1:7400"', f'coordinator = "{hub}"')
        text = text.replace('"coordinator.card"', '"coordinator-data/coordinator.card"')
        path.write_text(text)
        Identity.create(folder / f"{role}-data", role)
    return Config.load(path)


@asynccontextmanager
async def pair(folder: Path, orders: Orders) -> AsyncIterator[Pair]:
    """Run both; the party with the test's role."""
    hub = configured(folder, "coordinator")
    async with AsyncExitStack() as exits:
        daemon = await exits.enter_async_context(Daemon(hub))
        config = configured(folder, "verifier", daemon.server.address)
        config = config.model_copy(
            update={
                "network": config.network.model_copy(update={"coordinator": daemon.server.address})
            }
        )
        card = Identity.load(config.data_path, "verifier").card
        (hub.peers_path / "verifier.card").write_text(card.text)
        party = await exits.enter_async_context(
            Daemon(config, {"verifier": lambda context: Probe(context, orders)})
        )
        while orders.probe is None:  # noqa: ASYNC110 - the daemon makes it
            await asyncio.sleep(0)
        yield Pair(daemon, party, orders)


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tries follow each other at once."""
    monkeypatch.setattr(base, "FIRST_PAUSE_S", 0.0)


# ---- tasks ----------------------------------------------------------------------------------


async def test_exe_10__what_this_machine_cannot_do_is_tried_again_and_shown(tmp_path: Path) -> None:
    orders, fixed = Orders(), asyncio.Event()

    async def work() -> None:
        if not fixed.is_set():
            raise LocalError("the disk is full", remedy="free some space")
        assert orders.probe is not None
        orders.probe.note("done")

    orders.react = lambda probe: probe.begin(("store", 1), work)
    async with pair(tmp_path, orders) as both:
        status = await both.until(lambda role: "trouble with store 1" in role.details)
        assert "the disk is full" in status.details["trouble with store 1"]
        fixed.set()
        await orders.happened.wait()
        status = await both.until(lambda role: role.details["at work on"] == "nothing")
        assert "trouble with store 1" not in status.details
        assert orders.seen == ["done"]
        assert status.restarts == 0


async def test_a_refusal_on_the_present_board_is_final(tmp_path: Path) -> None:
    orders = Orders()

    async def work() -> None:
        assert orders.probe is not None
        orders.probe.note("tried")
        raise ProtocolError("JOB-5", Code.ILLEGAL_MOVE, got="this", want="that")

    orders.react = lambda probe: probe.begin("refused", work)
    async with pair(tmp_path, orders) as both:
        await orders.happened.wait()
        await both.until(lambda role: role.details["at work on"] == "nothing")
        await both.probe.say(Enrol())
        assert orders.seen == ["tried"]


async def test_exe_10__a_refusal_on_an_older_board_is_tried_again(tmp_path: Path) -> None:
    orders = Orders()

    async def work() -> None:
        probe = orders.probe
        assert probe is not None
        if len(orders.seen) < 2:
            orders.seen.append("tried")
            # The board changes under the task, as after a message that was taken unnoticed.
            await probe.say(Leave())
            raise ProtocolError("JOB-9", Code.MISMATCH, got="mark 3", want="mark 4")
        probe.note("done")

    orders.react = lambda probe: probe.begin("commit", work)
    async with pair(tmp_path, orders):
        await orders.happened.wait()
        assert orders.seen == ["tried", "tried", "done"]


async def test_a_task_ends_when_it_is_of_no_use_any_more(tmp_path: Path) -> None:
    orders = Orders()

    async def work() -> None:
        assert orders.probe is not None
        try:
            await asyncio.Event().wait()
        finally:
            orders.probe.note("ended")

    def react(probe: Probe) -> None:
        probe.begin("wait", work, lambda: probe.party not in probe.mirror.board.enrolled)

    orders.react = react
    async with pair(tmp_path, orders) as both:
        await both.until(lambda role: role.details.get("at work on") == "wait")
        await both.probe.say(Enrol())
        await orders.happened.wait()
        await both.until(lambda role: role.details["at work on"] == "nothing")
        assert (await both.role()).restarts == 0


async def test_an_unexpected_error_of_a_task_ends_the_role(tmp_path: Path) -> None:
    orders = Orders()

    async def work() -> None:
        raise ZeroDivisionError("a fault of ours")

    orders.react = lambda probe: probe.begin("fault", work)
    async with pair(tmp_path, orders) as both:
        status = await both.until(lambda role: bool(role.last_error))
        assert "ZeroDivisionError" in status.last_error


async def test_exe_10__a_message_is_repeated_until_the_coordinator_answers(tmp_path: Path) -> None:
    orders = Orders()
    async with pair(tmp_path, orders) as both:
        probe, handlers = both.probe, both.hub.context.handlers
        await probe.catch_up()
        board, handlers.log = handlers.log, None
        saying = asyncio.create_task(probe.try_to_say(Enrol()))
        await both.until(lambda _: bool(probe._lost) or not saying.done())
        assert not saying.done()
        handlers.log = board
        assert await saying
        await probe.until(lambda: probe.party in probe.mirror.board.enrolled or None)


async def test_a_damaged_blob_is_fetched_again(tmp_path: Path) -> None:
    orders = Orders()
    async with pair(tmp_path, orders) as both:
        store, digest = both.party.context.blobs, both.hub.context.blobs.put(b"whole")
        await both.probe.fetch(digest)
        store.path(digest).write_bytes(b"broke")
        await both.probe.fetch(digest)
        assert store.read(digest, 5) == b"whole"


# ---- heads ----------------------------------------------------------------------------------

KEY = SigningKey(bytes([7]) * 32)


def signed(leaves: list[bytes], key: SigningKey = KEY) -> SignedHead:
    """A head over a log of these entries."""
    tree = IncrementalTree()
    for leaf in leaves:
        tree.append(leaf_hash(leaf))
    head = LogHead(Count(len(leaves)), tree.root, Millis(1))
    return SignedHead(encode(head), bytes(sign(key, Domain.LOG, head)), key.party)


def mirror_of(leaves: list[bytes]) -> Mirror:
    """A mirror that has read a log of these entries."""
    mirror = Mirror(KEY.party, lambda *_: pytest.fail("no program is needed"))
    for leaf in leaves:
        mirror._tree.append(leaf_hash(leaf))
    return mirror


@pytest.fixture
def storage(tmp_path: Path) -> SqliteStorage:
    """A node's storage."""
    return SqliteStorage(tmp_path / "state")


def test_com_8__a_log_that_leads_to_its_head_is_kept(storage: SqliteStorage) -> None:
    log = [b"a", b"b", b"c"]
    heads = Heads(storage, KEY.party)
    heads.expect(signed(log[:2]), mirror_of([]))
    for size in (1, 2):
        heads.compare(size, mirror_of(log[:size]).root)
    kept = storage.get(SPACE, bytes(KEY.party))
    assert kept is not None
    assert decode(LogHead, kept).size == 2
    # After a restart the longer log goes through the same place.
    again = Heads(storage, KEY.party)
    again.expect(signed(log), mirror_of([]))
    for size in (1, 2, 3):
        again.compare(size, mirror_of(log[:size]).root)


def test_com_8__another_log_than_the_signed_one_is_refused(storage: SqliteStorage) -> None:
    heads = Heads(storage, KEY.party)
    heads.expect(signed([b"a", b"b"]), mirror_of([]))
    with pytest.raises(ProtocolError) as refusal:
        heads.compare(2, mirror_of([b"a", b"x"]).root)
    assert refusal.value.rule == "COM-8"
    assert storage.get(SPACE, bytes(KEY.party)) is None


def test_com_8__a_log_that_was_rewritten_or_shrank_is_refused(storage: SqliteStorage) -> None:
    heads = Heads(storage, KEY.party)
    heads.expect(signed([b"a", b"b"]), mirror_of([b"a", b"b"]))
    again = Heads(storage, KEY.party)
    with pytest.raises(ProtocolError) as refusal:
        again.expect(signed([b"a"]), mirror_of([]))
    assert refusal.value.rule == "COM-8"
    rewritten = Heads(storage, KEY.party)
    rewritten.expect(signed([b"a", b"x", b"y"]), mirror_of([]))
    rewritten.compare(1, mirror_of([b"a"]).root)
    with pytest.raises(ProtocolError) as refusal:
        rewritten.compare(2, mirror_of([b"a", b"x"]).root)
    assert refusal.value.rule == "COM-8"


def test_com_9__a_head_by_somebody_else_is_refused(storage: SqliteStorage) -> None:
    other = SigningKey(bytes([8]) * 32)
    with pytest.raises(ProtocolError) as refusal:
        Heads(storage, KEY.party).expect(signed([b"a"], other), mirror_of([]))
    assert refusal.value.rule == "COM-9"


async def test_com_8__a_party_tells_of_a_rewritten_log(tmp_path: Path) -> None:
    orders = Orders()
    async with pair(tmp_path, orders) as both:
        await both.probe.say(Enrol())
        await both.probe.catch_up()
    # The coordinator comes back with the same keys and an empty log.
    for path in (tmp_path / "coordinator-data" / "state").iterdir():
        path.unlink()
    async with pair(tmp_path, Orders()) as both:
        status = await both.until(lambda role: bool(role.last_error))
        assert "COM-8" in status.last_error
