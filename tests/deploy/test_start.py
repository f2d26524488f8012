"""The start script of the containers: keys once, a card for the others, a node that stops."""

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

from identic.node.config import write_example
from identic.node.identity import Card

START = Path(__file__).resolve().parents[2] / "deploy" / "start"
PATIENCE_S = 60.0
ENVIRONMENT = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port


def prepared(folder: Path) -> Path:
    """Write the configuration of a coordinator that keeps all it has under the folder."""
    (folder / "data").mkdir(mode=0o700)
    (folder / "cards").mkdir()
    lines = write_example("coordinator", "coordinator").splitlines()
    values = {
        "data_dir": folder / "data",
        "peers": folder / "cards",
        "listen": f"127.0.0.1:{free_port()}",
    }
    for key, value in values.items():
        (at,) = (i for i, line in enumerate(lines) if line.startswith(f"{key} = "))
        lines[at] = f'{key} = "{value}"'
    path = folder / "coordinator.toml"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def healthy(config: Path) -> bool:
    command = Path(sys.executable).with_name("identic")
    asked = [str(command), "node", "status", "--config", str(config)]
    return subprocess.run(asked, capture_output=True, check=False).returncode == 0


def run_once(config: Path) -> Card:
    """Start the node, wait until it is healthy, stop it, and return the card it shows."""
    with subprocess.Popen([START, config], env=ENVIRONMENT, stderr=subprocess.PIPE) as node:
        try:
            give_up = time.monotonic() + PATIENCE_S
            while not healthy(config):
                assert node.poll() is None, node.stderr.read() if node.stderr else b""
                assert time.monotonic() < give_up
            node.send_signal(signal.SIGTERM)
            _, errors = node.communicate(timeout=PATIENCE_S)
        finally:
            node.kill()
        assert node.returncode == 0, errors
    (path,) = (config.parent / "cards").iterdir()
    assert path.name == "coordinator.card"
    return Card.load(path)


def test_the_identity_is_drawn_once_and_its_card_is_shown(tmp_path: Path) -> None:
    config = prepared(tmp_path)
    first = run_once(config)
    kept = tmp_path / "data" / "identity.key"
    assert kept.stat().st_mode & 0o777 == 0o600
    key = kept.read_bytes()
    (tmp_path / "cards" / "coordinator.card").unlink()
    assert run_once(config) == first
    assert kept.read_bytes() == key
