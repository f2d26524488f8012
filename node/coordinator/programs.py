"""The programs of the jobs on the board, loaded once and kept."""

from __future__ import annotations

from identic.node.blobs import Blobs
from identic.protocol.errors import Code, ProtocolError
from identic.protocol.ids import Digest
from identic.protocol.program.codec import MAX_PROGRAM_BYTES, load, program_digest
from identic.protocol.program.plan import StepPlan
from identic.protocol.program.unroll import unroll
from identic.protocol.program.validate import Limits


class Programs:
    """Unrolled programs by the SHA-256 of their blob."""

    def __init__(self, blobs: Blobs, limits: Limits) -> None:
        self._blobs = blobs
        self._limits = limits
        self._plans: dict[Digest, StepPlan] = {}

    def plan(self, blob: Digest, program: Digest) -> StepPlan:
        """Return the plan of the program in ``blob``, which must have the digest ``program``.

        Raises:
            ProtocolError: the blob is missing (NET-8), breaks a rule of programs (PRG rules),
                or is another program (JOB-22).
        """
        if blob not in self._plans:
            loaded = load(self._blobs.read(blob, MAX_PROGRAM_BYTES), self._limits)
            found = program_digest(loaded)
            # JOB-22: the program is the one that the terms name.
            if found != program:
                raise ProtocolError("JOB-22", Code.MISMATCH, got=f"program {found}", want=program)
            self._plans[blob] = unroll(loaded)
        return self._plans[blob]
