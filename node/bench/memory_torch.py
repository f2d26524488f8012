"""A process that writes down a job's program, or runs its steps in eager torch."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import numpy as np
import torch

from identic.node.bench import steps
from identic.node.bench.memory import STEPS, Start
from identic.node.capture import capture, load_job
from identic.protocol.encoding import encode


def _capture(file: str, folder: Path) -> None:
    """The program and its data; the other side makes a state of its own."""
    captured = capture(load_job(f"{file}:job"))
    (folder / "program").write_bytes(encode(captured.program))
    for number, array in enumerate(captured.data):
        np.save(folder / f"{number}.npy", array)
    sys.stdout.write("written\n")


def _steps(name: str, file: str) -> None:
    """Steps as ``steps.EagerTraining`` makes them; prints the peak of the memory."""
    torch.set_num_threads(1)
    # What the job imports is no memory of its steps.
    runpy.run_path(file)
    start = Start.here()
    training = steps.EagerTraining(name)
    for _ in range(STEPS):
        training.step()
    sys.stdout.write(f"{start.peak()}\n")


def main(what: str, name: str, folder: Path) -> None:
    """``capture`` or ``steps``; prints nothing where the job cannot be made."""
    if not steps.makes(name):
        return
    file = steps.file_of(name)
    _capture(str(file), folder) if what == "capture" else _steps(name, str(file))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
