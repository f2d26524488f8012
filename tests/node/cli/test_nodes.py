"""Making a node, its keys, and clients that do not know whom to ask."""

from __future__ import annotations

from pathlib import Path

import pytest

from identic.node.config import Config
from identic.node.identity import Card
from tests.node.cli.conftest import Command


@pytest.mark.parametrize("role", ["coordinator", "solver", "verifier", "whistleblower", "client"])
def test_a_new_node_has_keys_a_card_and_a_configuration_that_loads(
    role: str, tmp_path: Path, identic: Command
) -> None:
    other = identic("node", "init", "--role", "coordinator", "--dir", tmp_path / "c", "--json")
    extra = [] if role == "coordinator" else ["--card", other.value["card"]]
    ran = identic("node", "init", "--role", role, "--dir", tmp_path / "n", *extra, "--json")
    assert ran.code == 0, ran.err
    config = Config.load(Path(ran.value["config"]))
    assert config.roles == (() if role == "client" else (role,))
    assert Card.load(Path(ran.value["card"])).party.hex() == ran.value["identity"]
    key = config.data_path / "identity.key"
    assert key.stat().st_mode & 0o777 == 0o600


def test_a_node_is_told_what_to_do_next(tmp_path: Path, identic: Command) -> None:
    ran = identic("node", "init", "--role", "solver", "--dir", tmp_path)
    assert ran.code == 0
    assert "identic node run --config" in ran.out
    assert "offline copy" in ran.out


def test_nothing_that_exists_is_overwritten(tmp_path: Path, identic: Command) -> None:
    first = identic("node", "init", "--role", "solver", "--dir", tmp_path)
    before = (tmp_path / "solver.toml").read_bytes()
    second = identic("node", "init", "--role", "solver", "--dir", tmp_path)
    assert (first.code, second.code) == (0, 3)
    assert (tmp_path / "solver.toml").read_bytes() == before


def test_keys_that_exist_are_kept_and_no_configuration_is_left(
    tmp_path: Path, identic: Command
) -> None:
    assert identic("node", "init", "--role", "solver", "--dir", tmp_path).code == 0
    (tmp_path / "solver.toml").unlink()
    assert identic("node", "init", "--role", "solver", "--dir", tmp_path).code == 3
    assert not (tmp_path / "solver.toml").exists()


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--listen", "nowhere"], 3),
        (["--coordinator", 'a"b'], 2),
        (["--card", "missing.card"], 3),
        (["--name", "../up"], 3),
    ],
)
def test_a_wrong_choice_leaves_nothing_behind(
    arguments: list[str], code: int, tmp_path: Path, identic: Command
) -> None:
    ran = identic("node", "init", "--role", "solver", "--dir", tmp_path, *arguments)
    assert ran.code == code, ran.err
    assert not list(tmp_path.glob("*.toml"))


def test_an_option_without_meaning_for_the_role_is_a_usage_error(
    tmp_path: Path, identic: Command
) -> None:
    ran = identic("node", "init", "--role", "client", "--dir", tmp_path, "--listen", "a:1")
    assert ran.code == 2


def test_a_key_shows_its_public_part_only(tmp_path: Path, identic: Command) -> None:
    made = identic("node", "init", "--role", "client", "--dir", tmp_path, "--json")
    secret = (tmp_path / "client-data" / "identity.key").read_text().split()[-1]
    by_config = identic("key", "show", "--config", tmp_path / "identic.toml")
    by_folder = identic("key", "show", "--identity", tmp_path / "client-data", "--json")
    assert made.value["identity"] in by_config.out
    assert by_folder.value["identity"] == made.value["identity"]
    assert secret not in by_config.out + by_folder.out


def test_a_configuration_here_is_found(
    tmp_path: Path, identic: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = identic("node", "init", "--role", "client", "--dir", tmp_path, "--json")
    monkeypatch.chdir(tmp_path)
    assert identic("key", "show", "--json").value["identity"] == made.value["identity"]
    monkeypatch.chdir("/")
    assert identic("key", "show").code == 2
    monkeypatch.setenv("IDENTIC_CONFIG", str(tmp_path / "identic.toml"))
    assert identic("key", "show", "--json").value["identity"] == made.value["identity"]


ASKING = [
    ["job", "list"], ["job", "show", "j-1"], ["job", "watch", "j-1"], ["job", "fetch", "j-1"],
    ["dispute", "list"], ["dispute", "show", "d-1"], ["ledger", "show"], ["node", "status"],
    ["node", "run"],
]  # fmt: skip


@pytest.mark.parametrize("arguments", ASKING, ids=[" ".join(a) for a in ASKING])
def test_a_command_that_does_not_know_whom_to_ask_says_how_to_tell_it(
    arguments: list[str], tmp_path: Path, identic: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ran = identic(*arguments)
    assert ran.code == 2
    assert "--config" in ran.err
    assert not ran.out


def test_a_coordinator_that_does_not_run_is_told_in_words(tmp_path: Path, identic: Command) -> None:
    made = identic("node", "init", "--role", "coordinator", "--dir", tmp_path, "--json")
    card = made.value["card"]
    identic("node", "init", "--role", "client", "--dir", tmp_path, "--card", card)
    text = (tmp_path / "identic.toml").read_text().replace(":7400", ":1")
    (tmp_path / "identic.toml").write_text(text)
    ran = identic("job", "list", "--config", tmp_path / "identic.toml", "--json")
    assert ran.code == 3
    assert "cannot connect to 127.0.0.1:1" in ran.value["error"]["problem"]
    assert ran.value["error"]["remedy"]


def test_a_node_without_roles_does_not_run(tmp_path: Path, identic: Command) -> None:
    identic("node", "init", "--role", "client", "--dir", tmp_path)
    ran = identic("node", "run", "--config", tmp_path / "identic.toml")
    assert ran.code == 2
    assert "names no role" in ran.err
