"""``identic debug``: bit patterns through an operator, and two backends side by side."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from identic.kernels.arrays import Array, from_words, words
from identic.node.cli import files
from identic.node.cli import words as said
from identic.node.cli.faults import Usage
from identic.node.cli.output import Answer, Lines, columns, current, indented
from identic.node.debug import compare, twins
from identic.node.worker.devices import AUTO
from identic.protocol.dtypes import DType
from identic.protocol.errors import LocalError
from identic.protocol.ops import KERNEL_SET, TABLE
from identic.protocol.ops.base import Call
from identic.protocol.ops.elementwise import OPERATORS as ELEMENTWISE
from identic.protocol.program.codec import MAX_PROGRAM_BYTES, load
from identic.protocol.program.types import Attribute, Program
from identic.protocol.program.unroll import unroll
from identic.protocol.program.validate import Limits
from identic.protocol.tensors import TensorType

FLAGS = (DType.BOOL,)
"""Types of the operands that have one of their own: the condition of `where`."""


# ---- eval -------------------------------------------------------------------------------------


def evaluate(
    op: Annotated[str, typer.Argument(metavar="OP", help="An elementwise operator.")],
    patterns: Annotated[
        list[str],
        typer.Argument(metavar="HEX...", help="Bit patterns, one group of operands after another."),
    ],
    dtype: Annotated[
        str, typer.Option("--dtype", metavar="TYPE", help="Element type of the operands.")
    ] = "float32",
    to: Annotated[
        str, typer.Option("--to", metavar="TYPE", help="Element type that `cast` makes.")
    ] = "float32",
    device: Annotated[
        str,
        typer.Option(
            "--device", metavar="DEVICE", help="A CUDA device to be among them, such as cuda:1."
        ),
    ] = AUTO,
) -> Answer:
    """Apply an operator to bit patterns on every backend.

    For example `identic debug eval add 3f800000 33800000`, or
    `identic debug eval cast 4f000000 --to int32`. The backends are the definition, the
    reference, the native kernels on every vector path of this machine, and a CUDA device if
    there is one; the exit code is 1 if they do not all give the same bits.
    """
    call = _call(op, dtype, to, len(patterns))
    groups = _groups(call, patterns)
    inputs = [
        from_words(kind, [group[i] for group in groups]) for i, kind in enumerate(call.inputs)
    ]
    made = {name: words(twins.named(name).run(call, inputs)) for name in twins.names(device)}
    rows = [
        {
            "operands": [_pattern(k.dtype, w) for k, w in zip(call.inputs, group, strict=True)],
            "results": {name: said.pattern(call.output.dtype, r[i]) for name, r in made.items()},
            "value": said.element(call.output.dtype, made["fold"][i]),
            "agree": len({r[i] for r in made.values()}) == 1,
        }
        for i, group in enumerate(groups)
    ]
    agree = all(row["agree"] for row in rows)
    value = {
        "op": op,
        "dtype": call.inputs[0].dtype.label,
        "result": call.output.dtype.label,
        "kernel_set": KERNEL_SET,
        "agree": agree,
        "rows": rows,
    }
    return Answer(value, _evaluated(call, groups, made), yes=agree)


def _call(op: str, dtype: str, to: str, count: int) -> Call:
    """The operator on vectors of as many elements as there are groups of patterns."""
    if op not in {o.name for o in ELEMENTWISE}:
        listed = ", ".join(o.name for o in ELEMENTWISE)
        raise Usage(f"{op} is no elementwise operator", remedy=f"they are {listed}")
    operator = TABLE[op]
    arity = operator.arity or 1
    if count % arity:
        raise Usage(
            f"{op} takes {arity} operands, and {count} patterns are no multiple of that",
            remedy=f"give {arity} patterns for each result",
        )
    kind = DType.BOOL if op in {"not", "and", "or"} else _dtype(dtype)
    kinds = [TensorType.of(kind, (count // arity,))] * arity
    if op == "where":
        kinds[0] = TensorType.of(DType.BOOL, (count // arity,))
    attributes = (Attribute("dtype", (int(_dtype(to)),)),) if op == "cast" else ()
    return operator.call(tuple(kinds), attributes)


def _dtype(label: str) -> DType:
    labels = [d.label for d in DType]
    if label not in labels:
        raise Usage(f"there is no element type {label}", remedy=f"take one of {', '.join(labels)}")
    return DType.from_label(label)


def _groups(call: Call, patterns: Sequence[str]) -> list[list[int]]:
    """The words of each group of operands."""
    arity = len(call.inputs)
    kinds = [call.inputs[i % arity].dtype for i in range(len(patterns))]
    found = [_word(text, kind) for text, kind in zip(patterns, kinds, strict=True)]
    return [found[i : i + arity] for i in range(0, len(found), arity)]


def _word(text: str, dtype: DType) -> int:
    digits = text.lower().removeprefix("0x")
    try:
        word = int(digits, 16)
    except ValueError:
        word = -1
    top = 1 if dtype is DType.BOOL else (1 << 8 * dtype.size) - 1
    if not 0 <= word <= top or "_" in digits:
        raise Usage(
            f"{text} is no bit pattern of {dtype.label}",
            remedy=f"write up to {2 * dtype.size} hex digits, such as {said.pattern(dtype, 1)}",
        )
    return word


def _pattern(dtype: DType, word: int) -> str:
    return said.pattern(dtype, word)


def _evaluated(call: Call, groups: list[list[int]], made: dict[str, list[int]]) -> Lines:
    """A block for each group: its operands, then the results, those alike together."""
    kind = call.output.dtype
    lines: list[Text | str] = []
    for i, group in enumerate(groups):
        shown = zip(call.inputs, group, strict=True)
        operands = [f"{said.pattern(k.dtype, w)} ({said.element(k.dtype, w)})" for k, w in shown]
        lines.append(f"{call.op.name} {'  '.join(operands)}")
        alike: dict[int, list[str]] = {}
        for name, results in made.items():
            alike.setdefault(results[i], []).append(name)
        rows = [
            (said.pattern(kind, word), said.element(kind, word), ", ".join(names))
            for word, names in alike.items()
        ]
        lines += indented(columns(rows), 2)
        if len(alike) > 1:
            lines.append(Text("  ✗ they differ", style="bold red"))
    return lines


# ---- bits -------------------------------------------------------------------------------------


def bits(
    one: Annotated[str, typer.Argument(metavar="A", help="A backend or vector path.")],
    other: Annotated[str, typer.Argument(metavar="B", help="Another one.")],
    op: Annotated[
        list[str] | None,
        typer.Option("--op", metavar="OP", help="An operator; may be given again.  [default: all]"),
    ] = None,
    program: Annotated[
        str | None,
        typer.Option("--program", metavar="FILE", help="A program, or a job FILE.py[:FUNCTION]."),
    ] = None,
    cases: Annotated[
        int, typer.Option("--cases", metavar="N", min=1, help="Random calls of each operator.")
    ] = 50,
    seed: Annotated[
        int, typer.Option("--seed", metavar="N", min=0, help="What the first call follows from.")
    ] = 0,
) -> Answer:
    """Compare two backends or vector paths, bit by bit.

    A and B are `fold` (the definition), `reference`, `cpu`, a vector path such as `avx2`, with
    `:N` for N threads, or a device such as `cuda` and `cuda:1`. Compares random calls of operators,
    with zeros, subnormals, NaNs and the largest numbers among the operands; or every operator of a
    program's first step. Shows the first element that differs, and then the exit code is 1.
    """
    pair = (_twin(one), _twin(other))
    output = current()
    if program is not None:
        if op:
            raise Usage("--op and --program exclude each other", remedy="give one of them")
        plan, state, data, number = _program(program, seed)
        with output.busy(f"comparing {len(plan.calls)} operators"):
            found = compare.program(plan, state, data, number, pair, _quiet)
        again = f"--program {program} --seed {seed}"
    else:
        unknown = [name for name in op or () if name not in TABLE]
        if unknown:
            raise Usage(
                f"there is no operator {unknown[0]}", remedy=f"they are {', '.join(sorted(TABLE))}"
            )
        names = op or sorted(TABLE)
        with output.busy(f"comparing {said.plural(len(names), 'operator')}"):
            found = compare.operators(names, cases, seed, pair, _quiet)
        again = ""
        if found.difference is not None:
            name, _, at = found.difference.where.partition(", seed ")
            again = f"--op {name} --seed {at} --cases 1"
    return _bits((one, other), found, again)


def _twin(name: str) -> twins.Twin:
    try:
        return twins.named(name)
    except LocalError as error:
        raise Usage(error.problem, remedy=error.remedy) from error


def _quiet(what: str) -> None:
    del what


def _program(target: str, seed: int) -> tuple[Any, Sequence[Array], Sequence[Array], int]:
    """A plan with a state, data and a seed: a job's own, or made up for a program's bytes."""
    path = Path(target)
    if target.partition(":")[0].endswith(".py"):
        try:
            capture = importlib.import_module("identic.node.capture")
        except ModuleNotFoundError as error:
            if error.name != "torch":
                raise
            raise LocalError(
                "a job file needs torch, which is not installed",
                remedy="pip install 'identic[torch]', or give the file of a program",
            ) from error
        job = capture.load_job(target)
        captured = capture.capture(job)
        return unroll(captured.program), captured.state, captured.data, job.seed
    found: Program = load(files.read(path, MAX_PROGRAM_BYTES, "a program"), Limits())
    state = compare.made_up([v.type for v in found.state], seed)
    data = compare.made_up([v.type for v in found.data], seed + 1)
    return unroll(found), state, data, seed


def _bits(names: tuple[str, str], found: compare.Found, again: str) -> Answer:
    one, other = names
    equal = found.difference is None
    value = {
        "equal": equal,
        "a": one,
        "b": other,
        "kernel_set": KERNEL_SET,
        "calls": found.calls,
        "elements": found.elements,
        "difference": None if found.difference is None else _difference(found.difference),
    }
    count = f"{said.plural(found.elements, 'element')} of {said.plural(found.calls, 'call')}"
    if found.difference is None:
        return Answer(value, [f"✓ equal: {one} and {other}, {count} compared"])
    lines = _different(names, found.difference)
    more = f"  again: identic debug bits {one} {other} {again}"
    return Answer(value, [*lines, "", f"  {count} compared", more], yes=False)


def _difference(d: compare.Difference) -> dict[str, Any]:
    kind = d.call.output.dtype
    return {
        "where": d.where,
        "op": d.call.op.name,
        "inputs": [str(k) for k in d.call.inputs],
        "attributes": {a.name: list(a.values) for a in d.call.attributes},
        "result": str(d.call.output),
        "element": d.flat,
        "index": list(d.place),
        "a": said.pattern(kind, d.words[0]),
        "b": said.pattern(kind, d.words[1]),
        "rule": said.pattern(kind, d.rule),
        "operands": [{"place": o.place, "word": said.pattern(o.dtype, o.word)} for o in d.operands],
        "fold": d.steps,
    }


def _different(names: tuple[str, str], d: compare.Difference) -> Lines:
    """Which element, its operands, and what each twin and the definition make of them."""
    kind = d.call.output.dtype
    taken = ", ".join(str(k) for k in d.call.inputs)
    given = "".join(f" {a.name}={','.join(str(v) for v in a.values)}" for a in d.call.attributes)
    rows: list[tuple[str, str, str]] = [
        (o.place, said.element(o.dtype, o.word), said.pattern(o.dtype, o.word)) for o in d.operands
    ]
    results = zip((*names, "by the rule"), (*d.words, d.rule), strict=True)
    rows += [(n, said.element(kind, w), said.pattern(kind, w)) for n, w in results]
    head = Text(f"✗ {names[0]} and {names[1]} differ", style="bold red")
    place = ", ".join(str(i) for i in d.place)
    return [
        head.append(f" in {d.where}", style="not bold default"),
        f"  {d.call.op.name} of {taken or 'nothing'}{given} gives {d.call.output}",
        f"  element {d.flat:,} = [{place}]"
        + ("" if d.operands else f", made in {said.plural(d.steps, 'step')}"),
        *indented(columns(rows, right=(1,)), 4),
    ]
