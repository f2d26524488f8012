"""The network that the tests of honest parties share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from identic.node.demo.network import LocalNetwork
from tests.network.town import Town, members, running


@pytest.fixture(scope="package")
def town(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Town]:
    """A network of honest parties; tests that use it are in one xdist group."""
    folder = tmp_path_factory.mktemp("honest")
    party = members(sol="solver", ann="verifier", bob="verifier", wat="whistleblower")
    yield from running(LocalNetwork(folder, party))
