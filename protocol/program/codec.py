"""A program as bytes: its digest, and loading one from a stranger."""

from __future__ import annotations

from identic.protocol.encoding import decode, encode
from identic.protocol.errors import Code, ProtocolError
from identic.protocol.hashing import Domain, tagged
from identic.protocol.ids import Digest
from identic.protocol.program.types import Program
from identic.protocol.program.validate import Limits, validate

MAX_PROGRAM_BYTES = 1 << 24
"""Longest encoding of a program that is read."""


def program_digest(program: Program) -> Digest:
    """Digest that job terms and state headers carry (PRG-19)."""
    return tagged(Domain.PROGRAM, encode(program))


def load(data: bytes, limits: Limits) -> Program:
    """Decode and validate a program.

    Raises:
        ProtocolError: the bytes are no canonical encoding (ENC-*), or the program breaks a
            rule or a limit (PRG-*, OP-*).
    """
    # PRG-19: a program's encoding is at most 16 MiB.
    if len(data) > MAX_PROGRAM_BYTES:
        raise ProtocolError(
            "PRG-19",
            Code.TOO_LARGE,
            got=f"{len(data)} bytes",
            want=f"at most {MAX_PROGRAM_BYTES} bytes",
        )
    program = decode(Program, data)
    validate(program, limits)
    return program
