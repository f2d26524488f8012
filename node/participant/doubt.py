"""*Cannot tell*: when a party's own data or machine are not sound, and what it does then.

It accuses nobody. It says so loudly: in its log, in its numbers, in the status of its node,
and with the job on everybody's screen. Before it accuses anybody it looks twice.

Spec: docs/spec/execution.md (EXE-8, EXE-21), docs/spec/jobs.md (JOB-30, JOB-33).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial

from identic.node.participant.base import Participant
from identic.node.participant.runs import assignment
from identic.node.rpc.client import pause_s
from identic.node.worker.frames import MarkDone, OwnRun, StoredState, Train
from identic.node.worker.handle import Worker
from identic.protocol.errors import IdenticError, LocalError, ProtocolError, Unsound
from identic.protocol.ids import Count, Digest, JobId
from identic.protocol.job.messages import Ask
from identic.protocol.job.state import Job, Phase

TRIES = 3
"""How often the parts of a job are fetched before a party cannot tell."""

DATA_RULES = ("EXE-", "NET-", "PRG-")
"""Rules that a blob breaks when it is not what the terms or a commitment name."""


def is_unsound(error: IdenticError) -> bool:
    """Whether an error is about this machine or its data, and so about nobody else."""
    if isinstance(error, ProtocolError):
        return error.rule.startswith(DATA_RULES)
    return isinstance(error, Unsound)


class Alarms:
    """What a party could not tell.

    Attributes:
        count: how often.
    """

    def __init__(self, party: Participant) -> None:
        self.count = 0
        self._party = party
        self._last: dict[JobId, str] = {}

    def give(self, job: Job, what: str, error: IdenticError, step: int = 0) -> None:
        """Say that something cannot be told.

        Args:
            job: about which job.
            what: what is not sound, in a few words.
            error: how that was noticed.
            step: how far this party is with the job.
        """
        party = self._party
        self.count += 1
        self._last[job.id] = what
        party.context.metrics.alarms.labels(party.name).inc()
        party.log.error(
            "cannot tell",
            job=job.id.name,
            attempt=int(job.attempt),
            what=what,
            problem=str(error),
        )
        party.report(job.id, step, None, 0.0, f"cannot tell: {what}")

    @property
    def details(self) -> Mapping[str, str]:
        """Lines for the status of the node."""
        lines = {f"alarm about {job.name}": f"cannot tell: {w}" for job, w in self._last.items()}
        return {"cannot tell": str(self.count), **lines}


async def fetch_reference(party: Participant, job: Job) -> None:
    """Have the program, the initial state and the data of a job.

    Raises:
        ProtocolError: the coordinator has not got a part.
        Unsound: a part cannot be had, several times.
    """
    for attempt in range(TRIES):
        try:
            await party.fetch_job(job)
        except LocalError as error:
            if attempt + 1 == TRIES:
                raise Unsound(
                    f"a part of the job cannot be had: {error.problem}", remedy=error.remedy
                ) from error
            await asyncio.sleep(pause_s(attempt))
        else:
            return


async def fetch_stored(party: Participant, job: Job, state: StoredState) -> None:
    """Have a state that the solver has stored; it is asked for if the coordinator has lost it.

    Raises:
        ProtocolError: the coordinator has not got it, and nobody stored it again.
        LocalError: it gives what cannot be used.
    """
    try:
        await party.fetch(state.blob)
    except IdenticError as error:
        if state.mark == 0:
            raise
        party.log.warning("a stored state is asked for", job=job.id.name, problem=str(error))
        await _ask(party, job, state.mark)
        await party.fetch(state.blob)


async def _ask(party: Participant, job: Job, mark: Count) -> None:
    """Ask for a state, and wait until it is stored again or the attempt is over."""
    for _ in range(TRIES):
        free = await party.until(partial(_free, party, job))
        if not free:
            return
        said = await party.try_to_say(Ask(job.id, job.attempt, mark))
        # What was said is on the board only when its entry has come back.
        await party.catch_up()
        if said:
            await party.until(partial(_free, party, job))
            return


def _free(party: Participant, job: Job) -> bool | None:
    """Whether a state may be asked for; nothing while one is, ``False`` at the attempt's end."""
    now = party.current(job)
    if now is None:
        return False
    return True if now.ask is None and now.phase is not Phase.DISPUTED else None


async def look_again(party: Participant, job: Job, own: OwnRun, mark: int, root: Digest) -> None:
    """Execute up to a mark once more, in a new process, before anybody is accused.

    Args:
        party: who looks.
        job: what was executed.
        own: the run before the mark, with a stored state to start from.
        mark: where it differs from the solver's.
        root: the state root that this party found there.

    Raises:
        Unsound: the state is another one this time.
    """
    found: Digest | None = None
    async with Worker(assignment(party.context, job)) as worker:
        async for reply in worker.train(Train(own, Count(mark), keep=False)):
            if isinstance(reply, MarkDone) and reply.index == mark:
                found = reply.mark.state_root
    # EXE-21: who accuses somebody has come to the same state twice.
    if found != root:
        raise Unsound(
            f"this machine came to two different states at mark {mark}",
            remedy="run `identic doctor`, and test the memory of this machine",
        )
