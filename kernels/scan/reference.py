"""Reference twin of running sums. Rules: OP-30, NUM-9, NUM-13."""

from __future__ import annotations

from identic.kernels.reduce.reference import CHUNK, adder
from identic.kernels.words import Reference, Words
from identic.protocol.ops.base import Call


def cumsum(call: Call, inputs: list[Words]) -> Words:
    """Each row's sums up to each of its elements."""
    add = adder(call.output.dtype)
    length = call.output.shape[-1]
    out: Words = []
    for first in range(0, len(inputs[0]), max(1, length)):
        before: int | None = None
        chain = 0
        for i, x in enumerate(inputs[0][first : first + length]):
            if i and i % CHUNK == 0:
                before = chain if before is None else add(before, chain)
                chain = 0
            chain = add(chain, x)
            out.append(chain if before is None else add(before, chain))
    return out


REFERENCE: dict[str, Reference] = {"cumsum": cumsum}
"""Operator names and their reference twins."""
