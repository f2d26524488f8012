"""The text of a chain's kernel: elementwise operators, and sums and maxima of rows.

Without reductions a thread owns an element. With them a warp owns a row and goes over it once
for each *phase*: a value is of the phase after the reductions that it needs. What a later phase
reads of an earlier one is computed again, or kept in shared memory where that is costly, or
read back where it is a result.

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

MOST_KEPT = 2
"""Values that a phase keeps for later ones; a row of 4,096 then takes 32 KiB."""


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
        *_head(code, [*_places(patterns), *width]),
        "  for (long long i = idn_thread(); i < n; i += idn_threads()) {",
        *_offsets("i", patterns, "    "),
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
            yield _read(code, number, readings[number])
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


def rows(code: Code, readings: Sequence[Reading], patterns: int) -> tuple[str, int]:
    """The kernel of a chain with reductions; a warp owns a row.

    Args:
        code: what to compute.
        readings: of each input; ``at[k]`` is its row's place by pattern ``k``.
        patterns: how many patterns of strides there are.

    Returns:
        The text, and how many float32 it keeps of each element of a row in shared memory.
    """
    plan = _Phases(code)
    lines = [
        *_head(code, [*_places(patterns), "long long width"]),
        "  extern __shared__ float room[];",
        "  const int lane = threadIdx.x % IDN_WARP, warp = threadIdx.x / IDN_WARP;",
        f"  float* const kept = room + warp * {len(plan.kept)} * width;" if plan.kept else "",
        "  const long long warps = idn_threads() / IDN_WARP;",
        "  for (long long row = idn_thread() / IDN_WARP; row < n; row += warps) {",
        *_offsets("row", patterns, "    "),
    ]
    of_rows = (n for n in range(code.inputs) if code.values[n].of_rows)
    lines += [f"    {_read(code, n, Reading(readings[n].row, ''))}" for n in of_rows]
    for phase in range(code.phases):
        lines += [f"    {line}" for line in plan.lines(phase, readings)]
    return "\n".join((*(line for line in lines if line), "  }", "}", "")), len(plan.kept)


class _Phases:
    """What each phase of a row computes, keeps and reads back."""

    def __init__(self, code: Code) -> None:
        self.code = code
        self.made = range(code.inputs, len(code.values))
        self.stored = {n: place for place, n in enumerate(code.outputs)}
        self.kept: dict[int, int] = {}
        """Number in shared memory of each value that a later phase reads from there."""
        self.home: dict[int, int] = {n: code.values[n].phase for n in code.outputs}
        """The phase in which a value that lies in memory is computed."""
        for number in reversed(self.made):
            value = code.values[number]
            places = [p for p in range(code.phases) if number in self._needed(p)]
            worth = value.costly and value.kind == "float32" and number not in self.stored
            if worth and len(places) > 1 and len(self.kept) < MOST_KEPT:
                self.kept[number], self.home[number] = len(self.kept), places[0]
        self.needed = [self._needed(p) for p in range(code.phases)]

    def lines(self, phase: int, readings: Sequence[Reading]) -> Iterator[str]:
        """One phase: values of rows, a pass over the row, its reductions."""
        code = self.code
        yield from self._of_rows(phase)
        if not self.needed[phase]:
            return
        reductions = list(self._reductions(phase))
        for number in reductions:
            name, _ = code.operator(number)
            start = "0.0f" if name == "sum_last" else "idn_float(0xff800000u)"
            yield f"float lanes{number}[2] = {{{start}, {start}}};"
        yield "for (long long first = lane; first < width; first += 2 * IDN_WARP) {"
        yield "  IDN_UNROLL(2)"
        yield "  for (int half = 0; half < 2; ++half) {"
        yield "    const long long j = first + half * IDN_WARP;"
        yield "    if (j >= width) continue;"
        for number in self.needed[phase]:
            yield f"    {self._line(number, phase, readings)}"
            yield from (f"    {line}" for line in self._left(number, phase))
        for number in reductions:
            name, operands = code.operator(number)
            function = "idn_add" if name == "sum_last" else "idn_max"
            yield f"    lanes{number}[half] = {function}(lanes{number}[half], v{operands[0]});"
        yield "  }"
        yield "}"
        for number in reductions:
            function = "sum" if code.operator(number)[0] == "sum_last" else "maximum"
            yield f"const float v{number} = idn_row_{function}(lanes{number});"

    def _of_rows(self, phase: int) -> Iterator[str]:
        """Values of rows that a phase begins with, and the results among them."""
        code = self.code
        for number in self.made:
            value = code.values[number]
            if not value.of_rows or value.phase != phase:
                continue
            if code.operator(number)[0] not in REDUCTIONS:
                yield f"const {code.type(number)} v{number} = {code.expression(number)};"
            if number in self.stored:
                yield f"if (lane == 0) out{self.stored[number]}[row] = {code.clean(number)};"

    def _reductions(self, phase: int) -> Iterator[int]:
        """Sums and maxima of what a phase computes."""
        for number in self.made:
            after = self.code.values[number].phase == phase + 1
            if after and self.code.operator(number)[0] in REDUCTIONS:
                yield number

    def _needed(self, phase: int) -> list[int]:
        """Whole values that a pass reads or computes, in order."""
        code = self.code
        found: set[int] = set()
        todo = [code.operator(n)[1][0] for n in self._reductions(phase)]
        todo += [n for n, home in self.home.items() if home == phase]
        while todo:
            number = todo.pop()
            if number in found or code.values[number].of_rows:
                continue
            found.add(number)
            if number >= code.inputs and not self._at_hand(number, phase):
                todo += code.operator(number)[1]
        return sorted(found)

    def _at_hand(self, number: int, phase: int) -> bool:
        """Whether an earlier phase left the value in memory."""
        return self.home.get(number, phase) < phase

    def _line(self, number: int, phase: int, readings: Sequence[Reading]) -> str:
        """One value of an element: read, or computed."""
        code = self.code
        if number < code.inputs:
            return _read(code, number, readings[number])
        head = f"const {code.type(number)} v{number} = "
        if not self._at_hand(number, phase):
            return f"{head}{code.expression(number)};"
        if number in self.stored:
            return f"{head}out{self.stored[number]}[row * width + j];"
        return f"{head}kept[{self.kept[number]} * width + j];"

    def _left(self, number: int, phase: int) -> Iterator[str]:
        """What a value leaves in memory in the phase that is its home."""
        if self.home.get(number) != phase:
            return
        if number in self.stored:
            yield f"out{self.stored[number]}[row * width + j] = {self.code.clean(number)};"
        else:
            yield f"kept[{self.kept[number]} * width + j] = v{number};"


def _head(code: Code, sizes: Sequence[str]) -> Iterator[str]:
    """The entry point up to its body."""
    parameters = [f"{code.type(n)}* out{place}" for place, n in enumerate(code.outputs)]
    parameters += [_input(code, n) for n in range(code.inputs)]
    parameters += ["long long n", *sizes]
    yield 'extern "C" __global__ void chain('
    yield f"    {', '.join(parameters)}) {{"


def _input(code: Code, number: int) -> str:
    """An input's declaration."""
    apart = "" if number in code.lost else " __restrict__"
    return f"const {code.type(number)}*{apart} in{number}"


def _places(patterns: int) -> list[str]:
    if not patterns:
        return []
    words = {"lengths": "IDN_AXES", "multipliers": "IDN_AXES", "steps": f"IDN_AXES * {patterns}"}
    passed = [f"const __grid_constant__ Words<{size}> {name}" for name, size in words.items()]
    return ["long long rank", *passed]


def _offsets(name: str, patterns: int, indent: str) -> list[str]:
    if not patterns:
        return []
    return [
        f"{indent}long long at[{patterns}];",
        f"{indent}idn_offsets({name}, rank, lengths, multipliers, steps, at);",
    ]


def _read(code: Code, number: int, reading: Reading) -> str:
    return f"const {code.type(number)} v{number} = in{number}[{reading.place}];"
