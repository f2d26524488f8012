"""Two networks at once: each settles its own jobs and hears nothing of the other."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from identic.node.demo.network import LocalNetwork
from identic.node.rpc.client import Connection
from identic.node.rpc.remote import Remote
from identic.protocol.errors import LocalError, ProtocolError
from identic.protocol.job.messages import Enrol
from tests.network.town import Ask, Town, expected, members, roots, running

pytestmark = [pytest.mark.xdist_group("honest network"), pytest.mark.long]

ASK = Ask(verifiers=1)


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Town]:
    """A second network, with two threads a node and the plainest operators."""
    folder = tmp_path_factory.mktemp("other")
    party = members(sol="solver", ann="verifier")
    yield from running(LocalNetwork(folder, party, threads=2, vector="scalar"))


async def test_two_networks_do_not_disturb_each_other(town: Town, other: Town) -> None:
    jobs = await asyncio.gather(town.post(ASK), other.post(ASK))
    both = zip((town, other), jobs, strict=True)
    done = await asyncio.gather(*(network.settled(job) for network, job in both))
    # Other machines, other threads, other vector paths: the same bits.
    assert [roots(job) for job in done] == [expected(ASK)] * 2
    assert jobs[1] not in (await town.board()).jobs
    assert jobs[0] not in (await other.board()).jobs


async def test_msg_1__a_message_for_one_network_is_refused_in_the_other(
    town: Town, other: Town
) -> None:
    with pytest.raises(ProtocolError) as refusal:
        await town.say(Enrol(), other.party("hub"))
    assert refusal.value.rule == "MSG-1"


async def test_net_3__a_member_of_one_network_is_a_stranger_in_the_other(
    town: Town, other: Town
) -> None:
    address, card = other.net.address("hub"), other.net.identity("hub").card
    async with Connection(address, town.net.identity("client"), card) as connection:
        with pytest.raises(LocalError):
            await Remote(connection).log.head()
