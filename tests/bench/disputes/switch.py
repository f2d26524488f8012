"""``python -m tests.bench.disputes.switch NAME...``: an Ethernet switch with delay and loss.

Makes a network namespace for each name, with one tap device, and forwards frames between them
in user space: every frame is held for the delay, or dropped. The last name is the outside: its
device is in the namespace of whoever runs this, and its frames are neither held nor lost.
Needs root, ``ip`` and /dev/net/tun. Runs until its standard input ends, then takes all away.
"""

from __future__ import annotations

import argparse
import asyncio
import ctypes
import fcntl
import os
import random
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

TUNSETIFF, IFF_TAP, IFF_NO_PI = 0x400454CA, 0x0002, 0x1000
CLONE_NEWNET = 0x40000000
MTU = 1500
FRAME_BYTES = 65_536
AT_ONCE = 64
"""Frames read from a device before others have their turn."""
BROADCAST = 1


def available() -> bool:
    """Whether this machine lets us make namespaces and devices."""
    if os.geteuid() != 0 or not os.access("/dev/net/tun", os.R_OK | os.W_OK):
        return False
    try:
        return (
            subprocess.run(["ip", "netns", "list"], capture_output=True, check=False).returncode
            == 0
        )
    except FileNotFoundError:
        return False


def address(number: int) -> str:
    """Address of the name with this number, counted from 0."""
    return f"10.77.0.{number + 1}"


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True)


def _tap(namespace: str | None, device: str) -> int:
    """Open a new tap device in a namespace, or in our own."""

    def make() -> int:
        if namespace is not None:
            libc = ctypes.CDLL(None, use_errno=True)
            place = os.open(f"/run/netns/{namespace}", os.O_RDONLY)
            if libc.setns(place, CLONE_NEWNET):
                raise OSError(ctypes.get_errno(), "setns")
            os.close(place)
        found = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
        fcntl.ioctl(found, TUNSETIFF, struct.pack("16sH", device.encode(), IFF_TAP | IFF_NO_PI))
        return found

    return _in_a_thread(make)


def _in_a_thread(make: Callable[[], int]) -> int:
    """Call in a thread of its own, since a thread that enters a namespace stays there."""
    found: list[int] = []
    failed: list[OSError] = []

    def call() -> None:
        try:
            found.append(make())
        except OSError as error:
            failed.append(error)

    thread = threading.Thread(target=call)
    thread.start()
    thread.join()
    if failed:
        raise failed[0]
    return found[0]


@dataclass(frozen=True)
class Port:
    """A device of the switch.

    Attributes:
        name: whose.
        file: descriptor of the device.
        outside: whether frames from and to it are passed on at once.
    """

    name: str
    file: int
    outside: bool


class Switch:
    """Learns who is where, and forwards.

    Args:
        delay_s: time that a frame is held.
        loss: share of frames that are dropped.
    """

    def __init__(self, delay_s: float, loss: float) -> None:
        self._delay_s = delay_s
        self._loss = loss
        self._ports: list[Port] = []
        self._places: dict[bytes, Port] = {}
        self._draw = random.Random(1)

    def add(self, port: Port) -> None:
        """Forward from and to a device."""
        self._ports.append(port)
        asyncio.get_running_loop().add_reader(port.file, self._read, port)

    def close(self) -> None:
        """Forward nothing more."""
        for port in self._ports:
            asyncio.get_running_loop().remove_reader(port.file)

    def _read(self, port: Port) -> None:
        for _ in range(AT_ONCE):
            try:
                frame = os.read(port.file, FRAME_BYTES)
            except BlockingIOError:
                return
            self._places[frame[6:12]] = port
            self._forward(port, frame)

    def _forward(self, port: Port, frame: bytes) -> None:
        known = self._places.get(frame[:6])
        everybody = frame[0] & BROADCAST or known is None
        for target in self._ports if everybody or known is None else [known]:
            if target is port:
                continue
            if port.outside or target.outside:
                _write(target.file, frame)
            elif self._draw.random() >= self._loss:
                asyncio.get_running_loop().call_later(self._delay_s, _write, target.file, frame)


def _write(file: int, frame: bytes) -> None:
    try:
        os.write(file, frame)
    except OSError:
        # A device that is full or down loses the frame, as a real one does.
        return


async def serve(names: Sequence[str], delay_s: float, loss: float) -> None:
    """Set up, say so, and forward until standard input ends."""
    switch = Switch(delay_s, loss)
    made: list[str] = []
    try:
        for number, name in enumerate(names):
            outside = number == len(names) - 1
            namespace, device = (None, name) if outside else (name, "tap0")
            at = [] if namespace is None else ["-n", namespace]
            if namespace is not None:
                _ip("netns", "add", namespace)
                made.append(namespace)
                _ip(*at, "link", "set", "lo", "up")
            switch.add(Port(name, _tap(namespace, device), outside))
            _ip(*at, "link", "set", device, "mtu", str(MTU), "up")
            _ip(*at, "addr", "add", f"{address(number)}/24", "dev", device)
        print("ready", flush=True)  # noqa: T201
        await asyncio.to_thread(sys.stdin.read)
    finally:
        switch.close()
        for namespace in made:
            _ip("netns", "del", namespace)


def main(arguments: Sequence[str]) -> int:
    """Run a switch."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.disputes.switch")
    parser.add_argument("names", nargs="+", metavar="NAME", help="the last one is outside")
    parser.add_argument("--delay-ms", type=float, default=25.0, help="of each frame, one way")
    parser.add_argument("--loss", type=float, default=0.0, help="share of frames")
    options = parser.parse_args(arguments)
    asyncio.run(serve(options.names, options.delay_ms / 1000, options.loss))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
