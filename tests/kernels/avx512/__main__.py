"""``make test-avx512``: the golden vectors by real AVX-512 instructions, on a simulated processor.

Runs the tests of the vectors on this machine and keeps every call of a kernel with its answer.
Then the simulator Bochs starts Linux on a processor that has AVX-512, whose only process makes the
calls again, by the object files of the installed module, and compares the answers
(``replay.cpp``). A minute or two; nothing is installed, and no privilege is needed.
"""

from __future__ import annotations

import os
import pty
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

ROOT = Path(__file__).parents[3]
HERE = Path(__file__).parent
REMOTE = HERE.parent / "arm"
FOLDER = ROOT / "build" / "avx512"
MODULE = ROOT / "build" / "editable" / "CMakeFiles" / "_native.dir" / "kernels"

PACKAGES = {
    "/usr/bin/bochs": "bochs",
    "/usr/lib/x86_64-linux-gnu/bochs/plugins/libbx_term_gui.so": "bochs-term",
    "/usr/share/bochs/BIOS-bochs-latest": "bochsbios",
    "/usr/share/vgabios/vgabios.bin": "vgabios",
    "/usr/lib/ISOLINUX/isolinux.bin": "isolinux",
    "/usr/lib/syslinux/modules/bios/ldlinux.c32": "syslinux-common",
    "/usr/bin/genisoimage": "genisoimage",
    "/usr/bin/cpio": "cpio",
}
"""Files of the tools, and Debian's packages that have them."""

KERNEL = "linux-image-cloud-amd64"
"""Debian's package of a small kernel; it is unpacked, not installed."""

TESTS = (
    "tests/kernels/test_vectors.py::test_op_8__both_backends_give_the_vectors",
    "tests/kernels/native/test_functions.py",
)

PROCESSOR = "corei7_skylake_x"
PATIENCE_S = 3600
"""How long the simulator may take."""

GLANCE_S = 0.5
"""How often its console is looked at."""

SETTINGS = """\
display_library: term
cpu: model={processor}, count=1, ips=50000000, reset_on_triple_fault=0
memory: guest=1024, host=1024
romimage: file=/usr/share/bochs/BIOS-bochs-latest
vgaromimage: file=/usr/share/vgabios/vgabios.bin
ata0-master: type=cdrom, path=disc.iso, status=inserted
boot: cdrom
com1: enabled=1, mode=file, dev=console.txt
log: bochs.txt
panic: action=fatal
"""

# The sizes that the processor tells for two newer forms of XSAVE are not those that Linux works
# out, whereupon it would do without AVX.
MENU = """\
DEFAULT replay
LABEL replay
 KERNEL /vmlinuz
 APPEND initrd=/initrd console=ttyS0 quiet mitigations=off tsc=reliable clearcpuid=xsaves,xsavec
"""


# ---- programs -------------------------------------------------------------------------------


def compiled() -> tuple[Path, Path]:
    """The server of this machine and the process of the simulated one, of the same objects."""
    bound = [*ROOT.glob("kernels/native/bind_*.cpp")]
    bound += [ROOT / "kernels/native" / name for name in ("arrays.cpp", "module.cpp")]
    options = ["-std=c++17", "-O2", "-ffp-contract=off", "-fno-math-errno", "-pthread"]
    options += [f"-I{ROOT / 'kernels'}", f"-I{REMOTE}"]
    mine = [*sorted(bound), REMOTE / "server.cpp"]
    objects = []
    for source in [*mine, REMOTE / "serve.cpp", HERE / "replay.cpp"]:
        objects.append(FOLDER / f"{source.stem}.o")
        subprocess.run(["g++", *options, "-c", source, "-o", objects[-1]], check=True)
    replaced = {f"{path.name}.o" for path in bound}
    shared = [path for path in sorted(MODULE.rglob("*.o")) if path.name not in replaced]
    found = []
    for number, name in ((-2, "server"), (-1, "replay")):
        found.append(FOLDER / name)
        parts = [*objects[:-2], objects[number], *shared]
        subprocess.run(["g++", "-static", *parts, "-pthread", "-o", found[-1]], check=True)
    return found[0], found[1]


def recorded(server: Path, arguments: Sequence[str]) -> int:
    """Run the tests by the server and keep its calls; pytest's exit code."""
    command = [sys.executable, "-m", "pytest", "-n0", "-p", "tests.kernels.avx512.plugin"]
    kept = {"IDENTIC_REMOTE": str(server), "IDENTIC_CALLS": str(FOLDER / "root" / "calls")}
    (FOLDER / "root").mkdir(exist_ok=True)
    return subprocess.run(
        [*command, *TESTS, *arguments], cwd=ROOT, env={**os.environ, **kept}, check=False
    ).returncode


# ---- the simulated machine ------------------------------------------------------------------


def kernel() -> Path:
    """Debian's kernel, fetched on first use."""
    place = FOLDER / "kernel"
    found = sorted(place.glob("boot/vmlinuz-*"))
    if not found:
        place.mkdir(exist_ok=True)
        told = subprocess.run(
            ["apt-cache", "depends", KERNEL], capture_output=True, text=True, check=True
        ).stdout
        (package,) = re.findall(r"Depends: (linux-image-\S+)", told)
        subprocess.run(["apt-get", "-qq", "download", package], cwd=place, check=True)
        (archive,) = place.glob("*.deb")
        subprocess.run(["dpkg-deb", "-x", archive, place], check=True)
        found = sorted(place.glob("boot/vmlinuz-*"))
    return found[-1]


def write_disc(replay: Path) -> None:
    """A disc that starts Linux with ``replay`` as its only process."""
    disc, root = FOLDER / "disc", FOLDER / "root"
    (disc / "isolinux").mkdir(parents=True, exist_ok=True)
    shutil.copy(replay, root / "init")
    names = "".join(f"{path.name}\n" for path in sorted(root.iterdir()))
    pack = ["cpio", "--quiet", "-o", "-H", "newc"]
    made = subprocess.run(pack, cwd=root, input=names.encode(), capture_output=True, check=True)
    (disc / "initrd").write_bytes(made.stdout)
    shutil.copy(kernel(), disc / "vmlinuz")
    for file in ("/usr/lib/ISOLINUX/isolinux.bin", "/usr/lib/syslinux/modules/bios/ldlinux.c32"):
        shutil.copy(file, disc / "isolinux")
    (disc / "isolinux" / "isolinux.cfg").write_text(MENU, encoding="ascii")
    boot = ["-b", "isolinux/isolinux.bin", "-c", "isolinux/boot.cat", "-no-emul-boot"]
    boot += ["-boot-load-size", "4", "-boot-info-table"]
    image = str(FOLDER / "disc.iso")
    subprocess.run(["genisoimage", "-quiet", "-R", "-o", image, *boot, str(disc)], check=True)


def simulated() -> str:
    """What the simulated machine says, until its process ends."""
    console = FOLDER / "console.txt"
    console.unlink(missing_ok=True)
    (FOLDER / "settings.txt").write_text(SETTINGS.format(processor=PROCESSOR), encoding="ascii")
    (FOLDER / "commands.txt").write_text("continue\n", encoding="ascii")
    command = ["bochs", "-q", "-rc", "commands.txt", "-f", "settings.txt"]
    # Its screen is a terminal that nobody reads; what is said goes to the serial port.
    master, slave = pty.openpty()
    environment = {**os.environ, "TERM": "xterm"}
    process = subprocess.Popen(
        command, cwd=FOLDER, stdin=slave, stdout=slave, stderr=slave, env=environment
    )
    text = ""
    try:
        os.set_blocking(master, False)
        shown = 0
        for _ in range(int(PATIENCE_S / GLANCE_S)):
            with suppress(subprocess.TimeoutExpired):
                process.wait(GLANCE_S)
            with suppress(BlockingIOError):
                os.read(master, 1 << 20)
            text = console.read_text(errors="replace") if console.exists() else ""
            lines = [line for line in text.splitlines() if line.startswith("replay: ")]
            for line in lines[shown:]:
                sys.stdout.write(f"{line}\n")
            shown = len(lines)
            sys.stdout.flush()
            if "replay: end" in lines or process.returncode is not None:
                break
    finally:
        # An interrupt would only bring it to a prompt of its own.
        process.kill()
        process.wait()
    os.close(master)
    os.close(slave)
    return text


def main(arguments: Sequence[str]) -> int:
    """Record, simulate, compare; 1 when an answer differs or a tool is missing."""
    missing = [package for file, package in PACKAGES.items() if not Path(file).exists()]
    if missing:
        sys.stderr.write(
            "the simulated processor needs tools that are not here; on Debian:\n"
            f"  apt-get install --no-install-recommends {' '.join(missing)}\n"
        )
        return 1
    FOLDER.mkdir(parents=True, exist_ok=True)
    server, replay = compiled()
    code = recorded(server, arguments)
    if code:
        return code
    write_disc(replay)
    found = re.search(r"replay: avx512, (\d+) calls, (\d+) wrong", simulated())
    if found is None:
        sys.stderr.write(f"the simulated machine did not come to its end: see {FOLDER}\n")
        return 1
    return int(int(found[1]) == 0 or int(found[2]) > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
