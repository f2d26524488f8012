"""Launchers of random numbers and the sampler. Rules: NUM-15 to NUM-18."""

from __future__ import annotations

from typing import Any

from identic.kernels.cuda.device import Device, Kernel, blocks_over

BLOCK = 256
"""Threads of a block; tunes speed only."""

_FILE = "random/cuda.cu"
_UNIFORM = Kernel(_FILE, "philox_uniform")
_INDEX = Kernel(_FILE, "philox_index")
_SHUFFLED = Kernel(_FILE, "shuffled_index")


def philox_uniform(device: Device, out: Any, key0: int, key1: int, stream: int, shard: int) -> None:
    """Uniform float32 in [0, 1) for each element of ``out`` (NUM-16, NUM-17)."""
    if out.size:
        grid = blocks_over(device, -(-out.size // 4), BLOCK)
        device.launch(_UNIFORM, (grid,), (BLOCK,), out, out.size, key0, key1, stream, shard)


def philox_index(
    device: Device, out: Any, key0: int, key1: int, bound: int, stream: int, shard: int
) -> None:
    """Indices (int64) below ``bound``, in [1, 2^63) (NUM-16, NUM-17)."""
    _check_bound(bound)
    if out.size:
        grid = blocks_over(device, -(-out.size // 2), BLOCK)
        keys = (key0, key1)
        device.launch(_INDEX, (grid,), (BLOCK,), out, out.size, *keys, bound, stream, shard)


def shuffled_index(
    device: Device, out: Any, key0: int, key1: int, bound: int, step: int, shards: int, shard: int
) -> None:
    """Images of the positions (step * shards + shard) * len(out) + i (NUM-18)."""
    _check_bound(bound)
    if not out.size:
        return
    epoch, first = divmod((step * shards + shard) * out.size, bound)
    # NUM-18: the least half >= 1 with 4^half >= bound.
    half = max(1, -(-(bound - 1).bit_length() // 2))
    grid = blocks_over(device, out.size, BLOCK)
    where = (bound, half, _signed(epoch), first)
    device.launch(_SHUFFLED, (grid,), (BLOCK,), out, out.size, key0, key1, *where)


def _signed(epoch: int) -> int:
    """The epoch modulo 2^64 as the signed number of the same 64 bits."""
    return (epoch + (1 << 63)) % (1 << 64) - (1 << 63)


def _check_bound(bound: int) -> None:
    if not 1 <= bound < 1 << 63:
        raise ValueError("bound must be in [1, 2^63)")
