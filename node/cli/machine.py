"""The checks of ``identic doctor``: each looks at one thing and says it in a line.

A check never raises for what it looks at: a missing native module is a finding, not a fault.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib.metadata
import importlib.util
import os
import platform
import shutil
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from identic.node.cli import words
from identic.node.cli.screens.report import CheckLine, Outcome
from identic.node.config import ROLES, Config

FINE, BUT, NO = Outcome.FINE, Outcome.BUT, Outcome.NO

LEAST_MEMORY: Final = 2 << 30
LEAST_DISK: Final = 5 << 30
FIRST_PORT: Final = 7400
SANE_YEAR_S: Final = 1_704_067_200
"""2024-01-01; a clock before that was never set."""

DRIFT_S: Final = 0.02
PACKAGES: Final = ("numpy", "grpcio", "protobuf", "cryptography", "safetensors", "gmpy2")


def examine(config: Config | None, gpus: Sequence[CheckLine]) -> tuple[CheckLine, ...]:
    """Make every check.

    Args:
        config: the configuration whose address, limits and folder are looked at, if any.
        gpus: what was found about devices.
    """
    here = config.data_path if config else Path.cwd()
    return (
        python(),
        packages(),
        cores(),
        *native(),
        *gpus,
        memory(config),
        disk(here, config),
        ports(config),
        clock(),
        torch(),
    )


def python() -> CheckLine:
    """The interpreter."""
    text = (
        f"{platform.python_version()} ({platform.python_implementation()}), {platform.platform()}"
    )
    return CheckLine("python", FINE, text)


def packages() -> CheckLine:
    """The packages a node needs."""
    found, missing = [], []
    for name in ("identic", *PACKAGES):
        try:
            found.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            missing.append(name)
    if missing:
        return CheckLine("packages", NO, f"missing: {', '.join(missing)}", "run `make install`")
    return CheckLine("packages", FINE, ", ".join(found))


def usable_cores() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def cores() -> CheckLine:
    """How many cores there are."""
    usable, all_cores = usable_cores(), os.cpu_count() or 1
    text = words.plural(usable, "core")
    if usable < all_cores:
        text += f" of {all_cores}"
    if usable < 2:
        remedy = "training and the services share one core; give the process two"
        return CheckLine("cores", BUT, text, remedy)
    return CheckLine("cores", FINE, text)


# ---- the native kernels ---------------------------------------------------------------------


def native() -> tuple[CheckLine, ...]:
    """The compiled operators: vector paths, bits, float environment."""
    try:
        from identic.kernels import _native  # noqa: PLC0415 - its absence is a finding
        from identic.node.cli import selftest  # noqa: PLC0415 - needs the module above
    except ImportError as error:
        remedy = "install a C++17 compiler and run `make install native`"
        return (CheckLine("kernels", NO, f"the native module does not load: {error}", remedy),)
    paths = _native.paths()
    return (vectors(paths), selftest.check(paths), floats(_native.float_environment()))


def vectors(paths: list[str]) -> CheckLine:
    """Which vector instructions are used."""
    text = f"{paths[0]} ({', '.join(paths)} available; all give the same bits)"
    if paths == ["scalar"]:
        return CheckLine(
            "vectors", BUT, text, "a machine with AVX2 or NEON is several times faster"
        )
    return CheckLine("vectors", FINE, text)


def floats(environment: Mapping[str, object]) -> CheckLine:
    """Rounding and subnormals of the processor's float unit."""
    wrong = [name for name in ("ftz", "daz") if environment[name]]
    if environment["rounding"] != "nearest":
        wrong.append(f"rounding {environment['rounding']}")
    if wrong:
        remedy = "some library changed the float unit; nodes put it back, but find out which one"
        return CheckLine("float unit", BUT, f"set to {', '.join(wrong)}", remedy)
    return CheckLine("float unit", FINE, "rounds to nearest, keeps subnormal numbers")


def gpus() -> tuple[tuple[CheckLine, ...], list[dict[str, object]]]:
    """The CUDA devices: their lines, and each as a JSON value."""
    try:
        from identic.node.cli import gpus as found  # noqa: PLC0415 - needs the native module
    except ImportError:
        return (), []
    return found.examine()


# ---- memory, disk, ports --------------------------------------------------------------------


def available_memory() -> tuple[int, int]:
    """Memory of this machine or container, and what of it is available, in bytes; 0 if unknown."""
    numbers = {}
    with contextlib.suppress(OSError):
        for line in Path("/proc/meminfo").read_text().splitlines():
            name, _, rest = line.partition(":")
            numbers[name] = int(rest.split()[0]) * 1024
    total, free = numbers.get("MemTotal", 0), numbers.get("MemAvailable", 0)
    with contextlib.suppress(OSError, ValueError):
        limit = int(Path("/sys/fs/cgroup/memory.max").read_text())
        used = int(Path("/sys/fs/cgroup/memory.current").read_text())
        total, free = min(total or limit, limit), min(free or limit, max(0, limit - used))
    return total, free


def memory(config: Config | None) -> CheckLine:
    """Memory against what the node offers."""
    total, free = available_memory()
    if not total:
        return CheckLine("memory", BUT, "cannot be told on this system", "watch it while training")
    text = f"{words.size(free)} available of {words.size(total)}"
    offered = int(config.limits.memory_bytes) if config else 0
    if offered > total:
        where = config.where("limits.memory_bytes") if config else ""
        remedy = f"lower limits.memory_bytes ({where}) below {words.size(total)}"
        return CheckLine("memory", NO, f"{text}; {words.size(offered)} are offered", remedy)
    if free < LEAST_MEMORY:
        return CheckLine("memory", BUT, text, "close other programs, or take small jobs only")
    return CheckLine("memory", FINE, text)


def disk(folder: Path, config: Config | None) -> CheckLine:
    """Room where the node keeps its things."""
    existing = next(p for p in (folder, *folder.parents) if p.exists())
    if not os.access(existing, os.W_OK):
        return CheckLine("disk", NO, f"{existing} cannot be written", "choose another data_dir")
    free = shutil.disk_usage(existing).free
    text = f"{words.size(free)} free under {existing}"
    offered = int(config.limits.disk_bytes) if config else 0
    if free < max(offered, LEAST_DISK):
        where = f" ({config.where('limits.disk_bytes')})" if config else ""
        wanted = words.size(max(offered, LEAST_DISK))
        remedy = (
            f"free some space, or lower limits.disk_bytes{where}; {wanted} would be comfortable"
        )
        return CheckLine("disk", BUT, text, remedy)
    return CheckLine("disk", FINE, text)


def ports(config: Config | None) -> CheckLine:
    """Whether the addresses to listen at are free."""
    if config:
        host, _, number = config.listen.rpartition(":")
        wanted = [(host.strip("[]"), int(number))]
    else:
        wanted = [("127.0.0.1", FIRST_PORT + i) for i in range(len(ROLES))]
    taken = [f"{host}:{port}" for host, port in wanted if not _free(host, port)]
    if taken:
        remedy = "a node may be running there already; else choose another `listen` address"
        return CheckLine("ports", BUT, f"in use: {', '.join(taken)}", remedy)
    first, last = wanted[0][1], wanted[-1][1]
    shown = f"{first}" if first == last else f"{first} to {last}"
    return CheckLine("ports", FINE, f"{shown} free at {wanted[0][0]}")


def _free(host: str, port: int) -> bool:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        with socket.socket(family) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, port))
    except OSError:
        return False
    return True


# ---- clock ----------------------------------------------------------------------------------


class _Timex(ctypes.Structure):
    """The beginning of what ``adjtimex`` fills, and room for the rest."""

    _fields_ = (
        ("modes", ctypes.c_uint),
        ("offset", ctypes.c_long),
        ("freq", ctypes.c_long),
        ("maxerror", ctypes.c_long),
        ("esterror", ctypes.c_long),
        ("status", ctypes.c_int),
        ("rest", ctypes.c_char * 256),
    )


STA_UNSYNC: Final = 0x40


def synchronised() -> bool | None:
    """Whether the kernel's clock is disciplined by NTP; None where it does not tell."""
    try:
        call: Callable[..., int] = ctypes.CDLL(None, use_errno=True).adjtimex
    except (OSError, AttributeError):
        return None
    state = _Timex()
    return None if call(ctypes.byref(state)) < 0 else not state.status & STA_UNSYNC


def clock() -> CheckLine:
    """Whether deadlines mean the same here as elsewhere."""
    started, wall = time.monotonic(), time.time()
    time.sleep(2 * DRIFT_S)
    drift = abs((time.time() - wall) - (time.monotonic() - started))
    now = words.moment(int(wall * 1000))
    if wall < SANE_YEAR_S:
        return CheckLine("clock", NO, f"it is {now}?", "set the clock; deadlines are in real time")
    if drift > DRIFT_S:
        return CheckLine(
            "clock", BUT, f"{now}, but it jumps", "let NTP steer it instead of setting it"
        )
    synced = synchronised()
    if synced is None:
        return CheckLine("clock", FINE, f"{now}; whether NTP steers it cannot be told here")
    if not synced:
        remedy = "run an NTP client; a node whose clock is off by more than a move's time loses it"
        return CheckLine("clock", BUT, f"{now}; not steered by NTP", remedy)
    return CheckLine("clock", FINE, f"{now}, steered by NTP")


def torch() -> CheckLine:
    """Torch, which only a submitter needs."""
    if importlib.util.find_spec("torch") is None:
        remedy = "only `identic job check` and `submit` need it: pip install 'identic[torch]'"
        return CheckLine("torch", BUT, "not installed; nodes do not need it", remedy)
    return CheckLine("torch", FINE, f"{importlib.metadata.version('torch')}, for submitting jobs")
