"""A pytest plugin: calls go to a server process, and are kept with their answers in a file.

``IDENTIC_REMOTE`` is the server's command, ``IDENTIC_CALLS`` the file.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import identic.kernels
from tests.kernels.arm.remote import Remote

NATIVE = "identic.kernels._native"

if NATIVE in sys.modules:
    raise RuntimeError("the native module was imported before it could be replaced")
remote = Remote(os.environ["IDENTIC_REMOTE"].split(), Path(os.environ["IDENTIC_CALLS"]))
sys.modules[NATIVE] = remote
vars(identic.kernels)["_native"] = remote


def pytest_unconfigure() -> None:
    """End the process."""
    remote.close()
