"""One node as its operator meets it: started, started twice, misconfigured, interrupted."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from identic.node.config import write_example
from identic.node.demo.network import NODE, free_ports
from identic.node.identity import Identity

COMMAND = (sys.executable, *NODE, "--config")


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """Configuration and keys of a coordinator."""
    (port,) = free_ports(1)
    path = tmp_path / "hub.toml"
    path.write_text(write_example("coordinator", "hub").replace(":7400", f":{port}"))
    Identity.create(tmp_path / "hub-data", "hub")
    return path


@pytest.fixture
def node(config: Path) -> Iterator[subprocess.Popen[str]]:
    """A node that runs."""
    with subprocess.Popen(
        [*COMMAND, config], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if "role is running" in line:
                break
        try:
            yield process
        finally:
            process.kill()


def attempt(config: Path) -> subprocess.CompletedProcess[str]:
    """Start a node that must not come up."""
    return subprocess.run([*COMMAND, config], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_node_stops_in_order(
    node: subprocess.Popen[str], number: signal.Signals
) -> None:
    node.send_signal(number)
    out, err = node.communicate()
    assert node.returncode == 0
    assert out.strip() == "stopped"
    assert "Traceback" not in err


def test_a_second_node_in_the_same_folder_is_refused(
    node: subprocess.Popen[str], config: Path
) -> None:
    second = attempt(config)
    assert second.returncode == 3
    assert f"in use by process {node.pid}" in second.stderr
    assert node.poll() is None


def test_a_port_that_is_taken_is_named(node: subprocess.Popen[str], config: Path) -> None:
    other = config.with_name("other.toml")
    other.write_text(config.read_text().replace("hub-data", "other-data"))
    Identity.create(config.parent / "other-data", "hub")
    second = attempt(other)
    assert second.returncode == 3
    assert "cannot listen on 127.0.0.1:" in second.stderr
    assert node.poll() is None


WRONG = {
    "an unknown key": ('name = "hub"', 'name = "hub"\nspeed = 3', "hub.toml:5"),
    "an unknown section": ("[log]", "[logs]", "hub.toml"),
    "an address that is none": ("127.0.0.1", "nowhere:at:all", "listen"),
    "no TOML": ("[log]", "[log", "not valid TOML"),
    "an amount that is none": ('grant = "1000"', 'grant = "a lot"', "grant"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_mistake_in_the_configuration_is_told_with_its_place(config: Path, name: str) -> None:
    right, wrong, said = WRONG[name]
    config.write_text(config.read_text().replace(right, wrong, 1))
    refused = attempt(config)
    assert refused.returncode == 3
    assert said in refused.stderr
    assert "Traceback" not in refused.stderr


def test_missing_keys_are_told(config: Path) -> None:
    (config.parent / "hub-data" / "identity.key").unlink()
    refused = attempt(config)
    assert refused.returncode == 3
    assert "identity.key" in refused.stderr
    assert "identic node init" in refused.stderr
