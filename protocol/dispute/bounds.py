"""How long a dispute gets, before anything is played: rounds, bytes and evidence.

Everything follows from the terms and the program, so that whoever accepts a job knows what a
dispute about it can cost.

* ``course`` is the dispute about a run that first goes wrong at a given place: exactly the
  rounds that are played, and exactly the bytes that each side publishes in them.
* ``worst`` is the most over all places. It looks at every value of the plan; of a result at
  the corners and the middle, and of a fold at entries near its ends and its middle. No
  operator's folds are longer, nest deeper or read more elsewhere.

Both sides publish as much as each other: lists of one round have the same length. Bytes are
those of moves (DSP-5); ``ENVELOPE_BYTES`` more go with each over the network.

Spec: docs/spec/dispute.md (DSP-20).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

from identic.protocol.dispute.clocks import LONG, steps_from_stored, weight
from identic.protocol.dispute.moves import WIDTH
from identic.protocol.dispute.spans import Span, whole
from identic.protocol.hashing import path_length
from identic.protocol.job.terms import JobTerms
from identic.protocol.ops.base import Call
from identic.protocol.ops.evaluate import looked_position
from identic.protocol.ops.folds import Element, Fold, Looked, Nested, Operand, Step
from identic.protocol.program.plan import PlannedCall, Source, StepPlan
from identic.protocol.tensors import CHUNK_BYTES, TensorType, ravel

DIGEST_BYTES = 32
WORD_BYTES = 8
COUNT_BYTES = 4
"""Length that the encoding puts before a list or before bytes."""

ENVELOPE_BYTES = 32 + 8 + 32 + 1 + 64
"""What goes with a move: dispute, round, party, kind of move, and the signature (DSP-14)."""

_EVIDENCE_BYTES = 3 * COUNT_BYTES
_LEAF_BYTES = 8 + DIGEST_BYTES + COUNT_BYTES
_CHUNK_BYTES = 8 + 8 + COUNT_BYTES + COUNT_BYTES

ReadIndex = Callable[[int, int], int]
"""Word at a flat position of a plan value."""


@dataclass(frozen=True)
class Fault:
    """The first wrong thing of a run, in the order of the descent."""

    step: int | None = None
    """Training step, counted from 0; ``None`` when the initial state is wrong."""
    value: int | None = None
    """Plan value; ``None`` when all values are right and the new state is wrong."""
    part: int = 0
    """Of the new state: 0 for its header, ``i + 1`` for tensor ``i``."""
    element: int = 0
    """Flat position in the value."""
    path: tuple[int, ...] = ()
    """Entry of each nested fold, outermost first; where it ends early, last entries follow."""


@dataclass(frozen=True)
class Exchange:
    """One round."""

    level: str
    """Name of the level."""
    items: int
    """Items that each side publishes."""
    nbytes: int
    """Bytes of each side's move."""
    again: int | None = None
    """Steps that a side executes again for its move; ``None`` if it has it at hand (DSP-10)."""


@dataclass(frozen=True)
class Course:
    """A whole dispute."""

    rounds: tuple[Exchange, ...]
    evidence: int
    """Bytes of the evidence that either side gives; 0 where none is asked for."""

    @property
    def nbytes(self) -> int:
        """Bytes of one side's moves, evidence left aside."""
        return sum(exchange.nbytes for exchange in self.rounds)

    @property
    def again(self) -> int:
        """Steps that a side executes again in all rounds."""
        return sum(exchange.again or 0 for exchange in self.rounds)


@dataclass(frozen=True)
class Most:
    """Bounds of a part of a dispute; each may be reached at another place."""

    rounds: int = 0
    items: int = 0
    """Items in one move."""
    nbytes: int = 0
    """Bytes of one side's moves."""
    evidence: int = 0

    def __or__(self, other: Most) -> Most:
        """The larger of each."""
        return Most(
            max(self.rounds, other.rounds),
            max(self.items, other.items),
            max(self.nbytes, other.nbytes),
            max(self.evidence, other.evidence),
        )

    def __add__(self, other: Most) -> Most:
        """One after the other."""
        return Most(
            self.rounds + other.rounds,
            max(self.items, other.items),
            self.nbytes + other.nbytes,
            max(self.evidence, other.evidence),
        )


@dataclass(frozen=True)
class Worst:
    """The most that a dispute about a job can take."""

    levels: Mapping[str, Most]
    """By name of the level."""
    total: Most
    """Of one dispute; less than the sum of the levels, which no single dispute passes all."""


# ---- one dispute ----------------------------------------------------------------------------


def course(
    terms: JobTerms,
    plan: StepPlan,
    fault: Fault,
    *,
    marks: int | None = None,
    width: int = WIDTH,
    read: ReadIndex | None = None,
) -> Course:
    """The dispute about a run that first goes wrong at ``fault``.

    Args:
        terms: of the job.
        plan: the unrolled program.
        fault: a place of the run.
        marks: marks under each claim; up to the one at which the fault shows if ``None``.
        width: most items of a ``Children`` move.
        read: word of an element, for steps that look an index up: where it is missing, the
            evidence of such a step is the most that it can be.
    """
    if fault.step is None:
        return Course(tuple(_tree("run", marks or 1, 0, width)), 0)
    mark = fault.step // terms.cadence + 1
    marks = marks or mark + 1
    start, steps = terms.step_of(mark - 1), terms.step_of(mark) - terms.step_of(mark - 1)
    rounds = list(_tree("run", marks, mark, width))
    if steps > 1:
        again = steps_from_stored(terms, start) + steps
        rounds.append(replace(_digests("interval", steps), again=again))
    value = plan.values if fault.value is None else fault.value
    again = steps_from_stored(terms, fault.step) + 1
    rounds += _first(_tree("step", plan.values, value, width, besides=1), again)
    if fault.value is None:
        parts = 1 + len(plan.outputs)
        rounds += _tree("state", parts, fault.part, width)
        inside = None if fault.part == 0 else plan.outputs[fault.part - 1]
        evidence = 0 if inside is None else _of_leaf(_trace_path(plan, inside, value, width))
        return Course(tuple(rounds), _EVIDENCE_BYTES + evidence if evidence else 0)
    planned = plan.call(value)
    if planned is None:
        before = None if start != fault.step else _path(marks, mark - 1, mark, width)
        return Course(tuple(rounds), _of_load(plan, value, before))
    kind = plan.type(value)
    if kind.elements == 0:
        return Course(tuple(rounds), 0)
    chunk = fault.element // kind.chunk_elements
    rounds += _first(_tree("output", kind.chunks, chunk, width), 1)
    rounds.append(_bytes("chunk", kind, chunk))
    fold, path = planned.call.op.fold(planned.call, fault.element), fault.path
    while True:
        if fold.length > 1:
            rounds.append(_words(fold))
        entry = fold.entry(path[0] if path else fold.length - 1)
        if isinstance(entry, Step):
            return Course(tuple(rounds), _of_step(plan, value, planned, entry, width, read))
        fold, path = entry.fold, path[1:]


# ---- the most of all disputes ---------------------------------------------------------------


def worst(terms: JobTerms, plan: StepPlan, *, width: int = WIDTH) -> Worst:
    """The most that a dispute about a job can take, whatever is wrong and whoever lies."""
    return over_run(terms, below_run(plan, width=width), width=width)


def over_run(terms: JobTerms, below: Worst, *, width: int = WIDTH) -> Worst:
    """The most of a dispute about a run, from that about one of its steps."""
    run = _sum(_tree("run", terms.marks, 0, width))
    # A load of a state may need its mark's leaf besides.
    run |= Most(evidence=_of_leaf(_longest_path(terms.marks, width)))
    steps = min(terms.cadence, terms.steps)
    interval = _sum([_digests("interval", steps)] if steps > 1 else [])
    levels = {"run": run, "interval": interval, **below.levels}
    total = run + interval + below.total
    return Worst(levels, replace(total, evidence=below.total.evidence + run.evidence))


def below_run(plan: StepPlan, *, width: int = WIDTH) -> Worst:
    """The most of a dispute about one step of a plan, the marks left aside."""
    state = _sum(_tree("state", 1 + len(plan.outputs), 0, width))
    state |= Most(evidence=_EVIDENCE_BYTES + _of_leaf(_longest_path(plan.values, width, 1)))
    total = _sum(_tree("step", plan.values, plan.values, width, besides=1)) + state
    levels = {"state": state}
    block = whole(plan.values, width, besides=1).block
    # Rounds below the step level depend on the call only; those of the step level on the block,
    # and in it no value takes more than the first, since only last blocks are shorter.
    numbers = reversed(range(plan.values))
    places = {(value // block, _planned_call(plan, value)): value for value in numbers}
    known: dict[Call, dict[str, Most]] = {}
    for (_, call), value in places.items():
        step = _sum(_tree("step", plan.values, value, width, besides=1))
        below: Mapping[str, Most] = {}
        if call is not None:
            if call not in known:
                known[call] = _of_call(plan, call, width)
            below = known[call]
        levels = _merged(levels, {"step": step, **below})
        total |= sum(below.values(), step)
    loads = [_of_load(plan, value, None) for value in range(len(plan.loads))]
    levels["step"] |= Most(evidence=max(loads, default=0))
    return Worst(levels, total | levels["step"])


def _planned_call(plan: StepPlan, value: int) -> Call | None:
    planned = plan.call(value)
    return None if planned is None else planned.call


def _of_call(plan: StepPlan, call: Call, width: int) -> dict[str, Most]:
    """The levels below an operator's result."""
    kind = call.output
    if kind.elements == 0:
        return {}
    leaf = _longest_path(plan.values, width, 1)
    chunks = [_largest_chunk(operand) + _of_leaf(leaf) for operand in call.inputs]
    most = Most()
    for element in _corners(kind):
        most |= _deepest(call.op.fold(call, element), chunks)
    return {
        "output": _sum(_tree("output", kind.chunks, 0, width)),
        "chunk": _sum([_bytes("chunk", kind, 0)]),
        "fold": most,
    }


def _deepest(fold: Fold, opened: Sequence[int]) -> Most:
    """The most of the folds from this one inwards; ``opened``: evidence for each operand."""
    inner, evidence = Most(), 0
    for index in _samples(fold.length):
        entry = fold.entry(index)
        if isinstance(entry, Nested):
            inner |= _deepest(entry.fold, opened)
        else:
            read = sum(opened[number] for operand in entry.operands for number in _reads(operand))
            evidence = max(evidence, read)
    own = Most(evidence=_EVIDENCE_BYTES + evidence)
    return own + inner + _sum([_words(fold)] if fold.length > 1 else [])


def _corners(kind: TensorType) -> Iterator[int]:
    """Elements at the corners, the middles of the edges, and so on, of a tensor."""
    axes = [sorted({0, length // 2, length - 1}) for length in kind.shape]
    return (ravel(index, kind.shape) for index in product(*axes))


def _samples(length: int) -> list[int]:
    """Entries near the ends of a fold, and in its middle."""
    near = (0, 1, 2, 3, length // 2, length - 4, length - 3, length - 2, length - 1)
    return sorted({index for index in near if 0 <= index < length})


def _merged(a: Mapping[str, Most], b: Mapping[str, Most]) -> dict[str, Most]:
    return {name: a.get(name, Most()) | b.get(name, Most()) for name in (*a, *b)}


def _sum(rounds: Iterable[Exchange]) -> Most:
    return sum((Most(1, r.items, r.nbytes) for r in rounds), Most())


# ---- rounds ---------------------------------------------------------------------------------


def _spans(leaves: int, leaf: int, width: int, besides: int = 0) -> Iterator[Span]:
    """What the rounds of a tree publish on the way to a leaf; one round to an item besides."""
    span = whole(leaves, width, besides)
    yield span
    while span.block > 1 and leaf < leaves:
        span = span.inside((leaf - span.first) // span.block, width)
        yield span


def _tree(level: str, leaves: int, leaf: int, width: int, besides: int = 0) -> Iterator[Exchange]:
    for span in _spans(leaves, leaf, width, besides):
        yield _digests(level, span.items + besides)
        besides = 0


def _digests(level: str, items: int) -> Exchange:
    return Exchange(level, items, COUNT_BYTES + DIGEST_BYTES * items)


def _bytes(level: str, kind: TensorType, chunk: int) -> Exchange:
    size = _chunk_size(kind, chunk)
    return Exchange(level, size // kind.dtype.size, COUNT_BYTES + size)


def _words(fold: Fold) -> Exchange:
    size = COUNT_BYTES + WORD_BYTES * fold.length
    return Exchange("fold", fold.length, size, 0 if weight(fold) > LONG else None)


def _first(rounds: Iterator[Exchange], again: int) -> Iterator[Exchange]:
    """The rounds of a level, of which the first needs re-execution."""
    yield replace(next(rounds), again=again)
    yield from rounds


def _chunk_size(kind: TensorType, chunk: int) -> int:
    return min(kind.nbytes - chunk * CHUNK_BYTES, CHUNK_BYTES)


# ---- evidence -------------------------------------------------------------------------------


def _path(leaves: int, leaf: int, differs: int, width: int, besides: int = 0) -> int | None:
    """Length of the path that opens an agreed leaf; ``None`` if it was published itself.

    ``leaf`` lies left of ``differs``, to which the rounds led.
    """
    for span in _spans(leaves, differs, width, besides):
        item = (leaf - span.first) // span.block
        first, last = span.range(item)
        apart = differs >= leaves or item != (differs - span.first) // span.block
        if span.first <= leaf and apart:
            return None if span.block == 1 else path_length(leaf - first, last - first)
    raise ValueError(f"leaf {leaf} is not left of {differs}")


def _trace_path(plan: StepPlan, value: int, differs: int, width: int) -> int | None:
    return _path(plan.values, value, differs, width, besides=1)


def _longest_path(leaves: int, width: int, besides: int = 0) -> int | None:
    """The longest path of an agreed leaf; ``None`` where every leaf is published itself."""
    block = whole(leaves, width, besides).block
    return None if block == 1 else block.bit_length() - 1


def _of_leaf(path: int | None) -> int:
    return 0 if path is None else _LEAF_BYTES + DIGEST_BYTES * path


def _of_load(plan: StepPlan, value: int, before: int | None) -> int:
    """Evidence about a load; only what comes from the state needs any."""
    load = plan.loads[value]
    if load.source is not Source.STATE:
        return 0
    parts = 1 + len(plan.outputs)
    opening = _LEAF_BYTES + DIGEST_BYTES * path_length(1 + load.index, parts)
    return _EVIDENCE_BYTES + _of_leaf(before) + opening


def _of_chunk(kind: TensorType, chunk: int) -> int:
    path = path_length(chunk, kind.chunks)
    return _CHUNK_BYTES + _chunk_size(kind, chunk) + DIGEST_BYTES * path


def _largest_chunk(kind: TensorType) -> int:
    """Evidence for one chunk of a tensor at its most; 0 when it has none."""
    if kind.chunks == 0:
        return 0
    return _CHUNK_BYTES + _chunk_size(kind, 0) + DIGEST_BYTES * (kind.chunks - 1).bit_length()


def _of_step(
    plan: StepPlan,
    value: int,
    planned: PlannedCall,
    step: Step,
    width: int,
    read: ReadIndex | None,
) -> int:
    """Evidence for a primitive step of an element of ``value``."""
    tensors: set[int] = set()
    chunks: set[tuple[int, int]] = set()
    most = 0

    def add(number: int, element: int) -> None:
        tensors.add(planned.inputs[number])
        chunks.add((planned.inputs[number], element // call.inputs[number].chunk_elements))

    call = planned.call
    for operand in step.operands:
        if isinstance(operand, Element):
            add(operand.input, operand.index)
        elif isinstance(operand, Looked):
            add(operand.at.input, operand.at.index)
            if read is None:
                tensors.add(planned.inputs[operand.input])
                most += _largest_chunk(call.inputs[operand.input])
                continue
            word = read(planned.inputs[operand.at.input], operand.at.index)
            position = looked_position(call, operand, word)
            if position is not None:
                add(operand.input, position)
    if not tensors:
        return 0
    leaves = sum(_of_leaf(_trace_path(plan, tensor, value, width)) for tensor in tensors)
    opened = sum(_of_chunk(plan.type(tensor), chunk) for tensor, chunk in chunks)
    return _EVIDENCE_BYTES + leaves + opened + most


def _reads(operand: Operand) -> tuple[int, ...]:
    """Input tensors of which an operand opens an element."""
    if isinstance(operand, Element):
        return (operand.input,)
    if isinstance(operand, Looked):
        return (operand.at.input, operand.input)
    return ()
