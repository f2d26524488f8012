"""What a plain machine may lack: the native module, MPFR, signatures.

None is needed where what is expected is stored. A stand-in of the native module hashes, slowly;
everything else is refused by name.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from identic.protocol.errors import LocalError
from identic.protocol.hashing import fold, leaf_hash
from identic.protocol.ids import Digest

NATIVE = "identic.kernels._native"
TYPES = ("gmpy2", "cryptography", "nacl", "safetensors")
"""Packages whose types are named when modules are read, and not used here."""

WITHOUT_GMPY2 = {"SYMPY_GROUND_TYPES": "python", "MPMATH_NOGMPY": "yes"}
"""Keeps torch's sympy from taking the stand-in for the package."""


def _refuse(what: str) -> LocalError:
    return LocalError(f"{what} is not here", remedy="run where it can be built or installed")


class Absent(ModuleType):
    """A module that is not here: its functions are there, and calling them is refused."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)

        def refused(*arguments: object, **more: object) -> Any:
            raise _refuse(f"{self.__name__}.{name} of {len(arguments) + len(more)} values")

        return refused


class _Named(type):
    """A type whose parts can be named, as types again."""

    def __getattr__(cls, name: str) -> Any:
        return _type(f"{cls.__name__}.{name}", name)


def _type(whole: str, name: str) -> type:
    """A type of an absent module: it can be named and made; using its values is refused."""
    if name.startswith("__"):
        raise AttributeError(name)

    class Value(metaclass=_Named):
        def __init__(self, *values: object, **given: object) -> None:
            self.given = values, given

        def __getattr__(self, part: str) -> Any:
            raise _refuse(f"{whole}, of which {part} is asked for,")

    Value.__name__ = whole
    return Value


class AbsentTypes(ModuleType):
    """A module that is not here: its types can be named and made, and their values not used."""

    def __getattr__(self, name: str) -> Any:
        return _type(f"{self.__name__}.{name}", name)


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


class Finder(MetaPathFinder, Loader):
    """Finds a package that is not here, and all below it, as ``AbsentTypes``."""

    def __init__(self, package: str) -> None:
        self.package = package

    def find_spec(self, name: str, path: object, target: object = None) -> ModuleSpec | None:
        """The module, if it is of the package."""
        del path, target
        if name.partition(".")[0] != self.package:
            return None
        return ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """An empty module with every name."""
        return AbsentTypes(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Nothing more is in it."""


def install() -> bool:
    """Put stand-ins where modules are missing; returns whether the native module is real."""
    for package in TYPES:
        if package not in sys.modules and importlib.util.find_spec(package) is None:
            sys.meta_path.append(Finder(package))
            os.environ.update(WITHOUT_GMPY2 if package == "gmpy2" else {})
    try:
        importlib.import_module(NATIVE)
    except ImportError:
        sys.modules[NATIVE] = PlainHashes(NATIVE)
    return not isinstance(sys.modules[NATIVE], Absent)
