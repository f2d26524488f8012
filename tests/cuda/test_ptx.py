"""NVRTC compiles every kernel for every architecture, to instructions that round to nearest."""

from __future__ import annotations

import pytest

from identic.kernels.cuda import source
from identic.kernels.cuda.device import Kernel
from tests.cuda import nvrtc, ptx, sources

ARCHITECTURES = (75, 80, 86, 89, 90, 100, 120)

NAMES = sorted(sources.texts())


@pytest.mark.parametrize("name", NAMES)
def test_num_1__floats_are_made_by_operations_rounded_to_nearest(name: str) -> None:
    seen: set[str] = set()
    for architecture in ARCHITECTURES:
        made = nvrtc.to_ptx(sources.texts()[name], architecture, source.OPTIONS)
        assert ptx.forbidden(made) == {}, f"sm_{architecture}"
        seen.add(ptx.without_comments(made))
    assert seen


@pytest.mark.parametrize("name", NAMES)
def test_num_1__no_option_of_the_compiler_changes_an_instruction(name: str) -> None:
    text = sources.texts()[name]
    loose = ["--fmad=true" if o == "--fmad=false" else o for o in source.OPTIONS]
    strict, other = (nvrtc.to_ptx(text, 80, options) for options in (source.OPTIONS, loose))
    assert ptx.without_comments(strict) == ptx.without_comments(other)


@pytest.mark.parametrize("name", NAMES)
def test_kernels_become_machine_code(name: str) -> None:
    assert nvrtc.to_machine_code(sources.texts()[name], 90, source.OPTIONS)


PLANTED = {
    "a sum that may be contracted": "y[0] = x[0] * x[1] + x[2];",
    "an operator in place of an intrinsic": "y[0] = x[0] + x[1];",
    "a float atomic": "atomicAdd(y, x[0]);",
    "a double atomic": "atomicAdd((double*)y, (double)x[0]);",
    "a fast exponential": "y[0] = __expf(x[0]);",
    "the library's exponential": "y[0] = expf(x[0]);",
    "a fast quotient": "y[0] = __fdividef(x[0], x[1]);",
    "an approximate root": "y[0] = rsqrtf(x[0]);",
    "another direction": "y[0] = __fadd_rz(x[0], x[1]);",
    "the machine's minimum": "y[0] = fminf(x[0], x[1]);",
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


def test_num_1__a_contraction_shows_in_the_comparison_of_options() -> None:
    text = planted(PLANTED["a sum that may be contracted"])
    strict, loose = (nvrtc.to_ptx(text, 80, [f"--fmad={word}"]) for word in ("false", "true"))
    assert ptx.without_comments(strict) != ptx.without_comments(loose)


def test_num_1__what_kernels_use_is_allowed() -> None:
    text = planted(
        "y[0] = idn_fma(x[0], x[1], idn_add(x[2], idn_sub(x[3], idn_mul(x[4], x[5]))));"
        "y[1] = idn_canon(idn_div(x[0], idn_sqrt(x[1])));"
        "y[2] = idn_max(x[0], idn_min(x[1], -x[2]));"
        "y[3] = idn_narrow(idn_fma64(x[0], idn_div64(x[1], x[2]), idn_add64(x[3], x[4])));"
        "y[4] = (float)(long long)x[5];"
    )
    assert ptx.forbidden(nvrtc.to_ptx(text, 80, source.OPTIONS)) == {}


def test_a_text_that_does_not_compile_is_an_error_with_the_compilers_words() -> None:
    with pytest.raises(nvrtc.CompileError, match="undefined_name"):
        nvrtc.to_ptx(planted("y[0] = undefined_name;"), 80, source.OPTIONS)
