"""The same job has the same program on every version of Python that runs the project.

``tests/golden/programs.json`` holds the digests of the programs of the zoo, and the version of
torch that traced them: other versions may record a step in other operators. Write it again with
``python -m tests.capture.test_canonical``; do so only for a change that is meant to change
programs.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from identic.node.capture import Windows, capture
from identic.protocol.program.codec import program_digest
from tests.capture.zoo import ZOO

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "programs.json"
QUICK = ("mlp", "gpt_dropout")


def digests(names: Iterable[str]) -> dict[str, str]:
    """Digests of programs by name; none depends on the text that a version of Python has."""
    found = {}
    for name in names:
        job = ZOO[name].job()
        if isinstance(job.data, Windows):
            job = replace(job, data=replace(job.data, tokens=np.zeros(4096, np.uint8)))
        found[name] = program_digest(capture(job).program).hex()
    return found


def torch_version() -> str:
    """Without the build."""
    return torch.__version__.partition("+")[0]


@pytest.mark.parametrize("names", [QUICK, pytest.param(tuple(ZOO), marks=pytest.mark.long)])
def test_cap_1__programs_are_those_of_the_golden_file(names: tuple[str, ...]) -> None:
    golden = json.loads(GOLDEN.read_text(encoding="utf-8"))
    assert torch_version() == golden["torch"], "programs are compared under one version of torch"
    assert digests(names) == {name: golden["programs"][name] for name in names}
    assert set(golden["programs"]) == set(ZOO)


if __name__ == "__main__":
    content = {"torch": torch_version(), "programs": digests(ZOO)}
    GOLDEN.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
