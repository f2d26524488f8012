"""A pytest plugin that puts the sanitized build in the place of the native module."""

from __future__ import annotations

import importlib.util
import sys

import identic.kernels
from tests.kernels.sanitizers import build

NATIVE = "identic.kernels._native"

if NATIVE in sys.modules:
    raise RuntimeError("the native module was imported before it could be replaced")
spec = importlib.util.spec_from_file_location(NATIVE, build.module())
if spec is None or spec.loader is None:
    raise RuntimeError(f"{build.module()} is no extension module")
native = importlib.util.module_from_spec(spec)
sys.modules[NATIVE] = native
spec.loader.exec_module(native)
vars(identic.kernels)["_native"] = native


def pytest_report_header() -> str:
    """Say what runs."""
    return f"native functions: {build.module().name} with sanitizers, paths {native.paths()}"
