"""The table of commands says what is there."""

from __future__ import annotations

import importlib
import inspect
import subprocess
import sys

import pytest

from identic.node.cli.commands import COMMANDS, NOUNS, Command
from tests.node.cli.conftest import Command as Runs

IDS = [entry.path for entry in COMMANDS]


@pytest.mark.parametrize("entry", COMMANDS, ids=IDS)
def test_a_summary_is_the_first_line_of_its_function(entry: Command) -> None:
    module, _, name = entry.target.partition(":")
    function = getattr(importlib.import_module(module), name)
    assert (inspect.getdoc(function) or "").splitlines()[0] == entry.summary


@pytest.mark.parametrize("entry", COMMANDS, ids=IDS)
def test_every_command_explains_itself_and_offers_json(entry: Command, identic: Runs) -> None:
    ran = identic(*entry.path.split(), "--help")
    assert ran.code == 0
    assert entry.summary in ran.out
    assert "--json" in ran.out
    assert not ran.err


def test_every_noun_has_verbs_and_every_verb_a_noun() -> None:
    used = {entry.path.partition(" ")[0] for entry in COMMANDS if " " in entry.path}
    assert used == set(NOUNS)


def test_the_commands_that_were_asked_for_are_there() -> None:
    wanted = {
        *(f"node {verb}" for verb in ("init", "run", "status")),
        *(f"job {verb}" for verb in ("submit", "list", "show", "watch", "fetch")),
        *(f"dispute {verb}" for verb in ("list", "show", "replay")),
        *(f"receipt {verb}" for verb in ("show", "verify")),
        *("demo", "audit", "ledger show", "doctor"),
    }
    assert wanted <= set(IDS)


def test_help_lists_everything_and_imports_nothing_heavy() -> None:
    code = (
        "import sys; from identic.node.cli import main; status = main.run(sys.argv[1:]);"
        "heavy = {'torch', 'grpc', 'numpy', 'cryptography'} & set(sys.modules);"
        "assert not heavy, heavy; sys.exit(status)"
    )
    for prefix in ("", "job "):
        arguments = [*prefix.split(), "--help"]
        done = subprocess.run(
            [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        listed = [e for e in COMMANDS if e.path.startswith(prefix)] if prefix else []
        assert all(entry.summary in done.stdout for entry in listed)


def test_only_capturing_commands_import_torch() -> None:
    modules = {entry.target.partition(":")[0] for entry in COMMANDS}
    modules -= {"identic.node.cli.submitting", "identic.node.cli.demo"}
    code = f"import sys, {', '.join(sorted(modules))}; assert 'torch' not in sys.modules"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("arguments", [["nonsense"], ["job"], ["job", "nonsense"], ["audit"]])
def test_a_wrong_command_line_ends_with_2(arguments: list[str], identic: Runs) -> None:
    ran = identic(*arguments)
    assert ran.code == 2
    assert "Usage" in ran.err + ran.out
    assert "Traceback" not in ran.err


def test_the_version_is_the_package_s(identic: Runs) -> None:
    ran = identic("--version")
    assert ran.code == 0
    assert ran.out.strip()
