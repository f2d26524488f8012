"""The receipt of a model: what a stranger needs to check it, offline.

``verify_receipt`` establishes, each under its number:

1. **file**: the model file is the one the solver finished with (RCP-5);
2. **terms**: the program is the terms', and the terms are within their limits (RCP-6);
3. **commitments**: the run has all its marks, starts from the terms' state, and ends in a
   state whose header and tensors are listed (RCP-7);
4. **tensors**: every parameter and buffer in the file has the digest that the state lists,
   under the name that the program gives it, and the file has no other tensor (RCP-8);
5. **verdicts**: as many verifiers as the terms ask for have signed that they re-executed the
   whole run and got the same (RCP-9);
6. **rulings**: no listed dispute of the attempt found the run wrong (RCP-10);
7. **log**: the finish, the verdicts and the rulings are entries of the coordinator's log, under
   one signed head (RCP-11).

What it cannot establish is listed in the result, never left out. Spec:
docs/spec/commitments.md (RCP-4 to RCP-11).
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from identic.proofs import json_form, merkle
from identic.proofs.report import Check, Checks, Refused, Report
from identic.proofs.runlog import run_root
from identic.proofs.signatures import verify
from identic.proofs.tensors import Hasher, tensor_digest
from identic.protocol.commitments import RunHead, StateHeader, header_digest, state_root
from identic.protocol.dispute.setup import header_after
from identic.protocol.errors import Code, ProtocolError
from identic.protocol.hashing import Domain
from identic.protocol.ids import Count, Digest, PartyId, Signature
from identic.protocol.job.entries import LogEntry, LogHead, Loser, Ruled, Verdicts, entry_hash
from identic.protocol.job.messages import Finish, RevealVerdict, SignedMessage
from identic.protocol.job.terms import JobTerms, check_terms, job_id
from identic.protocol.program.codec import load, program_digest
from identic.protocol.program.types import Program
from identic.protocol.program.unroll import unroll
from identic.protocol.program.validate import Limits
from identic.protocol.tensors import TensorType

VERSION = 1


@dataclass(frozen=True)
class Included:
    """An entry of the coordinator's log with its path to the receipt's log head."""

    entry: LogEntry
    path: tuple[Digest, ...]


@dataclass(frozen=True)
class Receipt:
    """Everything that vouches for one model."""

    version: Count
    """1."""
    coordinator: PartyId
    """Whose log it is."""
    terms: JobTerms
    program: bytes
    """Canonical encoding of the program."""
    attempt: Count
    """The attempt at the job that was settled."""
    marks: tuple[Digest, ...]
    """State roots at all marks of the run."""
    header: StateHeader
    """Header of the last state."""
    digests: tuple[Digest, ...]
    """Tensor digests of the last state, in the program's order."""
    finish: Included
    """The solver's signed last message: the run's head, and the model file's SHA-256."""
    verdicts: tuple[Included, ...]
    """The verifiers' signed verdicts."""
    rulings: tuple[Included, ...]
    """How the attempt's disputes ended."""
    log: LogHead
    signature: Signature
    """The coordinator's over ``log``, under the label ``log``."""


ReadTensor = Callable[[str], "tuple[TensorType, bytes | memoryview] | None"]
"""Type and bytes of a tensor of the model file by name; ``None`` if it has none."""

NOT_CHECKED = (
    "that the data is what its owner says it is",
    "that the verifiers are independent of each other and of the solver",
    "that the log shows others the same entries, and the receipt all disputes of the attempt",
)


@dataclass(frozen=True)
class Verification:
    """What a receipt establishes, and what it does not."""

    report: Report
    established: tuple[str, ...]
    """Parts whose checks all passed."""
    not_checked: tuple[str, ...]
    """What nobody can conclude from this verification."""

    @property
    def ok(self) -> bool:
        """Whether no check failed."""
        return self.report.ok


def to_json(receipt: Receipt) -> str:
    """The receipt as a JSON file."""
    return json_form.render(receipt)


def from_json(text: str) -> Receipt:
    """Read a receipt.

    Raises:
        ProtocolError: it is no receipt (RCP-4).
    """
    return json_form.parse(Receipt, text)


def verify_receipt(
    receipt: Receipt,
    *,
    file_digest: Digest | None = None,
    read: ReadTensor | None = None,
    names: Collection[str] | None = None,
    coordinator: PartyId | None = None,
    hasher: Hasher | None = None,
    limits: Limits | None = None,
) -> Verification:
    """Check a receipt, and a model file against it.

    Args:
        receipt: from a stranger.
        file_digest: SHA-256 of the model file, if there is one at hand.
        read: reads a tensor of that file by name.
        names: of all tensors of that file; goes with ``read``.
        coordinator: whose log it must be, if the reader knows.
        hasher: native hasher of chunks.
        limits: largest program to read.
    """
    parts: list[tuple[str, Callable[[Checks], None]]] = [
        ("terms", lambda c: _terms(c, receipt, limits or Limits())),
        ("commitments", lambda c: _commitments(c, receipt)),
        ("verdicts", lambda c: _verdicts(c, receipt)),
        ("rulings", lambda c: _rulings(c, receipt)),
        ("log", lambda c: _log(c, receipt, coordinator)),
    ]
    unchecked = list(NOT_CHECKED)
    if file_digest is None:
        unchecked.append("that a model file is this one: none was given")
    else:
        parts.insert(0, ("file", lambda c: _file(c, receipt, file_digest)))
    if read is None:
        unchecked.append("that a file's tensors are those of the last state: none was given")
    else:
        parts.append(("tensors", lambda c: _tensors(c, receipt, read, names, hasher)))
        if names is None:
            unchecked.append("that the file has no tensor besides")
    if coordinator is None:
        unchecked.append("that the coordinator is one you trust")
    done: list[Check] = []
    established = []
    for name, part in parts:
        checks = Checks()
        try:
            part(checks)
            established.append(name)
        except Refused:
            # The report has the failed check; the other parts stand on their own.
            pass
        done.extend(checks.report.checks)
    return Verification(Report(tuple(done)), tuple(established), tuple(unchecked))


def _accepts(action: Callable[[], object]) -> Callable[[], bool]:
    """True when ``action`` raises nothing; its ``ProtocolError`` passes on."""

    def run() -> bool:
        action()
        return True

    return run


# ---- the parts ------------------------------------------------------------------------------


def _said(included: Included) -> tuple[PartyId, object]:
    """Who signed an entry's message, and what it states; nobody for other entries."""
    event = included.entry.event
    if isinstance(event, SignedMessage):
        return event.message.party, event.message.statement
    return PartyId(bytes(32)), event


def _signed(checks: Checks, rule: str, what: str, receipt: Receipt, included: Included) -> None:
    """Check the signature and the address of an entry's message."""
    event = included.entry.event
    checks.add(rule, f"{what} is a message", got=isinstance(event, SignedMessage), want=True)
    if isinstance(event, SignedMessage):
        message = event.message
        network = receipt.coordinator
        checks.add(rule, f"{what} is for this network", got=message.network, want=network)
        checks.same(
            rule,
            f"{what} is signed by {message.party.short}",
            _accepts(lambda: verify(message.party, Domain.MESSAGE, message, event.signature)),
            want=True,
        )


def _finish(checks: Checks, rule: str, receipt: Receipt) -> Finish:
    """The solver's last message, about this job and attempt."""
    _signed(checks, rule, "the solver's finish", receipt, receipt.finish)
    _, statement = _said(receipt.finish)
    about = (statement.job, statement.attempt) if isinstance(statement, Finish) else type(statement)
    want = (job_id(receipt.terms), receipt.attempt)
    checks.add(rule, "the finish is of this job and attempt", got=about, want=want)
    if not isinstance(statement, Finish):
        raise Refused("no finish")
    return statement


def _file(checks: Checks, receipt: Receipt, digest: Digest) -> None:
    finish = _finish(checks, "RCP-5", receipt)
    # RCP-5: the model file has the SHA-256 that the solver finished with.
    checks.add("RCP-5", "the file is the receipt's subject", got=digest, want=finish.model)


def _program(receipt: Receipt, limits: Limits) -> Program:
    return load(receipt.program, limits)


def _terms(checks: Checks, receipt: Receipt, limits: Limits) -> None:
    # RCP-6: the receipt is of version 1, its terms are valid, and its program is theirs.
    checks.add("RCP-6", "the receipt's version is known", got=int(receipt.version), want=VERSION)
    valid = _accepts(lambda: check_terms(receipt.terms))
    checks.same("RCP-6", "the terms are within their limits", valid, want=True)
    checks.same(
        "RCP-6",
        "the program is valid, and the one of the terms",
        lambda: program_digest(_program(receipt, limits)),
        receipt.terms.program,
    )


def _head(receipt: Receipt) -> RunHead:
    """The head of the receipt's marks."""
    terms = receipt.terms
    root = run_root(receipt.marks, terms.cadence, terms.steps)
    return RunHead(job_id(terms), Count(len(receipt.marks)), root)


def _commitments(checks: Checks, receipt: Receipt) -> None:
    terms = receipt.terms
    # RCP-7: the marks are all of the run's, from the terms' state to the listed last one.
    checks.same("RCP-7", "the terms are valid", _accepts(lambda: check_terms(terms)), want=True)
    checks.add("RCP-7", "all marks are there", got=len(receipt.marks), want=terms.marks)
    start = terms.initial_state
    checks.add("RCP-7", "the run starts from the terms' state", got=receipt.marks[0], want=start)
    finish = _finish(checks, "RCP-7", receipt)
    checks.add("RCP-7", "the solver signed these marks", got=finish.head, want=_head(receipt))
    last = state_root(header_digest(receipt.header), receipt.digests)
    checks.add("RCP-7", "the last state is the listed one", got=last, want=receipt.marks[-1])
    checks.same(
        "RCP-7",
        "its header is that of the finished run",
        lambda: header_after(terms, unroll(_program(receipt, Limits())), terms.steps),
        receipt.header,
    )


def _tensors(
    checks: Checks,
    receipt: Receipt,
    read: ReadTensor,
    names: Collection[str] | None,
    hasher: Hasher | None,
) -> None:
    # RCP-8: the file's parameters and buffers are the last state's, name by name.
    checks.same(
        "RCP-8",
        "the program is the one of the terms",
        lambda: program_digest(_program(receipt, Limits())),
        receipt.terms.program,
    )
    program = _program(receipt, Limits())
    count = len(program.state)
    checks.add("RCP-8", "every tensor has a digest", got=len(receipt.digests), want=count)
    kept = (*program.parameters, *program.buffers)
    others = sorted(set(names or ()) - {variable.name for variable in kept})
    # RCP-8: the file has no tensor that is not of the state.
    checks.add("RCP-8", "the file has no other tensor", got=others[:3], want=[])
    for index, variable in enumerate(kept):
        found = read(variable.name)
        checks.add("RCP-8", f"{variable.name} is in the file", got=found is not None, want=True)
        if found is None:
            continue
        kind, data = found
        checks.add("RCP-8", f"{variable.name} has its type", got=kind, want=variable.type)
        checks.same(
            "RCP-8",
            f"{variable.name} is the last state's, bit for bit",
            lambda kind=kind, data=data: tensor_digest(kind, data, hasher),  # type: ignore[misc]
            receipt.digests[index],
        )


def _verdicts(checks: Checks, receipt: Receipt) -> None:
    # RCP-9: at least one party other than the solver vouches for the whole run.
    head = _head(receipt)
    parties = set()
    for number, included in enumerate(receipt.verdicts):
        _signed(checks, "RCP-9", f"verdict {number}", receipt, included)
        party, said = _said(included)
        about = (
            (said.attempt, said.head, said.agrees)
            if isinstance(said, RevealVerdict) and said.job == head.job
            else said
        )
        want = (receipt.attempt, head, True)
        checks.add("RCP-9", f"{party.short} reproduced the run", got=about, want=want)
        parties.add(party)
    solver, _ = _said(receipt.finish)
    checks.add("RCP-9", "the solver is no verifier", got=solver in parties, want=False)
    what = f"{len(parties)} of {receipt.terms.verifiers} verifiers re-executed every step"
    checks.add("RCP-9", what, got=bool(parties), want=True)


def _rulings(checks: Checks, receipt: Receipt) -> None:
    # RCP-10: no listed ruling found the defended claim wrong.
    job = job_id(receipt.terms)
    for number, included in enumerate(receipt.rulings):
        ruled = included.entry.event
        fits = isinstance(ruled, Ruled) and (ruled.job, ruled.attempt) == (job, receipt.attempt)
        checks.add("RCP-10", f"ruling {number} is of this attempt", got=fits, want=True)
        if isinstance(ruled, Ruled):
            wrong = (ruled.verdict, ruled.loser) == (Verdicts.WRONG, Loser.DEFENDER)
            what = f"dispute {ruled.dispute.short} did not find the run wrong"
            checks.add("RCP-10", what, got=wrong, want=False)


def _log(checks: Checks, receipt: Receipt, coordinator: PartyId | None) -> None:
    # RCP-11: every entry of the receipt is under the log head that the coordinator signed.
    if coordinator is not None:
        got = receipt.coordinator
        checks.add("RCP-11", "the coordinator is the one you named", got=got, want=coordinator)
    log = receipt.log
    checks.same(
        "RCP-11",
        f"the log head of {log.size} entries is signed",
        _accepts(lambda: verify(receipt.coordinator, Domain.LOG, log, receipt.signature)),
        want=True,
    )
    for included in (receipt.finish, *receipt.verdicts, *receipt.rulings):
        entry = included.entry
        checks.same(
            "RCP-11",
            f"entry {entry.index} is in the log",
            lambda included=included: merkle.root_from_path(  # type: ignore[misc]
                entry_hash(included.entry), included.entry.index, log.size, included.path
            ),
            log.root,
        )


def verified_or_raise(verification: Verification) -> None:
    """Raise the first failed check as an error of the receipt's author.

    Raises:
        ProtocolError: a check failed.
    """
    bad = verification.report.failed
    if bad is not None:
        raise ProtocolError(bad.rule, Code.MISMATCH, got=bad.got, want=bad.want)
