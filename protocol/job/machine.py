"""The job machine: one table from (phase, event) to what happens.

``step`` is pure: it returns the job afterwards and the money that moves, or raises and
leaves everything as it was. Time is a field of the event. The caller has checked signatures
(MSG-2) and whatever needs the bytes of blobs (JOB-10 to JOB-12, JOB-22).

Spec: docs/spec/jobs.md, which prints the table.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from identic.protocol.errors import Code, IllegalMove, ProtocolError
from identic.protocol.job.asks import on_ask, on_served
from identic.protocol.job.checks import check_sender, start_of_run
from identic.protocol.job.disputes import awaits_opening, on_challenge, on_opened, on_ruled
from identic.protocol.job.entries import (
    BeaconDrawn,
    DisputeOpened,
    Ruled,
    Settled,
    TimeCalled,
    VerifiersAssigned,
)
from identic.protocol.job.messages import (
    Abandon,
    AcceptJob,
    Ask,
    CallTime,
    CancelJob,
    CannotTell,
    Challenge,
    Commit,
    CommitVerdict,
    Finish,
    RevealVerdict,
    Served,
    Stored,
    SubmitJob,
)
from identic.protocol.job.state import Awaiting, Event, Job, Outcome, Phase
from identic.protocol.job.terms import check_terms, job_id
from identic.protocol.job.training import (
    on_abandon,
    on_accept,
    on_cancel,
    on_commit,
    on_finish,
    on_stored,
)
from identic.protocol.job.verifying import (
    on_assigned,
    on_beacon,
    on_cannot_tell,
    on_reveal,
    on_sealed,
    on_settled,
    on_time,
    wants_verifiers,
)
from identic.protocol.settlement.movements import take_escrow

Handler = Callable[[Job, Event, Any], Outcome]

_RUN: dict[type, Handler] = {
    Commit: on_commit,
    Stored: on_stored,
    Finish: on_finish,
    Served: on_served,
    VerifiersAssigned: on_assigned,
    CannotTell: on_cannot_tell,
}
_JUDGEMENT: dict[type, Handler] = {
    CommitVerdict: on_sealed,
    BeaconDrawn: on_beacon,
    RevealVerdict: on_reveal,
}
_BY_PHASE: dict[Phase, dict[type, Handler]] = {
    Phase.OPEN: {AcceptJob: on_accept, CancelJob: on_cancel},
    Phase.TRAINING: {
        **_RUN,
        Abandon: on_abandon,
        Ask: on_ask,
        Challenge: on_challenge,
        TimeCalled: on_time,
        CallTime: on_time,
    },
    Phase.VERIFYING: {
        VerifiersAssigned: on_assigned,
        CannotTell: on_cannot_tell,
        **_JUDGEMENT,
        Ask: on_ask,
        Served: on_served,
        Challenge: on_challenge,
        TimeCalled: on_time,
        CallTime: on_time,
        Settled: on_settled,
    },
    Phase.DISPUTED: {
        **_RUN,
        **_JUDGEMENT,
        Challenge: on_challenge,
        DisputeOpened: on_opened,
        Ruled: on_ruled,
    },
    Phase.SETTLED: {},
    Phase.EXPIRED: {},
}
TRANSITIONS: dict[tuple[Phase, type], Handler] = {
    (phase, kind): handler for phase, row in _BY_PHASE.items() for kind, handler in row.items()
}
"""What happens on each event in each phase; whatever is absent is an illegal move."""


def open_job(event: Event, said: SubmitJob) -> Outcome:
    """Post a job: its terms are checked and the escrow is taken.

    Raises:
        ProtocolError: JOB-1 for the terms, JOB-6 for a sender that is not the submitter.
    """
    terms = said.terms
    check_terms(terms)
    check_sender(event, terms.submitter, "submitter")
    # JOB-2: there is one blob for each data tensor.
    if len(said.artifacts.data) != len(terms.data):
        raise ProtocolError(
            "JOB-2",
            Code.MISMATCH,
            got=f"{len(said.artifacts.data)} data blobs",
            want=len(terms.data),
        )
    name = job_id(terms)
    marks, frontier = start_of_run(terms)
    job = Job(name, terms, said.artifacts, event.at, marks=marks, frontier=frontier)
    return job, (take_escrow(name, terms.submitter, terms.escrow),)


def step(job: Job, event: Event) -> Outcome:
    """Apply one event to a job.

    Raises:
        ProtocolError: the rule that the event breaks; the job stays as it was.
    """
    handler = TRANSITIONS.get((job.phase, type(event.body)))
    # JOB-5: only the events of the table happen.
    if handler is None:
        raise IllegalMove(
            "JOB-5",
            got=f"{type(event.body).__name__} while {job.phase.value}",
            want=[kind.__name__ for kind in _BY_PHASE[job.phase]],
        )
    return handler(job, event, event.body)


def due(job: Job, at: int, *, can_draw: bool) -> type | None:
    """Kind of the entry that the coordinator owes the job at time ``at``, if any.

    ``can_draw`` tells whether enough parties are enrolled for the job's seats. Since this
    follows from the job alone, a coordinator that fell in between entries goes on as if it
    had not.
    """
    if awaits_opening(job):
        return DisputeOpened
    if job.awaiting is Awaiting.BEACON:
        return BeaconDrawn
    if wants_verifiers(job) and can_draw:
        return VerifiersAssigned
    if job.due_at is None or at < job.due_at:
        return None
    if job.awaiting is Awaiting.WINDOW and job.attesters and job.ask is None:
        return Settled
    return TimeCalled


def transition_table() -> str:
    """The table as Markdown, for the specification."""
    rows = ["| phase | event | what happens |", "|---|---|---|"]
    for (phase, kind), handler in TRANSITIONS.items():
        words = (handler.__doc__ or "").splitlines()[0]
        rows.append(f"| {phase.value} | {kind.__name__} | {words} |")
    return "\n".join(rows) + "\n"
