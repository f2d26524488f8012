"""The number of the numerics, and what it is bound to.

``VECTORS`` is the digest over the golden vectors (``tests/vectors/kernel_set.py``), as
``make vectors`` writes it. Vectors that give another result for the same operands need
another number (NUM-20).
"""

from __future__ import annotations

KERNEL_SET = 1
"""Number of the numerics that this code computes."""

VECTORS = "284c152db7ad574e63e5e5ca8e1d1f420c87b49db32245887e1f9e0e82179b44"
"""SHA-256 over the golden vectors of this kernel set."""
