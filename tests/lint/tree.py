"""The source files of the checkout and what each of them imports.

Folders are read at the root (``protocol/``), where each file is once, never through the symbolic
links of ``src/identic``. Code made by protoc is left out: it follows its generator's rules.
"""

import ast
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# The five folders that are installed as identic.<folder>.
PACKAGES = ("protocol", "proofs", "kernels", "proto", "node")
GENERATED = ROOT / "node" / "rpc" / "gen"


def files(folders: Iterable[str], suffixes: Iterable[str] = (".py",)) -> Iterator[Path]:
    """Yield the written files under the folders, sorted, with one of the suffixes."""
    wanted = frozenset(suffixes)
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*")):
            if (
                path.suffix in wanted
                and path.is_file()
                and "__pycache__" not in path.parts
                and GENERATED not in path.parents
            ):
                yield path


def name(path: Path) -> str:
    """Return the path of a file as it is written from the root, with slashes."""
    return path.relative_to(ROOT).as_posix()


def syntax(path: Path) -> ast.Module:
    """Parse a Python file."""
    return ast.parse(path.read_text(encoding="utf-8"), filename=name(path))


def _package(path: Path) -> list[str]:
    """Return the package that relative imports of the file start from."""
    return ["identic", *path.relative_to(ROOT).parent.parts]


@cache
def imports(path: Path) -> tuple[tuple[int, str], ...]:
    """Return (line, module) of every import in the file, wherever it stands.

    ``from a.b import c`` yields both ``a.b`` and ``a.b.c``, since ``c`` may be a module; relative
    imports are made absolute.
    """
    return tuple(_imports(path))


def _imports(path: Path) -> Iterator[tuple[int, str]]:
    for node in ast.walk(syntax(path)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            base = _package(path)[: len(_package(path)) - node.level + 1] if node.level else []
            module = ".".join([*base, *((node.module or "").split(".") if node.module else [])])
            yield node.lineno, module
            for alias in node.names:
                yield node.lineno, f"{module}.{alias.name}"


def within(module: str, *packages: str) -> bool:
    """Tell whether a dotted module name is one of the packages or lies inside one."""
    return any(module == package or module.startswith(package + ".") for package in packages)
