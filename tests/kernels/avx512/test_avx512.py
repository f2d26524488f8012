"""What can be said about the simulated processor without it; the rest is ``make test-avx512``."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from identic.kernels.arrays import Array
from tests.kernels.arm.remote import Remote, Unpacker, packed
from tests.kernels.avx512 import __main__ as avx512

ANSWER = """
import struct, sys
from tests.kernels.arm.remote import packed
pipe = sys.stdin.buffer
while head := pipe.read(8):
    pipe.read(*struct.unpack("<Q", head))
    made = packed([None, [b"\\0\\0\\0@"] * 2], [])
    sys.stdout.buffer.write(struct.pack("<Q", len(made)) + made)
    sys.stdout.buffer.flush()
"""


def test_missing_tools_are_named_with_their_packages(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tools = {"/nowhere/bochs": "bochs", "/": "base-files"}
    monkeypatch.setattr(avx512, "PACKAGES", tools)
    assert avx512.main([]) == 1
    said = capsys.readouterr().err
    assert "apt-get install --no-install-recommends bochs\n" in said


def test_the_tests_that_are_recorded_exist() -> None:
    for name in avx512.TESTS:
        path, _, function = name.partition("::")
        text = (avx512.ROOT / path).read_text(encoding="utf-8")
        assert f"def {function}" in text


def test_calls_are_kept_with_their_answers(tmp_path: Path) -> None:
    kept = tmp_path / "calls"
    remote = Remote([sys.executable, "-c", ANSWER], kept)
    out, outs = np.ones(1, np.float32), list[Array]()
    remote.unary("neg", out, np.ones(1, np.float32))
    remote.close()
    assert out[0] == 2
    request = packed(["unary", ["neg", np.ones(1, np.float32), np.ones(1, np.float32)], {}], outs)
    size = len(request)
    data = kept.read_bytes()
    assert data[: 8 + size] == size.to_bytes(8, "little") + request
    assert Unpacker(data[16 + size :]).value() == [None, [b"\0\0\0@"] * 2]
