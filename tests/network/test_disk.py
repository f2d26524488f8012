"""A party's disk during a job and after it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from identic.node.demo.network import LocalNetwork
from tests.network.town import Ask, Town, expected, members, roots, running

pytestmark = pytest.mark.xdist_group("disk")

STATES = 2
"""Stored states that a node has room for, the initial one not counted."""


@pytest.fixture
def town(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Town]:
    """A network whose nodes have little room for states: one has less than 1,000 bytes."""
    monkeypatch.setenv("IDENTIC_LIMITS__STATES_BYTES", str(STATES * 1_000))
    folder = tmp_path_factory.mktemp("disk")
    yield from running(LocalNetwork(folder, members(sol="solver", ann="verifier")))


async def test_exe_12__a_job_needs_few_states_on_the_disk_and_leaves_none(town: Town) -> None:
    ask = Ask(steps=24, cadence=2, checkpoint=1, verifiers=1)
    job = await town.settled(await town.post(ask))
    assert roots(job) == expected(ask)
    assert len(job.stored) == 12
    # A verifier may let go of states at once, a solver when it has told of them.
    assert sum(line["states"] for line in town.said("ann", "states let go")) >= 12 - 1 - STATES
    for name in ("sol", "ann"):
        await town.until_said(name, "job let go")
        assert _blobs(town.net.folder / name) == {job.artifacts.program.hex()}


def _blobs(folder: Path) -> set[str]:
    """Names of the blobs of a node."""
    return {path.name for path in folder.glob("blobs/??/*")}
