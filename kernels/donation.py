"""New state tensors that a prepared step writes where the old ones lie.

A caller that does not need the old state any more gives it to the step, and a device then need
not hold both. A new tensor may take the memory of the old one of its place in the state where

* a chain of elementwise operators makes it, with an element of its own for each of the old one,
  and without sums or maxima of rows;
* the chain reads the old tensor only at the place that it writes, dense and from the start;
* nothing reads the old tensor later, or in the same launch beside that chain;
* the old tensor is not itself a tensor of the new state.

Whether two loads share memory is seen at each step (``step.py``). The bits are the same.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from identic.kernels.chains import External
from identic.kernels.draft import Draft, Operation, chain_bind
from identic.kernels.engine import Joins, Overwrites
from identic.kernels.joined import ROWS, is_scalar, joined_bind, key_of, of_rows


def overwritten(draft: Draft, results: Sequence[int], old: Mapping[int, int]) -> dict[int, int]:
    """Choose what is written over what, and bind the chains for it.

    Args:
        draft: finished, joined and laid out in an arena.
        results: slots of the plan's outputs.
        old: by the place of an output, the slot of the load whose memory it may take.

    Returns:
        Slots of new tensors with those of the old ones; none where the engine cannot do it.
    """
    if not isinstance(draft.calls, Overwrites):
        return {}
    written = [slot for operation in draft.operations for slot in operation.writes]
    makers = {slot: n for n, o in enumerate(draft.operations) for slot in o.writes}
    found: dict[int, int] = {}
    for place, new in enumerate(results):
        load = old.get(place)
        once = new in makers and written.count(new) == 1
        if load is None or load in results or new in found or not once:
            continue
        if _fits(draft, makers[new], new, load):
            found[new] = load
    for operation in draft.operations:
        _rebind(draft, operation, found)
    return found


def _fits(draft: Draft, number: int, new: int, old: int) -> bool:
    """Whether an operation may write one slot over another."""
    if draft.slots[old].last != number:
        return False
    chains = draft.operations[number].chains
    reading = [c for c in chains if any(draft.base(slot) == old for slot in c.reads)]
    return len(reading) == 1 and new in reading[0].writes and _in_place(draft, reading[0], new, old)


def _in_place(draft: Draft, chain: Operation, new: int, old: int) -> bool:
    """Whether a chain reads each element of one slot only where it writes the other."""
    chained = chain.chained
    if chained is None or any(name in ROWS for name, _ in chained.code):
        return False
    if chained.members[new] in of_rows(chained):
        return False
    slots = draft.slots[new], draft.slots[old]
    elements = math.prod(chained.shape)
    same = slots[0].dtype is slots[1].dtype and all(s.elements == elements for s in slots)

    def dense(x: External) -> bool:
        return not x.of_rows and x.offset == 0 and is_scalar(x, chained.shape) is False

    return same and all(dense(x) for x in chained.externals if x.slot == old)


def _rebind(draft: Draft, operation: Operation, found: Mapping[int, int]) -> None:
    """Make an operation's chains anew, if a result of them is written over an input."""
    pairs = {pair for chain in operation.chains for pair in _over(chain, found)}
    over, calls, chained = sorted(pairs), draft.calls, operation.chained
    if not over:
        return
    if chained is not None:
        kept = {slot: chained.members[slot] for slot in operation.writes}
        operation.bind = chain_bind(calls, chained, operation.reads, kept, over)
        return
    key = key_of(operation.parts[0])
    if key is None or not isinstance(calls, Joins):
        raise RuntimeError("chains that do not join were joined")
    operation.bind = joined_bind(calls, key, operation.parts, over)


def _over(chain: Operation, found: Mapping[int, int]) -> list[tuple[int, int]]:
    """Places of a chain's results, and numbers of the inputs that each is written over."""
    externals = chain.chained.externals if chain.chained is not None else ()
    return [
        (place, number)
        for place, slot in enumerate(chain.writes)
        for number, x in enumerate(externals)
        if found.get(slot) == x.slot
    ]
