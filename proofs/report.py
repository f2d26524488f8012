"""Numbered checks with their outcomes, kept whether they pass or not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from identic.protocol.errors import IdenticError, ProtocolError


@dataclass(frozen=True)
class Check:
    """One check that was made."""

    rule: str
    """Rule of the specification that it follows."""
    what: str
    """What is established when it passes, in words."""
    passed: bool
    got: str
    """What was found; empty when it passed."""
    want: str
    """What the rule asks for; empty when it passed."""


@dataclass(frozen=True)
class Report:
    """Every check in order; a failed one ends those that build on it."""

    checks: tuple[Check, ...]

    @property
    def ok(self) -> bool:
        """Whether all checks passed."""
        return all(check.passed for check in self.checks)

    @property
    def failed(self) -> Check | None:
        """The first check that failed."""
        return next((check for check in self.checks if not check.passed), None)


class Refused(IdenticError):
    """A check failed on which the rest depends; the report has the cause."""


class Checks:
    """A report under construction."""

    def __init__(self) -> None:
        self._checks: list[Check] = []

    def add(self, rule: str, what: str, *, got: object, want: object) -> None:
        """Check that ``got`` equals ``want``.

        Raises:
            Refused: it does not.
        """
        passed = got == want
        shown = ("", "") if passed else (str(got), str(want))
        self._checks.append(Check(rule, what, passed, *shown))
        if not passed:
            raise Refused(f"{what}: got {got}, want {want} ({rule})")

    def note(self, rule: str, what: str) -> None:
        """Put down what follows from the checks so far, so that the report is complete."""
        self._checks.append(Check(rule, what, passed=True, got="", want=""))

    def same(self, rule: str, what: str, got: Callable[[], object], want: object) -> None:
        """Check that what ``got()`` computes equals ``want``; a malformed input fails, too.

        Raises:
            Refused: it does not.
        """
        try:
            found = got()
        except ProtocolError as error:
            cause = f"{error.got} ({error.rule})"
            self._checks.append(Check(rule, what, passed=False, got=cause, want=error.want))
            raise Refused(f"{what}: {error}") from error
        self.add(rule, what, got=found, want=want)

    @property
    def report(self) -> Report:
        """The checks made so far."""
        return Report(tuple(self._checks))
