"""Reference twin of matmul. Rules: NUM-10, NUM-11."""

from __future__ import annotations

from identic.kernels.words import Reference, Words, broadcast, places
from identic.protocol.arithmetic import f32
from identic.protocol.ops.base import Call

BLOCK = 256
GROUP = 16 * BLOCK


def dot(a: Words, b: Words) -> int:
    """Contraction of two vectors of equal length."""
    groups = []
    for group in range(0, len(a), GROUP):
        blocks = []
        for first in range(group, min(group + GROUP, len(a)), BLOCK):
            total = f32.ZERO
            for k in range(first, min(first + BLOCK, group + GROUP, len(a))):
                total = f32.fma(a[k], b[k], total)
            blocks.append(total)
        groups.append(left_to_right(blocks))
    return left_to_right(groups) if groups else f32.ZERO


def left_to_right(values: Words) -> int:
    """Sum of one or more words, the first as it is."""
    total = values[0]
    for value in values[1:]:
        total = f32.add(total, value)
    return total


def matmul(call: Call, inputs: list[Words]) -> Words:
    """(batch..., M, K) and (batch..., K, N) give (batch..., M, N)."""
    (a, b), (a_type, b_type) = inputs, call.inputs
    batch = call.output.shape[:-2]
    M, K = a_type.shape[-2:]
    N = b_type.shape[-1]
    left = broadcast(a, a_type.shape, (*batch, M, K))
    right = broadcast(b, b_type.shape, (*batch, K, N))
    out = []
    for number, _ in enumerate(places(batch)):
        for m in range(M):
            row = left[(number * M + m) * K : (number * M + m + 1) * K]
            for n in range(N):
                column = right[number * K * N + n : (number + 1) * K * N : N]
                out.append(dot(row, column))
    return out


REFERENCE: dict[str, Reference] = {"matmul": matmul}
"""Operator names and their reference twins."""
