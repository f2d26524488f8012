"""What a step leaves behind in Python: attributes of modules, random numbers (CAP-2).

A program follows tensors only. Attributes that a step sets are put back when tracing is over,
since they would hold tensors without values; a number, text or length that is another one
after every run is refused, since the program would stay with the first.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import Any

import numpy as np
from torch import nn

from identic.node.capture.places import is_users, place_of_line
from identic.protocol.graph import Place
from identic.protocol.lowering import CaptureError

_TORCHS_OWN = frozenset(vars(nn.Module()))
_PLAIN = (bool, int, float, str, bytes, type(None))
_DEPTH = 4


def _attributes(module: nn.Module) -> dict[str, Any]:
    """The attributes that a user's code gave a module."""
    return {n: v for n, v in vars(module).items() if n not in _TORCHS_OWN or n == "training"}


@contextmanager
def restored(model: nn.Module) -> Iterator[None]:
    """Put the attributes of all modules back at the end, their contents, and gradients."""
    modules = list(model.modules())
    before = [_attributes(m) for m in modules]
    contents = [(v, v.copy()) for a in before for v in a.values() if type(v) in (list, dict, set)]
    gradients = [(p, p.grad) for p in model.parameters()]
    try:
        yield
    finally:
        for parameter, gradient in gradients:
            parameter.grad = gradient
        for module, attributes in zip(modules, before, strict=True):
            for name in _attributes(module).keys() - attributes.keys():
                del vars(module)[name]
            vars(module).update(attributes)
        for container, content in contents:
            container.clear()
            if isinstance(container, list):
                container.extend(content)
            else:
                container.update(content)


def plain_state(model: nn.Module, loss: Callable[..., Any]) -> dict[str, object]:
    """Numbers, texts and lengths that the step can reach by name, in comparable form."""
    found = {}
    for path, module in model.named_modules():
        for name, value in _attributes(module).items():
            found[f"attribute {'.'.join(p for p in (path, name) if p)}"] = _plain(value, _DEPTH)
    for name, value in _reached(loss).items():
        found[f"variable {name}"] = _plain(value, _DEPTH)
    return found


def _reached(loss: Callable[..., Any]) -> dict[str, Any]:
    """Global and enclosing variables that a function names, and attributes of its object."""
    owner = getattr(loss, "__self__", None)
    found = dict(vars(owner)) if owner is not None and hasattr(owner, "__dict__") else {}
    code, scope = getattr(loss, "__code__", None), getattr(loss, "__globals__", {})
    if code is not None:
        found |= {n: scope[n] for n in code.co_names if n in scope}
        cells = zip(code.co_freevars, getattr(loss, "__closure__", None) or (), strict=False)
        for name, cell in cells:
            try:
                found[name] = cell.cell_contents
            except ValueError:  # not filled yet
                continue
    return found


def _plain(value: Any, depth: int) -> object:
    """The comparable part of a value: itself, or that of its items; other objects have none."""
    if type(value) in _PLAIN:
        return value
    if depth and isinstance(value, list | tuple):
        return [_plain(v, depth - 1) for v in value]
    if depth and isinstance(value, Mapping):
        return {str(k): _plain(v, depth - 1) for k, v in value.items()}
    if isinstance(value, set | frozenset):
        return len(value)
    return None


def check_settled(
    before: Mapping[str, object], after: Mapping[str, object], place: Place | None
) -> None:
    """Refuse plain state that one more run of the step changed."""
    for name, value in after.items():
        old = before.get(name)
        # CAP-2: a step leaves no number behind that changes from one run to the next.
        if name not in before or repr(old) != repr(value):
            raise CaptureError(
                "CAP-2",
                f"the step changes {name}, from {_short(old)} to {_short(value)}; "
                "a program would not.",
                advice="keep it in a buffer (register_buffer), or out of the step.",
                place=place,
            )


def _short(value: object) -> str:
    text = f"{len(value)} items" if isinstance(value, list | dict) else repr(value)
    return text[:40]


# ---- random numbers of Python and NumPy -----------------------------------------------------


def _generators() -> tuple[object, ...]:
    """Where the generators stand that a program does not know."""
    legacy: Any = np.random.get_state(legacy=True)  # noqa: NPY002 - the global generator is the point
    numbers = (str(legacy[0]), legacy[1].tobytes(), legacy[2])
    return random.getstate(), numbers


def check_chance(run: Callable[[], object]) -> None:
    """Run a step, and refuse it if it draws random numbers that are not its own.

    Raises:
        CaptureError: Python's or NumPy's global generator has moved (CAP-2), at the line that
            drew from it.
    """
    before = _generators()
    run()
    after = _generators()
    names = ("Python's random", "numpy.random")
    moved = [n for n, a, b in zip(names, before, after, strict=True) if a != b]
    # CAP-2: every random number of a step comes from the step's own generator.
    if moved:
        raise CaptureError(
            "CAP-2",
            f"the step draws from {moved[0]}, which no program can do.",
            advice="use torch's random operations; for a choice, torch.where over torch.rand.",
            place=line_of_change(run, _generators),
        )


def line_of_change(run: Callable[[], object], probe: Callable[[], object]) -> Place | None:
    """The first line of the user's files after which ``probe`` gives something else."""
    found: list[Place] = []
    at: dict[FrameType, int] = {}
    state = [probe()]

    def look(frame: FrameType, event: str, _: object) -> Any:
        if found or not is_users(frame.f_code.co_filename):
            return None
        now = probe()
        if now != state[0]:
            line = at.get(frame, frame.f_lineno)
            found.append(place_of_line(frame.f_code.co_filename, line))
        if event == "line":
            at[frame] = frame.f_lineno
        return look

    previous = sys.gettrace()
    sys.settrace(look)
    try:
        run()
    finally:
        sys.settrace(previous)
    return found[0] if found else None
