"""NVRTC compiles every kernel for every architecture, to instructions that round to nearest."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest

from identic.kernels.cuda import source
from identic.kernels.cuda.device import Kernel
from tests.cuda import nvrtc, ptx, sources

ARCHITECTURES = (75, 80, 89, 90, 100, 120)
AMPERE, LOOSE = 80, 86
"""Two of one family, for which the compiler writes the same; contraction is allowed for one."""

FILES = sources.files()
VARIANTS = sorted(set(sources.texts()) - set(FILES))


def without_contraction_forbidden() -> list[str]:
    return ["--fmad=true" if o == "--fmad=false" else o for o in source.OPTIONS]


def instructions_alone(made: str) -> str:
    return re.sub(r"\.target sm_\d+", "", ptx.without_comments(made))


def check(name: str, architectures: Sequence[int]) -> None:
    """Compile a text for each architecture; and for one so that options would show."""
    text = sources.texts()[name]
    made = {}
    for architecture in architectures:
        made[architecture] = nvrtc.to_ptx(text, architecture, source.OPTIONS)
        assert ptx.forbidden(made[architecture]) == {}, f"sm_{architecture}"
    loose = nvrtc.to_ptx(text, LOOSE, without_contraction_forbidden())
    assert instructions_alone(made[AMPERE]) == instructions_alone(loose)


@pytest.mark.parametrize("name", FILES)
def test_num_1__floats_are_made_by_operations_rounded_to_nearest(name: str) -> None:
    check(name, ARCHITECTURES)
    text = sources.texts()[name]
    # What an assembler may refuse for every architecture alike: too much of a block's own.
    if "__shared__" in text or "__launch_bounds__" in text:
        assert nvrtc.to_machine_code(text, 75, source.OPTIONS)


@pytest.mark.parametrize("name", VARIANTS)
def test_num_1__so_are_those_of_kernels_with_other_macros(name: str) -> None:
    check(name, (AMPERE,))


@pytest.mark.long
@pytest.mark.parametrize("name", [*FILES, *VARIANTS])
def test_num_1__on_every_architecture_to_its_machine_code(name: str) -> None:
    check(name, ARCHITECTURES)
    for architecture in (*ARCHITECTURES, LOOSE):
        assert nvrtc.to_machine_code(sources.texts()[name], architecture, source.OPTIONS)


PLANTED = {
    "a float atomic": "atomicAdd(y, x[0]);",
    "a double atomic": "atomicAdd((double*)y, (double)x[0]);",
    "a fast exponential": "y[0] = __expf(x[0]);",
    "the library's exponential": "y[0] = expf(x[0]);",
    "a fast quotient": "y[0] = __fdividef(x[0], x[1]);",
    "an approximate root": "y[0] = rsqrtf(x[0]);",
    "another direction": "y[0] = __fadd_rz(x[0], x[1]);",
    "another minimum": 'asm("min.NaN.f32 %0, %1, %1;" : "=f"(y[0]) : "f"(x[0]));',
    "half precision": 'asm("cvt.rn.f16.f32 %0, %1;" : "=h"(*(short*)y) : "f"(x[0]));',
    "a flush to zero": 'asm("add.rn.ftz.f32 %0, %1, %2;" : "=f"(y[0]) : "f"(x[0]), "f"(x[1]));',
    "a saturation": "y[0] = __saturatef(x[0]);",
}
"""Statements that no kernel may contain."""


def planted(statement: str) -> str:
    body = f'extern "C" __global__ void k(const float* x, float* y) {{ {statement} }}'
    return source.text(Kernel("common/cuda.h", "k", body=body))


@pytest.mark.parametrize("what", sorted(PLANTED))
def test_num_1__a_planted_violation_is_found(what: str) -> None:
    assert ptx.forbidden(nvrtc.to_ptx(planted(PLANTED[what]), 80, source.OPTIONS))


@pytest.mark.parametrize("statement", ["y[0] = x[0] * x[1] + x[2];", "y[0] = x[0] + x[1];"])
def test_num_1__an_operator_in_place_of_an_intrinsic_shows_in_the_options(statement: str) -> None:
    text = planted(statement)
    options = (source.OPTIONS, without_contraction_forbidden())
    strict, loose = (ptx.without_comments(nvrtc.to_ptx(text, 80, o)) for o in options)
    assert strict != loose


def test_num_1__what_kernels_use_is_allowed() -> None:
    text = planted(
        "y[0] = idn_fma(x[0], x[1], idn_add(x[2], idn_sub(x[3], idn_mul(x[4], x[5]))));"
        "y[1] = idn_canon(idn_div(x[0], idn_sqrt(x[1])));"
        "y[2] = idn_max(x[0], idn_min(x[1], -x[2]));"
        "y[3] = idn_nearest(idn_fma64(x[0], idn_div64(x[1], x[2]), idn_add64(x[3], x[4])));"
        "y[4] = (float)(long long)x[5];"
    )
    assert ptx.forbidden(nvrtc.to_ptx(text, 80, source.OPTIONS)) == {}


def test_a_text_that_does_not_compile_is_an_error_with_the_compilers_words() -> None:
    with pytest.raises(nvrtc.CompileError, match="undefined_name"):
        nvrtc.to_ptx(planted("y[0] = undefined_name;"), 80, source.OPTIONS)
