"""Captured jobs, each made once a test run."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import pytest

from identic.node.capture import Captured, TrainingJob, capture
from identic.protocol.lowering import constants
from tests.capture.models import CASES, RANDOM


class Exact:
    """Capture that remembers which number each float32 constant was rounded from."""

    def __init__(self) -> None:
        self.numbers: dict[int, float] = {}

    @cache  # noqa: B019 - one object a run
    def job(self, name: str) -> tuple[TrainingJob, Captured]:
        """The named case and its capture."""
        job = {**CASES, **RANDOM}[name].job()
        return job, capture(job)


@pytest.fixture(scope="session")
def exact() -> Iterator[Exact]:
    """Captured cases, with the numbers behind their constants."""
    found = Exact()
    rounded = constants.float32_word

    def remember(value: float) -> int:
        word = rounded(value)
        found.numbers[word] = value
        return word

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(constants, "float32_word", remember)
        yield found
