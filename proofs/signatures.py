"""Signatures: Ed25519 over the canonical encoding of a value, under a domain label.

* What is signed is ``length of label || label || body``; the body is the value's canonical
  encoding, with the class's ``TAG`` in front where it has one (as a union encodes it).
  Protobuf bytes are never signed.
* One kind of value a domain, or a tagged union, so that no value passes for another.
* Keys are made and kept by ``node/``; here a key is 32 secret bytes.

Spec: docs/spec/commitments.md (COM-9).
"""

from __future__ import annotations

from nacl.exceptions import BadSignatureError
from nacl.signing import SigningKey as _SigningKey
from nacl.signing import VerifyKey

from identic.protocol.encoding import encode
from identic.protocol.errors import Code, ProtocolError
from identic.protocol.hashing import Domain
from identic.protocol.ids import FixedBytes, PartyId, Signature


class Secret(FixedBytes):
    """The secret seed of an Ed25519 key."""

    SIZE = 32

    def __repr__(self) -> str:
        return "Secret(…)"

    __str__ = __repr__


class SigningKey:
    """A party's secret key; prints its public part only."""

    def __init__(self, seed: bytes) -> None:
        self._key = _SigningKey(bytes(Secret(seed)))

    @property
    def party(self) -> PartyId:
        """The public key: the party's identity."""
        return PartyId(bytes(self._key.verify_key))

    def sign(self, domain: Domain, body: bytes) -> Signature:
        """Sign bytes under a domain label."""
        return Signature(self._key.sign(_message(domain, body)).signature)

    def __repr__(self) -> str:
        return f"SigningKey({self.party!r})"


def _message(domain: Domain, body: bytes) -> bytes:
    label = domain.value.encode()
    return bytes([len(label)]) + label + body


def body_of(value: object) -> bytes:
    """Bytes of a value that a signature covers: its encoding, after its class's ``TAG`` if any."""
    tag: int | None = getattr(value, "TAG", None)
    return encode(value) if tag is None else bytes([tag]) + encode(value)


def sign(key: SigningKey, domain: Domain, value: object) -> Signature:
    """Sign a value under a domain label (COM-9)."""
    return key.sign(domain, body_of(value))


def verify_bytes(party: PartyId, domain: Domain, body: bytes, signature: Signature) -> None:
    """Check a party's signature over bytes.

    Raises:
        ProtocolError: the signature is not that party's over these bytes (COM-9).
    """
    try:
        VerifyKey(bytes(party)).verify(_message(domain, body), bytes(signature))
    except BadSignatureError as error:
        # COM-9: a statement carries its party's signature, under its own domain.
        raise ProtocolError(
            "COM-9",
            Code.BAD_SIGNATURE,
            got=f"signature {signature.short}",
            want=f"one by {party.short} under {domain.value}",
        ) from error


def verify(party: PartyId, domain: Domain, value: object, signature: Signature) -> None:
    """Check a party's signature over a value; raises as ``verify_bytes`` does."""
    verify_bytes(party, domain, body_of(value), signature)
