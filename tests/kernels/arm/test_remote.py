"""The pipe to the emulated kernels carries what the module is called with; the rest needs ARM."""

from __future__ import annotations

import numpy as np
import pytest

from identic.kernels.arrays import Array
from tests.kernels.arm import __main__ as arm
from tests.kernels.arm.remote import Handle, Unpacker, packed


@pytest.mark.parametrize(
    "value",
    [None, True, 0, -(2**63), 2**63 - 1, "exp", b"", b"\x00\xff", [], [1, ["a", None]], {"n": 3}],
)
def test_values_arrive_as_they_were(value: object) -> None:
    assert Unpacker(packed(value, [])).value() == value


def test_unsigned_numbers_and_objects_arrive() -> None:
    assert Unpacker(packed(2**64 - 1, [])).value() == -1
    found = Unpacker(packed(Handle(7), [])).value()
    assert (type(found), found) == (Handle, 7)
    with pytest.raises(TypeError, match="object"):
        packed(object(), [])


def test_an_array_brings_the_memory_that_its_strides_reach() -> None:
    x = np.arange(24, dtype=np.float32).reshape(4, 6)
    outs: list[Array] = []
    view = x[1:, ::2]
    assert packed(view, outs).endswith(x.reshape(-1)[6:23].tobytes())
    assert [a is view for a in outs] == [True]
    x.setflags(write=False)
    packed(x, outs)
    assert len(outs) == 1
    empty = packed(np.empty((0, 3), np.int64), outs)
    assert empty.endswith(bytes(8))


def test_missing_tools_are_named_with_their_packages(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None if name == arm.EMULATOR else name)
    assert arm.main([]) == 1
    said = capsys.readouterr().err
    assert "apt-get install qemu-user" in said
    assert "g++" not in said


def test_the_tests_that_are_left_out_exist() -> None:
    for name in arm.LONG:
        path, _, function = name.partition("::")
        assert f"def {function}(" in (arm.ROOT / path).read_text(encoding="utf-8")
    assert all("_avx" not in path.name for path in arm.sources())
