# Types of the native module; what each function does stands in its own docstring.
#
# Arrays are anything with a buffer: inputs may be read-only, results are written.

from collections.abc import Sequence
from typing import Any, TypeAlias

from numpy.typing import NDArray

_Array: TypeAlias = NDArray[Any]

def set_threads(count: int) -> None: ...
def threads() -> int: ...
def path() -> str: ...
def paths() -> list[str]: ...
def set_path(name: str) -> None: ...
def float_environment() -> dict[str, bool | str]: ...
def reset_float_environment() -> None: ...
def unary(op: str, out: _Array, x: _Array) -> None: ...
def binary(
    op: str,
    out: _Array,
    a: _Array,
    b: _Array,
    shape: Sequence[int] | None = None,
    a_strides: Sequence[int] | None = None,
    b_strides: Sequence[int] | None = None,
) -> None: ...
def where(
    out: _Array,
    c: _Array,
    a: _Array,
    b: _Array,
    shape: Sequence[int] | None = None,
    c_strides: Sequence[int] | None = None,
    a_strides: Sequence[int] | None = None,
    b_strides: Sequence[int] | None = None,
) -> None: ...
def cast(out: _Array, x: _Array) -> None: ...
def matmul(
    out: _Array,
    a: _Array,
    b: _Array,
    batch: int,
    m: int,
    n: int,
    k: int,
    a_strides: Sequence[int],
    b_strides: Sequence[int],
) -> None: ...
def sum_last(out: _Array, x: _Array, rows: int, n: int) -> None: ...
def sum_first(out: _Array, x: _Array, n: int, inner: int) -> None: ...
def amax(out: _Array, x: _Array, rows: int, n: int) -> None: ...
def argmax(out: _Array, x: _Array, rows: int, n: int) -> None: ...
def cumsum(out: _Array, x: _Array, rows: int, n: int) -> None: ...
def argsort(out: _Array, x: _Array, rows: int, n: int, count: int, descending: bool) -> None: ...
def set_rows(
    out: _Array, init: _Array, index: _Array, src: _Array, rows: int, inner: int
) -> None: ...
def scatter(out: _Array, x: _Array, index: _Array, src: _Array, axis: int) -> None: ...
def scatter_add(out: _Array, x: _Array, index: _Array, src: _Array, axis: int) -> None: ...
def conv(
    out: _Array,
    x: _Array,
    w: _Array,
    sizes: Sequence[int],
    down: Sequence[int],
    across: Sequence[int],
    plain: bool = False,
) -> None: ...
def conv_dx(
    out: _Array,
    grad: _Array,
    w: _Array,
    sizes: Sequence[int],
    down: Sequence[int],
    across: Sequence[int],
    plain: bool = False,
) -> None: ...
def conv_dw(
    out: _Array,
    grad: _Array,
    x: _Array,
    sizes: Sequence[int],
    down: Sequence[int],
    across: Sequence[int],
    plain: bool = False,
) -> None: ...
def max_pool(
    out: _Array, x: _Array, planes: int, down: Sequence[int], across: Sequence[int]
) -> None: ...
def max_pool_indices(
    out: _Array,
    x: _Array,
    planes: int,
    down: Sequence[int],
    across: Sequence[int],
    far: bool = False,
) -> None: ...
def max_pool_dx(
    out: _Array,
    grad: _Array,
    indices: _Array,
    planes: int,
    down: Sequence[int],
    across: Sequence[int],
) -> None: ...
def sum_pool(
    out: _Array, x: _Array, planes: int, down: Sequence[int], across: Sequence[int]
) -> None: ...
def sum_pool_dx(
    out: _Array, grad: _Array, planes: int, down: Sequence[int], across: Sequence[int]
) -> None: ...
def copy_strided(
    out: _Array,
    out_offset: int,
    out_strides: Sequence[int],
    x: _Array,
    x_offset: int,
    x_strides: Sequence[int],
    shape: Sequence[int],
) -> None: ...
def full(out: _Array, pattern: int) -> None: ...
def iota(out: _Array, start: int, step: int) -> None: ...
def take_rows(out: _Array, table: _Array, index: _Array, rows: int, row_bytes: int) -> None: ...
def take_windows(out: _Array, tokens: _Array, starts: _Array, length: int) -> None: ...
def gather(out: _Array, x: _Array, index: _Array, axis: int) -> None: ...
def add_rows(
    out: _Array, init: _Array, index: _Array, src: _Array, rows: int, inner: int
) -> None: ...
def philox_uniform(out: _Array, key0: int, key1: int, stream: int, shard: int) -> None: ...
def philox_index(
    out: _Array, key0: int, key1: int, bound: int, stream: int, shard: int
) -> None: ...
def shuffled_index(
    out: _Array, key0: int, key1: int, bound: int, step: int, shards: int, shard: int
) -> None: ...
def chunk_hashes(data: _Array | bytes | memoryview, chunk_bytes: int, prefix: bytes) -> bytes: ...
def tree_root(digests: _Array | bytes | memoryview, prefix: bytes) -> bytes: ...
def has_sha_instructions() -> bool: ...
def use_sha_instructions(use: bool) -> None: ...

class Chain:
    def __init__(
        self,
        inputs: Sequence[tuple[str, bool]],
        code: Sequence[tuple[str, Sequence[int]]],
        outputs: Sequence[int],
    ) -> None: ...
    def run(
        self,
        outputs: list[_Array],
        inputs: list[_Array],
        shape: Sequence[int],
        strides: Sequence[Sequence[int]],
    ) -> None: ...
