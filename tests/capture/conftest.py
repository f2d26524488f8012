"""Captured jobs, each made once a test run."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch

from identic.node.capture import Captured, TrainingJob, capture
from identic.protocol.dtypes import DType
from identic.protocol.lowering import constants, passes
from identic.protocol.ops.base import Call
from identic.protocol.ops.evaluate import ReadElement
from tests.capture.interpreter import TorchBackend
from tests.capture.models import CASES, RANDOM


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the tests of one captured job in one process, which captures it once."""
    for item in items:
        if item.path.parent != Path(__file__).parent or not isinstance(item, pytest.Function):
            continue
        values = item.callspec.params if hasattr(item, "callspec") else {}
        name = values.get("name", values.get("case"))
        if isinstance(name, str):
            item.add_marker(pytest.mark.xdist_group(f"{item.path.stem} {name}"))


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

    computed = passes.element  # type: ignore[attr-defined]

    def follow(call: Call, flat: int, read: ReadElement) -> int:
        """Remember what a constant that is computed stands for, too."""
        word = computed(call, flat, read)
        if call.output.dtype is DType.FLOAT32:
            given = []
            for number, kind in enumerate(call.inputs):
                bits = read(number, 0)
                value: float = kind.dtype.signed(bits)
                if kind.dtype is DType.FLOAT32:
                    value = found.numbers.get(bits, float(np.uint32(bits).view(np.float32)))
                dtype = TorchBackend(torch.float64).dtype(kind.dtype)
                given.append(torch.full(tuple(kind.shape), value, dtype=dtype))
            exact = TorchBackend(torch.float64).compute(call, given)
            found.numbers[word] = float(exact.reshape(-1)[0])
        return word

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(constants, "float32_word", remember)
        patch.setattr(passes, "element", follow)
        yield found
