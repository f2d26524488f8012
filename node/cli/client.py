"""The way from a command to the coordinator: whose identity, which address, which card.

Named by a configuration file (``--config``, or ``identic.toml`` here, or ``IDENTIC_CONFIG``),
or by ``--coordinator``, ``--card`` and ``--identity``, which win over the file. A client's
configuration is that of a node without roles.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, TypeVar

import typer

from identic.node.blobs import Blobs
from identic.node.cli.faults import Usage
from identic.node.config import Config
from identic.node.identity import Card, Identity
from identic.node.rpc.client import Connection
from identic.node.rpc.remote import Remote
from identic.protocol.errors import LocalError
from identic.protocol.ids import Digest

T = TypeVar("T")
D = TypeVar("D", bound=Digest)

DEFAULT_FILE: Final = "identic.toml"
VARIABLE: Final = "IDENTIC_CONFIG"
OUTBOX_BYTES: Final = 1 << 40

ConfigOption = Annotated[
    Path | None,
    typer.Option(
        "--config", metavar="FILE", help=f"Configuration of this client.  [default: {DEFAULT_FILE}]"
    ),
]
CoordinatorOption = Annotated[
    str | None,
    typer.Option("--coordinator", metavar="HOST:PORT", help="Address of the coordinator."),
]
CardOption = Annotated[
    Path | None, typer.Option("--card", metavar="FILE", help="The coordinator's contact card.")
]
IdentityOption = Annotated[
    Path | None, typer.Option("--identity", metavar="DIR", help="Folder of this client's keys.")
]


@dataclass(frozen=True)
class Client:
    """Who asks whom.

    Attributes:
        address: of the coordinator.
        card: of the coordinator.
        identity: of this client.
        folder: where this client keeps things.
    """

    address: str
    card: Card
    identity: Identity
    folder: Path

    @property
    def blobs(self) -> Blobs:
        """A blob store for what this client sends and fetches."""
        return Blobs(self.folder / "outbox", OUTBOX_BYTES)

    def run(self, ask: Callable[[Remote], Awaitable[T]]) -> T:
        """Connect, ask, and close the connection."""

        async def asking() -> T:
            async with Connection(self.address, self.identity, self.card) as connection:
                return await ask(Remote(connection))

        return asyncio.run(asking())


def configured(path: Path | None) -> Config | None:
    """The configuration that a command was given or finds; None where there is none.

    Raises:
        LocalError: it cannot be read, or something in it is wrong.
    """
    named = path or (Path(os.environ[VARIABLE]) if os.environ.get(VARIABLE) else None)
    if named is not None:
        return Config.load(named)
    here = Path(DEFAULT_FILE)
    return Config.load(here) if here.is_file() else None


def identity_in(folder: Path, name: str | None = None) -> Identity:
    """The identity under a folder; its name is that of its card unless given."""
    cards = sorted(folder.glob("*.card"))
    found = name or (cards[0].stem if cards else folder.resolve().name)
    return Identity.load(folder, found)


def client(
    config: Path | None, coordinator: str | None, card: Path | None, identity: Path | None
) -> Client:
    """Find out who asks whom.

    Raises:
        Usage: something is missing.
        LocalError: a file cannot be used.
    """
    settings = configured(config)
    address = coordinator or (settings.network.coordinator if settings else None)
    card_path = card or (settings.card_path if settings else None)
    if address is None or card_path is None:
        missing = "its address" if address is None else "its contact card"
        raise Usage(
            f"which coordinator? {missing} is missing",
            remedy="give --config FILE (`identic node init --role client` makes one), or "
            "--coordinator HOST:PORT, --card FILE and --identity DIR",
        )
    if identity is not None:
        own = identity_in(identity)
        return Client(address, Card.load(card_path), own, identity)
    if settings is None:
        raise Usage(
            "who are you? the keys are missing", remedy="give --identity DIR or --config FILE"
        )
    own = Identity.load(settings.data_path, settings.name)
    return Client(address, Card.load(card_path), own, settings.data_path)


def chosen(name: str, kind: type[D], known: Sequence[Digest], prefix: str) -> D:
    """The one of ``known`` that a person means by ``j-7f3a91``, or by more or fewer hex digits.

    Raises:
        LocalError: nothing, or more than one thing, is called that.
    """
    wanted = name.removeprefix(prefix).lower()
    found = [one for one in known if one.hex().startswith(wanted)] if wanted else []
    if len(found) == 1:
        return kind(found[0])
    noun = "job" if prefix == "j-" else "dispute"
    if not found:
        raise LocalError(
            f"there is no {noun} {name} among {len(known)}",
            remedy=f"`identic {noun} list` shows what there is",
        )
    raise LocalError(f"{name} may mean {len(found)} {noun}s", remedy="give more digits of the name")
