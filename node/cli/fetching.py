"""``identic job fetch``: a job's results in one folder, complete for checking offline."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from identic.node.blobs import Blobs
from identic.node.cli import files, places
from identic.node.cli.client import (
    CardOption,
    Client,
    ConfigOption,
    CoordinatorOption,
    IdentityOption,
    client,
)
from identic.node.cli.folder import (
    BLOBS,
    DISPUTES,
    INDEX,
    MAX_MODEL_BYTES,
    MAX_RECEIPT_BYTES,
    MODEL,
    PLACES,
    RECEIPT,
    STORE_BYTES,
    RunIndex,
    index_of,
)
from identic.node.cli.job import JobArgument, Known, find
from identic.node.cli.output import Answer, Output, current
from identic.node.cli.screens.progress import Transfer
from identic.node.rpc.remote import Remote
from identic.proofs import json_form
from identic.proofs.transcript import MAX_TRANSCRIPT_BYTES
from identic.protocol.errors import LocalError
from identic.protocol.ids import Digest
from identic.protocol.job.state import Job


def fetch(
    job: JobArgument,
    into: Annotated[
        Path | None,
        typer.Option("--into", metavar="DIR", help="Folder.  [default: the job's name]"),
    ] = None,
    states: Annotated[
        bool, typer.Option("--states", help="Bring data and stored states too, for audits.")
    ] = False,
    config: ConfigOption = None,
    coordinator: CoordinatorOption = None,
    card: CardOption = None,
    identity: IdentityOption = None,
) -> Answer:
    """Fetch a job's model, receipt, states and disputes.

    With --states the folder has all that `identic audit` needs, offline.
    """
    asker = client(config, coordinator, card, identity)
    output = current()

    async def ask(remote: Remote) -> Answer:
        known = await find(remote, asker, job)
        folder = into or Path(known.job.id.name)
        return await bring(remote, asker, known, folder, output, states=states)

    return asker.run(ask)


async def bring(
    remote: Remote, asker: Client, known: Known, folder: Path, output: Output, *, states: bool
) -> Answer:
    """Fetch everything about a job into a folder."""
    job = known.job
    if job.finish is None or job.receipt is None:
        raise LocalError(
            f"{job.id.name} is not settled yet ({job.phase.value})",
            remedy=f"wait for it: identic job watch {job.id.name}",
        )
    store = Blobs(folder / BLOBS, STORE_BYTES)
    model, receipt = folder / MODEL, folder / RECEIPT
    files.write(model, await _blob(remote, store, job.finish.model, MAX_MODEL_BYTES, output))
    files.write(receipt, await _blob(remote, store, job.receipt, MAX_RECEIPT_BYTES, output))
    disputes = []
    for name in job.disputes:
        transcript = known.reader.board.case(name).transcript
        if transcript is None:
            continue
        path = folder / DISPUTES / f"{name.name}.identic"
        files.write(path, await _blob(remote, store, transcript, MAX_TRANSCRIPT_BYTES, output))
        disputes.append(path)
    for spent in (job.finish.model, job.receipt):
        store.remove(spent)
    spots = places.load(places.path_of(asker.folder, job.id))
    if spots:
        places.save(folder / PLACES, spots)
    lines = [f"model      {model}", f"receipt    {receipt}"]
    lines += [f"dispute    {path}" for path in disputes]
    if states:
        index = await _run(remote, store, job, output)
        files.write(folder / INDEX, json_form.render(index).encode())
        lines.append(f"states     {len(index.states)} under {folder / BLOBS}")
    lines += ["", f"check it:  identic receipt verify {model} {receipt}"]
    value = {"model": model, "receipt": receipt, "disputes": disputes, "states": states}
    return Answer(value, lines)


async def _blob(remote: Remote, store: Blobs, digest: Digest, limit: int, output: Output) -> bytes:
    await _download(remote, store, digest, limit, output)
    return store.read(digest, limit)


async def _download(
    remote: Remote, store: Blobs, digest: Digest, limit: int, output: Output
) -> None:
    (there,) = await remote.blobs.has([digest])
    with Transfer(output, "fetching", there.size) as transfer:
        await remote.blobs.download(store, digest, limit, lambda done, _: transfer.advance(done))


async def _run(remote: Remote, store: Blobs, job: Job, output: Output) -> RunIndex:
    """Program, data and the states that the coordinator still has."""
    index = index_of(job)
    for blob in (index.artifacts.program, *index.artifacts.data):
        await _download(remote, store, blob, MAX_MODEL_BYTES, output)
    kept = []
    for state in index.states:
        (there,) = await remote.blobs.has([state.blob])
        if there.present:
            await _download(remote, store, state.blob, MAX_MODEL_BYTES, output)
            kept.append(state)
    return RunIndex(index.artifacts, tuple(kept))
