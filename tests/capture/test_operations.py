"""Every operation that captures computes what torch computes, and so does its gradient."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from identic.kernels.cpu_backend import CpuBackend
from identic.node.capture.tracing import trace
from identic.protocol.dtypes import DType
from identic.protocol.lowering import Builder, constants, lower
from identic.protocol.ops import TABLE
from identic.protocol.program.types import CONTEXT_TYPE, Section
from identic.protocol.tensors import TensorType
from tests.capture.interpreter import TorchBackend
from tests.capture.operations import GROUPS, Operation

pytestmark = pytest.mark.long

SHAPE = (8, 12)


def both(operations: Sequence[Operation], x: Tensor) -> list[Tensor]:
    """Results of all operations, then the gradient of each that has one."""
    results, gradients = [], []
    for operation in operations:
        leaf = x.detach().requires_grad_()
        result = operation(leaf)
        results.append(result.detach())
        if result.requires_grad:
            weight = torch.cos(torch.arange(result.numel()).to(x.dtype)).view(result.shape)
            (gradient,) = torch.autograd.grad((result * weight).sum(), leaf)
            gradients.append(gradient)
    return [*results, *gradients]


@dataclass(frozen=True)
class Lowered:
    """A section, its constants, and the numbers that its float32 constants were rounded from."""

    section: Section
    constants: tuple[NDArray[Any], ...]
    exact: dict[int, float]

    def calls(self) -> list[Any]:
        """The calls of the instructions, types inferred again."""
        types = list(self.section.inputs)
        made = []
        for i in self.section.instructions:
            call = TABLE[i.op].call(tuple(types[n] for n in i.inputs), i.attributes)
            types.append(call.output)
            made.append(call)
        return made

    def run(self, x: Tensor, *, real: torch.dtype | None) -> list[Tensor]:
        """Results by torch in the element type ``real``, or by the kernels."""
        inputs = [np.zeros(6, np.int64), x.numpy(), *self.constants]
        values = [torch.from_numpy(np.array(a)) for a in inputs]
        if real is not None:
            values = [v.to(real) if v.is_floating_point() else v for v in values]
        torchs = TorchBackend(real or torch.float32, self.exact)
        for i, call in zip(self.section.instructions, self.calls(), strict=True):
            given = [values[n] for n in i.inputs]
            if real is None:
                ours = CpuBackend().run(call, [v.numpy() for v in given])
                values.append(torch.from_numpy(ours))
            else:
                values.append(torchs.compute(call, given))
        return [values[o] for o in self.section.outputs]


def lowered(operations: Sequence[Operation], patch: pytest.MonkeyPatch) -> Lowered:
    """Trace and lower a group of operations."""
    exact: dict[int, float] = {}
    rounded = constants.float32_word

    def remember(value: float) -> int:
        word = rounded(value)
        # A number that is a float32 already may stand for one that was rounded before.
        if word not in exact or float(np.float32(value)) != value:
            exact[word] = value
        return word

    patch.setattr(constants, "float32_word", remember)
    traced = trace(
        lambda _, x: both(operations, x),
        [torch.zeros(6, dtype=torch.int64), torch.zeros(SHAPE)],
    )
    kinds = [CONTEXT_TYPE, TensorType.of(DType.FLOAT32, SHAPE)]
    kinds += [TensorType.of(DType.from_label(a.dtype.name), a.shape) for a in traced.constants]
    assert tuple(kinds) == traced.graph.inputs
    builder = Builder(kinds)
    section, _ = builder.finish(lower(traced.graph, builder, range(len(kinds))))
    return Lowered(section, traced.constants, exact)


def numbers() -> Tensor:
    """Numbers around zero, all different and none near another's place in an order."""
    order = torch.randperm(96, generator=torch.Generator().manual_seed(5))
    return ((order - 47.25) / 24).view(SHAPE)


def close(ours: Tensor, theirs: Tensor, tolerance: float) -> bool:
    """Whether two tensors agree relative to the largest number; integers exactly."""
    if not theirs.is_floating_point():
        return bool((ours == theirs).all())
    scale = 1 + float(theirs.abs().max())
    return float((ours - theirs).abs().max()) <= tolerance * scale


@pytest.mark.parametrize("name", GROUPS)
def test_cap_9__operations_and_their_gradients_are_torchs(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    operations = GROUPS[name]
    made = lowered(operations, monkeypatch)
    x = numbers()
    wide = x.double()
    want = both(operations, wide)
    exact = made.run(x, real=torch.float64)
    rounded = made.run(x, real=None)
    assert len(want) == len(exact) == len(rounded)
    for number, (truth, one, other) in enumerate(zip(want, exact, rounded, strict=True)):
        place = f"result {number} of {len(operations)}"
        assert one.shape == other.shape == truth.shape, place
        # Torch itself has some constants in binary32, in its functions of binary64 too.
        assert close(one, truth, 1e-7), place
        assert close(other, truth, 1e-4), place


def test_cap_23__interpolation_is_a_sum_of_weighted_places_axis_by_axis(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def smaller(x: Tensor) -> Tensor:
        return torch.nn.functional.interpolate(x.view(1, 1, 8, 12), (3, 5), mode="bilinear")

    x = numbers()
    made, *_ = lowered([smaller], monkeypatch).run(x, real=None)
    want = x.numpy().reshape(1, 1, 8, 12)
    for axis, before, after in ((3, 12, 5), (2, 8, 3)):
        sources = [(i + 0.5) * before / after - 0.5 for i in range(after)]
        shape = [after if a == axis else 1 for a in range(4)]
        share = np.array([s - int(s) for s in sources]).reshape(shape)
        low, high = (want.take([int(s) + n for s in sources], axis) for n in (0, 1))
        want = low * (1 - share).astype(np.float32) + high * share.astype(np.float32)
    assert made.numpy().tobytes() == want.tobytes()
