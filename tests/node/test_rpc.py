"""The wire: who may connect, what is refused and how, and what survives hostile bytes."""

from __future__ import annotations

import asyncio
import secrets
from typing import Any, cast

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from identic.node.identity import Identity
from identic.node.peers import Peers
from identic.node.rpc.client import Connection, Unreachable
from identic.node.rpc.gen.v1 import log_service_pb2, log_service_pb2_grpc, node_service_pb2_grpc
from identic.node.rpc.gen.v1.job_service_pb2 import GetJobRequest
from identic.node.rpc.gen.v1.job_service_pb2_grpc import JobServiceStub
from identic.node.rpc.gen.v1.node_service_pb2 import StatusRequest
from identic.node.rpc.options import MAX_MESSAGE_BYTES, MAX_SIGNED_BYTES
from identic.node.rpc.remote import Remote
from identic.node.rpc.server import COORDINATOR_SERVICES, Server
from identic.protocol.errors import Code, IllegalMove, LocalError, ProtocolError
from identic.protocol.ids import Digest
from tests.node.conftest import Site, running_site


async def test_messages_arrive_byte_for_byte_and_are_watched(
    site: Site, remote: Remote, identities: list[Identity]
) -> None:
    assert await remote.log.append(b"one") == 0
    assert await remote.log.append(b"two") == 1
    seen = []
    async for index, entry in remote.log.watch(0):
        seen.append((index, entry))
        if index == 1:
            await remote.log.append(b"three")
        if index == 2:
            break
    assert seen == [(0, b"one"), (1, b"two"), (2, b"three")]
    assert set(site.log.callers) == {identities[1].party}
    assert (await remote.log.inclusion(1, 3)).entry == b"two"
    assert (await remote.log.consistency(1, 3)).second_size == 3
    assert (await remote.log.head()).party == identities[1].party


async def test_net_3__unknown_peer_is_told_what_to_do(
    site: Site, identities: list[Identity]
) -> None:
    stranger = site.remote(identities[2])
    async with stranger.connection:
        with pytest.raises(Unreachable) as refusal:
            await stranger.log.append(b"x")
        assert "does not know this identity" in refusal.value.problem
        assert "bob.card" in refusal.value.remedy
        assert site.log.callers == []
        # NET-3: a card put into the folder counts from the next handshake on.
        site.know(identities[2])
        assert await stranger.log.append(b"x") == 0
    assert site.log.callers == [identities[2].party]


async def test_net_3__removed_peer_is_refused_on_its_open_connection(
    site: Site, remote: Remote
) -> None:
    await remote.log.append(b"x")
    for card in (site.folder / "peers").iterdir():
        card.unlink()
    with pytest.raises((ProtocolError, LocalError)):
        await remote.log.append(b"y")
    assert len(site.log.entries) == 1


async def test_net_3__wrong_pinned_server_is_refused(
    site: Site, identities: list[Identity]
) -> None:
    wrong = site.remote(identities[1], peer=identities[2].card)
    async with wrong.connection:
        with pytest.raises(Unreachable) as refusal:
            await wrong.log.append(b"x")
    assert "is not bob" in refusal.value.problem
    assert site.log.callers == []


async def test_nobody_listens(identities: list[Identity]) -> None:
    async with Connection("127.0.0.1:1", identities[1], identities[0].card) as connection:
        with pytest.raises(Unreachable) as refusal:
            await Remote(connection).status()
    assert "refused" in refusal.value.problem


async def test_client_without_certificate_is_refused(site: Site) -> None:
    credentials = grpc.ssl_channel_credentials(site.identity.card.certificate)
    options = [("grpc.ssl_target_name_override", "node.identic")]
    async with grpc.aio.secure_channel(site.server.address, credentials, options=options) as plain:
        stub = node_service_pb2_grpc.NodeServiceStub(plain)
        with pytest.raises(grpc.aio.AioRpcError) as refusal:
            await stub.Status(StatusRequest(), timeout=10)
    assert refusal.value.code() is grpc.StatusCode.UNAVAILABLE


async def test_net_4__oversize_request_is_refused_on_both_sides(site: Site, remote: Remote) -> None:
    with pytest.raises(ProtocolError) as here:
        await remote.log.append(bytes(MAX_MESSAGE_BYTES + 1))
    assert (here.value.rule, here.value.code) == ("NET-4", Code.TOO_LARGE)
    # Past the client's own check, the server refuses, and goes on.
    stub = log_service_pb2_grpc.LogServiceStub(remote.connection.channel)
    with pytest.raises(grpc.aio.AioRpcError) as there:
        await stub.Append(log_service_pb2.AppendRequest(message=bytes(MAX_MESSAGE_BYTES + 1)))
    with pytest.raises(ProtocolError) as explained:
        await remote.connection.explain(there.value)
    assert (explained.value.rule, explained.value.code) == ("NET-4", Code.TOO_LARGE)
    assert site.log.entries == []
    assert await remote.log.append(b"x") == 0


async def test_net_4__oversize_answer_is_refused(site: Site, remote: Remote) -> None:
    site.log.entries.append(bytes(MAX_MESSAGE_BYTES))
    with pytest.raises(ProtocolError) as refusal:
        await anext(remote.log.watch(0))
    assert (refusal.value.rule, refusal.value.code) == ("NET-4", Code.TOO_LARGE)


async def test_msg_4__long_message_is_refused(site: Site, remote: Remote) -> None:
    with pytest.raises(ProtocolError) as refusal:
        await remote.log.append(bytes(MAX_SIGNED_BYTES + 1))
    assert (refusal.value.rule, refusal.value.code) == ("MSG-4", Code.TOO_LARGE)
    assert site.log.entries == []


async def test_net_5__refusals_keep_class_and_attributes(remote: Remote) -> None:
    with pytest.raises(ProtocolError) as refusal:
        await remote.log.append(b"refuse")
    error = refusal.value
    assert (error.rule, error.code) == ("JOB-1", Code.INSUFFICIENT)
    assert (error.got, error.want) == ("3 – three", "7 ≥ 7")
    with pytest.raises(IllegalMove) as illegal:
        await remote.log.append(b"illegal")
    assert illegal.value.want == "patience"
    with pytest.raises(LocalError) as local:
        await remote.log.append(b"local")
    assert local.value.problem.endswith("the disk is full")
    assert local.value.remedy == "buy another"


async def test_net_5__fault_is_hidden_and_survived(remote: Remote) -> None:
    with pytest.raises(LocalError) as fault:
        await remote.log.append(b"fault")
    assert "inner secret" not in str(fault.value)
    assert await remote.log.append(b"x") == 0


async def test_net_5__missing_handler_and_missing_service(
    site: Site, remote: Remote, identities: list[Identity]
) -> None:
    site.handlers.blobs = None
    with pytest.raises(ProtocolError) as down:
        await remote.blobs.has([Digest(bytes(32))])
    assert down.value.code is Code.UNAVAILABLE
    async with running_site(site.folder / "other", identities[0], ("NodeService",)) as bare:
        other = bare.remote(identities[0])
        async with other.connection:
            with pytest.raises(LocalError) as missing:
                await other.log.append(b"x")
    assert "does not offer" in missing.value.problem


async def test_net_6__bytes_of_wrong_length_are_refused(remote: Remote) -> None:
    stub = JobServiceStub(remote.connection.channel)
    with pytest.raises(grpc.aio.AioRpcError) as refusal:
        await stub.GetJob(GetJobRequest(job_id=b"short"))
    with pytest.raises(ProtocolError) as explained:
        await remote.connection.explain(refusal.value)
    # The board is not up in this test; a short blob digest is judged by the blob store.
    assert explained.value.code is Code.UNAVAILABLE
    with pytest.raises(ProtocolError) as short:
        await remote.blobs.has([b"short"])  # type: ignore[list-item]
    assert (short.value.rule, short.value.code) == ("NET-6", Code.MALFORMED)


async def test_garbage_on_the_port_harms_nobody(site: Site, remote: Remote) -> None:
    host, port = site.server.host, site.server.port
    client_hello = bytes.fromhex("16030100c8010000c40303") + secrets.token_bytes(32)
    for garbage in (
        b"",
        b"\x00",
        b"GET / HTTP/1.1\r\n\r\n",
        secrets.token_bytes(4096),
        client_hello,
    ):
        _, writer = await asyncio.open_connection(host, port)
        writer.write(garbage)
        await writer.drain()
        writer.close()
    assert await remote.log.append(b"x") == 0


async def test_malformed_protobuf_is_refused(site: Site, remote: Remote) -> None:
    raw: Any = remote.connection.channel.unary_unary("/identic.v1.LogService/Append")
    with pytest.raises(grpc.aio.AioRpcError):
        await raw(b"\x0a\xff\xff", timeout=10)
    assert site.log.entries == []
    assert await remote.log.append(b"x") == 0


async def test_health_and_reflection(remote: Remote) -> None:
    channel = remote.connection.channel
    # The stubs of these two services know the synchronous channel only.
    health: Any = health_pb2_grpc.HealthStub(channel)
    for service in ("", "identic.v1.LogService"):
        answer = await health.Check(health_pb2.HealthCheckRequest(service=service))
        assert answer.status == health_pb2.HealthCheckResponse.SERVING
    async for watched in health.Watch(health_pb2.HealthCheckRequest(service="")):
        assert watched.status == health_pb2.HealthCheckResponse.SERVING
        break
    reflection: Any = reflection_pb2_grpc.ServerReflectionStub(cast(Any, channel))
    messages: Any = reflection_pb2
    asked = iter([messages.ServerReflectionRequest(list_services="")])
    async for answer in reflection.ServerReflectionInfo(asked):
        names = {one.name for one in answer.list_services_response.service}
        assert {"identic.v1.NodeService", "identic.v1.BlobService"} <= names


async def test_follow_goes_on_after_a_restart(site: Site, identities: list[Identity]) -> None:
    remote = site.remote(identities[1])
    site.log.entries += [b"0", b"1"]
    broken: list[Unreachable] = []
    async with remote.connection:
        seen = []
        async for index, entry in remote.log.follow(0, broken.append):
            seen.append((index, entry))
            if index == 1 and not broken:
                await site.server.stop(0)
                peers = site.folder / "peers"
                site.log.entries.append(b"2")
                site.server = await Server.start(
                    site.server.address,
                    site.identity,
                    Peers(peers, []),
                    site.handlers,
                    services=COORDINATOR_SERVICES,
                )
            if index == 2:
                break
    await site.server.stop(0)
    assert seen == [(0, b"0"), (1, b"1"), (2, b"2")]
    assert len(broken) == 1
