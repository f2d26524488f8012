"""The self-test as a line of ``identic doctor``, on every vector path of this machine."""

from __future__ import annotations

from collections.abc import Sequence

from identic.kernels import _native
from identic.kernels.cpu_backend import CpuBackend
from identic.node.cli.screens.report import CheckLine, Outcome
from identic.node.execution.selftest import GOLDEN, cases, digest


def check(paths: Sequence[str]) -> CheckLine:
    """Whether every path gives the known bits."""
    before, wrong = _native.path(), []
    try:
        for path in paths:
            _native.set_path(path)
            if digest(CpuBackend()) != GOLDEN:
                wrong.append(path)
    finally:
        _native.set_path(before)
    if wrong:
        remedy = "this machine would lose every dispute; report processor and compiler"
        return CheckLine("kernels", Outcome.NO, f"wrong bits on {', '.join(wrong)}", remedy)
    text = f"{len(cases())} operators give the known bits on every path"
    return CheckLine("kernels", Outcome.FINE, text)
