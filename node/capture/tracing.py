"""Two passes of tracing: a torch function becomes a graph of plain data.

The first pass records what the function and its gradient do, with random operations drawn
from the step's generator. The second makes it functional (no writes in place) and replaces
composite operators by their fixed sequences (CAP-9).
"""

from __future__ import annotations

import logging
import operator
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.func import functionalize
from torch.fx import GraphModule, Interpreter
from torch.fx import Node as FxNode
from torch.fx import traceback as fx_traceback
from torch.fx.experimental.proxy_tensor import make_fx
from torch.nn.attention import SDPBackend, sdpa_kernel

from identic.node.capture import decompositions
from identic.node.capture.attributes import check_chance, check_settled, line_of_change
from identic.node.capture.places import current
from identic.node.capture.randomness import Randomness
from identic.protocol.dtypes import DType
from identic.protocol.graph import Argument, Graph, Node, Ref
from identic.protocol.lowering import CaptureError
from identic.protocol.tensors import TensorType

aten = torch.ops.aten

DTYPES = {
    torch.float32: DType.FLOAT32,
    torch.int64: DType.INT64,
    torch.int32: DType.INT32,
    torch.uint8: DType.UINT8,
    torch.bool: DType.BOOL,
    torch.bfloat16: DType.BFLOAT16,
}

_IGNORED_KEYWORDS = {"layout", "device", "pin_memory", "memory_format", "non_blocking"}


@dataclass(frozen=True)
class Traced:
    """A graph and the tensors that tracing found in the function itself."""

    graph: Graph
    """Inputs: those of the function, then one for each constant."""
    constants: tuple[NDArray[Any], ...]


def trace(
    function: Callable[..., Sequence[torch.Tensor]],
    inputs: Sequence[torch.Tensor],
    plain: Callable[[], Mapping[str, object]] = dict,
) -> Traced:
    """Trace ``function(*inputs)``; the first input is the context that seeds random numbers.

    Args:
        function: what to trace.
        inputs: tensors of the types it is to have.
        plain: numbers and texts that the function can reach and must not go on changing.

    Raises:
        CaptureError: an operation cannot be part of a program; other errors are the
            function's own and pass through.
    """
    # Types without values: the mode has no symbols, so whatever needs a value is an error here.
    # The tracer knows inputs by identity, so each is a tensor of its own.
    mode = FakeTensorMode(allow_fallback_kernels=True, allow_non_fake_inputs=True)
    with mode:
        own = [torch.empty(tuple(x.shape), dtype=x.dtype, device="cpu") for x in inputs]
    with fx_traceback.preserve_node_meta(), math_attention():
        first = _record_twice(function, own, plain, inputs)
        second = make_fx(
            functionalize(_Replay(first).run),
            decomposition_table=decompositions.table(),
            tracing_mode="fake",
            _allow_non_fake_inputs=True,
        )(*own)
    second.graph.eliminate_dead_code()
    return _Reader(second).read()


def _record_twice(
    function: Callable[..., Sequence[torch.Tensor]],
    inputs: Sequence[torch.Tensor],
    plain: Callable[[], Mapping[str, object]],
    given: Sequence[torch.Tensor],
) -> GraphModule:
    """The first pass, twice: what does not stay the same is no program."""
    made: list[GraphModule] = []

    def run() -> None:
        made.append(_record(function, inputs))

    check_chance(run)
    _check_own(made[0], given)
    first, before = made[0], plain()
    run()
    after = plain()
    _check_repeats(first, made[-1])
    if repr(before) != repr(after):
        check_settled(before, after, line_of_change(run, lambda: repr(plain())))
    return first


def _record(
    function: Callable[..., Sequence[torch.Tensor]], inputs: Sequence[torch.Tensor]
) -> GraphModule:
    """The first pass: what the function does."""
    randomness = Randomness()

    def seeded(*arguments: torch.Tensor) -> list[torch.Tensor]:
        with randomness.run(arguments[0]):
            return list(function(*arguments))

    recorded = make_fx(
        seeded,
        decomposition_table={
            **randomness.table(),
            aten.native_batch_norm.default: _batch_norm,
        },
        tracing_mode="fake",
        _allow_non_fake_inputs=True,
    )(*inputs)
    recorded.graph.eliminate_dead_code()
    _check_carried(recorded)
    return recorded


def _check_own(recorded: GraphModule, inputs: Sequence[torch.Tensor]) -> None:
    """Refuse a step that reaches the model's tensors by another way than the model."""
    given = {x.untyped_storage()._cdata for x in inputs}  # noqa: SLF001 - identity of the memory
    for node in recorded.graph.nodes:
        value = getattr(recorded, str(node.target)) if node.op == "get_attr" else None
        if not isinstance(value, torch.Tensor):
            continue
        own = value.untyped_storage()._cdata in given  # noqa: SLF001
        # CAP-2: what a step trains, or may write, is never a constant of it.
        if own or value.requires_grad:
            user = next(iter(node.users), node)
            whose = "of the model" if own else "that requires a gradient"
            raise CaptureError(
                "CAP-2",
                f"a tensor {list(value.shape)} {whose} is reached through a variable; "
                "the program would keep its first value.",
                advice="reach it through the model that the loss function is given.",
                place=current(user.meta),
            )


def _check_carried(recorded: GraphModule) -> None:
    """Refuse a step that reads a tensor which an earlier run of it made."""
    for node in recorded.graph.nodes:
        value = getattr(recorded, str(node.target)) if node.op == "get_attr" else None
        # CAP-2: nothing but parameters and buffers goes from one step to the next.
        if isinstance(value, FakeTensor):
            user = next(iter(node.users), node)
            raise CaptureError(
                "CAP-2",
                f"a tensor {list(value.shape)} that one run of the step made is read by the next.",
                advice="keep it in a buffer (register_buffer), or make it before the capture.",
                place=current(user.meta),
            )


def _check_repeats(first: GraphModule, again: GraphModule) -> None:
    """Refuse a step that is another one when it is traced again."""
    # CAP-2: tracing a step twice gives the same graph.
    for node, other in zip_longest(first.graph.nodes, again.graph.nodes):
        if node is None or other is None or _written(first, node) != _written(again, other):
            raise CaptureError(
                "CAP-2",
                "the step differs from one tracing to the next.",
                advice="use torch's random operations, not Python's, and no clock or counter.",
                place=current((node or other).meta),
            )


def _written(module: GraphModule, node: FxNode) -> tuple[object, ...]:
    """A node as comparable data."""
    constant = b""
    if node.op == "get_attr":
        constant = as_array(getattr(module, str(node.target))).tobytes()
    return node.op, str(node.target), repr(node.args), repr(node.kwargs), constant


@contextmanager
def math_attention() -> Iterator[None]:
    """Attention as plain matrix products, and no kernels of other libraries."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with sdpa_kernel(SDPBackend.MATH), torch.backends.mkldnn.flags(enabled=False):
            yield


@contextmanager
def uncompiled() -> Iterator[None]:
    """Functions and modules under torch.compile run as they are written, and torch logs nothing.

    What goes wrong is told as a refusal; the traces that torch writes besides tell nobody more.
    """
    log = logging.getLogger("torch._subclasses.fake_tensor")
    before, log.disabled = log.disabled, True
    with (
        torch.compiler.set_stance("force_eager"),
        torch._dynamo.config.patch(error_on_nested_fx_trace=False),  # noqa: SLF001 - no other way
    ):
        try:
            yield
        finally:
            log.disabled = before


def _batch_norm(
    x: torch.Tensor,
    weight: Any,
    bias: Any,
    mean: Any,
    var: Any,
    training: bool,
    momentum: float,
    eps: float,
) -> Any:
    """Batch norm under the schema that says what it writes."""
    if mean is None:
        return aten._native_batch_norm_legit.no_stats(  # noqa: SLF001
            x, weight, bias, training, momentum, eps
        )
    return aten._native_batch_norm_legit(  # noqa: SLF001
        x, weight, bias, mean, var, training, momentum, eps
    )


class _Replay(Interpreter):
    """The first pass's operations run again, with the place of one that has no sequence."""

    def run_node(self, n: FxNode) -> Any:
        """Run one operation."""
        try:
            return super().run_node(n)
        except NotImplementedError as error:
            raise CaptureError(
                "CAP-4",
                f"{n.target} is not supported in a step: {error}.",
                advice="write it with other operations; docs/spec/capture.md lists what captures.",
                place=current(n.meta),
                operator=str(n.target),
            ) from error


class _Reader:
    """Turns a traced module into plain data."""

    def __init__(self, module: GraphModule) -> None:
        self.module = module
        self.values: dict[FxNode, Argument] = {}
        self.types: list[TensorType] = []
        self.nodes: list[Node] = []
        self.constants: list[NDArray[Any]] = []
        self.parts: dict[FxNode, tuple[Argument, ...]] = {}

    def read(self) -> Traced:
        """Inputs and constants first, then the operations."""
        everything = list(self.module.graph.nodes)
        inputs = [n for n in everything if n.op == "placeholder"]
        for node in inputs:
            self._input(node, self._type(node, node.meta["val"]))
        for node in everything:
            if node.op == "get_attr":
                value = getattr(self.module, str(node.target))
                if value.dtype == torch.bfloat16:
                    raise self._element_type(node, value.dtype)
                self.constants.append(as_array(value))
                self._input(node, self._type(node, value))
        count = len(self.types)
        outputs: tuple[int, ...] = ()
        for node in everything:
            if node.op == "call_function":
                self._call(node)
            elif node.op == "output":
                outputs = tuple(self._output(o) for o in node.args[0])
        return Traced(
            Graph(tuple(self.types[:count]), tuple(self.nodes), outputs), tuple(self.constants)
        )

    def _input(self, node: FxNode, kind: TensorType) -> None:
        self.values[node] = Ref(len(self.types))
        self.types.append(kind)

    def _output(self, output: Any) -> int:
        value = self.values[output]
        if not isinstance(value, Ref):
            raise TypeError(f"output {output} is not a tensor")
        return value.index

    def _call(self, node: FxNode) -> None:
        if node.target is operator.getitem:
            source, index = node.args
            raise self._unsupported(
                source if isinstance(source, FxNode) else node, f"result {index} of several"
            )
        value = node.meta["val"]
        if not isinstance(value, torch.Tensor):
            if node.users:
                return
            raise self._unsupported(node, "its result is not one tensor")
        arguments = tuple(self._argument(node, a) for a in node.args)
        keywords = tuple(
            (name, self._argument(node, a))
            for name, a in node.kwargs.items()
            if name not in _IGNORED_KEYWORDS
        )
        kind = self._type(node, value)
        self.values[node] = Ref(len(self.types))
        self.types.append(kind)
        self.nodes.append(Node(str(node.target), arguments, keywords, kind, current(node.meta)))

    def _argument(self, node: FxNode, value: Any) -> Argument:
        if isinstance(value, FxNode):
            return self.values[value]
        if value is None or isinstance(value, bool | int | float | str):
            return value
        if isinstance(value, list | tuple):
            return tuple(self._argument(node, item) for item in value)
        if isinstance(value, torch.dtype):
            return self._dtype(node, value)
        if isinstance(value, torch.device | torch.layout | torch.memory_format):
            return str(value)
        raise self._unsupported(node, f"argument of type {type(value).__name__}")

    def _type(self, node: FxNode, value: torch.Tensor) -> TensorType:
        return TensorType.of(self._dtype(node, value.dtype), tuple(value.shape))

    def _dtype(self, node: FxNode, dtype: torch.dtype) -> DType:
        if dtype not in DTYPES:
            raise self._element_type(node, dtype)
        return DTYPES[dtype]

    def _element_type(self, node: FxNode, dtype: torch.dtype) -> CaptureError:
        # CAP-3: tensors have the element types of programs.
        return CaptureError(
            "CAP-3",
            f"{node.target} makes elements of type {dtype}.",
            advice="use float32, int64, int32, uint8 or bool; a program has no others.",
            place=current(node.meta),
            operator=str(node.target),
        )

    def _unsupported(self, node: FxNode, problem: str) -> CaptureError:
        return CaptureError(
            "CAP-4",
            f"{node.target} is not supported in a step: {problem}.",
            advice="write it with other operations; docs/spec/capture.md lists those that capture.",
            place=current(node.meta),
            operator=str(node.target),
        )


def as_array(tensor: torch.Tensor) -> NDArray[Any]:
    """The tensor's elements as a new contiguous array."""
    return np.array(tensor.detach().cpu().numpy(), order="C", copy=True)
