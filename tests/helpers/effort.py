"""How often a property is tried: as often as it says in ``make test-all``, less in ``make test``.

Every run draws other examples, so what a short run leaves out is met by later ones.
"""

from __future__ import annotations

import os

WHOLE = os.environ.get("IDENTIC_TESTS") == "all"
"""The run may take as long as it needs."""

SHARE, LEAST = 4, 5


def examples(number: int) -> int:
    """Examples to try, of ``number`` in a whole run: a fourth in a short one, at least 5."""
    return number if WHOLE else min(number, max(number // SHARE, LEAST))
