"""Signatures: bound to the party, the domain and every bit of the value."""

import pytest

from identic.proofs.signatures import SigningKey, body_of, sign, verify, verify_bytes
from identic.protocol.commitments import RunHead
from identic.protocol.encoding import encode
from identic.protocol.errors import Code, ProtocolError
from identic.protocol.hashing import Domain, sha256
from identic.protocol.ids import Count, JobId, Signature

KEY = SigningKey(bytes(range(32)))
OTHER = SigningKey(bytes(32))
HEAD = RunHead(JobId(sha256(b"job")), Count(3), sha256(b"root"))


def test_com_9__a_signature_is_one_partys_over_one_value_in_one_domain() -> None:
    signature = sign(KEY, Domain.RUN, HEAD)
    verify(KEY.party, Domain.RUN, HEAD, signature)
    assert signature == sign(KEY, Domain.RUN, HEAD)
    longer = RunHead(HEAD.job, Count(4), HEAD.root)
    cases = [(OTHER.party, Domain.RUN, HEAD), (KEY.party, Domain.RUN, longer)]
    cases += [(KEY.party, domain, HEAD) for domain in Domain if domain is not Domain.RUN]
    for party, domain, value in cases:
        with pytest.raises(ProtocolError) as refused:
            verify(party, domain, value, signature)
        assert (refused.value.rule, refused.value.code) == ("COM-9", Code.BAD_SIGNATURE)


def test_com_9__every_changed_bit_is_refused() -> None:
    body = body_of(HEAD)
    signature = sign(KEY, Domain.RUN, HEAD)
    for bit in range(8 * len(signature)):
        changed = bytearray(signature)
        changed[bit // 8] ^= 1 << bit % 8
        with pytest.raises(ProtocolError):
            verify_bytes(KEY.party, Domain.RUN, body, Signature(bytes(changed)))
    for bit in range(8 * len(body)):
        data = bytearray(body)
        data[bit // 8] ^= 1 << bit % 8
        with pytest.raises(ProtocolError):
            verify_bytes(KEY.party, Domain.RUN, bytes(data), signature)


def test_com_9__the_body_is_the_canonical_encoding() -> None:
    assert body_of(HEAD) == encode(HEAD)


def test_com_9__a_secret_is_not_printed() -> None:
    assert bytes(range(32)).hex()[:12] not in repr(KEY) + str(KEY)
