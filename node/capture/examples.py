"""Datasets of any kind as tables: read once, item by item, and stacked (CAP-16).

Reading is what a loop over the dataset does, so transforms run once. A dataset that gives
another item when it is asked again is refused: its randomness would be frozen in silence.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils import _pytree as pytree

from identic.protocol.lowering import CaptureError

Array = NDArray[Any]
OnRead = Callable[[int, int], None]
"""Told of progress: items read, items in all."""

PIECE = 1024
"""Rows read at a time from a table with columns."""
PROBES = 4
"""Items that are read twice."""


def refused(problem: str, advice: str) -> CaptureError:
    """The error that a dataset cannot become a table (CAP-16)."""
    return CaptureError("CAP-16", problem, advice=advice)


def is_table(dataset: Any) -> bool:
    """Whether a dataset has named columns and gives slices of them, as ``datasets.Dataset``."""
    return hasattr(dataset, "column_names") and hasattr(dataset, "__getitem__")


def read(
    dataset: Any, columns: Sequence[str] | None, most_bytes: int, on_read: OnRead
) -> tuple[list[Array], pytree.TreeSpec, list[str]]:
    """Read a whole dataset.

    Args:
        dataset: has ``__len__`` and ``__getitem__``, for positions or, as a table, for slices.
        columns: names of the fields to keep; None keeps all.
        most_bytes: refuse a larger one after its first item.
        on_read: told of progress.

    Returns:
        One array for each tensor of an item, stacked; how an item is put together; names.
    """
    count = len(dataset)
    if count < 1:
        raise refused("the dataset is empty.", "give at least one example.")
    first, spec = _item(dataset, 0, columns)
    needed = count * sum(leaf.nbytes for leaf in first)
    # CAP-16: a dataset's size is checked before it is read.
    if needed > most_bytes:
        raise refused(
            f"{count:,} examples take {needed:,} bytes; {most_bytes:,} are allowed.",
            "take fewer examples, smaller element types, or raise most_bytes.",
        )
    _check_repeats(dataset, columns, count)
    arrays = [np.empty((count, *leaf.shape), leaf.dtype) for leaf in first]
    if is_table(dataset):
        _read_table(dataset, columns, arrays, on_read)
    else:
        for i in range(count):
            _keep(arrays, i, *_item(dataset, i, columns), spec)
            on_read(i + 1, count)
    return arrays, spec, names_of(spec, len(first))


def names_of(spec: pytree.TreeSpec, count: int) -> list[str]:
    """A name for each tensor of an item: its keys and positions on the way to it."""
    paths, _ = pytree.tree_flatten_with_path(pytree.tree_unflatten(list(range(count)), spec))
    return [".".join(_word(key) for key in path) or "0" for path, _ in paths]


def _word(key: Any) -> str:
    return str(getattr(key, "key", getattr(key, "idx", getattr(key, "name", key))))


def _keep(
    arrays: list[Array], i: int, leaves: list[Array], found: pytree.TreeSpec, spec: pytree.TreeSpec
) -> None:
    # CAP-16: all items have the same structure, shapes and element types.
    if found != spec:
        raise refused(f"item {i} is put together in another way than item 0.", "make them alike.")
    for array, leaf in zip(arrays, leaves, strict=True):
        if leaf.shape != array.shape[1:] or leaf.dtype != array.dtype:
            raise refused(
                f"item {i} has {leaf.dtype}{list(leaf.shape)} where item 0 has "
                f"{array.dtype}{list(array.shape[1:])}.",
                "pad or cut all items to one length: a program has one shape for every step.",
            )
        array[i] = leaf


def _item(
    dataset: Any, i: int, columns: Sequence[str] | None
) -> tuple[list[Array], pytree.TreeSpec]:
    """One item as arrays."""
    item = dataset[i]
    if columns is not None or is_table(dataset):
        item = _chosen(item, columns or list(dataset.column_names))
    # A tuple and a list of tensors are one thing, as they are for torch's loader.
    leaves, spec = pytree.tree_flatten(tuple(item) if isinstance(item, list) else item)
    return [_leaf(leaf, i) for leaf in leaves], spec


def _chosen(item: Any, columns: Sequence[str]) -> dict[str, Any]:
    if not isinstance(item, Mapping) or any(name not in item for name in columns):
        known = list(item) if isinstance(item, Mapping) else type(item).__name__
        raise refused(f"items have no fields {list(columns)}, but {known}.", "name its own fields.")
    return {name: _whole(item[name]) for name in columns}


def _whole(value: Any) -> Any:
    """A list of numbers as one tensor; other values as they are."""
    if isinstance(value, list):
        array = np.asarray(value)
        return array.astype(np.float32) if array.dtype == np.float64 else array
    return value


def _leaf(value: Any, i: int) -> Array:
    """One tensor of an item; Python's numbers become int64, float32 and bool."""
    if isinstance(value, torch.Tensor):
        return np.asarray(value.detach().cpu().numpy())
    if isinstance(value, bool | int | np.ndarray | np.generic):
        array = np.asarray(value)
    elif isinstance(value, float):
        array = np.asarray(value, np.float32)
    else:
        array = np.asarray(None)
    if array.dtype.kind not in "biuf":
        raise refused(
            f"item {i} holds a {type(value).__name__}.",
            "give tensors and numbers; name the fields to keep with columns=.",
        )
    return array


def _check_repeats(dataset: Any, columns: Sequence[str] | None, count: int) -> None:
    for i in sorted({0, count - 1, *range(0, count, max(1, count // PROBES))}):
        once, again = _item(dataset, i, columns)[0], _item(dataset, i, columns)[0]
        # CAP-16: an item is the same whenever it is asked for.
        if [(a.dtype, a.shape, a.tobytes()) for a in once] != [
            (a.dtype, a.shape, a.tobytes()) for a in again
        ]:
            raise refused(
                f"item {i} is another one when it is asked for again.",
                "leave random transforms out of the dataset, and draw them in the loss function "
                "with torch's random operations.",
            )


def _read_table(
    table: Any, columns: Sequence[str] | None, arrays: list[Array], on_read: OnRead
) -> None:
    """Read columns by slices of rows."""
    names, count = columns or list(table.column_names), len(table)
    for start in range(0, count, PIECE):
        stop = min(start + PIECE, count)
        piece = table[start:stop]
        # Leaves of a dictionary are in the order of its fields.
        for array, name in zip(arrays, names, strict=True):
            for offset, value in enumerate(piece[name]):
                leaf = _leaf(_whole(value), start + offset)
                if leaf.shape != array.shape[1:] or leaf.dtype != array.dtype:
                    raise refused(
                        f"row {start + offset} of {name} is {leaf.dtype}{list(leaf.shape)}, row 0 "
                        f"{array.dtype}{list(array.shape[1:])}.",
                        "pad or cut all rows to one length, for instance in the tokenizer.",
                    )
                array[start + offset] = leaf
        on_read(stop, count)
