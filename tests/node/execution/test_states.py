"""Stored states and the parts of a job: nothing is used that is not what it must be."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from identic.kernels.arrays import Array
from identic.node.execution.elements import word_at
from identic.node.execution.loaded import load_state
from identic.node.execution.states import (
    commit_state,
    pack_state,
    unpack_state,
    unpack_tensors,
)
from identic.protocol.commitments import StateHeader
from identic.protocol.encoding import encode
from identic.protocol.errors import Code, IdenticError, ProtocolError
from identic.protocol.hashing import sha256
from identic.protocol.ids import Count, Digest, StepIndex, Unsigned
from tests.helpers.effort import examples
from tests.helpers.programs import mlp, mlp_data, mlp_state
from tests.helpers.small_run import small_run
from tests.node.execution.parts import Kept, keep

PROGRAM = mlp()
HEADER = StateHeader(sha256(b"program"), Unsigned(7), StepIndex(3), Count(12))
TENSORS = unpack_tensors(PROGRAM.state, b"".join(mlp_state(PROGRAM)))
BLOB = pack_state(HEADER, TENSORS)


def refused(action: Callable[[], object]) -> ProtocolError:
    """The refusal that something raises."""
    with pytest.raises(ProtocolError) as refusal:
        action()
    return refusal.value


def test_exe_1__a_stored_state_is_read_as_it_was_written() -> None:
    header, tensors = unpack_state(PROGRAM, BLOB)
    assert header == HEADER
    assert pack_state(header, tensors) == BLOB


class Elsewhere:
    """An array that lies on a device, as far as states read it; numpy cannot."""

    def __init__(self, array: Array) -> None:
        self.get = array.copy
        self.flags, self.dtype, self.nbytes = array.flags, array.dtype, array.nbytes

    def reshape(self, *shape: int) -> Elsewhere:
        return Elsewhere(self.get().reshape(*shape))

    def __getitem__(self, part: slice) -> Elsewhere:
        return Elsewhere(self.get()[part])


def test_com_4__a_state_on_a_device_is_stored_and_hashed_as_on_the_host() -> None:
    elsewhere: list[Any] = [Elsewhere(t) for t in TENSORS]
    assert pack_state(HEADER, elsewhere) == BLOB
    want = commit_state(HEADER, PROGRAM.state, TENSORS)
    assert commit_state(HEADER, PROGRAM.state, elsewhere) == want
    assert word_at(elsewhere[-1], 0) == word_at(TENSORS[-1], 0)


@given(cut=st.integers(0, len(BLOB) - 1))
def test_exe_1__a_state_that_is_too_short_is_refused(cut: int) -> None:
    assert refused(lambda: unpack_state(PROGRAM, BLOB[:cut])).rule == "EXE-1"


@given(more=st.binary(min_size=1, max_size=64))
def test_exe_1__a_state_that_is_too_long_is_refused(more: bytes) -> None:
    assert refused(lambda: unpack_state(PROGRAM, BLOB + more)).rule == "EXE-1"


@given(length=st.integers(0, 2**32 - 1), moved=st.binary(max_size=80))
def test_exe_1__a_header_of_another_length_is_refused(length: int, moved: bytes) -> None:
    true = int.from_bytes(BLOB[:4], "big")
    forged = length.to_bytes(4, "big") + moved + BLOB[4:]
    if length == true and not moved:
        return
    # Where the sum happens to fit, the header itself cannot be read.
    assert refused(lambda: unpack_state(PROGRAM, forged)).rule.startswith(("EXE-1", "ENC-"))


@given(cut=st.integers(1, 40))
def test_exe_1__data_of_another_length_is_refused(cut: int) -> None:
    variable, data = PROGRAM.data[0], mlp_data(PROGRAM)[0]
    assert refused(lambda: unpack_tensors([variable], data[:-cut])).rule == "EXE-1"
    assert refused(lambda: unpack_tensors([variable], data + bytes(cut))).rule == "EXE-1"


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    """A job in a store."""
    return keep(tmp_path / "blobs", small_run())


def test_exe_2__a_job_as_its_terms_name_it_is_loaded(kept: Kept) -> None:
    job = kept.load()
    assert job.plan.program == kept.program
    assert len(job.data) == len(kept.terms.data)


def test_exe_2__another_program_is_refused(kept: Kept) -> None:
    other = kept.blobs.put(encode(mlp(hidden=3)))
    swapped = replace(kept, artifacts=replace(kept.artifacts, program=other))
    assert refused(swapped.load).rule == "EXE-2"


@pytest.mark.parametrize("number", range(3))
def test_exe_2__data_with_another_bit_is_refused(kept: Kept, number: int) -> None:
    names = list(kept.artifacts.data)
    data = bytearray(kept.blobs.read(names[number], 1 << 20))
    data[-1] ^= 1
    names[number] = kept.blobs.put(bytes(data))
    swapped = replace(kept, artifacts=replace(kept.artifacts, data=tuple(names)))
    assert refused(swapped.load).rule == "EXE-2"


def test_exe_2__another_number_of_data_tensors_is_refused(kept: Kept) -> None:
    names = kept.artifacts.data
    fewer = replace(kept, artifacts=replace(kept.artifacts, data=names[:-1]))
    assert refused(fewer.load).rule == "EXE-2"
    more = replace(kept, artifacts=replace(kept.artifacts, data=(*names, names[0])))
    assert refused(more.load).rule == "EXE-2"
    terms = replace(kept.terms, data=kept.terms.data[:-1])
    assert refused(replace(kept, terms=terms).load).rule == "EXE-2"


def test_exe_2__data_of_another_shape_is_refused_before_it_is_read(kept: Kept) -> None:
    names = list(kept.artifacts.data)
    names[0] = kept.blobs.put(bytes(1 << 20))
    swapped = replace(kept, artifacts=replace(kept.artifacts, data=tuple(names)))
    assert refused(swapped.load).code is Code.TOO_LARGE


def test_a_missing_blob_is_named(kept: Kept) -> None:
    kept.blobs.remove(kept.artifacts.data[1])
    refusal = refused(kept.load)
    assert (refusal.rule, refusal.code) == ("NET-8", Code.UNKNOWN)


def test_exe_3__a_state_with_its_root_is_loaded(kept: Kept) -> None:
    state = load_state(kept.load(), kept.blobs, kept.artifacts.state, 0, kept.terms.initial_state)
    assert len(state) == len(kept.program.state)


def test_exe_3__another_root_is_refused(kept: Kept) -> None:
    job, blob = kept.load(), kept.artifacts.state
    other = Digest(bytes(32))
    assert refused(lambda: load_state(job, kept.blobs, blob, 0, other)).rule == "EXE-3"


def test_exe_3__the_state_of_another_step_is_refused(kept: Kept) -> None:
    job, blob, root = kept.load(), kept.artifacts.state, kept.terms.initial_state
    assert refused(lambda: load_state(job, kept.blobs, blob, 1, root)).rule == "EXE-3"


@settings(max_examples=examples(30), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_exe_3__a_state_with_any_other_byte_is_refused(kept: Kept, data: st.DataObject) -> None:
    job, root = kept.load(), kept.terms.initial_state
    good = kept.blobs.read(kept.artifacts.state, 1 << 20)
    at = data.draw(st.integers(4, len(good) - 1))
    forged = bytearray(good)
    forged[at] ^= data.draw(st.integers(1, 255))
    blob = kept.blobs.put(bytes(forged))
    with pytest.raises(IdenticError) as refusal:
        load_state(job, kept.blobs, blob, 0, root)
    assert isinstance(refusal.value, ProtocolError)
