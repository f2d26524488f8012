"""``identic node``: make a node, run it, see how it fares."""

from __future__ import annotations

import time
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final

import typer

from identic.node.cli.client import (
    DEFAULT_FILE,
    CardOption,
    Client,
    ConfigOption,
    CoordinatorOption,
    IdentityOption,
    client,
    configured,
)
from identic.node.cli.faults import Usage
from identic.node.cli.output import Answer, current
from identic.node.cli.screens import status as screen
from identic.node.config import Config, write_example
from identic.node.identity import Card, Identity
from identic.node.rpc.remote import Remote
from identic.node.views import NodeStatus
from identic.protocol.errors import LocalError

REFRESH_S: Final = 1.0


class RoleName(StrEnum):
    """What a node can be."""

    COORDINATOR = "coordinator"
    SOLVER = "solver"
    VERIFIER = "verifier"
    WHISTLEBLOWER = "whistleblower"
    CLIENT = "client"


CLIENT_EXAMPLE: Final = """\
# Configuration of a client of an identic network: it posts jobs and looks at what is there.

name = "{name}"
# Keys, and what is on its way; relative to this file. identity.key in it is you: keep a copy.
data_dir = "{name}-data"

[network]
coordinator = "127.0.0.1:7400"
# The coordinator's contact card; relative to this file. Its operator has it as <name>.card.
card = "coordinator.card"
"""

_NEXT: Final = {
    RoleName.COORDINATOR: "hand {card} to every node and client, and put their cards into {peers}",
    RoleName.CLIENT: "put the coordinator's card where [network] says, and hand it yours",
}


def init(
    role: Annotated[RoleName, typer.Option("--role", help="What the node is to do.")],
    folder: Annotated[
        Path, typer.Option("--dir", metavar="DIR", help="Folder of the configuration.")
    ] = Path(),
    name: Annotated[
        str | None, typer.Option("--name", help="For people.  [default: the role]")
    ] = None,
    coordinator: CoordinatorOption = None,
    card: CardOption = None,
    listen: Annotated[
        str | None,
        typer.Option("--listen", metavar="HOST:PORT", help="Where others reach this node."),
    ] = None,
) -> Answer:
    """Make a node's identity and its configuration.

    Nothing that exists is overwritten. The configuration is a commented file to edit.
    """
    called = name or role.value
    path = folder / (DEFAULT_FILE if role is RoleName.CLIENT else f"{called}.toml")
    if path.exists():
        raise LocalError(
            f"{path} exists already", remedy="edit it, or choose another --name or --dir"
        )
    if card is not None:
        Card.load(card)
    text = (
        CLIENT_EXAMPLE.format(name=called)
        if role is RoleName.CLIENT
        else write_example(role.value, called)
    )
    named = None if card is None else str(card.resolve())
    given = {"coordinator": coordinator, "card": named, "listen": listen}
    _write(path, _filled(text, given))
    try:
        config = Config.load(path)
        identity = Identity.create(config.data_path, called)
    except LocalError:
        path.unlink()
        raise
    own_card = config.data_path / f"{called}.card"
    config.peers_path.mkdir(parents=True, exist_ok=True)
    advice = _NEXT.get(role, "put the coordinator's card where [network] says, and hand it {card}")
    run = "" if role is RoleName.CLIENT else f"then start it:  identic node run --config {path}"
    return Answer(
        {"role": role.value, "config": path, "identity": identity.party, "card": own_card},
        [
            f"made {path} and the keys under {config.data_path}",
            f"identity {identity.party.hex()}",
            f"keep an offline copy of {config.data_path / 'identity.key'}: it is the node's money",
            f"next: {advice.format(card=own_card, peers=config.peers_path)}",
            *([run] if run else []),
        ],
    )


def _filled(text: str, given: dict[str, str | None]) -> str:
    """Put values into the lines of an example that set these keys."""
    for key, value in given.items():
        if value is None:
            continue
        lines = text.splitlines(keepends=True)
        where = [i for i, line in enumerate(lines) if line.startswith(f"{key} = ")]
        if not where:
            raise Usage(f"--{key} has no meaning for this role", remedy="leave it out")
        if '"' in value or "\\" in value:
            raise Usage(f"--{key} {value} has a quote in it", remedy="choose another")
        lines[where[0]] = f'{key} = "{value}"\n'
        text = "".join(lines)
    return text


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise LocalError(
            f"cannot write {path}: {error.strerror}", remedy="choose another --dir"
        ) from error


def run(config: ConfigOption = None) -> Answer:
    """Run a node until it is told to stop.

    SIGTERM and Ctrl-C stop it in order; what is unfinished goes on from the last stored state
    at the next start. The log goes to standard error.
    """
    from identic.node import daemon  # noqa: PLC0415 - the services are slow to import

    settings = _needed(config)
    if not settings.roles:
        raise Usage(
            "this configuration names no role",
            remedy="add a section such as [solver], or make one with `identic node init`",
        )
    daemon.run(settings)
    return Answer({"stopped": True}, ["stopped"])


def status(
    config: ConfigOption = None,
    address: Annotated[
        str | None,
        typer.Argument(metavar="[HOST:PORT]", help="Another node.  [default: the configured one]"),
    ] = None,
    card: CardOption = None,
    identity: IdentityOption = None,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Keep the screen up to date.")
    ] = False,
) -> Answer:
    """Show how a running node fares.

    Roles with their last error in words, memory, disk and peers. Asks the node whose
    configuration is given, with that node's own keys.
    """
    asked = _whom(config, address, card, identity)
    output = current()
    found = asked.run(Remote.status)
    while follow and output.live and not output.json:
        output.told.clear()
        output.answer(Answer({}, screen.lines(found)))
        time.sleep(REFRESH_S)
        found = asked.run(Remote.status)
    return Answer({"status": found}, screen.lines(found), yes=_healthy(found))


def _healthy(found: NodeStatus) -> bool:
    return not any(role.last_error and role.state.name == "WAITING" for role in found.roles)


def _whom(
    config: Path | None, address: str | None, card: Path | None, identity: Path | None
) -> Client:
    if address is not None:
        return client(config, address, card, identity)
    settings = _needed(config)
    own = Identity.load(settings.data_path, settings.name)
    host, _, port = settings.listen.rpartition(":")
    here = f"127.0.0.1:{port}" if host in {"0.0.0.0", "[::]"} else settings.listen  # noqa: S104
    return Client(here, own.card, own, settings.data_path)


def _needed(config: Path | None) -> Config:
    settings = configured(config)
    if settings is None:
        raise Usage(
            "which node? there is no configuration here",
            remedy="give --config FILE, or make one with `identic node init`",
        )
    return settings
