"""``python -m tests.capture.supported``: write the tables of docs/models.md again.

What is in them is registered in the code: rules of lowering, fixed sequences, random
operations, and the models of the zoo.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path

from identic.node.capture import decompositions
from identic.node.capture.randomness import Randomness
from identic.protocol.lowering import RULES
from tests.capture.zoo import ZOO
from tests.capture.zoo.brought import BROUGHT

PAGE = Path(__file__).resolve().parents[2] / "docs" / "models.md"
BEGIN, END = "<!-- made by tests/capture/supported.py: {} -->", "<!-- end of {} -->"

KINDS = {
    "elementwise": "element by element",
    "reductions": "sums, extremes, products of matrices",
    "indexing": "reads and writes by number",
    "ordering": "order and running sums",
    "views": "shapes",
}
"""Files of lowering rules, in words."""

SEQUENCES = {
    "decompositions": "shorter ones",
    "tensors": "shapes, powers, norms of vectors",
    "layers": "layers, activations, losses",
    "norms": "norms of groups and weights",
    "convolutions": "convolutions",
    "pools": "pools, nearest interpolation",
    "interpolation": "linear and cubic interpolation",
    "sorting": "order",
}
"""Files of fixed sequences, in words."""


def short(name: str) -> str:
    """An operator's name without its namespace and overload."""
    return name.removeprefix("aten.").partition(".")[0]


def listed(names: Sequence[str]) -> str:
    """Names in code, in alphabetical order, each once."""
    return ", ".join(f"`{n}`" for n in sorted(set(names), key=lambda n: n.lstrip("_").lower()))


def table(head: Sequence[str], rows: Iterator[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def grouped(found: dict[str, list[str]], words: dict[str, str]) -> Iterator[Sequence[str]]:
    """A row for each file, in the order of its words."""
    for file in sorted(found, key=[*words, *found].index):
        yield words.get(file, file), listed(found[file])


def rules() -> Iterator[Sequence[str]]:
    """Operators with a lowering rule, by the file of the rule."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for name, rule in sorted(RULES.items()):
        if name.startswith("aten."):
            found[rule.__module__.rpartition(".")[2]].append(short(name))
    return grouped(found, KINDS)


def sequences() -> Iterator[Sequence[str]]:
    """Operators that are captured as a fixed sequence, by the file of the sequence."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for operator, sequence in decompositions.own().items():
        name = short(str(operator))
        if not name.endswith(("_backward", "_backward_data")):
            found[sequence.__module__.rpartition(".")[2]].append(name)
    return grouped(found, SEQUENCES)


def chance() -> Iterator[Sequence[str]]:
    """Random operations with a rule, and without one."""
    drawn: list[str] = []
    refused: list[str] = []
    for operator, replacement in Randomness().table().items():
        (refused if replacement.__name__ == "refuse" else drawn).append(short(str(operator)))
    yield "drawn from the step's generator", listed(drawn)
    yield "refused", listed([n for n in refused if n not in drawn])


def models() -> Iterator[Sequence[str]]:
    """The zoo, and models of the transformers package."""
    own = ((f"`{name}`", animal.what) for name, animal in ZOO.items())
    return chain(own, ((f"`{name}`", brought.what) for name, brought in BROUGHT.items()))


TABLES: dict[str, Callable[[], str]] = {
    "models": lambda: table(("name", "model"), models()),
    "rules": lambda: table(("operators with a rule", "names in `torch.ops.aten`"), rules()),
    "sequences": lambda: table(("operators with a fixed sequence", "names"), sequences()),
    "random": lambda: table(("random operations", "names"), chance()),
}


def written(page: str) -> str:
    """The page with every table made anew."""
    for name, make in TABLES.items():
        begin, end = BEGIN.format(name), END.format(name)
        before, _, rest = page.partition(begin)
        _, found, after = rest.partition(end)
        if not found:
            raise ValueError(f"{PAGE.name} has no place for the table of {name}")
        page = f"{before}{begin}\n{make()}\n{end}{after}"
    return page


if __name__ == "__main__":
    old = PAGE.read_text(encoding="utf-8")
    new = written(old)
    PAGE.write_text(new, encoding="utf-8")
    sys.stdout.write(f"{PAGE.name} {'is as it was' if new == old else 'is new'}\n")
