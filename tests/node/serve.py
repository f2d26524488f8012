"""A coordinator's server in a process of its own, to be frozen or killed: ``-m tests.node.serve``.

Arguments: the folder of the server's identity, a new folder for its files, and the contact card
that it accepts. Prints its address, then the number of open watchers whenever that changes.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from identic.node.identity import Card, Identity
from identic.node.logging import configure
from tests.node.conftest import running_site


async def serve(identity: Path, folder: Path, card: Path) -> None:
    """Serve until killed."""
    configure()
    async with running_site(folder, Identity.load(identity, "hub")) as site:
        (site.folder / "peers" / "peer.card").write_text(Card.load(card).text)
        sys.stdout.write(f"{site.server.address}\n")
        sys.stdout.flush()
        watching = 0
        while True:
            async with site.log.grown:
                while site.log.watching == watching:
                    await site.log.grown.wait()
            watching = site.log.watching
            sys.stdout.write(f"{watching}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(serve(*(Path(argument) for argument in sys.argv[1:4])))
