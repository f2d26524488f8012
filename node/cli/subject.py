"""What a prediction is about: terms and program of a job, wherever they can be read.

A Python file is captured here, a receipt or a transcript is read, a job is looked up.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from identic.node.cli import files, places
from identic.node.cli.client import Client, client
from identic.node.cli.folder import MAX_RECEIPT_BYTES, PLACES, RECEIPT
from identic.node.cli.job import find
from identic.node.cli.output import current
from identic.node.rpc.remote import Remote
from identic.proofs import receipt as receipts
from identic.proofs import transcript as transcripts
from identic.protocol.errors import LocalError
from identic.protocol.ids import PartyId
from identic.protocol.job.terms import JobTerms, check_terms
from identic.protocol.program.codec import load
from identic.protocol.program.plan import StepPlan
from identic.protocol.program.unroll import unroll
from identic.protocol.program.validate import Limits

PYTHON: Final = ".py"


@dataclass(frozen=True)
class Subject:
    """A job as far as its disputes depend on it.

    Attributes:
        name: how it was named.
        terms: of the job.
        plan: its unrolled program.
        step_s: time of one step, where it is known; 0 elsewhere.
        spots: where plan values come from in the submitter's source.
    """

    name: str
    terms: JobTerms
    plan: StepPlan
    step_s: float = 0.0
    spots: places.Places = field(default_factory=places.Places)


def read(target: str, asker: tuple[Path | None, str | None, Path | None, Path | None]) -> Subject:
    """Find the terms and the program that a person means.

    Args:
        target: ``train.py:job``, a receipt, a transcript, a job's folder, or a job's name.
        asker: configuration, coordinator, card and identity, for a job's name.

    Raises:
        LocalError: there is no such file or job, or torch is missing for a capture.
        ProtocolError: what was read breaks a rule.
    """
    if target.partition(":")[0].endswith(PYTHON):
        return _captured(target)
    path = Path(target)
    if path.is_dir():
        path /= RECEIPT
    if path.is_file():
        return _of_file(path)
    if path.suffix or len(path.parts) > 1:
        files.read(path, MAX_RECEIPT_BYTES, "a receipt or a transcript")
    return _of_network(target, client(*asker))


def _captured(target: str) -> Subject:
    try:
        submitting = importlib.import_module("identic.node.cli.submitting")
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise LocalError(
            f"capturing {target} needs torch, which is not installed",
            remedy="pip install 'identic[torch]', or name a receipt, a transcript or a job",
        ) from error
    prepared = submitting.prepare(target, None, current())
    terms = submitting.terms_for(prepared, PartyId(bytes(32)), submitting.Wishes())
    notes = prepared.captured.notes
    spots = places.of_plan(prepared.plan, notes.gradient, notes.update)
    return Subject(target, terms, prepared.plan, prepared.seconds, spots)


def _of_file(path: Path) -> Subject:
    data = files.read(path, transcripts.MAX_TRANSCRIPT_BYTES, "a receipt or a transcript")
    spots = next(
        (p for folder in (path.parent, path.parent.parent) if (p := places.load(folder / PLACES))),
        places.Places(),
    )
    if data.lstrip()[:1] == b"{":
        found = receipts.from_json(data.decode(errors="replace"))
        check_terms(found.terms)
        return Subject(str(path), found.terms, unroll(load(found.program, Limits())), 0.0, spots)
    judged = transcripts.replay(data)
    record = judged.transcript
    seconds = int(record.opening.step_ms) / 1000
    return Subject(str(path), record.terms, judged.plan, seconds, spots)


def _of_network(name: str, asker: Client) -> Subject:
    async def ask(remote: Remote) -> Subject:
        known = await find(remote, asker, name)
        job, plan = known.job, await known.reader.plan(known.job)
        spots = places.load(places.path_of(asker.folder, job.id))
        seconds = int(job.step_ms) / 1000 if job.marks else 0.0
        return Subject(job.id.name, job.terms, plan, seconds, spots)

    return asker.run(ask)
