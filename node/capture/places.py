"""Where in the user's source a traced operation comes from.

While the user's function runs, every call of a torch function sets the current place: the
deepest frame of the user's own files, and the path of the module at work. Autograd nodes
made by the call remember it, and set it again when they run backwards, so that the
operations of a gradient carry the place of the forward line they belong to. The tracer
copies the current place onto each node that it records.
"""

from __future__ import annotations

import linecache
import sys
import sysconfig
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

import torch
from torch.fx import traceback as fx_traceback
from torch.overrides import TorchFunctionMode

from identic.protocol.graph import Place
from identic.protocol.ids import Count
from identic.protocol.lowering import CaptureError

_SEPARATOR = "\x1f"
_ROOT = Path(__file__).resolve().parents[2]
_OURS = tuple(str(_ROOT / part) + "/" for part in ("node", "protocol", "kernels", "proofs", "src"))
_LIBRARIES = tuple(
    {
        str(Path(sysconfig.get_paths()[key]).resolve()) + "/"
        for key in ("stdlib", "purelib", "platlib")
    }
)


@cache
def is_users(file: str) -> bool:
    """Whether a source file belongs to the user."""
    if file.startswith("<"):
        return False
    return not str(Path(file).resolve()).startswith((*_OURS, *_LIBRARIES))


def place_of_line(file: str, line: int, module: str = "") -> Place:
    """The place of a line of a source file."""
    return Place(
        Path(file).name, Count(max(line, 0)), linecache.getline(file, line).strip(), module
    )


def place_of_error(error: BaseException) -> Place | None:
    """The deepest line of the user's files that an error passed through."""
    found: Place | None = None
    trace: TracebackType | None = error.__traceback__
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if is_users(file):
            found = place_of_line(file, trace.tb_lineno)
        trace = trace.tb_next
    if isinstance(error, SyntaxError) and error.filename:
        found = place_of_line(error.filename, error.lineno or 0)
    return found


_LEAVING = (torch.Tensor.numpy, torch.Tensor.__array__)


class Places(TorchFunctionMode):
    """Keeps the current place up to date while the user's function runs."""

    def __init__(self, names: Mapping[int, str]) -> None:
        """Args: names: path of each module, by the module's ``id``."""
        super().__init__()
        self._names = names

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Run ``func`` under the place of its caller."""
        del types
        # CAP-3: no operation runs in another element type than its tensors have.
        if torch.is_autocast_enabled("cpu") or torch.is_autocast_enabled("cuda"):
            raise CaptureError(
                "CAP-3",
                "autocast is on; a program computes in float32.",
                advice="leave out torch.autocast for the capture.",
            )
        # CAP-2: tensors have no values while the step is traced.
        if func in _LEAVING:
            raise CaptureError(
                "CAP-2",
                "a tensor becomes a NumPy array; a program is the same whatever the tensors hold.",
                advice="compute with torch's own operations.",
            )
        # CAP-8: random numbers come from the step's generator and from no other.
        if (kwargs or {}).get("generator") is not None:
            raise CaptureError(
                "CAP-8",
                "a torch.Generator of its own draws random numbers in the step.",
                advice="leave out the generator: the step's own gives all nodes the same numbers.",
            )
        place = self._here(sys._getframe(1))  # noqa: SLF001 - the caller's frame is the point
        _set(place)
        result = func(*args, **(kwargs or {}))
        for tensor in _tensors(result):
            _remember(tensor.grad_fn, place)
        return result

    def _here(self, frame: FrameType | None) -> Place:
        """The deepest user line and the deepest module on the stack."""
        line: tuple[str, int] | None = None
        module: str | None = None
        while frame is not None and (line is None or module is None):
            code = frame.f_code
            if line is None and is_users(code.co_filename):
                line = (code.co_filename, frame.f_lineno)
            if module is None and code.co_argcount:
                module = self._names.get(id(frame.f_locals.get(code.co_varnames[0])))
            frame = frame.f_back
        file, number = line or ("", 0)
        return place_of_line(file, number, module or "") if file else Place(module=module or "")


def _tensors(result: Any) -> Iterator[torch.Tensor]:
    if isinstance(result, torch.Tensor):
        yield result
    elif isinstance(result, tuple | list):
        for item in result:
            yield from _tensors(item)


def _set(place: Place) -> None:
    parts = (place.file, str(int(place.line)), place.text, place.module)
    fx_traceback.set_stack_trace([_SEPARATOR.join(parts)])


def current(meta: Mapping[str, Any]) -> Place:
    """The place recorded in a traced node's metadata."""
    parts = str(meta.get("stack_trace") or "").split(_SEPARATOR)
    if len(parts) != 4:
        return Place()
    return Place(parts[0], Count(int(parts[1])), parts[2], parts[3])


def _remember(node: Any, place: Place) -> None:
    """Attach the place to autograd nodes that have none yet."""
    waiting = [node]
    while waiting:
        node = waiting.pop()
        if node is None or "identic" in node.metadata:
            continue
        node.metadata["identic"] = place
        waiting.extend(parent for parent, _ in node.next_functions)


def follow_backward(loss: torch.Tensor) -> None:
    """Make every autograd node behind ``loss`` set its own place when it runs."""
    waiting: list[Any] = [loss.grad_fn]
    seen: set[Any] = set()
    while waiting:
        node = waiting.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        place = node.metadata.get("identic")
        if place is not None:
            node.register_prehook(_setter(place))
        waiting.extend(parent for parent, _ in node.next_functions)


def _setter(place: Place) -> Callable[[Any], None]:
    def set_place(_: Any) -> None:
        _set(place)

    return set_place
