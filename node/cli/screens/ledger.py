"""The ledger: who has what, and what is locked where."""

from __future__ import annotations

from dataclasses import dataclass

from rich.text import Text

from identic.node.cli import words
from identic.node.cli.output import Lines, columns


@dataclass(frozen=True)
class AccountLine:
    """One party's money, in millionths of a credit."""

    name: str
    balance: int
    at_risk: int


@dataclass(frozen=True)
class LedgerView:
    """All money there is, in millionths of a credit.

    Attributes:
        accounts: every party.
        escrow: set aside for jobs.
        burned: gone for good.
        issued: all that was ever issued.
        total: sum over all accounts with the issue counted as negative; 0 in a sound ledger.
        entries: entries of the log that this follows from.
    """

    accounts: tuple[AccountLine, ...]
    escrow: int
    burned: int
    issued: int
    total: int
    entries: int


def lines(view: LedgerView) -> Lines:
    """The table and the sum."""
    rows: list[list[Text | str]] = [[Text(h, style="dim") for h in ("account", "free", "at risk")]]
    rows += [[a.name, words.money(a.balance), words.money(a.at_risk)] for a in view.accounts]
    rows += [["in escrow", words.money(view.escrow)], ["burned", words.money(view.burned)]]
    sound = view.total == 0
    verdict = Text("✓ " if sound else "✗ ", style="green" if sound else "bold red")
    verdict.append(
        f"issued {words.money(view.issued)}; everything sums to {words.money(view.total)}, "
        f"by {words.count(view.entries)} entries of the log"
    )
    return [*columns(rows, right=(1, 2)), "", verdict]
