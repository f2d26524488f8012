"""The definition of arithmetic: bit patterns in, bit patterns out, integers throughout.

* ``f32``: binary32 operations, comparisons and conversions.
* ``integers``: wraparound integer operations and comparisons.
* ``functions``: exp, log, tanh, erf, sin, cos and sigmoid, correctly rounded.
* ``philox``: random words from a key and a counter.
* ``permutation``: a keyed permutation of ``[0, n)``.

No Python float appears anywhere in this package. Spec: docs/spec/numerics.md.
"""

from identic.protocol.arithmetic import f32, functions, integers
from identic.protocol.arithmetic.permutation import permute
from identic.protocol.arithmetic.philox import bounded, philox4x32, uniform24

__all__ = [
    "bounded",
    "f32",
    "functions",
    "integers",
    "permute",
    "philox4x32",
    "uniform24",
]
