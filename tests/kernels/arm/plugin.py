"""A pytest plugin that puts the process of ``IDENTIC_REMOTE`` in the place of the native module."""

from __future__ import annotations

import os
import sys

import identic.kernels
from tests.kernels.arm.remote import Remote

NATIVE = "identic.kernels._native"

if NATIVE in sys.modules:
    raise RuntimeError("the native module was imported before it could be replaced")
remote = Remote(os.environ["IDENTIC_REMOTE"].split())
sys.modules[NATIVE] = remote
vars(identic.kernels)["_native"] = remote


def pytest_report_header() -> str:
    """Say what answers."""
    return f"native functions: {os.environ['IDENTIC_REMOTE']}, paths {remote.paths()}"


def pytest_unconfigure() -> None:
    """End the process."""
    remote.close()
