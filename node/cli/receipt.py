"""``identic receipt``: what vouches for a model."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.text import Text

from identic.kernels.hashing import chunk_root
from identic.node.cli import files, words
from identic.node.cli.folder import MAX_MODEL_BYTES, load_receipt
from identic.node.cli.modelfile import reader
from identic.node.cli.output import Answer, Lines, columns
from identic.node.cli.screens import report as screen
from identic.node.cli.screens.report import CheckLine, Outcome
from identic.node.identity import Card
from identic.proofs.receipt import Receipt, Verification, verify_receipt
from identic.proofs.report import Check
from identic.protocol.ids import Digest, PartyId
from identic.protocol.job.messages import Finish, RevealVerdict, SignedMessage
from identic.protocol.job.terms import job_id

ReceiptArgument = Annotated[Path, typer.Argument(metavar="RECEIPT", help="The receipt file.")]
CoordinatorCard = Annotated[
    Path | None,
    typer.Option("--card", metavar="FILE", help="Card of the coordinator whose log it must be."),
]

PARTS: Final = {
    "RCP-5": "file",
    "RCP-6": "terms",
    "RCP-7": "commitments",
    "RCP-8": "tensors",
    "RCP-9": "verdicts",
    "RCP-10": "rulings",
    "RCP-11": "log",
}


def show(receipt: ReceiptArgument) -> Answer:
    """Tell what a receipt says, without checking it."""
    found = load_receipt(receipt)
    terms = found.terms
    rows = [
        ["job", f"{job_id(terms).name}, attempt {int(found.attempt)}"],
        ["program", f"{terms.program.short}, {words.size(len(found.program))}"],
        ["run", f"{int(terms.steps):,} steps, {len(found.marks):,} signed states"],
        ["result", f"state {found.marks[-1].short}" if found.marks else "no states"],
        ["solver", _who(found.finish.entry.event, "solver")],
        *(["verifier", _who(v.entry.event, "verifier")] for v in found.verdicts),
        ["rulings", f"{len(found.rulings)}"],
        ["log", f"{int(found.log.size):,} entries at {words.moment(found.log.at)}"],
        ["coordinator", found.coordinator.hex()],
    ]
    next_ = f"check it:  identic receipt verify MODEL {receipt}"
    return Answer(_value(found), [*columns(rows), "", next_])


def _who(event: object, role: str) -> str:
    return words.party(role, event.message.party) if isinstance(event, SignedMessage) else "?"


def _value(receipt: Receipt) -> dict[str, object]:
    finish = receipt.finish.entry.event
    said = finish.message.statement if isinstance(finish, SignedMessage) else None
    agreeing = [
        v.entry.event.message.party
        for v in receipt.verdicts
        if isinstance(v.entry.event, SignedMessage)
        and isinstance(v.entry.event.message.statement, RevealVerdict)
    ]
    return {
        "job": job_id(receipt.terms),
        "attempt": int(receipt.attempt),
        "steps": int(receipt.terms.steps),
        "marks": len(receipt.marks),
        "final_root": receipt.marks[-1] if receipt.marks else None,
        "model": said.model if isinstance(said, Finish) else None,
        "solver": finish.message.party if isinstance(finish, SignedMessage) else None,
        "verifiers": agreeing,
        "rulings": len(receipt.rulings),
        "log_size": int(receipt.log.size),
        "coordinator": receipt.coordinator,
    }


def verify(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="The model file.")],
    receipt: ReceiptArgument,
    card: CoordinatorCard = None,
) -> Answer:
    """Check a model against its receipt, offline.

    Recomputes every digest and checks every signature. Says what is established and what is
    not. The exit code is 1 if any check fails.
    """
    found = load_receipt(receipt)
    data = files.read(model, MAX_MODEL_BYTES, "a model")
    read, names = reader(data)
    done = verify_receipt(
        found,
        file_digest=Digest(hashlib.sha256(data).digest()),
        read=read,
        names=names,
        coordinator=Card.load(card).party if card else None,
        hasher=chunk_root,
    )
    return Answer(
        {
            "verified": done.ok,
            "established": done.established,
            "not_checked": done.not_checked,
            "checks": done.report.checks,
        },
        lines(found, done, receipt),
        yes=done.ok,
    )


def lines(receipt: Receipt, done: Verification, path: Path) -> Lines:
    """The outcome, part by part."""
    checks = [_part(name, rule, receipt, done.report.checks) for rule, name in PARTS.items()]
    made = tuple(check for check in checks if check is not None)
    left = tuple(CheckLine("not checked", Outcome.NOT_CHECKED, text) for text in done.not_checked)
    steps = int(receipt.terms.steps)
    if done.ok:
        count = len(_vouching(receipt))
        honest = "the verifier is" if count == 1 else f"one of {count} verifiers is"
        text = f"this model is what the program makes of this data, if {honest} honest."
        end = Text("established: ", style="bold green").append(text, style="not bold default")
    else:
        end = Text("not established: do not trust this model.", style="bold red")
    again = f"re-execute any step here:  identic audit {path} --step {steps - 1}"
    return [*screen.lines((*made, *left)), end, *([again] if done.ok else [])]


def _part(name: str, rule: str, receipt: Receipt, checks: Sequence[Check]) -> CheckLine | None:
    """One line for all checks of a rule; None where none was made."""
    of_rule = [check for check in checks if check.rule == rule]
    if not of_rule:
        return None
    bad = next((check for check in of_rule if not check.passed), None)
    if bad is None:
        return CheckLine(name, Outcome.FINE, _summary(name, receipt, len(of_rule)))
    found = f"got {_shortened(bad.got)}, want {_shortened(bad.want)} ({rule})"
    return CheckLine(name, Outcome.NO, f"not so: {bad.what}", found)


def _shortened(text: str) -> str:
    return text if len(text) <= 96 else f"{text[:80]}…{text[-12:]}"


def _vouching(receipt: Receipt) -> set[PartyId]:
    """Parties whose verdicts the receipt lists."""
    events = [verdict.entry.event for verdict in receipt.verdicts]
    return {event.message.party for event in events if isinstance(event, SignedMessage)}


def _summary(name: str, receipt: Receipt, count: int) -> str:
    terms = receipt.terms
    verifiers = len(_vouching(receipt))
    return {
        "file": "the SHA-256 of the file is the one that the solver finished with",
        "terms": f"program {terms.program.short}, kernel set {int(terms.kernel_set)}, "
        f"{words.plural(int(terms.steps), 'step')}",
        "commitments": f"{len(receipt.marks):,} signed states; the last one is listed here",
        "tensors": "every tensor of the file is the last state's, bit for bit",
        "verdicts": f"{verifiers} of {int(terms.verifiers)} verifiers re-executed every step",
        "rulings": f"{len(receipt.rulings)} disputes listed, none against this run",
        "log": f"{words.plural(count - 1, 'check')}: all of it is in a signed log of "
        f"{int(receipt.log.size):,} entries",
    }[name]
