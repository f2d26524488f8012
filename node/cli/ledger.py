"""``identic ledger``: who has what."""

from __future__ import annotations

from identic.node.cli.client import (
    CardOption,
    ConfigOption,
    CoordinatorOption,
    IdentityOption,
    client,
)
from identic.node.cli.output import Answer
from identic.node.cli.reading import LogReader
from identic.node.cli.screens import ledger as screen
from identic.node.cli.views import ledger_view
from identic.node.rpc.remote import Remote


def show(
    config: ConfigOption = None,
    coordinator: CoordinatorOption = None,
    card: CardOption = None,
    identity: IdentityOption = None,
) -> Answer:
    """Show every account, from the log alone.

    Reads the whole log, applies every entry by the rules, and checks the signed head: the
    coordinator is not believed. The exit code is 1 if the accounts do not sum to zero.
    """
    asker = client(config, coordinator, card, identity)

    async def read(remote: Remote) -> LogReader:
        reader = LogReader(remote, asker.blobs)
        await reader.catch_up()
        return reader

    reader = asker.run(read)
    view = ledger_view(reader, asker.identity.party)
    parties = {
        party.hex(): {
            "balance": int(reader.board.ledger.balance(party)),
            "at_risk": int(reader.board.ledger.at_risk(party)),
        }
        for party in reader.board.known
    }
    value = {
        "parties": parties,
        "escrow": view.escrow,
        "burned": view.burned,
        "issued": view.issued,
        "total": view.total,
        "entries": view.entries,
    }
    return Answer(value, screen.lines(view), yes=view.total == 0)
