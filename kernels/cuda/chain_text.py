"""The text of a chain's kernel; that of chains with sums and maxima of rows is ``chain_rows.py``.

A thread owns an element.

NaNs are made the one of NUM-2 where a value is stored, or moved by ``where``.

A result may be written over an input: each thread reads all of its element before it writes
any of it, as long as the compiler is not told that the two are apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from identic.kernels.engine import Over

TYPES = {"float32": "float", "int64": "int64_t", "int32": "int32_t", "bool": "Bool"}
"""Element types of a chain by their names there."""

REDUCTIONS = ("sum_last", "amax")
COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")

_ANY_NAN = {"neg", "abs", "add", "sub", "mul", "div", "sqrt", "rsqrt"}
"""Operators whose NaN may be any."""

_COSTLY = {
    *("exp", "log", "tanh", "erf", "sigmoid", "sin", "cos"),
    *("div", "sqrt", "rsqrt"),
}
"""Operators that are not worth computing twice."""


@dataclass(frozen=True)
class Value:
    """An input or the result of an operator."""

    kind: str
    of_rows: bool
    phase: int
    any_nan: bool
    costly: bool
    """Whether it takes a costly operator to compute it from what lies in memory."""


class Code:
    """A chain's operators with what is known about each value.

    Args:
        inputs: kind of each input, and whether it has one element a row.
        code: operators and the numbers of their operands; results follow the inputs.
        outputs: numbers of the values to store.
        over: results that may be written over inputs.

    Raises:
        ValueError: an operator is unknown, or a result is over an input that another element
            or a later phase reads.
    """

    def __init__(
        self,
        inputs: Sequence[tuple[str, bool]],
        code: Sequence[tuple[str, Sequence[int]]],
        outputs: Sequence[int],
        over: Over = (),
    ) -> None:
        self.inputs = len(inputs)
        self.written = {place for place, _ in over}
        """Places of the results that may be written over inputs."""
        self.lost = {number for _, number in over}
        """Numbers of those inputs."""
        self.code = [(name, tuple(operands)) for name, operands in code]
        self.outputs = tuple(outputs)
        self.values = [Value(kind, of_rows, 0, False, False) for kind, of_rows in inputs]
        for name, operands in self.code:
            self.values.append(self._value(name, [self.values[o] for o in operands]))
        self.phases = 1 + max((self.values[n].phase for n in self.outputs), default=0)
        pairs = [n for place, number in over for n in (self.outputs[place], number)]
        if pairs and (self.reduces or any(self.values[n].of_rows for n in pairs)):
            raise ValueError("a result with rows is written over no input")

    @property
    def reduces(self) -> bool:
        """Whether it sums or searches rows."""
        return any(name in REDUCTIONS for name, _ in self.code)

    @property
    def row_outputs(self) -> bool:
        """Whether a result has one element a row."""
        return any(self.values[n].of_rows for n in self.outputs)

    def operator(self, number: int) -> tuple[str, tuple[int, ...]]:
        """The operator that makes a value, and its operands."""
        return self.code[number - self.inputs]

    def type(self, number: int) -> str:
        """C++ type of a value."""
        return TYPES[self.values[number].kind]

    def _value(self, name: str, operands: list[Value]) -> Value:
        reduces = name in REDUCTIONS
        if name in COMPARISONS or name in {"and", "or", "not"}:
            kind = "bool"
        else:
            kind = name if name in TYPES else operands[-1].kind
        return Value(
            kind,
            reduces or all(o.of_rows for o in operands),
            max(o.phase for o in operands) + reduces,
            name in _ANY_NAN and kind == "float32",
            not reduces and (name in _COSTLY or any(o.costly for o in operands)),
        )

    def expression(self, number: int) -> str:
        """The operator of a value applied to the names of its operands."""
        name, operands = self.operator(number)
        moves = name == "where" or name in TYPES
        words = [self.clean(o) if moves else f"v{o}" for o in operands]
        function = f"Conversion<{TYPES[name]}>::of" if name in TYPES else f"of_{name}"
        return f"{function}({', '.join(words)})"

    def clean(self, number: int) -> str:
        """A value whose NaNs are the one of NUM-2, if arithmetic made them."""
        return f"idn_clean(v{number})" if self.values[number].any_nan else f"v{number}"


@dataclass(frozen=True)
class Reading:
    """How an input is read.

    Attributes:
        row: expression of the first element's place, of the row or of all.
        step: expression of the place of element ``j`` or ``i`` after that, empty for none.
    """

    row: str
    step: str

    @property
    def place(self) -> str:
        """The whole expression."""
        return " + ".join(p for p in (self.row, self.step) if p) or "0"


def flat(code: Code, readings: Sequence[Reading], patterns: int) -> str:
    """The kernel of a chain without reductions; a thread owns an element.

    Args:
        code: what to compute.
        readings: of each input; ``at[k]`` is its place by pattern ``k``.
        patterns: how many patterns of strides there are.
    """
    width = ["long long width", "long long width_multiplier"] if code.row_outputs else []
    lines = [
        *head(code, [*places(patterns), *width]),
        "  for (long long i = idn_thread(); i < n; i += idn_threads()) {",
        *offsets("i", patterns, "    "),
    ]
    lines += [f"    {line}" for line in _element(code, readings)]
    if code.row_outputs:
        lines.append("    const long long row = idn_quotient(i, width, width_multiplier);")
    for place, number in enumerate(code.outputs):
        if code.values[number].of_rows:
            lines.append(f"    if (row * width == i) out{place}[row] = {code.clean(number)};")
        else:
            lines.append(f"    out{place}[i] = {code.clean(number)};")
    return "\n".join((*lines, "  }", "}", ""))


def _element(code: Code, readings: Sequence[Reading]) -> Iterator[str]:
    """Every value of one element."""
    for number in range(len(code.values)):
        if number < code.inputs:
            yield read(code, number, readings[number])
        else:
            yield f"const {code.type(number)} v{number} = {code.expression(number)};"


def joined(code: Code, scalars: Sequence[bool]) -> str:
    """The kernel of a chain over many sets of buffers; a block owns neighbours of one set.

    A row of the table is a set: its first block, its elements, and the addresses of its
    results and inputs.

    Args:
        code: what to compute; nothing of it is of rows.
        scalars: of each input, whether it has one element for all.
    """
    results = [
        (f"{code.type(n)}*{'' if i in code.written else ' __restrict__'} out{i}", n)
        for i, n in enumerate(code.outputs)
    ]
    inputs = [(_input(code, n), n) for n in range(code.inputs)]
    lines = [
        'extern "C" __global__ void chain(',
        "    const long long* __restrict__ table, long long sets, long long tile) {",
        "  long long low = 0, high = sets;",
        "  while (high - low > 1) {",
        "    const long long middle = (low + high) / 2;",
        f"    if (table[middle * {2 + len(results) + len(inputs)}] <= blockIdx.x) low = middle;",
        "    else high = middle;",
        "  }",
        f"  const long long* set = table + low * {2 + len(results) + len(inputs)};",
    ]
    for place, (name, number) in enumerate((*results, *inputs)):
        const = "const " if place >= len(results) else ""
        lines.append(f"  {name} = ({const}{code.type(number)}*)set[{2 + place}];")
    readings = [Reading("" if one else "i", "") for one in scalars]
    lines += [
        "  const long long first = (blockIdx.x - set[0]) * tile;",
        "  const long long end = min(first + tile, set[1]);",
        "  for (long long i = first + threadIdx.x; i < end; i += blockDim.x) {",
        *(f"    {line}" for line in _element(code, readings)),
    ]
    stores = (f"    out{place}[i] = {code.clean(n)};" for place, n in enumerate(code.outputs))
    return "\n".join((*lines, *stores, "  }", "}", ""))


def head(code: Code, sizes: Sequence[str], bounds: str = "") -> Iterator[str]:
    """The entry point up to its body."""
    parameters = [f"{code.type(n)}* out{place}" for place, n in enumerate(code.outputs)]
    parameters += [_input(code, n) for n in range(code.inputs)]
    parameters += ["long long n", *sizes]
    yield f'extern "C" __global__ void {bounds}chain('
    yield f"    {', '.join(parameters)}) {{"


def _input(code: Code, number: int) -> str:
    """An input's declaration."""
    apart = "" if number in code.lost else " __restrict__"
    return f"const {code.type(number)}*{apart} in{number}"


def places(patterns: int) -> list[str]:
    """Parameters that tell where operands have their elements."""
    if not patterns:
        return []
    words = {"lengths": "IDN_AXES", "multipliers": "IDN_AXES", "steps": f"IDN_AXES * {patterns}"}
    passed = [f"const __grid_constant__ Words<{size}> {name}" for name, size in words.items()]
    return ["long long rank", *passed]


def offsets(name: str, patterns: int, indent: str) -> list[str]:
    """Statements that work out where element or row ``name`` of each pattern lies."""
    if not patterns:
        return []
    return [
        f"{indent}long long at[{patterns}];",
        f"{indent}idn_offsets({name}, rank, lengths, multipliers, steps, at);",
    ]


def read(code: Code, number: int, reading: Reading) -> str:
    """The statement that reads an input."""
    return f"const {code.type(number)} v{number} = in{number}[{reading.place}];"
