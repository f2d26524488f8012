"""Messages: whose they are, which network they count in, and in what order the log tells them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from identic.node.coordinator.board import Board, apply
from identic.node.identity import Identity
from identic.node.rpc.client import ATTEMPTS, Unreachable
from identic.node.rpc.gen.v1 import log_service_pb2, log_service_pb2_grpc
from identic.node.rpc.remote import Remote
from identic.node.views import Progress, SignedHead
from identic.proofs.envelope import check_seal, seal
from identic.protocol.encoding import decode, encode
from identic.protocol.errors import Code, ProtocolError
from identic.protocol.hashing import EMPTY_ROOT
from identic.protocol.ids import Count, Digest, Millis, PartyId
from identic.protocol.job.entries import LogEntry
from identic.protocol.job.messages import Enrol, SignedMessage
from identic.protocol.program.plan import StepPlan
from tests.node.conftest import MemoryLog, Site


def no_plan(blob: Digest, program: Digest) -> StepPlan:
    """Stand in for the store of programs, which no message here asks."""
    raise AssertionError(blob, program)


def test_msg_1__a_message_counts_in_its_own_network_only(identities: list[Identity]) -> None:
    hub, ada, other = identities
    signed = seal(ada.signing_key, hub.party, 7, Enrol())
    entry = LogEntry(Count(0), Millis(1), signed)
    apply(Board(hub.party), entry, EMPTY_ROOT, no_plan)
    with pytest.raises(ProtocolError) as refusal:
        apply(Board(other.party), entry, EMPTY_ROOT, no_plan)
    assert (refusal.value.rule, refusal.value.code) == ("MSG-1", Code.MISMATCH)


def test_msg_2__the_log_takes_no_message_of_another_signer(identities: list[Identity]) -> None:
    hub, ada, other = identities
    honest = seal(ada.signing_key, hub.party, 7, Enrol())
    forged = SignedMessage(honest.message, seal(other.signing_key, hub.party, 7, Enrol()).signature)
    with pytest.raises(ProtocolError) as refusal:
        apply(Board(hub.party), LogEntry(Count(0), Millis(1), forged), EMPTY_ROOT, no_plan)
    assert refusal.value.code is Code.BAD_SIGNATURE


@settings(deadline=None)
@given(at=st.integers(0, 10_000), bit=st.integers(0, 7))
def test_msg_2__any_changed_bit_is_refused(identities: list[Identity], at: int, bit: int) -> None:
    data = bytearray(encode(seal(identities[1].signing_key, identities[0].party, 7, Enrol())))
    check_seal(decode(SignedMessage, bytes(data)))
    data[at % len(data)] ^= 1 << bit
    with pytest.raises(ProtocolError):
        check_seal(decode(SignedMessage, bytes(data)))


class ScrambledLog(MemoryLog):
    """A log that tells its entries out of turn."""

    async def watch(self, peer: PartyId, from_index: int) -> AsyncIterator[tuple[int, bytes]]:
        del peer
        yield from_index, b"a"
        yield from_index + 2, b"c"


async def test_msg_5__entries_out_of_turn_are_refused(site: Site, remote: Remote) -> None:
    site.handlers.log = ScrambledLog()
    watch = remote.log.watch(3)
    assert await anext(watch) == (3, b"a")
    with pytest.raises(ProtocolError) as refusal:
        await anext(watch)
    assert (refusal.value.rule, refusal.value.code) == ("MSG-5", Code.MISMATCH)


class BusyLog(MemoryLog):
    """A log that is unavailable for the first calls."""

    def __init__(self, refusals: int) -> None:
        super().__init__()
        self.left = refusals
        self.calls = 0

    async def append(self, peer: PartyId, message: bytes) -> int:
        self.calls += 1
        if self.left:
            self.left -= 1
            raise ProtocolError("NET-5", Code.UNAVAILABLE, got="a call", want="patience")
        return await super().append(peer, message)


class BusyJobs:
    """A job board that is unavailable."""

    calls = 0

    async def report_progress(self, peer: PartyId, progress: Progress) -> None:
        del peer, progress
        self.calls += 1
        raise ProtocolError("NET-5", Code.UNAVAILABLE, got="a call", want="patience")


async def test_net_11__only_harmless_calls_are_repeated(site: Site, remote: Remote) -> None:
    site.handlers.log = busy = BusyLog(2)
    assert await remote.log.append(b"x") == 0
    assert busy.calls == 3
    site.handlers.log = busy = BusyLog(99)
    with pytest.raises(ProtocolError):
        await remote.log.append(b"x")
    assert busy.calls == ATTEMPTS
    site.handlers.jobs = jobs = BusyJobs()  # type: ignore[assignment]
    with pytest.raises(ProtocolError):
        await remote.jobs.report(Progress(Digest(bytes(32)), "solver", 1))
    assert jobs.calls == 1


class SilentLog(MemoryLog):
    """A log that never answers."""

    async def head(self, peer: PartyId) -> SignedHead:
        del peer
        await asyncio.Event().wait()
        raise AssertionError


async def test_net_11__a_call_that_is_not_answered_ends(site: Site, remote: Remote) -> None:
    site.handlers.log = SilentLog()
    stub = log_service_pb2_grpc.LogServiceStub(remote.connection.channel)
    with pytest.raises(Unreachable) as late:
        await remote.connection.call(
            stub.GetHead, log_service_pb2.GetHeadRequest(), idempotent=True, deadline_s=0.2
        )
    assert "did not answer in time" in late.value.problem
