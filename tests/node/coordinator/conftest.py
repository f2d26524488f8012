"""The village, and the runs that its tests share."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.node.coordinator.village import Run, Village, execute


@pytest.fixture(scope="session")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The run as the program says."""
    return execute(tmp_path_factory.mktemp("honest"), lie=False)


@pytest.fixture(scope="session")
def false(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The run with one wrong step of one element."""
    return execute(tmp_path_factory.mktemp("false"), lie=True)


@pytest.fixture
def village(tmp_path: Path) -> Iterator[Village]:
    """A coordinator that has just come up."""
    made = Village(tmp_path)
    yield made
    made.close()
