"""The operators in Python integers: plain loops that follow the rules word by word.

This is what the other backends are compared with. It is far too slow to train with.
"""

from __future__ import annotations

from collections.abc import Sequence

from identic.kernels.arrays import Array, from_words, words
from identic.kernels.conv import reference as conv
from identic.kernels.elementwise import reference as elementwise
from identic.kernels.index import reference as index
from identic.kernels.layout import reference as layout
from identic.kernels.matmul import reference as matmul
from identic.kernels.pool import reference as pool
from identic.kernels.random import reference as random
from identic.kernels.reduce import reference as reduce
from identic.kernels.scan import reference as scan
from identic.kernels.scatter import reference as scatter
from identic.kernels.sort import reference as sort
from identic.kernels.words import Reference
from identic.protocol.ops.base import Call

REFERENCE: dict[str, Reference] = {
    **elementwise.REFERENCE,
    **reduce.REFERENCE,
    **scan.REFERENCE,
    **sort.REFERENCE,
    **matmul.REFERENCE,
    **conv.REFERENCE,
    **pool.REFERENCE,
    **index.REFERENCE,
    **scatter.REFERENCE,
    **layout.REFERENCE,
    **random.REFERENCE,
}
"""The reference twin of every operator, on lists of words."""


class ReferenceBackend:
    """Runs operators in Python integers."""

    name = "reference"

    def run(self, call: Call, inputs: Sequence[Array]) -> Array:
        """Result of one operator."""
        result = REFERENCE[call.op.name](call, [words(x) for x in inputs])
        return from_words(call.output, result)
