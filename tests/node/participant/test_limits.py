"""A node judges a job by its program alone, before it asks for anything else."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from identic.node.demo.network import Member
from identic.node.solver import role
from identic.protocol.errors import ProtocolError
from identic.protocol.job.state import Phase
from identic.protocol.program.codec import load
from identic.protocol.program.types import Program
from identic.protocol.program.validate import Limits
from tests.helpers.company import Company, company


@pytest.fixture
async def net(tmp_path: Path) -> AsyncIterator[Company]:
    """A coordinator, and a solver that is not started."""
    async with company(tmp_path, [Member("sol", "solver", {"stake": "1000"})]) as made:
        yield made


@pytest.mark.parametrize("limit", ["MEMORY_BYTES", "STEP_VALUES", "STEP_REFERENCES", "STEP_FLOPS"])
async def test_prg_16__a_job_beyond_a_nodes_limits_is_left_before_its_weights_are_fetched(
    net: Company, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    refused: list[str] = []

    def noted(encoding: bytes, limits: Limits) -> Program:
        try:
            return load(encoding, limits)
        except ProtocolError as error:
            refused.append(error.rule)
            raise

    monkeypatch.setattr(role, "load", noted)
    monkeypatch.setenv(f"IDENTIC_LIMITS__{limit}", "16")
    await net.start("sol")
    made = await net.posted()
    while not refused:
        await net.until(lambda _: True)
    assert refused == ["PRG-16"]
    assert (await net.board()).jobs[made.job].phase is Phase.OPEN
    artifacts = (await net.board()).jobs[made.job].artifacts
    assert net.blob("sol", artifacts.program).exists()
    assert not any(net.blob("sol", b).exists() for b in (artifacts.state, *artifacts.data))
