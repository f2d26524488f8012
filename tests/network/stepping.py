"""A node whose moves in disputes wait for a test's word.

``python -m tests.network.stepping --config FILE`` runs the node of the file. It makes no move
in a dispute before the file ``moves`` beside its configuration holds a larger number than the
dispute has moves.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from identic.node.config import Config
from identic.node.coordinator.cases import Case
from identic.node.daemon import run
from identic.node.participant import play
from identic.node.participant.base import Participant
from identic.node.worker.frames import ChosenMove

FILE = "moves"

hand_in = play._move


async def hand_in_when_told(party: Participant, case: Case, chosen: ChosenMove) -> None:
    """Make a move once it is allowed."""
    limit = party.context.config.base / FILE
    while len(party.mirror.board.cases[case.id].moves) >= int(limit.read_text()):  # noqa: ASYNC110
        await asyncio.sleep(0.02)
    await hand_in(party, case, chosen)


if __name__ == "__main__":
    play._move = hand_in_when_told
    run(Config.load(Path(sys.argv[sys.argv.index("--config") + 1])))
