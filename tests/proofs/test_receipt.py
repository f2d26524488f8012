"""Receipts: what they establish, what they say they do not, and each thing that can be wrong."""

from copy import copy
from dataclasses import replace

import pytest

from identic.proofs.receipt import (
    NOT_CHECKED,
    Receipt,
    Verification,
    from_json,
    to_json,
    verified_or_raise,
    verify_receipt,
)
from identic.proofs.signatures import sign
from identic.protocol.errors import ProtocolError
from identic.protocol.hashing import Domain, sha256
from identic.protocol.ids import Count, StepIndex, Unsigned
from identic.protocol.job.entries import Event, Loser, Verdicts
from identic.protocol.job.terms import JobTerms
from identic.protocol.tensors import TensorType
from tests.helpers.receipts import (
    MODEL,
    SOLVER,
    VERIFIER,
    finish_of,
    good_receipt,
    receipt_over,
    ruling_of,
    said,
    verdict_of,
    without_path,
)
from tests.helpers.signed_game import COORDINATOR, STRANGER, head_of
from tests.helpers.small_run import small_run

RUN = small_run()
GOOD = good_receipt(RUN)
FINISH = said(SOLVER, finish_of(RUN))
VERDICT = said(VERIFIER, verdict_of(RUN))
FINAL = {
    variable.name: (variable.type, data)
    for variable, data in zip(RUN.program.state, RUN.good.states[-1], strict=True)
}
PARTS = ("file", "terms", "commitments", "verdicts", "rulings", "log", "tensors")


def read(name: str) -> tuple[TensorType, bytes] | None:
    """Tensors of the model file."""
    return FINAL.get(name)


def verify(receipt: Receipt) -> Verification:
    """Check everything."""
    names = [v.name for v in (*RUN.program.parameters, *RUN.program.buffers)]
    return verify_receipt(
        receipt, file_digest=MODEL, read=read, names=names, coordinator=COORDINATOR.party
    )


def fails(receipt: Receipt, rule: str) -> None:
    """Check that exactly the parts under this rule fail."""
    found = verify(receipt)
    assert not found.ok
    assert {check.rule for check in found.report.checks if not check.passed} == {rule}
    with pytest.raises(ProtocolError) as refused:
        verified_or_raise(found)
    assert refused.value.rule == rule


def test_a_good_receipt_establishes_every_part() -> None:
    found = verify(GOOD)
    assert found.report.failed is None
    assert found.established == PARTS
    assert found.not_checked == NOT_CHECKED
    assert {check.rule for check in found.report.checks} == {f"RCP-{n}" for n in range(5, 12)}
    verified_or_raise(found)


def test_what_was_not_given_is_listed_as_not_checked() -> None:
    found = verify_receipt(GOOD)
    assert found.ok
    assert found.established == ("terms", "commitments", "verdicts", "rulings", "log")
    assert len(found.not_checked) == len(NOT_CHECKED) + 3


def test_rcp_4__a_receipt_survives_its_json() -> None:
    text = to_json(GOOD)
    assert from_json(text) == GOOD
    assert to_json(from_json(text)) == text
    with pytest.raises(ProtocolError) as refused:
        from_json(text.replace('"version": 1', '"version": 1, "extra": 0', 1))
    assert refused.value.rule == "RCP-4"


def test_rcp_5__another_file_is_not_the_subject() -> None:
    found = verify_receipt(GOOD, file_digest=sha256(b"another file"))
    assert [check.rule for check in found.report.checks if not check.passed] == ["RCP-5"]
    assert "file" not in found.established


def test_rcp_6__other_terms_programs_and_versions_are_refused() -> None:
    fails(replace(GOOD, version=Count(2)), "RCP-6")
    broken = verify(replace(GOOD, program=GOOD.program[:-1])).report
    assert {c.rule for c in broken.checks if not c.passed} == {"RCP-6", "RCP-7", "RCP-8"}
    terms: JobTerms = replace(GOOD.terms, cadence=Count(0))
    assert "terms" not in verify(replace(GOOD, terms=terms, marks=())).established


def test_rcp_7__marks_start_header_and_last_state_hang_together() -> None:
    marks, other = GOOD.marks, sha256(b"other")
    wrong_start = replace(GOOD, marks=(other, *marks[1:]))
    for wrong in (
        replace(GOOD, marks=marks[:-1]),
        wrong_start,
        replace(GOOD, marks=(marks[0], other, *marks[2:])),
        replace(GOOD, marks=(*marks[:-1], other)),
    ):
        found = verify(wrong)
        failed = {check.rule for check in found.report.checks if not check.passed}
        # The verdicts are about the marks that were signed, so they fail with them.
        assert failed == {"RCP-7", "RCP-9"}
    for header in (
        replace(GOOD.header, seed=Unsigned(12)),
        replace(GOOD.header, step=StepIndex(3)),
        replace(GOOD.header, cursor=Count(0)),
        replace(GOOD.header, program=other),
    ):
        fails(replace(GOOD, header=header), "RCP-7")
    changed = verify(replace(GOOD, digests=(other, *GOOD.digests[1:]))).report
    assert {check.rule for check in changed.checks if not check.passed} == {"RCP-7", "RCP-8"}


def test_rcp_7__another_run_signed_by_the_solver_is_not_this_one() -> None:
    head = head_of(RUN, [*GOOD.marks[:-1], sha256(b"other")])
    finish = replace(finish_of(RUN), head=head)
    fails(receipt_over(RUN, said(SOLVER, finish), [VERDICT], []), "RCP-7")


def test_rcp_8__every_changed_tensor_of_the_file_is_found() -> None:
    model = (*RUN.program.parameters, *RUN.program.buffers)
    for variable in model:
        kind, data = FINAL[variable.name]
        for wrong in (None, (kind, data[:-1] + bytes([data[-1] ^ 1])), (kind, data[:-1])):
            found = verify_receipt(
                GOOD,
                read=lambda name, wrong=wrong, at=variable.name: (  # type: ignore[misc]
                    wrong if name == at else FINAL[name]
                ),
            )
            assert [c.rule for c in found.report.checks if not c.passed] == ["RCP-8"]
    # Two tensors of one type with their names exchanged.
    first, second = "hidden.weight", "out.weight"
    swapped = {**FINAL, first: FINAL[second], second: FINAL[first]}
    assert not verify_receipt(GOOD, read=swapped.get).ok


def test_rcp_8__a_tensor_besides_is_found() -> None:
    """What loads the file might use it, whoever signed the file."""
    names = [v.name for v in (*RUN.program.parameters, *RUN.program.buffers)]
    assert verify_receipt(GOOD, read=FINAL.get, names=names).ok
    found = verify_receipt(GOOD, read=FINAL.get, names=[*names, "lm_head.weight"])
    assert [c.rule for c in found.report.checks if not c.passed] == ["RCP-8"]
    assert any("besides" in line for line in verify_receipt(GOOD, read=FINAL.get).not_checked)


def test_rcp_9__verdicts_are_signed_enough_and_about_this_run() -> None:
    verdict = verdict_of(RUN)
    other_head = head_of(RUN, [*GOOD.marks[:-1], sha256(b"other")])
    forged = replace(VERDICT, signature=said(STRANGER, verdict).signature)
    lists: list[list[Event]] = [
        [],
        [forged],
        [said(SOLVER, verdict)],
        [said(VERIFIER, replace(verdict, agrees=False))],
        [said(VERIFIER, replace(verdict, attempt=Count(2)))],
        [said(VERIFIER, replace(verdict, head=other_head))],
        [said(VERIFIER, finish_of(RUN))],
        [ruling_of(RUN, Verdicts.WRONG, Loser.CHALLENGER)],
    ]
    for verdicts in lists:
        fails(receipt_over(RUN, FINISH, verdicts, []), "RCP-9")


def test_rcp_9__says_how_many_of_the_verifiers_vouch() -> None:
    run = copy(RUN)
    run.terms = replace(RUN.terms, verifiers=Count(2))
    found = verify(good_receipt(run))
    assert found.ok
    assert [c.what for c in found.report.checks if c.rule == "RCP-9"][-1].startswith("1 of 2 ")


def test_rcp_9__one_verifier_twice_is_one_verifier() -> None:
    twice = receipt_over(RUN, FINISH, [VERDICT, said(VERIFIER, verdict_of(RUN), 9)], [])
    what = [check.what for check in verify(twice).report.checks if check.rule == "RCP-9"]
    assert what[-1].startswith("1 of 1 ")


def test_rcp_10__a_run_found_wrong_has_no_receipt() -> None:
    wrong = ruling_of(RUN, Verdicts.WRONG, Loser.DEFENDER)
    fails(receipt_over(RUN, FINISH, [VERDICT], [wrong]), "RCP-10")
    other = replace(ruling_of(RUN, Verdicts.WRONG, Loser.CHALLENGER), attempt=Count(2))
    fails(receipt_over(RUN, FINISH, [VERDICT], [other]), "RCP-10")
    fails(receipt_over(RUN, FINISH, [VERDICT], [VERDICT]), "RCP-10")
    late = ruling_of(RUN, Verdicts.LATE, Loser.DEFENDER)
    assert verify(receipt_over(RUN, FINISH, [VERDICT], [late])).ok


def test_rcp_11__entries_are_in_the_coordinators_log() -> None:
    other = sign(STRANGER, Domain.LOG, GOOD.log)
    longer = replace(GOOD.log, size=Count(GOOD.log.size + 1))
    for wrong in (
        replace(GOOD, signature=other),
        replace(GOOD, log=longer),
        without_path(GOOD),
        replace(GOOD, verdicts=(replace(GOOD.verdicts[0], path=()),)),
    ):
        fails(wrong, "RCP-11")
    elsewhere = replace(GOOD, coordinator=STRANGER.party)
    found = verify_receipt(elsewhere)
    assert found.established == ("terms", "rulings")


def test_every_changed_message_is_found() -> None:
    event = FINISH.message
    changed = replace(event, statement=replace(finish_of(RUN), model=sha256(b"planted")))
    forged = replace(FINISH, message=changed)
    found = verify(receipt_over(RUN, forged, [VERDICT], []))
    assert {"RCP-5", "RCP-7"} <= {c.rule for c in found.report.checks if not c.passed}
    planted = replace(event, network=STRANGER.party)
    resigned = replace(FINISH, message=planted, signature=sign(SOLVER, Domain.MESSAGE, planted))
    assert not verify(receipt_over(RUN, resigned, [VERDICT], [])).ok
