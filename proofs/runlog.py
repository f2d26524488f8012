"""The solver's run log: a tree of state roots at the commit cadence, signed as it grows.

Spec: docs/spec/commitments.md (COM-6, COM-8).
"""

from __future__ import annotations

from collections.abc import Sequence

from identic.proofs import merkle
from identic.protocol.commitments import RunHead, mark_step, run_leaf
from identic.protocol.errors import Code, ProtocolError
from identic.protocol.ids import Count, Digest, JobId


def run_hashes(states: Sequence[Digest], cadence: int, steps: int) -> list[Digest]:
    """Leaf hashes of the run log over the state roots at marks 0, 1, ..."""
    return [
        run_leaf(mark, mark_step(mark, cadence, steps), state) for mark, state in enumerate(states)
    ]


def run_root(states: Sequence[Digest], cadence: int, steps: int) -> Digest:
    """Root over the state roots at marks 0, 1, ..."""
    return merkle.root(run_hashes(states, cadence, steps))


class RunLog:
    """A run log that grows mark by mark.

    Args:
        job: digest of the job's terms.
        cadence: steps between marks, at least 1.
        steps: steps of the whole run.
    """

    def __init__(self, job: JobId, cadence: int, steps: int) -> None:
        self.job = job
        self.cadence = cadence
        self.steps = steps
        self.states: list[Digest] = []
        self._tree = merkle.IncrementalTree()

    def append(self, state: Digest) -> RunHead:
        """Add the state root at the next mark and return the new head."""
        mark = len(self.states)
        self.states.append(state)
        self._tree.append(run_leaf(mark, mark_step(mark, self.cadence, self.steps), state))
        return self.head

    @property
    def head(self) -> RunHead:
        """The log so far."""
        return RunHead(self.job, Count(len(self.states)), self._tree.root)

    def head_at(self, marks: int) -> RunHead:
        """The log as it was with ``marks`` marks."""
        return RunHead(
            self.job, Count(marks), run_root(self.states[:marks], self.cadence, self.steps)
        )


def check_head(head: RunHead, states: Sequence[Digest], cadence: int, steps: int) -> None:
    """Check that a head is the one over these state roots.

    Raises:
        ProtocolError: another number of marks, or another root (COM-6).
    """
    # COM-6: a run head is the root over exactly its marks.
    if head.marks != len(states):
        raise ProtocolError("COM-6", Code.MISMATCH, got=f"{len(states)} marks", want=head.marks)
    found = run_root(states, cadence, steps)
    if found != head.root:
        raise ProtocolError("COM-6", Code.MISMATCH, got=found, want=head.root)
