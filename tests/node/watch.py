"""A client in a process of its own that watches the log: ``-m tests.node.watch``.

Arguments: the folder of its identity, the server's contact card and address. Prints each entry.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from identic.node.identity import Card, Identity
from identic.node.rpc.client import Connection
from identic.node.rpc.remote import Remote


async def watch(identity: Path, card: Path, address: str) -> None:
    """Watch until killed."""
    async with Connection(address, Identity.load(identity, "ada"), Card.load(card)) as connection:
        async for index, _ in Remote(connection).log.watch(0):
            sys.stdout.write(f"{index}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(watch(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]))
