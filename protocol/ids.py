"""Distinct types for identifiers, counts and units.

Each is an ``int`` or ``bytes`` whose constructor checks its range, so that a value of the
wrong kind or size cannot cross a module border unnoticed.
"""

from __future__ import annotations

from typing import ClassVar, Self

from identic.protocol.errors import Code, ProtocolError


class Unsigned(int):
    """An integer in ``[0, 2**64)``; encoded as eight bytes, big end first (ENC-2)."""

    def __new__(cls, value: int) -> Self:
        """Refuse a value outside the range."""
        # ENC-2: an unsigned integer lies in [0, 2**64).
        if not 0 <= value < 1 << 64:
            raise ProtocolError(
                "ENC-2", Code.OUT_OF_RANGE, got=value, want=f"{cls.__name__} in [0, 2^64)"
            )
        return super().__new__(cls, value)


class StepIndex(Unsigned):
    """Index of a training step, or of the state before it; state 0 is the initial state."""


class TraceIndex(Unsigned):
    """Position in the trace of one step: loads, then operator results, then the new state."""


class Count(Unsigned):
    """How many of something."""


class Millis(Unsigned):
    """Time in milliseconds: a duration, or since 1970-01-01 UTC where the field says so."""


class Credits(Unsigned):
    """Money in millionths of a credit."""


class FixedBytes(bytes):
    """Bytes of one fixed length."""

    SIZE: ClassVar[int] = 0

    def __new__(cls, value: bytes) -> Self:
        """Refuse a value of another length."""
        # ENC-4: bytes of a fixed length have exactly that length.
        if len(value) != cls.SIZE:
            raise ProtocolError(
                "ENC-4",
                Code.MALFORMED,
                got=f"{len(value)} bytes",
                want=f"{cls.__name__} of {cls.SIZE} bytes",
            )
        return super().__new__(cls, value)

    def __str__(self) -> str:
        return self.hex()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.hex()[:12]}…)"

    @property
    def short(self) -> str:
        """First and last hex digits, for screens."""
        return f"{self.hex()[:4]}…{self.hex()[-4:]}"


class Digest(FixedBytes):
    """A SHA-256 digest."""

    SIZE: ClassVar[int] = 32


class JobId(Digest):
    """Digest of the job's terms."""

    @property
    def name(self) -> str:
        """How people call the job: ``j-`` and six hex digits."""
        return f"j-{self.hex()[:6]}"


class PartyId(FixedBytes):
    """An Ed25519 public key: the identity of a party."""

    SIZE: ClassVar[int] = 32


class Signature(FixedBytes):
    """An Ed25519 signature."""

    SIZE: ClassVar[int] = 64
