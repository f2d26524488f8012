"""What went wrong while a user's step was traced, in the user's terms."""

from __future__ import annotations

from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    UnsupportedOperatorException,
)
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode

from identic.node.capture.places import place_of_error
from identic.protocol.lowering import CaptureError


def explain(error: BaseException) -> CaptureError:
    """The refusal that an exception raised by tracing stands for.

    The refusal carries the deepest line of the user's files that the exception passed.
    """
    place = place_of_error(error)
    cause = error
    while not isinstance(cause, _KNOWN) and cause.__cause__ is not None:
        cause = cause.__cause__
    if isinstance(cause, CaptureError):
        return CaptureError(
            cause.rule, cause.problem, advice=cause.advice, place=place, operator=cause.operator
        )
    if isinstance(cause, DataDependentOutputException | GuardOnDataDependentSymNode):
        # CAP-2: a program is the same for every step, whatever the tensors hold.
        return CaptureError(
            "CAP-2",
            "the step's control flow depends on the value of a tensor; "
            "a program is the same for every step.",
            advice="use torch.where(condition, a, b), or move the check outside the step.",
            place=place,
            operator=str(getattr(cause, "func", "")),
        )
    if isinstance(cause, DynamicOutputShapeException):
        return CaptureError(
            "CAP-2",
            f"the shape of {cause.func} depends on the values of a tensor.",
            advice="keep the shape and mask values instead, with torch.where.",
            place=place,
            operator=str(cause.func),
        )
    if isinstance(cause, UnsupportedOperatorException):
        return CaptureError(
            "CAP-4",
            f"{cause.func} is not supported in a step.",
            advice="write it with other operations; docs/spec/capture.md lists those that capture.",
            place=place,
            operator=str(cause.func),
        )
    return CaptureError(
        "CAP-1",
        f"the step raises {type(error).__name__}: {' '.join(str(error).split())[:300]}",
        advice="run the loss function once on a batch in plain torch; it must work there first.",
        place=place,
    )


_KNOWN = (
    CaptureError,
    GuardOnDataDependentSymNode,
    DataDependentOutputException,
    DynamicOutputShapeException,
    UnsupportedOperatorException,
)
