"""The import graph: who may import what, and what the pure parts never touch."""

import ast
import re
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

from tests.lint.tree import PACKAGES, ROOT, files, imports, name, syntax, within

CODE = tuple(folder for folder in PACKAGES if folder != "proto")
PURE = ("protocol", "proofs")

# Packages that only these files may import.
CONFINED = {
    "gmpy2": ("protocol/arithmetic/functions.py",),
    "nacl": ("proofs/signatures.py", "node/identity.py"),
    "cupy": ("kernels/cuda/cupy_device.py",),
}
LAYERS = {
    "protocol": ("identic.protocol", "gmpy2"),
    "proofs": ("identic.protocol", "identic.proofs", "nacl"),
    "kernels": ("identic.protocol", "identic.kernels", "numpy", "cupy"),
}
# Standard modules through which a pure part would reach the clock, the disk, chance or a thread.
IMPURE = frozenset(
    {
        "asyncio",
        "concurrent",
        "ctypes",
        "datetime",
        "fcntl",
        "glob",
        "io",
        "locale",
        "logging",
        "mmap",
        "multiprocessing",
        "os",
        "pathlib",
        "platform",
        "queue",
        "random",
        "sched",
        "secrets",
        "select",
        "selectors",
        "shelve",
        "shutil",
        "signal",
        "socket",
        "sqlite3",
        "ssl",
        "subprocess",
        "tempfile",
        "threading",
        "time",
        "urllib",
        "uuid",
    }
)
# Modules and functions that would run code found in data.
UNSAFE_MODULES = ("pickle", "marshal", "shelve", "dill", "cloudpickle", "joblib")
UNSAFE_CALLS = frozenset({"eval", "exec", "compile", "__import__"})
# Import names of distributions whose two names differ.
IMPORT_NAMES = {
    "cupy-cuda12x": "cupy",
    "grpcio": "grpc",
    "grpcio-health-checking": "grpc_health",
    "grpcio-reflection": "grpc_reflection",
    "grpcio-tools": "grpc_tools",
    "protobuf": "google",
    "pydantic-settings": "pydantic_settings",
    "pyyaml": "yaml",
    "pynacl": "nacl",
    "prometheus-client": "prometheus_client",
}


def offences(folders: tuple[str, ...], wrong: Callable[[Path, str], bool]) -> list[str]:
    """List every import under the folders that the predicate calls wrong."""
    return [
        f"{name(path)}:{line} imports {module}"
        for path in files(folders)
        for line, module in imports(path)
        if wrong(path, module)
    ]


def is_standard(module: str) -> bool:
    return module.partition(".")[0] in sys.stdlib_module_names


def test_each_layer_imports_only_the_layers_below() -> None:
    def wrong(path: Path, module: str) -> bool:
        allowed = LAYERS[path.relative_to(ROOT).parts[0]]
        return not (is_standard(module) or module == "identic" or within(module, *allowed))

    assert offences(tuple(LAYERS), wrong) == []


def test_confined_packages_stay_in_their_files() -> None:
    def wrong(path: Path, module: str) -> bool:
        return any(
            within(module, package) and name(path) not in homes
            for package, homes in CONFINED.items()
        )

    assert offences(CODE, wrong) == []


def test_torch_is_imported_only_by_capture_and_the_bench() -> None:
    def wrong(path: Path, module: str) -> bool:
        homes = ("node/capture/", "node/bench/")
        return within(module, "torch") and not name(path).startswith(homes)

    assert offences(CODE, wrong) == []


def test_generated_wire_code_is_imported_only_by_rpc() -> None:
    def wrong(path: Path, module: str) -> bool:
        wire = within(module, "identic.node.rpc.gen") or module.endswith(("_pb2", "_pb2_grpc"))
        return wire and not name(path).startswith("node/rpc/")

    assert offences(CODE, wrong) == []


def test_pure_parts_import_no_effects() -> None:
    def wrong(_: Path, module: str) -> bool:
        return module.partition(".")[0] in IMPURE

    assert offences(PURE, wrong) == []


def test_pure_parts_open_no_file_and_compute_no_float() -> None:
    found = []
    for path in files(PURE):
        if name(path) in CONFINED["gmpy2"]:
            continue
        for node in ast.walk(syntax(path)):
            where = f"{name(path)}:{getattr(node, 'lineno', 0)}"
            if isinstance(node, ast.Constant) and isinstance(node.value, float | complex):
                found.append(f"{where} holds the float {node.value}")
            elif isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, ast.Div):
                found.append(f"{where} divides to a float")
            elif (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Name)
                and node.func.id in {"open", "float", "print", "input"}
            ):
                found.append(f"{where} calls {node.func.id}")
    assert found == []


def test_nothing_runs_code_found_in_data() -> None:
    def wrong(_: Path, module: str) -> bool:
        return within(module, *UNSAFE_MODULES)

    calls = [
        f"{name(path)}:{node.lineno} calls {node.func.id}"
        for path in files(CODE)
        for node in ast.walk(syntax(path))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in UNSAFE_CALLS
    ]
    assert offences(CODE, wrong) + calls == []


def test_every_import_is_declared() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    requirements = [
        *project["dependencies"],
        *(item for extra in project["optional-dependencies"].values() for item in extra),
    ]
    declared = set()
    for requirement in requirements:
        distribution = re.split(r"[<>=~!;\[ ]", requirement, maxsplit=1)[0]
        declared.add(IMPORT_NAMES.get(distribution, distribution.replace("-", "_")))
    # pydantic comes with pydantic-settings, click with typer: both are part of their interface.
    declared |= {"identic", "pydantic", "click"}

    def wrong(_: Path, module: str) -> bool:
        return not is_standard(module) and module.partition(".")[0] not in declared

    assert offences(CODE, wrong) == []
