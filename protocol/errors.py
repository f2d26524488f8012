"""Errors, sorted by whose fault they are.

``ProtocolError``: a peer, a file or a program is wrong; it names the rule it breaks, what
was got and what was wanted. ``LocalError``: this machine (disk, device, configuration,
network) cannot do what was asked. Python's own ``RuntimeError`` and ``TypeError`` are left
for misuse inside this code base.
"""

from __future__ import annotations

from enum import StrEnum


class Code(StrEnum):
    """Machine-readable cause of a refusal; the wire carries this word."""

    MALFORMED = "malformed"
    TOO_LARGE = "too_large"
    OUT_OF_RANGE = "out_of_range"
    UNKNOWN = "unknown"
    MISMATCH = "mismatch"
    BAD_SIGNATURE = "bad_signature"
    FORBIDDEN = "forbidden"
    ILLEGAL_MOVE = "illegal_move"
    LATE = "late"
    UNSUPPORTED = "unsupported"
    INSUFFICIENT = "insufficient"
    UNAVAILABLE = "unavailable"
    CANNOT_CAPTURE = "cannot_capture"


class IdenticError(Exception):
    """Root of every error this project raises on purpose."""


class ProtocolError(IdenticError):
    """The other side, or a file, is wrong.

    Attributes:
        rule: id of the rule in ``docs/spec/`` that is broken, such as ``ENC-3``.
        code: cause as one word.
        got: what was found, in words or hex.
        want: what the rule asks for.
    """

    def __init__(self, rule: str, code: Code, *, got: object, want: object) -> None:
        self.rule = rule
        self.code = code
        self.got = str(got)
        self.want = str(want)
        super().__init__(f"got {self.got}, want {self.want} ({rule}, {code})")


class IllegalMove(ProtocolError):
    """An event that the state machine does not allow in its present phase."""

    def __init__(self, rule: str, *, got: object, want: object) -> None:
        super().__init__(rule, Code.ILLEGAL_MOVE, got=got, want=want)


class LocalError(IdenticError):
    """This machine cannot do what was asked.

    Attributes:
        problem: what happened, in words.
        remedy: what the operator can do about it.
    """

    def __init__(self, problem: str, *, remedy: str) -> None:
        self.problem = problem
        self.remedy = remedy
        super().__init__(f"{problem}; {remedy}" if remedy else problem)


class Unsound(LocalError):
    """This machine, or what it has stored, does not give what it must.

    Nothing follows from that about anybody else: whoever meets it cannot tell.
    """
