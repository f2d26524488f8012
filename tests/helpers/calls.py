"""Random small calls of every operator, as a hypothesis strategy.

The calls themselves are those of ``identic.node.debug``, which `identic debug bits` plays too.
"""

from __future__ import annotations

from hypothesis import strategies as st

from identic.node.debug.calls import BUILDERS
from identic.node.debug.cases import SPECIAL, Case, Maker, case

__all__ = ["BUILDERS", "SPECIAL", "Case", "Maker", "calls", "case"]


@st.composite
def calls(draw: st.DrawFn, name: str) -> Case:
    """Cases of one operator."""
    return BUILDERS[name](Maker(draw(st.integers(0, 2**32 - 1))))
