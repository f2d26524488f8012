"""One part of the checks in a process of its own; a line of JSON for each finding or row.

``python -m tests.device.part NAME``
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Any

from tests.device import stand_ins

BUILT = stand_ins.install()
"""Whether the native module is here."""


def found(name: str, setting: Any) -> Iterator[dict[str, Any]]:
    """What a part finds, as values of JSON: a check, or a row of times."""
    # Only here, after the stand-ins; and torch only where it is compared with.
    from tests.device import checks, roots  # noqa: PLC0415

    parts: dict[str, Callable[[Any], Iterator[Any]]] = {**checks.CHECKS, "roots": roots.roots}
    if name not in parts:
        from tests.device import ratios  # noqa: PLC0415

        parts |= ratios.RATIOS
    for one in parts[name](setting):
        yield asdict(one)


def main(name: str, *, least: bool = False) -> int:
    """Run a part on the first device."""
    from identic.kernels.cpu_backend import CpuBackend  # noqa: PLC0415
    from identic.kernels.cuda.cupy_device import CupyDevice  # noqa: PLC0415
    from tests.device.setting import Setting  # noqa: PLC0415

    cpu = CpuBackend() if BUILT else None
    setting = Setting(CupyDevice(0), cpu, least, "cpu" if least else "cuda")
    for one in found(name, setting):
        sys.stdout.write(json.dumps(one) + "\n")
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
