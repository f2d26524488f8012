"""Frames between a daemon and its worker: a length, a tag, and a canonical encoding.

The daemon asks, the worker replies; ``Train`` has many replies, every other request one.
Both ends are this software, but a worker may die at any byte: a short read is an end.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import ClassVar, Final

from identic.kernels.cuda.device import DeviceFault
from identic.node.execution.forced import ForcedError
from identic.node.execution.playing import GameRecord
from identic.protocol.dispute.moves import Move, Side
from identic.protocol.encoding import Cursor, decode, encode
from identic.protocol.errors import Code, LocalError, ProtocolError, Unsound
from identic.protocol.ids import Count, Digest, StepIndex
from identic.protocol.job.messages import Artifacts, Mark
from identic.protocol.job.terms import JobTerms
from identic.protocol.program.validate import Limits

LENGTH_BYTES = 4
MAX_FRAME_BYTES = 1 << 26


@dataclass(frozen=True)
class Bounds:
    """The largest program that a node runs (PRG-16)."""

    values: Count
    references: Count
    nbytes: Count
    """Most bytes of tensors held at once."""
    flops: Count

    @classmethod
    def of(cls, limits: Limits) -> Bounds:
        """The same limits, to be sent."""
        return cls(
            Count(limits.max_instructions),
            Count(limits.max_references),
            Count(limits.max_bytes),
            Count(limits.max_flops),
        )

    @property
    def limits(self) -> Limits:
        """The same limits, to be checked."""
        return Limits(self.values, self.references, self.nbytes, self.flops)


@dataclass(frozen=True)
class Assignment:
    """The job a worker works on. Sent once, first."""

    TAG: ClassVar[int] = 1
    blobs: str
    """Folder of the blob store."""
    terms: JobTerms
    artifacts: Artifacts
    threads: Count
    vector_path: str
    """``auto`` or the name of a native path."""
    device: str
    """``auto``, ``cpu``, ``cuda`` or ``cuda:N``."""
    keep_every: Count
    """Marks between two stored states, at least 1."""
    disk_bytes: Count
    """Most bytes that the blob store may hold."""
    bounds: Bounds
    forced: ForcedError | None


@dataclass(frozen=True)
class StoredState:
    """Where the state of a mark lies."""

    mark: Count
    blob: Digest


@dataclass(frozen=True)
class OwnRun:
    """What this node has computed of the job so far."""

    roots: tuple[Digest, ...]
    """State roots of marks 0, 1, ..."""
    stored: tuple[StoredState, ...]
    """States to restart from; that of mark 0 is among them."""


@dataclass(frozen=True)
class Train:
    """Execute from the last sound stored state to a later mark."""

    TAG: ClassVar[int] = 2
    own: OwnRun
    """States to start from, with the roots they must have."""
    last: Count
    """Mark to stop at; the job's last one for a whole run."""
    keep: bool
    """Whether to store the states on the way, the last one and the model."""


@dataclass(frozen=True)
class Answer:
    """Choose the next move of a dispute, or none."""

    TAG: ClassVar[int] = 3
    record: GameRecord
    side: Side
    """This node's side."""
    own: OwnRun


@dataclass(frozen=True)
class TraceRoot:
    """Compute the root of one step's trace."""

    TAG: ClassVar[int] = 4
    step: StepIndex
    own: OwnRun


@dataclass(frozen=True)
class Examine:
    """Find out whether a device can be used for a program, before anything is promised."""

    TAG: ClassVar[int] = 5
    blobs: str
    """Folder of the blob store."""
    program: Digest
    """Blob of the program."""
    threads: Count
    vector_path: str
    device: str
    disk_bytes: Count
    bounds: Bounds


Request = Assignment | Train | Answer | TraceRoot | Examine


@dataclass(frozen=True)
class Ready:
    """The assignment is accepted: program, state and data are in memory."""

    TAG: ClassVar[int] = 16
    operators: Count
    path: str
    """Vector path in use."""
    device: str
    """``cpu``, ``cuda:0`` and the like."""
    why: str
    """Why that one, in a few words."""


@dataclass(frozen=True)
class MarkDone:
    """A mark is reached."""

    TAG: ClassVar[int] = 17
    index: Count
    mark: Mark


@dataclass(frozen=True)
class StateStored:
    """The state of a mark lies in the blob store."""

    TAG: ClassVar[int] = 18
    state: StoredState


@dataclass(frozen=True)
class Trained:
    """The mark to stop at is reached."""

    TAG: ClassVar[int] = 19
    state: Digest | None
    """SHA-256 of the stored state at that mark, if states are kept."""
    model: Digest | None
    """SHA-256 of the model file, if states are kept and it is the job's last mark."""


@dataclass(frozen=True)
class Answered:
    """The move, or nothing when none is due."""

    TAG: ClassVar[int] = 20
    move: ChosenMove | None


@dataclass(frozen=True)
class ChosenMove:
    """A move of a dispute."""

    turn: Count
    """The round it is made in."""
    move: Move


@dataclass(frozen=True)
class TraceRooted:
    """The root of the step's trace."""

    TAG: ClassVar[int] = 21
    root: Digest


@dataclass(frozen=True)
class RefusedByRule:
    """What the worker was given breaks a rule: the job is at fault."""

    TAG: ClassVar[int] = 22
    rule: str
    code: str
    got: str
    want: str

    def error(self) -> ProtocolError:
        """The refusal as it was raised in the worker."""
        return ProtocolError(self.rule, Code(self.code), got=self.got, want=self.want)


class Fault(IntEnum):
    """What is at fault when this machine cannot do something."""

    LOCAL = 0
    UNSOUND = 1
    """The machine, or what it has stored, is not sound."""
    DEVICE = 2
    """A device has gone, or gives other bits than it must."""


KINDS: Final[Mapping[Fault, type[LocalError]]] = {
    Fault.DEVICE: DeviceFault,
    Fault.UNSOUND: Unsound,
    Fault.LOCAL: LocalError,
}
"""The errors of each fault, special ones first."""


@dataclass(frozen=True)
class Unable:
    """This machine cannot do it."""

    TAG: ClassVar[int] = 23
    problem: str
    remedy: str
    fault: Fault = Fault.LOCAL

    @classmethod
    def of(cls, error: LocalError) -> Unable:
        """A failure as it travels."""
        kind = next(fault for fault, made in KINDS.items() if isinstance(error, made))
        return cls(error.problem, error.remedy, kind)

    def error(self) -> LocalError:
        """The failure as it was raised in the worker."""
        return KINDS[self.fault](self.problem, remedy=self.remedy)


@dataclass(frozen=True)
class Examined:
    """The device that would be used."""

    TAG: ClassVar[int] = 24
    device: str
    why: str


Reply = (
    Ready
    | MarkDone
    | StateStored
    | Trained
    | Answered
    | TraceRooted
    | RefusedByRule
    | Unable
    | Examined
)


@dataclass(frozen=True)
class _RequestFrame:
    request: Request


@dataclass(frozen=True)
class _ReplyFrame:
    reply: Reply


def pack_request(request: Request) -> bytes:
    """Length and bytes of a request."""
    return _with_length(encode(_RequestFrame(request)))


def pack_reply(reply: Reply) -> bytes:
    """Length and bytes of a reply."""
    return _with_length(encode(_ReplyFrame(reply)))


def unpack_request(body: bytes) -> Request:
    """Read a request's bytes."""
    return decode(_RequestFrame, body).request


def unpack_reply(body: bytes) -> Reply:
    """Read a reply's bytes."""
    return decode(_ReplyFrame, body).reply


def frame_length(prefix: bytes) -> int:
    """Length of the frame that follows its four-byte prefix."""
    return int.from_bytes(Cursor(prefix).take(LENGTH_BYTES), "big")


def _with_length(body: bytes) -> bytes:
    if len(body) > MAX_FRAME_BYTES:
        raise RuntimeError(f"a frame of {len(body)} bytes")
    return len(body).to_bytes(LENGTH_BYTES, "big") + body
