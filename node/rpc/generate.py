"""Makes the protobuf and gRPC code of the wire contract.

Reads ``proto/identic/<version>/*.proto`` and writes ``node/rpc/gen/<version>/``: messages with
their stubs, and for a file that holds a service the gRPC classes with theirs. The result is
checked in, so that installing needs no compiler of protocol buffers; ``--check`` compares it with
a fresh run. The version of the compiler is fixed by the lock file, since the text depends on it.

Run from a checkout with the development packages: ``make generate``, ``make check-generated``.
"""

import re
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ROOT / "proto"
TARGET = ROOT / "node" / "rpc" / "gen"
PACKAGE = "identic.node.rpc.gen"

_SERVICE = re.compile(r"^service\s", re.MULTILINE)
# protoc names a Python module after the .proto file; the code lives inside our package.
_IMPORT = re.compile(r"^from identic\.(v\d+) import", re.MULTILINE)


def _compile(into: Path) -> None:
    """Run protoc over every source file; the output lies under ``into/identic/<version>/``."""
    files = sorted(SOURCES.glob("identic/v*/*.proto"))
    if not files:
        return
    plugin = Path(sysconfig.get_path("scripts")) / "protoc-gen-mypy_grpc"
    outputs = ("python_out", "pyi_out", "grpc_python_out", "mypy_grpc_out=quiet:")
    subprocess.run(
        [
            sys.executable,
            "-m",
            "grpc_tools.protoc",
            f"--proto_path={SOURCES}",
            f"--plugin=protoc-gen-mypy_grpc={plugin}",
            *(f"--{out}{into}" if out.endswith(":") else f"--{out}={into}" for out in outputs),
            *(str(path.relative_to(SOURCES)) for path in files),
        ],
        check=True,
    )


def generate() -> dict[str, str]:
    """Return every generated file: path under ``node/rpc/gen`` to its text."""
    result = {"__init__.py": '"""Protobuf code made from proto/ by node/rpc/generate.py."""\n'}
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder)
        _compile(out)
        for path in sorted(out.glob("identic/v*/*.py*")):
            version = path.parent.name
            stem = path.name.split("_pb2")[0]
            source = SOURCES / "identic" / version / f"{stem}.proto"
            if "_pb2_grpc" in path.name and not _SERVICE.search(source.read_text()):
                continue
            text = _IMPORT.sub(rf"from {PACKAGE}.\1 import", path.read_text())
            result[f"{version}/{path.name}"] = text.rstrip("\n") + "\n"
            docstring = f'"""Messages and services of identic.{version}."""'
            result[f"{version}/__init__.py"] = docstring + "\n"
    return result


def _committed() -> dict[str, str]:
    """Return the generated files as they stand in the checkout."""
    return {
        path.relative_to(TARGET).as_posix(): path.read_text()
        for path in sorted(TARGET.rglob("*.py*"))
        if "__pycache__" not in path.parts
    }


def main(arguments: list[str]) -> int:
    """Write the generated files, or with ``--check`` name those that differ and return 1."""
    if arguments not in ([], ["--check"]):
        sys.stderr.write("usage: python -m identic.node.rpc.generate [--check]\n")
        return 2
    fresh, committed = generate(), _committed()
    differing = sorted(
        name for name in fresh.keys() | committed.keys() if fresh.get(name) != committed.get(name)
    )
    if arguments:
        for name in differing:
            sys.stderr.write(f"node/rpc/gen/{name} differs from proto/; run `make generate`\n")
        return 1 if differing else 0
    for name in differing:
        path = TARGET / name
        if name in fresh:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(fresh[name])
        else:
            path.unlink()
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
