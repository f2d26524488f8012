"""What a plain machine may lack: the native module, and MPFR for the definition of functions.

Neither is needed where what is expected is stored. A stand-in of the native module hashes, slowly;
everything else of both is refused by name.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from types import ModuleType
from typing import Any

from identic.protocol.errors import LocalError
from identic.protocol.hashing import fold, leaf_hash
from identic.protocol.ids import Digest

NATIVE = "identic.kernels._native"


class Absent(ModuleType):
    """A module that is not here: its names are there, and calling them is refused."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)

        def refused(*arguments: object) -> Any:
            problem = f"{self.__name__}.{name} of {len(arguments)} values is not here"
            raise LocalError(problem, remedy="run where it can be built or installed")

        return type(name, (), {"__new__": refused})


class PlainHashes(Absent):
    """The native module's hashes by hashlib."""

    def chunk_hashes(self, data: memoryview, chunk_bytes: int, prefix: bytes) -> bytes:
        """As the native function, for leaves."""
        del prefix
        view = memoryview(data).cast("B")
        places = range(0, len(view), chunk_bytes)
        return b"".join(leaf_hash(view[at : at + chunk_bytes]) for at in places)

    def tree_root(self, digests: bytes, prefix: bytes) -> bytes:
        """As the native function, for inner nodes."""
        del prefix
        size = Digest.SIZE
        return fold([digests[at : at + size] for at in range(0, len(digests), size)])


def install() -> bool:
    """Put stand-ins where modules are missing; returns whether the native module is real."""
    if "gmpy2" not in sys.modules and importlib.util.find_spec("gmpy2") is None:
        sys.modules["gmpy2"] = Absent("gmpy2")
    try:
        importlib.import_module(NATIVE)
    except ImportError:
        sys.modules[NATIVE] = PlainHashes(NATIVE)
    return not isinstance(sys.modules[NATIVE], Absent)
