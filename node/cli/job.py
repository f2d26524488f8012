"""``identic job``: what is on the board, and how one job fares."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Annotated

import typer
from rich.text import Text

from identic.node.cli import faults, places, words
from identic.node.cli.client import (
    CardOption,
    Client,
    ConfigOption,
    CoordinatorOption,
    IdentityOption,
    chosen,
    client,
)
from identic.node.cli.output import Answer, Lines, columns, current
from identic.node.cli.reading import LogReader
from identic.node.cli.screens import contest, progress
from identic.node.cli.views import contest_view, contests_of, job_view, loss_of, verdict_of
from identic.node.cli.watching import Watch, Watched
from identic.node.rpc.remote import Remote
from identic.node.views import JobDetail, JobSummary
from identic.protocol.ids import Digest, JobId
from identic.protocol.job.state import Job, Phase
from identic.protocol.job.terms import Prices

JobArgument = Annotated[
    str, typer.Argument(metavar="JOB", help="Name of the job, such as j-7f3a91, or its id.")
]
MOST: int = 1000


def list_jobs(
    phase: Annotated[
        str, typer.Option("--phase", help="Only jobs in this phase, such as open.")
    ] = "",
    limit: Annotated[int, typer.Option("--limit", min=1, max=MOST, help="Most jobs shown.")] = 100,
    config: ConfigOption = None,
    coordinator: CoordinatorOption = None,
    card: CardOption = None,
    identity: IdentityOption = None,
) -> Answer:
    """List the jobs of the network, newest first."""
    asker = client(config, coordinator, card, identity)

    async def ask(remote: Remote) -> list[JobSummary]:
        return list(await remote.jobs.list(limit, phase))

    jobs = asker.run(ask)
    rows: list[list[Text | str]] = [
        [Text(h, style="dim") for h in ("job", "phase", "steps", "solver", "verdicts", "posted")]
    ]
    rows += [_row(job) for job in jobs]
    empty = ["no jobs yet; post one with `identic job submit FILE.py:function`"]
    return Answer({"jobs": jobs}, columns(rows, right=(2,)) if jobs else empty)


def _row(job: JobSummary) -> list[Text | str]:
    return [
        JobId(job.job_id).name,
        job.phase,
        f"{job.committed_step:,}/{job.steps:,}",
        words.party("solver", job.solver) if job.solver else "-",
        f"{job.verdicts} of {job.verdicts_wanted}",
        words.moment(job.posted_ms),
    ]


@dataclass(frozen=True)
class Known:
    """A job as the log tells it, with the reports of the parties."""

    reader: LogReader
    job: Job
    detail: JobDetail


async def find(remote: Remote, asker: Client, name: str) -> Known:
    """Read the log and find a job in it by its name."""
    reader = LogReader(remote, asker.blobs)
    await reader.catch_up()
    wanted = chosen(name, JobId, [Digest(job) for job in reader.board.jobs], "j-")
    return Known(reader, reader.board.job(wanted), await remote.jobs.get(wanted))


def show(
    job: JobArgument,
    config: ConfigOption = None,
    coordinator: CoordinatorOption = None,
    card: CardOption = None,
    identity: IdentityOption = None,
) -> Answer:
    """Tell all about one job.

    What counts is computed from the log; only progress is as the parties report it.
    """
    asker = client(config, coordinator, card, identity)
    known = asker.run(lambda remote: find(remote, asker, job))
    view = job_view(known.job, known.detail.parties, log_size=known.reader.size)
    return Answer(value_of(known.job, known.reader), [*progress.lines(view), *facts(known)])


def facts(known: Known) -> Lines:
    """The lines about a job that its live screen does not have."""
    job, terms = known.job, known.job.terms
    submitter = words.party("submitter", terms.submitter)
    rows = [
        ["id", job.id.hex()],
        ["posted", f"{words.moment(job.posted_at)} by {submitter}"],
        ["program", terms.program.short],
        ["start", f"state {terms.initial_state.short}, seed {int(terms.seed)}"],
        ["escrow", words.money(terms.escrow)],
        ["bonds", _bonds(terms.prices)],
        ["stored", f"{len(job.stored)} states"],
    ]
    if job.due_at is not None and not job.phase.over:
        rows.append(["due", f"{_awaited(job)}, until {words.moment(job.due_at)}"])
    unable = [words.party("verifier", party) for party in job.recused]
    rows += [["alarm", f"{name} gave its seat back: it cannot tell"] for name in unable]
    if job.phase is Phase.SETTLED:
        rows.append(["next", f"identic job fetch {job.id.name}"])
    shown = [
        line for view in contest_views(job, known.reader) for line in ("", *contest.lines(view))
    ]
    if job.disputes:
        shown += ["", f"all about one:  identic dispute show {job.disputes[-1].name}"]
    return [*columns(rows), *shown]


def contest_views(job: Job, reader: LogReader) -> list[contest.ContestView]:
    """All contests of a job, oldest first."""
    return [contest_view(one, job.terms, reader.role) for one in contests_of(job)]


def _awaited(job: Job) -> str:
    """What a job waits for."""
    if job.ask is None:
        return job.awaiting.value
    asker = words.party("verifier" if job.seat(job.ask.party) else "", job.ask.party)
    return f"the state of mark {int(job.ask.mark)}, which {asker} cannot get"


def _bonds(prices: Prices) -> str:
    sums = {
        "solver": prices.solver_bond,
        "verifier": prices.verifier_bond,
        "challenger": prices.challenger_bond,
    }
    return ", ".join(f"{role} {words.money(amount)}" for role, amount in sums.items())


def value_of(job: Job, reader: LogReader) -> dict[str, object]:
    """A job as a JSON value."""
    return {
        "job": job.id,
        "name": job.id.name,
        "phase": job.phase.value,
        "awaiting": job.awaiting.value,
        "attempt": int(job.attempt),
        "steps": int(job.terms.steps),
        "committed_step": int(job.marks[-1].step) if job.marks else 0,
        "final_root": job.marks[-1].state_root if job.finish else None,
        "losses": [loss_of(mark.loss) for mark in job.marks[1:]],
        "solver": job.solver,
        "verifiers": [{"party": seat.party, "verdict": verdict_of(seat)} for seat in job.verifiers],
        "cannot_tell": list(job.recused),
        "asked_for_mark": int(job.ask.mark) if job.ask else None,
        "contests": contest_views(job, reader),
        "disputes": list(job.disputes),
        "escrow": int(job.terms.escrow),
        "model": job.finish.model if job.finish else None,
        "receipt": job.receipt,
        "log_size": reader.size,
    }


def watch(
    job: JobArgument,
    config: ConfigOption = None,
    coordinator: CoordinatorOption = None,
    card: CardOption = None,
    identity: IdentityOption = None,
) -> Answer:
    """Follow a job until it is over.

    The exit code is 0 if it was settled and 1 if it expired. Ctrl-C ends the watching only.
    """
    asker = client(config, coordinator, card, identity)

    async def resolve(remote: Remote) -> JobId:
        return (await find(remote, asker, job)).job.id

    return follow(asker, asker.run(resolve))


def follow(asker: Client, job: JobId) -> Answer:
    """Watch a job to its end, and say how it ended."""
    output = current()
    known = places.load(places.path_of(asker.folder, job))

    async def ask(remote: Remote) -> Watched:
        return await Watch(remote, asker.blobs, job, output, known).run()

    try:
        watched = asker.run(ask)
    except (KeyboardInterrupt, asyncio.CancelledError):
        again = f"identic job watch {job.name}"
        lines = ["", f"stopped watching; {job.name} goes on.", f"  {again}   picks it up again"]
        value = {"job": job, "name": job.name, "stopped_watching": True}
        return Answer(value, lines, code=faults.INTERRUPTED)
    return ended(watched)


def ended(watched: Watched) -> Answer:
    """How a job ended."""
    job, settled = watched.job, watched.job.phase is Phase.SETTLED
    line = Text("✓ " if settled else "✗ ", style="green" if settled else "bold red")
    if settled:
        line.append(f"{job.id.name} is settled; the model is verified.")
        after = f"  identic job fetch {job.id.name}   brings the model and its receipt"
    else:
        line.append(f"{job.id.name} expired; what was left of the escrow went back.")
        after = f"  identic job show {job.id.name}   says how it came to that"
    value = {**value_of(job, watched.reader), "rulings": watched.rulings}
    return Answer(value, [line, after], yes=settled)
