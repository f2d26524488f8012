"""Initial weights that are the same bits on every machine."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from identic.node.capture.philox import uniform_block
from identic.protocol.encoding import encode
from identic.protocol.hashing import Domain, tagged
from identic.protocol.ids import Unsigned


@dataclass(frozen=True)
class _Seed:
    """What the key of initial weights is made of."""

    seed: Unsigned
    purpose: str


def initial(shape: Sequence[int], *, seed: int, stream: int, scale: float) -> NDArray[np.float32]:
    """Uniform weights in ``[-scale, scale)``, made of exact integers and one rounding.

    Element ``i`` is ``(2 * u - 1) * scale`` with ``u`` the 24-bit number of element ``i`` of
    Philox stream ``stream``; ``2 * u - 1`` is exact in binary32, the product is rounded once.

    Args:
        shape: lengths of the axes.
        seed: an integer in ``[0, 2**64)``, the same for all tensors of a model.
        stream: in ``[0, 2**32)``, another one for each tensor.
        scale: half the width of the interval; rounded to binary32 first.

    Returns:
        A new float32 array; ``torch.from_numpy`` takes it as it is.
    """
    digest = tagged(Domain.RANDOM, encode(_Seed(Unsigned(seed), "initial")))
    key = (int.from_bytes(digest[:4], "big"), int.from_bytes(digest[4:8], "big"))
    uniform = uniform_block(key, stream, 0, math.prod(shape))
    centred = uniform * np.float32(2) - np.float32(1)
    return (centred * np.float32(scale)).reshape(tuple(shape))
