"""The device through CuPy's interface: what it passes on, what it says of failures."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from identic.kernels.arrays import on_host
from identic.kernels.cpu_backend import CpuBackend
from identic.kernels.cuda import kept, source
from identic.kernels.cuda.device import DeviceFault, Kernel, Words
from identic.kernels.cuda.survey import Found, Survey
from identic.kernels.cuda_backend import CudaBackend
from identic.node.execution import sample
from identic.protocol.errors import LocalError
from tests.cuda import nvrtc, ptx
from tests.cuda.fake_cupy import (
    CUDADriverError,
    CUDARuntimeError,
    Fake,
    OutOfMemoryError,
)

NAME = "identic.kernels.cuda.cupy_device"


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Fake]:
    made = Fake()
    monkeypatch.setenv("CUPY_CACHE_DIR", str(tmp_path / "kept"))
    monkeypatch.setitem(sys.modules, "cupy", made.module())
    monkeypatch.delitem(sys.modules, NAME, raising=False)
    yield made
    sys.modules.pop(NAME, None)


@pytest.fixture
def device(fake: Fake) -> Any:
    del fake
    return importlib.import_module(NAME).CupyDevice(0)


def test_a_device_says_what_it_is(device: Any) -> None:
    assert (device.name, device.multiprocessors, device.compute_capability) == ("cuda:0", 3, 86)
    assert device.free() == 1 << 34


def test_arrays_go_there_and_back(device: Any) -> None:
    x = np.arange(24, dtype=np.int64).reshape(4, 6)
    held = device.upload(x.T)
    assert device.holds(held)
    assert not device.holds(x)
    assert device.address(held) == held.ctypes.data
    assert (device.download(held) == x.T).all()
    assert device.download(device.upload(np.array(True))).dtype == np.bool_


def test_arguments_have_the_widths_of_the_kernels(device: Any, fake: Fake) -> None:
    body = """
    extern "C" __global__ void take(long long* out, long long a, unsigned b, float c, Words<3> d) {
      out[0] = a; out[1] = b; out[2] = (long long)c; out[3] = d.v[0]; out[4] = d.v[2];
    }"""
    out = device.empty((5,), np.dtype("<i8"))
    words = Words((1 << 40,), 3)
    kernel = Kernel("common/cuda.h", "take", body=body)
    for _ in range(2):
        arguments = (out, -1, np.uint32(1 << 31), np.float32(7), words)
        device.launch(kernel, (1,), (1,), *arguments)
    assert device.download(out).tolist() == [-1, 1 << 31, 7, 1 << 40, 0]
    assert [text for _, text in fake.compiled] == [source.text(kernel)]


def test_more_shared_memory_is_asked_for(device: Any) -> None:
    device.launch(NONE, (1,), (1,), shared=100 << 10)


@pytest.mark.parametrize(
    ("failure", "kind"),
    [
        (CUDARuntimeError("an illegal access"), DeviceFault),
        (CUDADriverError("a launch failure"), DeviceFault),
        (OutOfMemoryError("out"), LocalError),
    ],
)
def test_exe_24__failures_have_names_of_ours(
    device: Any, fake: Fake, failure: Exception, kind: type[LocalError]
) -> None:
    fake.fails = failure
    with pytest.raises(LocalError, match=str(failure)) as caught:
        device.empty((3,), np.dtype("<f4"))
    assert type(caught.value) is kind


NONE = Kernel("common/cuda.h", "none", body='extern "C" __global__ void none() {}')
SUM = Kernel(
    "common/cuda.h",
    "k",
    body='extern "C" __global__ void k(float* x) { x[0] = idn_add(x[0], x[1]); }',
)


def test_num_1__the_compiler_gets_no_options_but_ours(device: Any, fake: Fake) -> None:
    device.launch(NONE, (1,), (1,))
    ((options, text),) = fake.compiled
    assert options == (*source.OPTIONS, "--gpu-architecture=sm_86")
    assert text == source.text(NONE)
    # What RawModule puts behind them makes even an intrinsic flush.
    text = source.text(SUM)
    assert ptx.forbidden(nvrtc.to_ptx(text, 90, source.OPTIONS)) == {}
    assert ptx.forbidden(nvrtc.to_ptx(text, 90, (*source.OPTIONS, "-ftz=true")))


def test_a_kernel_is_compiled_once_and_kept(fake: Fake) -> None:
    module = importlib.import_module(NAME)
    for _ in range(2):
        module.CupyDevice(0).launch(NONE, (1,), (1,))
    assert len(fake.compiled) == 1
    (file,) = kept.folder().iterdir()
    file.write_bytes(file.read_bytes()[:-1])
    module.CupyDevice(0).launch(NONE, (1,), (1,))
    assert len(fake.compiled) == 2


def test_where_nothing_can_be_kept_kernels_are_compiled(
    device: Any, fake: Fake, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("CUPY_CACHE_DIR", str(tmp_path / "file"))
    device.launch(NONE, (1,), (1,))
    assert len(fake.compiled) == 1


def test_a_later_device_gets_what_its_driver_can_compile(device: Any, fake: Fake) -> None:
    fake.architectures = [75, 80, 90]
    device.launch(NONE, (1,), (1,))
    assert fake.compiled[0][0][-1] == "--gpu-architecture=compute_80"


def test_exe_22__a_compiler_that_refuses_or_is_missing_is_said(device: Any, fake: Fake) -> None:
    fake.refuses = "an error in line 7"
    with pytest.raises(LocalError, match=r"cuda:0 cannot compile.*line 7") as caught:
        device.launch(NONE, (1,), (1,))
    assert type(caught.value) is LocalError

    def missing() -> None:
        raise RuntimeError("no libnvrtc.so.12")

    importlib.import_module(NAME).cupy.cuda.nvrtc.getVersion = missing
    with pytest.raises(LocalError, match="no libnvrtc"):
        device.launch(NONE, (1,), (1,))


def test_a_missing_device_or_driver_is_said(fake: Fake) -> None:
    module = importlib.import_module(NAME)
    with pytest.raises(LocalError, match="cuda:1"):
        module.CupyDevice(1)

    def missing() -> int:
        raise CUDARuntimeError("no driver")

    module.cupy.cuda.runtime.getDeviceCount = missing
    with pytest.raises(LocalError, match="no driver"):
        module.CupyDevice(0)
    del fake


def test_a_program_comes_to_the_cpus_root_through_it(device: Any) -> None:
    assert sample.root(CudaBackend(device)) == sample.root(CpuBackend())


def test_a_survey_says_what_is_there(fake: Fake) -> None:
    module = importlib.import_module(NAME)
    card = Found("cuda:0", "A card", 86, fake.shim.capacity, fake.shim.free())
    assert module.survey() == Survey("14.2.0", "12.9", "13.0", (card,))


def test_a_value_may_be_read_past_the_device(device: Any) -> None:
    x = np.arange(5, dtype=np.int64)
    assert (on_host(device.upload(x)) == x).all()
