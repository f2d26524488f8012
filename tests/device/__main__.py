"""All parts one after the other, each in a process with a limit, and the report of them.

``python -m tests.device [--into out/device.json] [--seconds 345] [PART ...]``

A part that fails, hangs or takes the device down does not keep the others from running; what it
found until then is reported. Where time runs short the first parts have it: those that are left
without are reported as not run. The result is 0 if every part ended and no check came out wrong.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

LIMITS = {
    "vectors": 60,
    "random calls": 35,
    "roots": 60,
    "products": 25,
    "gpt-2 small": 50,
    "gpt 350M": 40,
    "repetitions": 25,
    "large": 20,
    "fused": 20,
    "hashing": 10,
}
"""Parts, what matters most first, and the seconds that each is sure of."""

LEAST_S = 5.0
"""Seconds without which a part is not begun."""

NOT_RUN = "not run: no time left"

Run = Callable[[str, float], tuple[str, list[str], str]]
"""A part and its seconds: how it ended, its lines, what it said when it failed."""


def process(name: str, seconds: float) -> tuple[str, list[str], str]:
    """Run a part in a process of its own."""
    command = [sys.executable, "-m", "tests.device.part", name]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ}
    ) as running:
        try:
            out, said = running.communicate(timeout=seconds)
            ended = "ok" if running.returncode == 0 else f"ended with {running.returncode}"
        except subprocess.TimeoutExpired:
            running.kill()
            out, said = running.communicate()
            ended = f"stopped after {seconds:.0f} s"
    return ended, out.splitlines(), said[-2000:]


def report(
    names: Sequence[str], seconds: float, run: Run, tell: Callable[[str], object]
) -> dict[str, Any]:
    """Run parts within ``seconds`` in all, and collect what they find.

    A part has its own limit and what those before it have left over.
    """
    end = time.monotonic() + seconds
    rows: list[Any] = []
    checks: list[Any] = []
    parts: list[Any] = []
    for number, name in enumerate(names):
        start = time.monotonic()
        later = sum(LIMITS[n] for n in names[number + 1 :])
        left = min(end - start, max(LIMITS[name], end - start - later))
        ended, lines, said = run(name, left) if left >= LEAST_S else (NOT_RUN, [], "")
        took = round(time.monotonic() - start, 1)
        parts.append({"name": name, "ended": ended, "seconds": took, "said": said})
        tell(f"{name}: {ended}, {took} s")
        for line in lines:
            if not line.startswith("{"):
                continue
            one = json.loads(line)
            (checks if "ok" in one else rows).append(one)
            tell(f"  {told(one)}")
        if said and ended != "ok":
            tell(said)
    cut = [part["name"] for part in parts if part["ended"] == NOT_RUN]
    if cut:
        tell(f"NOT RUN, for lack of time: {', '.join(cut)}")
    return {"machine": machine(), "rows": rows, "checks": checks, "parts": parts}


def told(one: dict[str, Any]) -> str:
    """A check or a row in words."""
    if "ok" in one:
        word = {True: "right", False: "WRONG", None: "cannot tell"}[one["ok"]]
        return f"{one['name']}: {word} {one['note']}"
    seconds, ratio = f"{one['ours_s'] * 1e3:.3g} ms", f"{one['ratio']:.2f}"
    return f"{one['name']}: {seconds}, {ratio} of the time of {one['peer']}"


def good(found: dict[str, Any]) -> bool:
    """Whether every part ended and nothing that was checked is wrong."""
    ended = all(part["ended"] == "ok" for part in found["parts"])
    return ended and not any(check["ok"] is False for check in found["checks"])


def machine() -> dict[str, str]:
    """The machine in words."""
    facts = {"system": f"{platform.system()} {platform.release()}, Python {sys.version.split()[0]}"}
    query = ("nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader")
    try:
        shown = subprocess.run(query, capture_output=True, text=True, check=True, timeout=5)
        facts["device"] = shown.stdout.strip()
    except (OSError, subprocess.SubprocessError):
        facts["device"] = "none that nvidia-smi shows"
    return facts


def say(line: str) -> None:
    """Tell people at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main(arguments: Sequence[str]) -> int:
    """Run the parts and write the report."""
    parser = argparse.ArgumentParser(prog="python -m tests.device")
    parser.add_argument("--into", type=Path, default=Path("out/device.json"))
    parser.add_argument("--seconds", type=float, default=sum(LIMITS.values()))
    parser.add_argument("parts", nargs="*", choices=[[], *LIMITS], default=[])
    wanted = parser.parse_args(arguments)
    names = wanted.parts or list(LIMITS)
    found = report(names, wanted.seconds, process, say)
    wanted.into.parent.mkdir(parents=True, exist_ok=True)
    wanted.into.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return 0 if good(found) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
