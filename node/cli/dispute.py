"""``identic dispute``: what is disputed, and judging it again."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Annotated, Final

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
from identic.node.cli.folder import INDEX, PLACES
from identic.node.cli.output import Answer, columns
from identic.node.cli.reading import LogReader
from identic.node.cli.screens import descent, executed, explained, game
from identic.node.cli.screens.report import CheckLine, Outcome
from identic.node.cli.screens.report import lines as check_lines
from identic.node.cli.trail import stages
from identic.node.cli.views import dispute_view
from identic.node.identity import Card
from identic.node.rpc.remote import Remote
from identic.node.views import DisputeSummary
from identic.proofs.transcript import MAX_TRANSCRIPT_BYTES
from identic.proofs.transcript import replay as judge_again
from identic.protocol.dispute.setup import Setup
from identic.protocol.dispute.state import Ruling
from identic.protocol.errors import LocalError
from identic.protocol.ids import Digest, JobId
from identic.protocol.job.entries import Verdicts
from identic.protocol.job.messages import DisputeId

ROLES: Final = ("defender", "challenger")
"""How a transcript calls the sides, which says nothing of what else they are."""


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
        str,
        typer.Argument(
            metavar="DISPUTE|FILE", help="Name of a dispute, such as d-12ab34, or a transcript."
        ),
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
    """Print the game as a tree: each level under the one it came from, and who moved when.

    Judged again here, from the log or from the transcript; the coordinator's word is not taken
    for it.
    """
    file = Path(dispute)
    if file.is_file():
        return _of_file(file)
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
    case, roles = reader.board.case(name), reader.disputes[name].roles
    spots = places.load(places.path_of(asker.folder, case.job))
    played = stages(case.dispute, case.moves)
    saved = str(save) if save is not None and case.transcript is not None else ""
    view = dispute_view(reader, name, places=spots, transcript=saved)
    if view is None or case.dispute.ruling is None or case.void:
        end = "void: one of the two fell in another dispute (JOB-18)" if case.void else ""
        tree = game.describe(case.dispute, played, roles=roles, places=spots, end=end)
        phase = "void" if case.void else str(case.dispute.phase)
        open_ = {"dispute": name, "job": case.job, "phase": phase, "ruling": None}
        due = "" if case.void else f", due until {words.moment(case.dispute.deadline)}"
        said = f"{name.name} about {case.job.name}: {phase}{due}"
        return Answer({**open_, "game": tree}, [said, "", *game.lines(tree)])
    end = descent.sentence(view)
    tree = game.describe(case.dispute, played, roles=roles, places=spots, end=end)
    value = ruling_value(case.dispute.setup, case.dispute.ruling)
    head = f"{name.name} about {case.job.name}: {view.challenger} against {view.defender}"
    return Answer(
        {**value, "game": tree, "transcript": case.transcript},
        [head, "", *game.lines(tree), "", *descent.lines(view, table=False)],
    )


def _of_file(file: Path) -> Answer:
    """The game of a transcript."""
    judged = judge_again(files.read(file, MAX_TRANSCRIPT_BYTES, "a transcript"))
    setup, spots = judged.dispute.setup, _places_near(file, None, None)
    view = descent.describe(setup, judged.ruling, roles=ROLES, places=spots, transcript=str(file))
    played = stages(judged.dispute, judged.transcript.moves)
    end = descent.sentence(view)
    tree = game.describe(judged.dispute, played, roles=ROLES, places=spots, end=end)
    value = {**ruling_value(setup, judged.ruling), "game": tree}
    head = f"{view.name}: {view.challenger} against {view.defender}"
    return Answer(value, [head, "", *game.lines(tree), "", *descent.lines(view, table=False)])


def _places_near(file: Path, job: Path | None, notes: Path | None) -> places.Places:
    """Places of the job's values: from the file named, or next to the transcript.

    Raises:
        LocalError: a file was named that holds none.
    """
    if notes is not None:
        found = places.load(notes)
        if not found:
            raise LocalError(
                f"{notes} holds no places of a job",
                remedy="name places.json of the folder that `identic job fetch` made",
            )
        return found
    folders = [job] if job is not None else [file.parent, file.parent.parent]
    return next((p for folder in folders if (p := places.load(folder / PLACES))), places.Places())


def replay(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A transcript.")],
    card: Annotated[
        Path | None,
        typer.Option("--card", metavar="FILE", help="Whose transcript it must be."),
    ] = None,
    explain: Annotated[
        bool,
        typer.Option("--explain", help="Show the disputed step in program, source and numbers."),
    ] = False,
    execute: Annotated[
        bool, typer.Option("--execute", help="Re-execute the disputed step on this machine.")
    ] = False,
    job: Annotated[
        Path | None,
        typer.Option(
            "--job",
            metavar="DIR",
            help="Folder of the job, from `identic job fetch --states`.  [default: near FILE]",
        ),
    ] = None,
    notes: Annotated[
        Path | None,
        typer.Option("--notes", metavar="FILE", help="The submitter's notes, places.json."),
    ] = None,
    blobs: Annotated[
        Path | None,
        typer.Option(
            "--blobs", metavar="DIR", help="Stored states.  [default: in the job's folder]"
        ),
    ] = None,
    backend: Annotated[
        str, typer.Option("--backend", metavar="NAME", help="native, or reference (slow).")
    ] = "native",
    vector: Annotated[
        str, typer.Option("--vector", metavar="PATH", help="Vector path of the native operators.")
    ] = "auto",
    threads: Annotated[
        int, typer.Option("--threads", min=0, max=1024, help="0 takes every core.")
    ] = 0,
    device: Annotated[
        str,
        typer.Option(
            "--device", metavar="DEVICE", help="Of the native backend: auto, cpu, cuda or cuda:N."
        ),
    ] = "auto",
) -> Answer:
    """Judge a dispute again from its transcript, offline.

    Checks every signature, plays every move by the rules, and computes the disputed step from
    the bytes of the file alone. A file with any byte changed is refused: exit code 1. With
    --execute the exit code is also 1 if this machine does not agree with the winner.
    """
    data = files.read(file, MAX_TRANSCRIPT_BYTES, "a transcript")
    judged = judge_again(data, Card.load(card).party if card else None)
    record, setup = judged.transcript, judged.dispute.setup
    spots = _places_near(file, job, notes)
    view = descent.describe(setup, judged.ruling, roles=ROLES, places=spots, transcript=str(file))
    checks = judged.report.checks if judged.report else ()
    lines: list[Text | str] = [*descent.lines(view)]
    value = {
        **ruling_value(setup, judged.ruling),
        "coordinator": record.coordinator,
        "checks": checks,
    }
    if explain:
        told = explained.describe(setup, judged.ruling, spots, spots.lines)
        lines += ["", *explained.lines(told)]
        value["explained"] = told
    made = tuple(CheckLine(c.rule, Outcome.FINE, c.what) for c in checks)
    trust = _trust(record.coordinator.short, known=card is not None)
    lines += ["", *check_lines((*made, *trust))]
    if not execute:
        return Answer(value, lines)
    # Imported only here, so that judging needs neither numpy nor an operator.
    reexecution = importlib.import_module("identic.node.cli.reexecution")
    found = reexecution.reexecute(
        setup,
        stages(judged.dispute, record.moves),
        job or _folder_near(file),
        blobs=blobs,
        backend=backend,
        vector=vector,
        threads=threads,
        device=device,
    )
    loser = judged.ruling.loser
    agrees = loser is None or found.agrees == descent.SIDES[loser.other]
    shown = executed.lines(setup, found, spots)
    return Answer({**value, "executed": executed.value(found)}, [*lines, "", *shown], yes=agrees)


def _folder_near(file: Path) -> Path:
    """The folder of the job that a transcript lies in."""
    return next(
        (f for f in (file.parent, file.parent.parent) if (f / INDEX).is_file()), file.parent
    )


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
