"""Datasets of any kind become tables that are read once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset, TensorDataset

from identic.node.capture import (
    SGD,
    CaptureError,
    Examples,
    Rows,
    TrainingJob,
    Windows,
    capture,
    check_against_eager,
)
from identic.protocol.program.context import context


class Items(Dataset[Any]):
    """A map-style dataset over a function of the position."""

    def __init__(self, count: int, item: Any) -> None:
        self._count, self._item = count, item
        self.asked: list[int] = []

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, i: int) -> Any:
        self.asked.append(i)
        return self._item(i)


class Table:
    """Named columns with rows and slices of rows, as `datasets.Dataset` has them."""

    def __init__(self, **columns: Sequence[Any]) -> None:
        self._columns = columns

    @property
    def column_names(self) -> list[str]:
        return list(self._columns)

    def __len__(self) -> int:
        return len(next(iter(self._columns.values())))

    def __getitem__(self, key: int | slice) -> dict[str, Any]:
        return {name: column[key] for name, column in self._columns.items()}


def row(i: int) -> Tensor:
    return torch.arange(3.0) + i


FORMS: dict[str, tuple[Any, Any]] = {
    "tensor": (row, lambda b: [b]),
    "tuple": (lambda i: (row(i), i), list),
    "list": (lambda i: [row(i), np.int64(i)], list),
    "dictionary": (
        lambda i: {"x": row(i), "label": i, "weight": i / 4, "odd": i % 2 == 1},
        lambda b: [b["x"], b["label"], b["weight"], b["odd"]],
    ),
    "nested": (lambda i: ({"x": row(i)}, (i, row(2 * i))), lambda b: [b[0]["x"], *b[1]]),
}


@pytest.mark.parametrize("form", FORMS)
def test_cap_16__a_batch_is_what_torchs_loader_makes_of_the_items(form: str) -> None:
    item, leaves = FORMS[form]
    dataset = Items(6, item)
    told: list[tuple[int, int]] = []
    data = Examples(dataset, batch=6)
    data.read(lambda done, total: told.append((done, total)))
    assert told[-1] == (6, 6)
    reads = len(dataset.asked)
    arrays = [a for _, a in data.tensors()]
    given = data.arrange([torch.from_numpy(a) for a in arrays])
    (want,) = DataLoader(dataset, batch_size=6)
    whole = given if isinstance(want, list | tuple) else given[0]
    for ours, theirs in zip(leaves(whole), leaves(want), strict=True):
        assert torch.equal(ours, theirs.to(ours.dtype))
    # Read once: neither the sampler nor a second look asks for items.
    data.batch_of(context(1, 0, 0), 1)
    assert len(dataset.asked) - reads == 6  # the loader's own


def test_cap_16__columns_of_a_table_are_read_by_slices() -> None:
    ids = [[i, i + 1, i + 2] for i in range(2500)]
    table = Table(input_ids=ids, text=["words"] * 2500, score=[i / 2 for i in range(2500)])
    data = Examples(table, batch=4, columns=["input_ids", "score"])
    named = dict(data.tensors())
    assert named["rows.input_ids"].tolist() == ids
    assert named["rows.score"].dtype == np.float32
    assert named["rows.score"][7] == 3.5
    (batch,) = data.arrange([1, 2])
    assert batch == {"input_ids": 1, "score": 2}


def test_a_job_takes_a_torch_dataset_and_dictionaries() -> None:
    torch.manual_seed(1)
    x, y = torch.randn(20, 4), torch.randint(0, 3, (20,))

    def from_tuple(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
        return F.cross_entropy(model(x), y)

    def from_dictionary(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        return F.cross_entropy(model(batch["x"]), batch["y"])

    jobs: dict[str, tuple[Rows, Callable[..., Tensor]]] = {
        "rows": (Rows(x, y, batch=4), from_tuple),
        "examples": (Examples(TensorDataset(x, y), batch=4), from_tuple),
        "dictionary": (Rows({"x": x, "y": y}, batch=4), from_dictionary),
        "items": (
            Examples(Items(20, lambda i: {"x": x[i], "y": y[i]}), batch=4),
            from_dictionary,
        ),
    }
    losses = set()
    for data, loss in jobs.values():
        torch.manual_seed(2)
        job = TrainingJob(nn.Linear(4, 3), loss, SGD(), data, steps=2)
        losses.add(check_against_eager(capture(job), job).loss)
    assert len(losses) == 1


@pytest.mark.parametrize("kind", [np.uint8, np.uint16, np.uint32, np.int32, np.int64])
def test_cap_10__windows_take_a_memory_map(tmp_path: Path, kind: type) -> None:
    written: Any = np.memmap(tmp_path / "tokens.bin", kind, "w+", shape=(50,))
    written[:] = np.arange(50) * 5
    written.flush()
    tokens: Any = np.memmap(tmp_path / "tokens.bin", kind, "r")
    x, y = Windows(tokens, length=4, batch=3).batch_of(context(1, 0, 0), 1)
    assert np.array_equal(x[:, 1:], y[:, :-1])
    assert set(x.reshape(-1).tolist()) <= set(range(0, 250, 5))


def test_cap_3__large_uint32_tokens_are_refused() -> None:
    with pytest.raises(CaptureError) as caught:
        Windows(np.array([1, 2, 2**31], np.uint32), length=1, batch=1).tensors()
    assert caught.value.rule == "CAP-3"


noise = np.random.default_rng(1)


@pytest.mark.parametrize(
    ("dataset", "changed", "word"),
    [
        (Items(0, row), {}, "empty"),
        (Items(10**9, row), {}, "bytes"),
        (Items(5, row), {"most_bytes": 59}, "60 bytes"),
        (Items(5, lambda i: torch.zeros(3 + (i == 2))), {}, "item 2"),
        (Items(5, lambda i: torch.zeros(3) if i < 2 else torch.zeros(3).int()), {}, "item 2"),
        (Items(5, lambda i: (row(i),) if i < 2 else {"x": row(i)}), {}, "item 2"),
        (Items(5, lambda i: (row(i), "word")), {}, "str"),
        (Items(5, lambda i: (row(i), None)), {}, "NoneType"),
        (Items(5, lambda i: row(i) + noise.random()), {}, "asked for again"),
        (Items(5, lambda i: {"x": row(i)}), {"columns": ["y"]}, "'x'"),
        (Table(ids=[[1, 2], [3]]), {}, "row 1 of ids"),
        (Table(ids=[[1, 2], [3, 4]], text=["a", "b"]), {}, "str"),
    ],
)
def test_cap_16__datasets_that_are_no_table_are_refused(
    dataset: Any, changed: dict[str, Any], word: str
) -> None:
    with pytest.raises(CaptureError) as caught:
        Examples(dataset, batch=2, **changed).tensors()
    assert caught.value.rule == "CAP-16"
    assert word in str(caught.value.problem), caught.value.problem
    assert caught.value.advice


def test_cap_3__items_of_float64_are_refused() -> None:
    with pytest.raises(CaptureError) as caught:
        Examples(Items(3, lambda _: np.zeros(2)), batch=1).tensors()
    assert caught.value.rule == "CAP-3"
