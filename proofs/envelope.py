"""Messages under their sender's signature.

Spec: docs/spec/network.md (MSG-1, MSG-2), docs/spec/jobs.md.
"""

from __future__ import annotations

from identic.proofs.signatures import SigningKey, sign, verify
from identic.protocol.hashing import Domain
from identic.protocol.ids import PartyId, Unsigned
from identic.protocol.job.messages import Message, SignedMessage, Statement


def seal(key: SigningKey, network: PartyId, nonce: int, statement: Statement) -> SignedMessage:
    """Sign a statement for the network of one coordinator.

    Args:
        key: the sender's.
        network: identity of the coordinator.
        nonce: a number that the sender has not used with an equal statement; repeating a
            message on purpose means to use the same.
        statement: what is said.
    """
    message = Message(network, key.party, Unsigned(nonce), statement)
    return SignedMessage(message, sign(key, Domain.MESSAGE, message))


def check_seal(signed: SignedMessage) -> Message:
    """Return the message when the signature is its sender's.

    Raises:
        ProtocolError: it is not (COM-9).
    """
    message = signed.message
    verify(message.party, Domain.MESSAGE, message, signed.signature)
    return message
