"""``identic dispute``: what is disputed, and judging it again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from identic.node.cli import files, places, words
from identic.node.cli.client import (
    CardOption,
    ConfigOption,
    CoordinatorOption,
    IdentityOption,
    chosen,
    client,
)
from identic.node.cli.folder import PLACES
from identic.node.cli.output import Answer, Lines, columns
from identic.node.cli.reading import LogReader
from identic.node.cli.screens import descent
from identic.node.cli.screens.report import CheckLine, Outcome
from identic.node.cli.screens.report import lines as check_lines
from identic.node.cli.views import dispute_view
from identic.node.identity import Card
from identic.node.rpc.remote import Remote
from identic.node.views import DisputeSummary
from identic.proofs.transcript import MAX_TRANSCRIPT_BYTES
from identic.proofs.transcript import replay as judge_again
from identic.protocol.dispute.setup import Setup
from identic.protocol.dispute.state import Ruling
from identic.protocol.ids import Digest, JobId
from identic.protocol.job.entries import Verdicts
from identic.protocol.job.messages import DisputeId


def list_disputes(
    job: Annotated[
        str | None, typer.Option("--job", metavar="JOB", help="Only disputes about this job.")
    ] = None,
    open_only: Annotated[bool, typer.Option("--open", help="Only those not ruled yet.")] = False,
    limit: Annotated[int, typer.Option("--limit", min=1, max=1000, help="Most shown.")] = 100,
    config: ConfigOption = None,
    coordinator: CoordinatorOption = None,
    card: CardOption = None,
    identity: IdentityOption = None,
) -> Answer:
    """List the disputes, newest first."""
    asker = client(config, coordinator, card, identity)

    async def ask(remote: Remote) -> list[DisputeSummary]:
        about = None
        if job is not None:
            jobs = [one.job_id for one in await remote.jobs.list(1000)]
            about = chosen(job, JobId, jobs, "j-")
        return list(await remote.disputes.list(about, limit, open_only=open_only))

    found = asker.run(ask)
    names = ("dispute", "job", "state", "level", "moves", "bytes", "opened")
    rows: list[list[Text | str]] = [[Text(name, style="dim") for name in names]]
    rows += [_row(one) for one in found]
    return Answer({"disputes": found}, columns(rows, right=(4, 5)) if found else ["no disputes"])


def _row(one: DisputeSummary) -> list[Text | str]:
    return [
        DisputeId(one.dispute_id).name,
        JobId(one.job_id).name,
        _state(one),
        one.level,
        f"{one.moves:,}",
        words.size(one.bytes_exchanged),
        words.moment(one.opened_ms),
    ]


def _state(one: DisputeSummary) -> str:
    if not one.verdict:
        return one.phase
    who = {one.defender: "defender", one.challenger: "challenger"}
    return f"{who[one.loser]} {one.verdict}" if one.loser in who else one.verdict


def show(
    dispute: Annotated[
        str, typer.Argument(metavar="DISPUTE", help="Name of the dispute, such as d-12ab34.")
    ],
    save: Annotated[
        Path | None,
        typer.Option("--save", metavar="FILE", help="Keep the transcript, once there is one."),
    ] = None,
    config: ConfigOption = None,
    coordinator: CoordinatorOption = None,
    card: CardOption = None,
    identity: IdentityOption = None,
) -> Answer:
    """Tell all about one dispute.

    Judged again here from the log; the coordinator's word is not taken for it.
    """
    asker = client(config, coordinator, card, identity)

    async def ask(remote: Remote) -> tuple[LogReader, DisputeId]:
        reader = LogReader(remote, asker.blobs)
        await reader.catch_up()
        known = [Digest(one) for one in reader.board.cases]
        name = chosen(dispute, DisputeId, known, "d-")
        transcript = reader.board.case(name).transcript
        if save is not None and transcript is not None:
            store = asker.blobs
            await remote.blobs.download(store, transcript, MAX_TRANSCRIPT_BYTES)
            files.write(save, store.read(transcript, MAX_TRANSCRIPT_BYTES))
        return reader, name

    reader, name = asker.run(ask)
    case = reader.board.case(name)
    spots = places.load(places.path_of(asker.folder, case.job))
    saved = str(save) if save is not None and case.transcript is not None else ""
    view = dispute_view(reader, name, places=spots, transcript=saved)
    if view is None or case.dispute.ruling is None:
        game = case.dispute
        where = game.level.name if game.level else "evidence"
        line = (
            f"{name.name} about {case.job.name}: {game.phase}, at the {where} level, "
            f"{words.plural(len(case.moves), 'move')}, due until {words.moment(game.deadline)}"
        )
        open_value = {"dispute": name, "job": case.job, "phase": str(game.phase), "ruling": None}
        return Answer(open_value, [line])
    value = ruling_value(case.dispute.setup, case.dispute.ruling)
    head = f"{name.name} about {case.job.name}: {view.challenger} against {view.defender}"
    fetched = {**value, "transcript": case.transcript}
    return Answer(fetched, [head, "", *descent.lines(view)])


def replay(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A transcript.")],
    card: Annotated[
        Path | None,
        typer.Option("--card", metavar="FILE", help="Whose transcript it must be."),
    ] = None,
) -> Answer:
    """Judge a dispute again from its transcript, offline.

    Checks every signature, plays every move by the rules, and computes the disputed step from
    the bytes of the file alone. A file with any byte changed is refused: exit code 1.
    """
    data = files.read(file, MAX_TRANSCRIPT_BYTES, "a transcript")
    judged = judge_again(data, Card.load(card).party if card else None)
    record = judged.transcript
    setup = Setup(record.terms, judged.plan, record.opening)
    spots = places.load(file.parent / PLACES) or places.load(file.parent.parent / PLACES)
    view = descent.describe(
        setup, judged.ruling, roles=("defender", "challenger"), places=spots, transcript=str(file)
    )
    checks = judged.report.checks if judged.report else ()
    lines: Lines = [
        *descent.lines(view),
        "",
        *check_lines(tuple(CheckLine(c.rule, Outcome.FINE, c.what) for c in checks)),
        *check_lines(_trust(record.coordinator.short, known=card is not None)),
    ]
    value = {
        **ruling_value(setup, judged.ruling),
        "coordinator": record.coordinator,
        "checks": checks,
    }
    return Answer(value, lines)


def _trust(coordinator: str, *, known: bool) -> tuple[CheckLine, ...]:
    signed = CheckLine(
        "RCP-1", Outcome.FINE, f"every byte is as coordinator {coordinator} signed it"
    )
    if known:
        return (signed,)
    text = "that this is a coordinator you trust; name it with --card FILE"
    return (signed, CheckLine("", Outcome.NOT_CHECKED, text))


def ruling_value(setup: Setup, ruling: Ruling) -> dict[str, object]:
    """A ruling as a JSON value."""
    call = setup.plan.call(ruling.value) if ruling.value is not None else None
    words_ = {Verdicts.WRONG: "wrong", Verdicts.LATE: "late"}
    return {
        "dispute": ruling.dispute,
        "ruling": words_.get(ruling.verdict, "cannot tell"),
        "loser": descent.SIDES[ruling.loser] if ruling.loser else None,
        "defender": setup.opening.defender,
        "challenger": setup.opening.challenger,
        "rule": ruling.rule,
        "level": ruling.level,
        "step": ruling.step,
        "value": ruling.value,
        "operator": call.call.op.name if call else None,
        "element": ruling.element,
        "path": ruling.path,
        "primitive": ruling.primitive or None,
        "operands": ruling.operands,
        "claims": {
            "defender": ruling.defender,
            "challenger": ruling.challenger,
            "computed": ruling.computed,
        },
        "rounds": ruling.rounds,
        "bytes": sum(r.defender_bytes + r.challenger_bytes for r in ruling.rounds),
        "referee_bytes": ruling.read_bytes,
    }
