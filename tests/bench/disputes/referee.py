"""``python -m tests.bench.disputes.referee FILE``: what a ruling takes, by itself.

Imports no kernel, no numpy and no torch, and says so. Replays a transcript once, then judges
its last question many times.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from pathlib import Path

from identic.proofs.referee import judge
from identic.proofs.transcript import replay
from identic.protocol.dispute.moves import NO_EVIDENCE, Evidence
from identic.protocol.encoding import encode

REPETITIONS = 101
HEAVY = ("numpy", "torch", "cupy")


def main(arguments: list[str]) -> int:
    """Measure one transcript."""
    began = time.process_time()
    judged = replay(Path(arguments[0]).read_bytes())
    whole = time.process_time() - began
    question = judged.dispute.question
    if question is None:
        raise SystemExit("the dispute was not settled by a question")
    last = judged.transcript.moves[-1].move.body.move
    evidence = last if isinstance(last, Evidence) else NO_EVIDENCE
    times = []
    for _ in range(REPETITIONS):
        start = time.perf_counter()
        judgement = judge(judged.dispute.setup, question, evidence)
        times.append(time.perf_counter() - start)
        if judgement.finding is None:
            raise SystemExit("the referee refuses what it took before")
    opening = judged.transcript.opening
    sent = {opening.defender: 0, opening.challenger: 0}
    for timed in judged.transcript.moves:
        sent[timed.move.body.party] += len(encode(timed.move))
    found = {
        "referee_ms": statistics.median(times) * 1000,
        "replay_cpu_s": whole,
        "defender_bytes": sent[opening.defender],
        "challenger_bytes": sent[opening.challenger],
        "heavy": [name for name in HEAVY if name in sys.modules],
    }
    print(json.dumps(found))  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
