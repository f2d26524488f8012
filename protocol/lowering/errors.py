"""The refusal of a job that cannot become a program."""

from __future__ import annotations

from identic.protocol.errors import Code, ProtocolError
from identic.protocol.graph import Place


class CaptureError(ProtocolError):
    """A job cannot be captured; it says where, why, and what to do about it.

    Attributes:
        file: name of the user's source file, empty when the fault has no line.
        line: line in it, 0 when there is none.
        text: the source line.
        operator: the operation at fault, such as ``aten.sort.default``; may be empty.
        problem: what is wrong, one sentence.
        advice: what to do instead, one sentence.
    """

    def __init__(
        self,
        rule: str,
        problem: str,
        *,
        advice: str,
        place: Place | None = None,
        operator: str = "",
    ) -> None:
        super().__init__(rule, Code.CANNOT_CAPTURE, got=problem, want=advice)
        place = place or Place()
        self.file = place.file
        self.line = int(place.line)
        self.text = place.text
        self.module = place.module
        self.operator = operator
        self.problem = problem
        self.advice = advice

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}   {self.text}" if self.file else "the job"
        lines = [f"cannot capture {where}", f"  {self.problem} ({self.rule})", f"  {self.advice}"]
        if self.module:
            lines.insert(1, f"  in module {self.module}")
        return "\n".join(lines)
