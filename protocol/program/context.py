"""The context of a shard's gradient section: what random numbers and the sampler depend on.

``int64[6]`` = job key (2 words), step key (2 words), step, shard. A key is the first eight
bytes of a digest as two 32-bit words, the first four bytes (big end first) being word 0.

Spec: docs/spec/program.md (PRG-15).
"""

from __future__ import annotations

from identic.protocol.hashing import Domain, tagged
from identic.protocol.ids import Unsigned


def _key(*numbers: int) -> tuple[int, int]:
    payload = b"".join(Unsigned(n).to_bytes(8, "big") for n in numbers)
    digest = tagged(Domain.RANDOM, payload)
    return int.from_bytes(digest[:4], "big"), int.from_bytes(digest[4:8], "big")


def context(seed: int, step: int, shard: int) -> tuple[int, ...]:
    """The six numbers of shard ``shard`` of the step that follows state ``step``."""
    # PRG-15: the job key comes from the seed, the step key from the seed and the step.
    return (*_key(seed), *_key(seed, step), step, shard)


def context_bytes(seed: int, step: int, shard: int) -> bytes:
    """The context as the bytes of its tensor."""
    numbers = context(seed, step, shard)
    return b"".join(n.to_bytes(8, "little", signed=True) for n in numbers)
