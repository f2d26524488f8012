"""The network with devices: who gets one, and that image, extras and settings exist."""

import re
import tomllib
from pathlib import Path
from typing import Any

import yaml

from identic.node.config import Config
from identic.node.worker import cards
from identic.node.worker.devices import checked
from tests.deploy.test_network import DEPLOY, ROLES, ROOT, network

COMPUTING = {name for name, role in ROLES.items() if role != "coordinator"}
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")


def devices() -> dict[str, Any]:
    text = (DEPLOY / "compose.gpu.yaml").read_text(encoding="utf-8")
    services: dict[str, Any] = yaml.safe_load(text)["services"]
    return services


def default(text: str) -> str:
    """What a variable of the file is when nobody sets it."""
    found = re.fullmatch(r"\$\{(IDENTIC_\w+):?-(.*)\}", text)
    assert found is not None, text
    return found[2]


def test_whoever_computes_has_a_device_and_nobody_else() -> None:
    services = devices()
    assert set(services) == set(ROLES)
    for name, service in services.items():
        reserved = service.get("deploy", {}).get("resources", {}).get("reservations", {})
        found = reserved.get("devices", [])
        assert bool(found) == (name in COMPUTING)
        for device in found:
            assert device["driver"] == "nvidia"
            assert device["capabilities"] == ["gpu"]
            assert [default(one) for one in device["device_ids"]] == ["0"]
    named = re.findall(r"IDENTIC_GPU_\w+", str(services))
    assert len(set(named)) == len(named) == len(COMPUTING)


def test_every_service_is_of_one_image_that_is_not_the_plain_one() -> None:
    images = {service["image"] for service in devices().values()}
    assert {default(image) for image in images} == {"identic:cuda"}
    assert not images & {service["image"] for service in network()["services"].values()}


def test_the_image_is_built_with_what_the_build_knows() -> None:
    known = set(re.findall(r"^ARG (\w+)=", DOCKERFILE, re.MULTILINE))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for name in COMPUTING:
        arguments = devices()[name]["build"]["args"]
        assert set(arguments) == known
        (extra,) = re.findall(r"\w+", default(arguments["EXTRAS"]))
        assert extra in project["optional-dependencies"]
        assert default(arguments["CUPY"]) == ""
        base = network()["services"][name]["build"]["args"]["BASE"]
        assert arguments["BASE"] == base


def test_the_setting_of_the_services_is_one_of_a_node(tmp_path: Path) -> None:
    for name in COMPUTING:
        (setting,) = devices()[name]["environment"].items()
        assert setting[0] == "IDENTIC_DEVICE"
        path = tmp_path / "node.toml"
        path.write_text(f'device = "{default(setting[1])}"', encoding="utf-8")
        assert checked(Config.load(path).device) == "cuda"


def test_what_is_to_be_installed_for_cuda_13_is_said_alike() -> None:
    packages = "cupy-cuda13x nvidia-cuda-nvrtc"
    assert packages in DOCKERFILE
    assert packages in (DEPLOY / "compose.gpu.yaml").read_text(encoding="utf-8")
    assert packages in (ROOT / "docs" / "gpu.md").read_text(encoding="utf-8")
    assert packages in cards.INSTALL
