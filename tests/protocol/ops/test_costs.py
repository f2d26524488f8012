"""The table of costs in docs/bits.md is what the operators say."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest

from identic.protocol.ops import TABLE
from identic.protocol.ops.base import Call
from tests.helpers.calls import BUILDERS, Maker

PAGE = Path(__file__).resolve().parents[3] / "docs" / "bits.md"


def table() -> dict[str, str]:
    """Each operator's steps as the page has them."""
    text = PAGE.read_text(encoding="utf-8")
    rows = text.partition("<!-- costs:")[2].partition("<!-- end of costs -->")[0].splitlines()
    found: dict[str, str] = {}
    for row in rows:
        if not row.startswith("| `"):
            continue
        names, steps = row.strip("| ").split(" | ")
        expression = re.match(r"`([^`]+)`", steps)
        assert expression is not None
        for name in re.findall(r"`(\w+)`", names):
            assert name not in found, name
            found[name] = expression[1]
    return found


COSTS = table()


def evaluated(expression: str, known: dict[str, int]) -> int:
    """A sum of products of numbers and names."""
    products = [term.split(" * ") for term in expression.split(" + ")]
    return sum(math.prod(known[f] if f in known else int(f) for f in p) for p in products)


def factor(call: Call, name: str) -> int:
    """What an element of a result with windows counts, from shapes alone."""
    spatial = {a.name: a.values for a in call.attributes}
    if name == "matmul":
        return int(call.inputs[0].shape[-1])
    first, second = (tuple(int(n) for n in k.shape) for k in (call.inputs[0], call.inputs[-1]))
    if name == "conv":
        return math.prod(second[1:])
    if name == "conv_dx":
        return second[0] // spatial["groups"][0] * math.prod(second[2:])
    if name == "conv_dw":
        return first[0] * math.prod(first[2:])
    if name in {"max_pool_dx", "sum_pool_dx"}:
        rank = len(spatial["window"])
        dilation = spatial.get("dilation", (1,) * rank)
        axes = zip(first[-rank:], spatial["window"], spatial["stride"], dilation, strict=True)
        return math.prod(min(n, d * (k - 1) // s + 1) for n, k, s, d in axes)
    return math.prod(spatial.get("window", (1,)))


def test_every_operator_has_its_cost_on_the_page() -> None:
    assert set(COSTS) == set(TABLE)


@pytest.mark.parametrize("name", sorted(TABLE))
def test_costs_are_those_of_the_page(name: str) -> None:
    looked = 0
    for seed in range(60):
        call = BUILDERS[name](Maker(seed)).call
        first, last = (call.inputs[0], call.inputs[-1]) if call.inputs else (call.output,) * 2
        each = factor(call, name) if call.inputs else 1
        known = {
            "out": call.output.elements,
            "in": first.elements,
            "src": last.elements,
            "bits": 8 * first.dtype.size,
            **dict.fromkeys(("products", "places", "windows"), each),
        }
        cost = call.op.cost(call)
        assert cost.flops == evaluated(COSTS[name], known), (call.inputs, call.attributes)
        looked += bool(call.output.elements)
    assert looked > 5
