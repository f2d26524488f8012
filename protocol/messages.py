"""The one envelope that changes protocol state: a statement, its signer and the signature.

The body is the canonical encoding of a statement; which statements exist is said by whoever
judges them. The envelope is itself a value of the encoding, so that a log entry, a transcript
and a receipt hold it unchanged and anyone can verify it without the network.

Invariants:

* two envelopes with one ``key`` say the same thing; a log holds at most one of them (MSG-3).
* an envelope that was only decoded is not verified yet; see ``proofs.signatures``.

Spec: docs/spec/network.md (MSG).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from identic.protocol.encoding import encode
from identic.protocol.errors import Code, ProtocolError
from identic.protocol.hashing import Domain, tagged
from identic.protocol.ids import Digest, PartyId, Signature

MAX_BODY_BYTES: Final = 1 << 20
"""Longest body of a message, in bytes (MSG-4)."""


@dataclass(frozen=True)
class Said:
    """Who says what; its digest names a message whatever its signature looks like.

    Attributes:
        party: the signer.
        body: canonical encoding of the statement.
    """

    party: PartyId
    body: bytes


@dataclass(frozen=True)
class SignedMessage:
    """A statement with its signer and signature.

    Attributes:
        body: canonical encoding of the statement; at most ``MAX_BODY_BYTES``.
        signature: of ``party`` over the body under the message domain (MSG-1).
        party: the signer.
    """

    body: bytes
    signature: Signature
    party: PartyId

    def __post_init__(self) -> None:
        # MSG-4: the body of a message has at most MAX_BODY_BYTES.
        if len(self.body) > MAX_BODY_BYTES:
            raise ProtocolError(
                "MSG-4",
                Code.TOO_LARGE,
                got=f"a body of {len(self.body)} bytes",
                want=f"at most {MAX_BODY_BYTES} bytes",
            )

    @property
    def key(self) -> Digest:
        """Digest of who says what; the signature is left out, since one may be remade."""
        return tagged(Domain.MESSAGE, encode(Said(self.party, self.body)))
