"""Entry point of the ``identic`` command."""

from __future__ import annotations

import sys


def main() -> None:
    """Tell that no command is installed yet and exit with 2 (usage)."""
    sys.stderr.write("identic: no commands in this build\n")
    raise SystemExit(2)
