"""The text of the kernel of a chain with sums and maxima of rows.

A warp owns a row of at most ``PIECE`` elements, a block a longer one, whose pieces its warps
take in turn. The row is gone over once for each *phase*: a value is of the phase after the
reductions that it needs. What a later phase reads of an earlier one is computed again, or kept in
shared memory where that is costly and the row is short, or read back where it is a result: the
thread that needs it wrote it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from identic.kernels.cuda.chain_text import (
    REDUCTIONS,
    Code,
    Reading,
    head,
    offsets,
    places,
    read,
)

PIECE = 4096
"""NUM-12: the longest row that is one block of the order of sums."""

MOST_KEPT = 2
"""Values that a phase keeps for later ones; a row of 4,096 then takes 32 KiB."""


def rows(code: Code, readings: Sequence[Reading], patterns: int) -> tuple[str, int]:
    """The kernel for rows of at most ``PIECE`` elements; a warp owns a row.

    Args:
        code: what to compute.
        readings: of each input; ``at[k]`` is its row's place by pattern ``k``.
        patterns: how many patterns of strides there are.

    Returns:
        The text, and how many float32 it keeps of each element of a row in shared memory.
    """
    phases = _Phases(code, MOST_KEPT)
    kept = len(phases.kept)
    lines = [
        *head(code, [*places(patterns), "long long width"]),
        "  extern __shared__ float room[];",
        "  const int lane = threadIdx.x % IDN_WARP, warp = threadIdx.x / IDN_WARP;",
        f"  float* const kept = room + warp * {kept} * width;" if kept else "",
        "  const bool first_lane = lane == 0;",
        "  const long long warps = idn_threads() / IDN_WARP;",
        "  for (long long row = idn_thread() / IDN_WARP; row < n; row += warps) {",
        *_row(code, readings, patterns),
    ]
    for phase in range(code.phases):
        lines += [f"    {line}" for line in phases.of_rows(phase)]
        lines += [f"    {line}" for line in phases.over(phase, readings, "lane", "width")]
        for number in phases.reductions(phase):
            sum_or_maximum = _function(code, number)
            lines.append(f"    const float v{number} = idn_row_{sum_or_maximum}(lanes{number});")
    return _closed(lines), kept


def long_rows(
    code: Code, readings: Sequence[Reading], patterns: int, threads: int
) -> tuple[str, int]:
    """The kernel for longer rows; a block owns a row.

    Args:
        code: what to compute.
        readings: of each input; ``at[k]`` is its row's place by pattern ``k``.
        patterns: how many patterns of strides there are.
        threads: of a block at most.

    Returns:
        The text, and how many float32 it keeps of each piece of a row in shared memory.
    """
    phases = _Phases(code, 0)
    found = [n for phase in range(code.phases) for n in phases.reductions(phase)]
    lines = [
        *head(code, [*places(patterns), "long long width"], f"__launch_bounds__({threads}) "),
        "  extern __shared__ float room[];",
        "  const int lane = threadIdx.x % IDN_WARP, warp = threadIdx.x / IDN_WARP;",
        "  const bool first_lane = threadIdx.x == 0;",
        "  const int warps = blockDim.x / IDN_WARP;",
        f"  const long long pieces = (width + {PIECE - 1}) / {PIECE};",
        "  for (long long row = blockIdx.x; row < n; row += gridDim.x) {",
        *_row(code, readings, patterns),
    ]
    for phase in range(code.phases):
        lines += [f"    {line}" for line in phases.of_rows(phase)]
        reductions = list(phases.reductions(phase))
        over = [f"      {line}" for line in phases.over(phase, readings, "begin + lane", "end")]
        if over:
            lines += [
                "    for (long long piece = warp; piece < pieces; piece += warps) {",
                f"      const long long begin = piece * {PIECE};",
                f"      const long long end = min(begin + {PIECE}, width);",
                *over,
            ]
            for number in reductions:
                place = f"room[{found.index(number)} * pieces + piece]"
                made = f"idn_row_{_function(code, number)}(lanes{number})"
                lines.append(f"      idn_leave({place}, lane, {made});")
            lines.append("    }")
        if reductions:
            lines.append("    __syncthreads();")
        for number in reductions:
            made = f"idn_pieces_{_function(code, number)}"
            place = f"room + {found.index(number)} * pieces"
            lines.append(f"    const float v{number} = {made}({place}, lane, pieces);")
    # The next row's results take the place of this one's.
    lines.append("    __syncthreads();")
    return _closed(lines), len(found)


def _row(code: Code, readings: Sequence[Reading], patterns: int) -> Iterator[str]:
    """The places of a row's operands, and what it has one of."""
    yield from offsets("row", patterns, "    ")
    for number in range(code.inputs):
        if code.values[number].of_rows:
            yield f"    {read(code, number, Reading(readings[number].row, ''))}"


def _closed(lines: Sequence[str]) -> str:
    return "\n".join((*(line for line in lines if line), "  }", "}", ""))


def _function(code: Code, number: int) -> str:
    return "sum" if code.operator(number)[0] == "sum_last" else "maximum"


class _Phases:
    """What each phase of a row computes, keeps and reads back.

    Args:
        code: what to compute.
        most_kept: values that may be kept in shared memory.
    """

    def __init__(self, code: Code, most_kept: int) -> None:
        self.code = code
        self.made = range(code.inputs, len(code.values))
        self.stored = {n: place for place, n in enumerate(code.outputs)}
        self.kept: dict[int, int] = {}
        """Number in shared memory of each value that a later phase reads from there."""
        self.home: dict[int, int] = {n: code.values[n].phase for n in code.outputs}
        """The phase in which a value that lies in memory is computed."""
        for number in reversed(self.made):
            value = code.values[number]
            phases = [p for p in range(code.phases) if number in self._needed(p)]
            worth = value.costly and value.kind == "float32" and number not in self.stored
            if worth and len(phases) > 1 and len(self.kept) < most_kept:
                self.kept[number], self.home[number] = len(self.kept), phases[0]
        self.needed = [self._needed(p) for p in range(code.phases)]

    def over(self, phase: int, readings: Sequence[Reading], first: str, end: str) -> Iterator[str]:
        """A warp's pass over the elements from ``first`` to ``end``, with its lanes' sums."""
        code = self.code
        if not self.needed[phase]:
            return
        reductions = list(self.reductions(phase))
        for number in reductions:
            name, _ = code.operator(number)
            start = "0.0f" if name == "sum_last" else "idn_float(0xff800000u)"
            yield f"float lanes{number}[2] = {{{start}, {start}}};"
        yield f"for (long long first = {first}; first < {end}; first += 2 * IDN_WARP) {{"
        yield "  IDN_UNROLL(2)"
        yield "  for (int half = 0; half < 2; ++half) {"
        yield "    const long long j = first + half * IDN_WARP;"
        yield f"    if (j >= {end}) continue;"
        for number in self.needed[phase]:
            yield f"    {self._line(number, phase, readings)}"
            yield from (f"    {line}" for line in self._left(number, phase))
        for number in reductions:
            name, operands = code.operator(number)
            function = "idn_add" if name == "sum_last" else "idn_max"
            yield f"    lanes{number}[half] = {function}(lanes{number}[half], v{operands[0]});"
        yield "  }"
        yield "}"

    def of_rows(self, phase: int) -> Iterator[str]:
        """Values of rows that a phase begins with, and the results among them."""
        code = self.code
        for number in self.made:
            value = code.values[number]
            if not value.of_rows or value.phase != phase:
                continue
            if code.operator(number)[0] not in REDUCTIONS:
                yield f"const {code.type(number)} v{number} = {code.expression(number)};"
            if number in self.stored:
                yield f"if (first_lane) out{self.stored[number]}[row] = {code.clean(number)};"

    def reductions(self, phase: int) -> Iterator[int]:
        """Sums and maxima of what a phase computes."""
        for number in self.made:
            after = self.code.values[number].phase == phase + 1
            if after and self.code.operator(number)[0] in REDUCTIONS:
                yield number

    def _needed(self, phase: int) -> list[int]:
        """Whole values that a pass reads or computes, in order."""
        code = self.code
        found: set[int] = set()
        todo = [code.operator(n)[1][0] for n in self.reductions(phase)]
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
            return read(code, number, readings[number])
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
