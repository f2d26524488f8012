"""The package as declared: license, links, extras, bounds, options, and life without torch."""

import re
import subprocess
import sys
import tomllib
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from tests.lint.tree import PACKAGES, ROOT

# Modules for which one needs torch, to submit or to measure; CuPy has its one file.
NOT_FOR_NODES = (
    "identic.kernels.cuda.cupy_device",
    *(
        f"identic.node.bench.{module}"
        for module in (
            *("convolutions", "gpt2_small", "machine", "measure", "memory_torch"),
            *("operators", "resnet18", "steps"),
        )
    ),
    "identic.node.capture",
    "identic.node.cli.demo",
    "identic.node.cli.submitting",
    "identic.node.demo",
)
# Imports every module a node needs, with torch and CuPy made unimportable.
IMPORT_ALL = """
import importlib, pkgutil, sys

NOT_FOR_NODES = sys.argv[1:]

class Refused:
    def find_spec(self, fullname, path=None, target=None):
        if fullname.partition(".")[0] in {"torch", "cupy"}:
            raise ModuleNotFoundError(f"{fullname} is not for nodes", name=fullname)
        return None

sys.meta_path.insert(0, Refused())
import identic

count = 0
def visit(package):
    global count
    for info in pkgutil.iter_modules(package.__path__, package.__name__ + "."):
        if info.name in NOT_FOR_NODES or info.name.endswith(".__main__"):
            continue
        module = importlib.import_module(info.name)
        count += 1
        if info.ispkg:
            visit(module)

visit(identic)
assert not {"torch", "cupy"} & {name.partition(".")[0] for name in sys.modules}
print(count)
"""


def pyproject() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def requirements() -> list[Requirement]:
    project = pyproject()["project"]
    extras = project["optional-dependencies"].values()
    return [
        Requirement(text)
        for text in [*project["dependencies"], *(item for extra in extras for item in extra)]
    ]


def locked() -> dict[str, Version]:
    lines = (ROOT / "requirements.lock").read_text(encoding="utf-8").splitlines()
    pins = [line.split("==") for line in lines if line and not line.startswith("#")]
    return {canonicalize_name(name): Version(version) for name, version in pins}


def test_license_is_an_spdx_expression_with_its_text() -> None:
    assert pyproject()["project"]["license"] == "Apache-2.0"
    text = (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert "Apache License" in text
    assert "Version 2.0, January 2004" in text


def test_each_folder_is_linked_into_the_package() -> None:
    for folder in PACKAGES:
        link = ROOT / "src" / "identic" / folder
        assert link.is_symlink()
        assert link.readlink().as_posix() == f"../../{folder}"
        assert link.resolve() == ROOT / folder
    assert (ROOT / "src" / "identic" / "py.typed").is_file()


def test_extras_and_command_are_declared() -> None:
    project = pyproject()["project"]
    assert set(project["optional-dependencies"]) == {"torch", "cuda", "postgres", "s3", "dev"}
    assert project["scripts"] == {"identic": "identic.node.cli.main:main"}


def test_every_requirement_is_bounded_on_both_sides() -> None:
    for requirement in requirements():
        operators = {specifier.operator for specifier in requirement.specifier}
        assert operators == {">=", "<"}, str(requirement)


def test_lock_file_meets_the_bounds() -> None:
    pins = locked()
    extras = pyproject()["project"]["optional-dependencies"]
    unlocked = {
        canonicalize_name(Requirement(text).name)
        for extra in ("cuda", "postgres", "s3")
        for text in extras[extra]
    }
    for requirement in requirements():
        name = canonicalize_name(requirement.name)
        if name not in unlocked:
            assert name in pins
            assert pins[name] in requirement.specifier, name


def test_lock_file_names_no_index_and_no_local_version() -> None:
    text = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    assert not re.search(r"://|^-|\+|@", text, re.MULTILINE)


def test_compile_options_keep_the_arithmetic() -> None:
    text = (ROOT / "CMakeLists.txt").read_text(encoding="utf-8")
    code = "\n".join(line.partition("#")[0] for line in text.splitlines())
    options = set(re.findall(r"(?<=\s)-[\w=+-]+", code))
    assert {"-O3", "-ffp-contract=off", "-fno-fast-math", "-fno-math-errno"} <= options
    forbidden = {"-ffast-math", "-Ofast", "-march=native", "-mtune=native", "-fopenmp"}
    assert not forbidden & options
    assert not [option for option in options if option.startswith("-funsafe")]


def test_a_node_imports_everything_without_torch() -> None:
    done = subprocess.run(
        [sys.executable, "-c", IMPORT_ALL, *NOT_FOR_NODES],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT / "docs",
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > len(PACKAGES)
