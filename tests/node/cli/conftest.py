"""Running commands, in this process and as processes of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from identic.node.cli import main


@dataclass(frozen=True)
class Ran:
    """What a command said and how it ended."""

    code: int
    out: str
    err: str

    @property
    def value(self) -> Any:
        """The one JSON object on standard output."""
        return json.loads(self.out)


Command = Callable[..., Ran]


@pytest.fixture
def identic(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    """Run a command in this process."""
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.delenv("IDENTIC_CONFIG", raising=False)

    def run(*arguments: object) -> Ran:
        capsys.readouterr()
        code = main.run([str(a) for a in arguments])
        said = capsys.readouterr()
        return Ran(code, said.out, said.err)

    return run


def process(*arguments: object, cwd: Path | None = None, **variables: str) -> Ran:
    """Run a command as a process."""
    done = subprocess.run(
        [sys.executable, "-m", "identic.node.cli.main", *(str(a) for a in arguments)],
        capture_output=True,
        text=True,
        check=False,
        cwd=cwd,
        env={**os.environ, "COLUMNS": "100", **variables},
    )
    return Ran(done.returncode, done.stdout, done.stderr)
