"""The configuration: examples work as they are, and a mistake is told with its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from identic.node.config import ROLES, Config, write_example
from identic.protocol.errors import LocalError


def written(folder: Path, text: str) -> Path:
    path = folder / "node.toml"
    path.write_text(text)
    return path


@pytest.mark.parametrize("role", ROLES)
def test_examples_say_the_defaults(tmp_path: Path, role: str) -> None:
    config = Config.load(written(tmp_path, write_example(role, "mine")))
    assert config.roles == (role,)
    assert config.data_path == tmp_path / "mine-data"
    assert config.peers_path == tmp_path / "mine-data" / "peers"
    default = type(getattr(config, role))()
    assert getattr(config, role).model_dump() == default.model_dump()
    assert config.limits.model_dump() == type(config.limits)().model_dump()
    assert config.log.model_dump() == type(config.log)().model_dump()
    if role != "coordinator":
        assert config.card_path == tmp_path / "coordinator.card"


def test_an_unknown_role_has_no_example() -> None:
    with pytest.raises(LocalError):
        write_example("jester", "mine")


@pytest.mark.parametrize(
    ("old", "new", "place", "word"),
    [
        ('"8GiB"', '"eight"', ":27", "limits.memory_bytes"),
        ('stake = "100"', 'stake = "-1"', ":43", "solver.stake"),
        ('stake = "100"', 'stake = "0.0000001"', ":43", "six decimals"),
        ("max_jobs = 1", "max_jobs = 0", ":45", "solver.max_jobs"),
        ("max_jobs = 1", "jobs_max = 1", ":45", "no such key"),
        ("127.0.0.1:7401", "somewhere", ":8", "listen"),
        ('device = "auto"', 'device = "abacus"', ":14", "cuda:1"),
        ("[limits]", "[limit]", ":25", "limit"),
        ('level = "info"', 'level = "chatty"', ":19", "log.level"),
        ('card = "coordinator.card"', "", "", "network.card"),
    ],
)
def test_a_mistake_is_told_with_its_line(
    tmp_path: Path, old: str, new: str, place: str, word: str
) -> None:
    text = write_example("solver", "mine")
    assert old in text
    with pytest.raises(LocalError) as refusal:
        Config.load(written(tmp_path, text.replace(old, new)))
    assert f"node.toml{place}: " in refusal.value.problem
    assert word in refusal.value.problem


@pytest.mark.parametrize("content", [b"a = ", b"\xff", b"#" * (2 << 20)])
def test_what_is_no_configuration_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "node.toml"
    path.write_bytes(content)
    with pytest.raises(LocalError) as refusal:
        Config.load(path)
    assert str(path) in refusal.value.problem
    with pytest.raises(LocalError):
        Config.load(tmp_path / "missing.toml")


def test_the_environment_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path, write_example("solver", "mine"))
    monkeypatch.setenv("IDENTIC_LIMITS__MEMORY_BYTES", "3MiB")
    monkeypatch.setenv("IDENTIC_NAME", "yours")
    config = Config.load(path)
    assert (config.name, int(config.limits.memory_bytes)) == ("yours", 3 << 20)
    assert int(config.limits.disk_bytes) == 50 << 30
    assert config.where("limits.memory_bytes") == "IDENTIC_LIMITS__MEMORY_BYTES"
    assert config.where("limits.disk_bytes") == "node.toml:32"
    monkeypatch.setenv("IDENTIC_LIMITS__MEMORY_BYTES", "three")
    with pytest.raises(LocalError) as refusal:
        Config.load(path)
    assert "IDENTIC_LIMITS__MEMORY_BYTES: " in refusal.value.problem
