"""Every adversary of the catalogue meets what its entry says, and costs nobody honest anything."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from identic.node.blobs import Blobs
from identic.protocol.job.state import Phase
from tests.adversaries import table
from tests.adversaries.adversary import met
from tests.adversaries.catalogue import CATALOGUE
from tests.adversaries.lies import FalseRun
from tests.helpers.arena import Arena, honestly, tale
from tests.node.coordinator.village import Run


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The run of the program."""
    return tale(Blobs(tmp_path_factory.mktemp("honest"), 1 << 30), honestly)


@pytest.fixture
def arena(tmp_path: Path, honest: Run) -> Iterator[Arena]:
    """A village that is about to be attacked."""
    made = Arena(tmp_path, honest)
    yield made
    made.close()


@pytest.mark.parametrize("name", CATALOGUE)
def test_an_attack_meets_what_its_entry_says(arena: Arena, name: str) -> None:
    adversary = CATALOGUE[name]()
    adversary.attack(arena)
    assert met(arena) == adversary.stopped
    arena.check(adversary.liars)
    for liar in adversary.liars:
        assert arena.lost(liar) == adversary.expected(arena, liar)
    arena.settle()
    assert arena.job.phase is Phase.SETTLED
    arena.check(adversary.liars)


FALSE_RUNS = [name for name, kind in CATALOGUE.items() if issubclass(kind, FalseRun)]


@pytest.mark.parametrize("name", FALSE_RUNS)
def test_a_false_run_loses_as_a_challenge_too(arena: Arena, name: str) -> None:
    adversary = CATALOGUE[name]()
    assert isinstance(adversary, FalseRun)
    adversary.accuse(arena)
    assert met(arena) == adversary.stopped
    arena.check(("watcher",))
    assert arena.lost("watcher") == arena.bond("watcher")
    arena.settle()
    assert arena.job.phase is Phase.SETTLED


def test_the_page_has_the_catalogue() -> None:
    text = table.PAGE.read_text()
    assert len(table.BLOCK.findall(text)) == 1
    assert table.written(text) == text, "run python -m tests.adversaries.table"
