"""Reference twin of random numbers and the sampler. Rules: NUM-15 to NUM-18, OP-20 to OP-22."""

from __future__ import annotations

from identic.kernels.words import Reference, Words
from identic.protocol.arithmetic import bounded, permute, philox4x32, uniform24
from identic.protocol.ops.base import Call

WORD = 0xFFFFFFFF


def blocks(context: Words, stream: int, count: int) -> Words:
    """Words of the first ``count`` blocks of a stream under the step key."""
    _, _, k0, k1, _, shard = context
    out: Words = []
    for block in range(count):
        counter = (block & WORD, block >> 32, stream, shard & WORD)
        out += philox4x32((k0 & WORD, k1 & WORD), counter)
    return out


def random_uniform(call: Call, inputs: list[Words]) -> Words:
    """One word an element."""
    count = call.output.elements
    words = blocks(inputs[0], call.integer("stream"), -(-count // 4))
    return [uniform24(w) for w in words[:count]]


def random_index(call: Call, inputs: list[Words]) -> Words:
    """Two words an element."""
    count, bound = call.output.elements, call.integer("bound")
    words = blocks(inputs[0], call.integer("stream"), -(-count // 2))
    return [bounded(words[2 * i], words[2 * i + 1], bound) for i in range(count)]


def shuffled_index(call: Call, inputs: list[Words]) -> Words:
    """Positions of all passes in order, each sent through its pass's permutation."""
    k0, k1, _, _, step, shard = inputs[0]
    count, bound = call.integer("count"), call.integer("bound")
    first = (step * call.integer("shards") + shard) * count
    positions = [(first + i) % 2**64 for i in range(count)]
    return [permute((k0 & WORD, k1 & WORD), p // bound, bound, p % bound) for p in positions]


REFERENCE: dict[str, Reference] = {
    "random_uniform": random_uniform,
    "random_index": random_index,
    "shuffled_index": shuffled_index,
}
"""Operator names and their reference twins."""
