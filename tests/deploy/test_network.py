"""The compose network: its services, their configurations and the image agree with one another."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from identic.node.config import Config

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
ROLES = {
    "coordinator": "coordinator",
    "solver": "solver",
    "verifier-1": "verifier",
    "verifier-2": "verifier",
    "whistleblower": "whistleblower",
}


def network() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))
    return loaded


def mounts(service: dict[str, Any]) -> dict[str, str]:
    """Return what a service finds at each path."""
    return {
        target: source for source, target in (item.split(":")[:2] for item in service["volumes"])
    }


def test_the_network_has_one_service_for_each_party() -> None:
    assert set(network()["services"]) == set(ROLES)
    assert {path.stem for path in (DEPLOY / "config").glob("*.toml")} == set(ROLES)


@pytest.mark.parametrize("name", ROLES)
def test_a_configuration_is_valid_and_plays_its_role(name: str) -> None:
    config = Config.load(DEPLOY / "config" / f"{name}.toml")
    assert config.name == name
    assert config.roles == (ROLES[name],)
    if name != "coordinator":
        assert config.network.coordinator == "coordinator:7400"
        assert config.card_path == config.peers_path / "coordinator.card"


@pytest.mark.parametrize("name", ROLES)
def test_a_service_mounts_what_its_configuration_names(name: str) -> None:
    service = network()["services"][name]
    config = Config.load(DEPLOY / "config" / f"{name}.toml")
    found = mounts(service)
    inside = service["command"][0]
    assert (DEPLOY / found[inside]).resolve() == DEPLOY / "config" / f"{name}.toml"
    assert found[str(config.data_path)] == name
    assert found[str(config.peers_path)] == "cards"
    assert inside in service["healthcheck"]["test"]
    assert set(network()["volumes"]) == {*ROLES, "cards"}


def test_every_service_is_confined() -> None:
    for service in network()["services"].values():
        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]


def test_only_the_coordinator_is_reached_from_the_machine_and_only_from_itself() -> None:
    ports = {name: service.get("ports") for name, service in network()["services"].items()}
    assert [name for name in ports if ports[name]] == ["coordinator"]
    assert all(port.startswith("127.0.0.1:") for port in ports["coordinator"])


def test_the_image_is_not_root_and_holds_no_torch() -> None:
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    final = text.rpartition("FROM ")[2]
    assert re.search(r"^USER identic$", final, re.MULTILINE)
    assert text.count("FROM ${BASE}") == 2
    assert not re.search(r"\[torch\]|pip install.*torch", text)


def test_the_image_is_given_every_file_that_it_copies() -> None:
    allowed = {
        line[1:]
        for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
        if line.startswith("!")
    }
    copied = {
        word
        for line in (ROOT / "Dockerfile").read_text(encoding="utf-8").splitlines()
        if line.startswith("COPY ") and "--from" not in line
        for word in line.split()[1:-1]
        if not word.startswith("--")
    }
    assert copied == allowed
    assert all((ROOT / path).exists() for path in copied)


def test_the_unit_runs_the_installed_command() -> None:
    unit = (DEPLOY / "identic.service").read_text(encoding="utf-8")
    assert "ExecStart=/opt/identic/bin/identic node run --config /etc/identic/node.toml" in unit
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert "identic" in project["scripts"]
