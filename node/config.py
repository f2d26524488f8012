"""The configuration of a node: one TOML file, with environment variables over it.

A section named after a role makes the node play that role. Every key can be set from outside as
``IDENTIC_<KEY>`` or ``IDENTIC_<SECTION>__<KEY>``. A mistake is told with the file and the line,
or with the variable, that holds it.
"""

from __future__ import annotations

import os
import re
import tomllib
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Annotated, Final, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ByteSize,
    ConfigDict,
    Field,
    PrivateAttr,
    ValidationError,
    model_validator,
)
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from identic.node.logging import Format, Level
from identic.node.rpc.diagnose import split_address
from identic.node.worker.devices import AUTO, checked
from identic.protocol.errors import LocalError
from identic.protocol.ids import Credits
from identic.protocol.program.validate import Limits

ROLES: Final = ("coordinator", "solver", "verifier", "whistleblower")
ENV_PREFIX: Final = "IDENTIC_"
MAX_FILE_BYTES: Final = 1 << 20
MICRO: Final = 1_000_000


def _credits(value: object) -> Credits:
    """Read an amount of credits, such as 10 or "2.5", as millionths; millionths stay."""
    if isinstance(value, Credits):
        return value
    try:
        amount = Decimal(str(value)) * MICRO
    except InvalidOperation as error:
        raise ValueError("an amount of credits is a number, such as 2.5") from error
    if not amount.is_finite() or amount < 0 or amount != amount.to_integral_value():
        raise ValueError("an amount of credits is not negative and has at most six decimals")
    return Credits(int(amount))


def _address(value: str) -> str:
    """Check an address of the form host:port."""
    try:
        split_address(value)
    except LocalError as error:
        raise ValueError(str(error)) from error
    return value


def _device(value: str) -> str:
    """Check the name of a device."""
    try:
        return checked(value)
    except LocalError as error:
        raise ValueError(str(error)) from error


Money = Annotated[Credits, BeforeValidator(_credits)]
Address = Annotated[str, AfterValidator(_address)]
DeviceName = Annotated[str, AfterValidator(_device)]


class Section(BaseModel):
    """A table of the file; unknown keys are mistakes."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, validate_default=True, arbitrary_types_allowed=True
    )


class LogSection(Section):
    """How the node logs, to stderr."""

    format: Format = "auto"
    level: Level = "info"


class MetricsSection(Section):
    """Where Prometheus finds the node's numbers; without an address they are not served."""

    listen: Address | None = None


class LimitsSection(Section):
    """What the node offers; a job that needs more is refused."""

    memory_bytes: ByteSize = ByteSize(8 << 30)
    step_values: int = Field(default=1 << 18, ge=1)
    """Most values of a step: loads and results of operators."""
    step_references: int = Field(default=1 << 21, ge=1)
    """Most operands of a step's operators."""
    step_flops: int = Field(default=1 << 56, ge=1)
    """Most arithmetic operations of a step."""
    disk_bytes: ByteSize = ByteSize(50 << 30)
    states_bytes: ByteSize = ByteSize(20 << 30)
    """Most bytes of stored states of one run; those between others are let go."""

    @property
    def programs(self) -> Limits:
        """The largest program that the node runs (PRG-16)."""
        return Limits(
            max_instructions=self.step_values,
            max_references=self.step_references,
            max_bytes=int(self.memory_bytes),
            max_flops=self.step_flops,
        )


class NetworkSection(Section):
    """The coordinator, for the nodes that are none."""

    coordinator: Address | None = None
    card: Path | None = None
    """The coordinator's contact card; relative to the configuration file."""


class CoordinatorSection(Section):
    """The job board, the log and the referee."""

    grant: Money = Field(default=Credits(1_000 * MICRO))
    """Credits that a party is given once, when it is first seen."""
    shortest_clock_s: int = Field(default=10, ge=0)
    """Jobs with a shorter clock for a dispute's move are refused, in seconds; 0 takes all."""
    keep_states_h: int = Field(default=0, ge=0)
    """Hours that data and states of a job are kept after its end; 0 keeps them for ever."""


class StakeSection(Section):
    """What roles have in common that choose when to put money at risk."""

    stake: Money = Field(default=Credits(100 * MICRO))
    """Most credits at risk at any time, over all jobs."""


class ForcedErrorSection(Section):
    """A deliberate wrong result, to rehearse being caught; see docs/spec/execution.md, EXE-6."""

    step: int = Field(ge=0)
    """Training step, counted from 0."""
    value: int = Field(ge=0)
    """Plan value of the operator whose result is wrong."""
    element: int = Field(ge=0)
    """Flat position of the wrong element."""
    path: tuple[int, ...] = Field(min_length=1)
    """Entries of the element's nested folds down to the wrong primitive step."""
    flip: int = Field(ge=1, lt=1 << 64)
    """Bits of that step's result that are inverted."""


class SolverSection(StakeSection):
    """Trains."""

    max_jobs: int = Field(default=1, ge=1, le=64)
    """Jobs at work at the same time."""
    forced_error: ForcedErrorSection | None = None


class VerifierSection(Section):
    """Re-executes what solvers claim. It is drawn, so its risk is bounded by its balance alone."""


class WhistleblowerSection(StakeSection):
    """Watches the verifiers."""

    intervals: int = Field(default=1, ge=0)
    """Intervals between stored states to execute again in each finished run; 0 takes all."""


class Config(BaseSettings):
    """All settings of a node."""

    model_config = SettingsConfigDict(
        env_prefix=ENV_PREFIX,
        env_nested_delimiter="__",
        extra="forbid",
        frozen=True,
        validate_default=True,
    )

    name: str = Field(default="node", pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$")
    data_dir: Path = Path("identic-data")
    """Keys, log, blobs; relative to the configuration file. One node has it at a time."""
    listen: Address = "127.0.0.1:7400"
    peers: Path = Path("peers")
    """Folder of the contact cards that are accepted; relative to ``data_dir``."""
    threads: int = Field(default=0, ge=0, le=1024)
    """Threads of the operators; 0 takes every core."""
    vector: str = Field(default="auto", pattern=r"^[a-z0-9_-]{1,32}$")
    """Vector path of the operators. All give the same bits; "auto" takes the fastest."""
    device: DeviceName = AUTO
    """What computes a job: "cpu", "cuda", "cuda:1"; "auto" takes a CUDA device that is sound."""
    log: LogSection = LogSection()
    metrics: MetricsSection = MetricsSection()
    limits: LimitsSection = LimitsSection()
    network: NetworkSection = NetworkSection()
    coordinator: CoordinatorSection | None = None
    solver: SolverSection | None = None
    verifier: VerifierSection | None = None
    whistleblower: WhistleblowerSection | None = None

    _file: Path | None = PrivateAttr(default=None)
    _text: str = PrivateAttr(default="")

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Environment first, then the file."""
        del settings_cls, dotenv_settings, file_secret_settings
        return env_settings, init_settings

    @model_validator(mode="after")
    def _network_is_named(self) -> Self:
        if self.coordinator is None and self.roles:
            if self.network.coordinator is None:
                raise ValueError("network.coordinator is missing: the address of the coordinator")
            if self.network.card is None:
                raise ValueError("network.card is missing: the coordinator's .card file")
        return self

    @property
    def roles(self) -> tuple[str, ...]:
        """Names of the roles the node plays, in a fixed order."""
        return tuple(role for role in ROLES if getattr(self, role) is not None)

    @property
    def base(self) -> Path:
        """Folder that relative paths start from."""
        return self._file.parent if self._file is not None else Path.cwd()

    @property
    def data_path(self) -> Path:
        """``data_dir``, absolute."""
        return (self.base / self.data_dir.expanduser()).resolve()

    @property
    def peers_path(self) -> Path:
        """``peers``, absolute."""
        return self.data_path / self.peers.expanduser()

    @property
    def card_path(self) -> Path | None:
        """The coordinator's card, absolute."""
        card = self.network.card
        return None if card is None else self.base / card.expanduser()

    def where(self, key: str) -> str:
        """Tell where a key such as "limits.memory_bytes" is set, for messages to people."""
        return _where(tuple(key.split(".")), self._file, self._text)

    @classmethod
    def load(cls, path: Path | None) -> Self:
        """Read a configuration; None reads the environment alone.

        Raises:
            LocalError: the file cannot be read or something in it is wrong; says where.
        """
        text = "" if path is None else _read(path)
        try:
            values = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise LocalError(
                f"{path} is not valid TOML: {error}", remedy="correct it and start again"
            ) from error
        try:
            config = cls(**values)
        except ValidationError as error:
            raise _mistake(error, path, text) from error
        config._file = None if path is None else path.resolve()
        config._text = text
        return config


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
        if len(data) > MAX_FILE_BYTES:
            raise LocalError(f"{path} is no configuration: it is too long", remedy="name another")
        return data.decode()
    except OSError as error:
        raise LocalError(
            f"cannot read the configuration {path}: {error.strerror}",
            remedy="name an existing file, or make one with `identic node init`",
        ) from error
    except UnicodeDecodeError as error:
        raise LocalError(f"{path} is not UTF-8 text", remedy="save it as UTF-8") from error


def _mistake(error: ValidationError, path: Path | None, text: str) -> LocalError:
    """Describe the mistakes of a configuration, one sentence each."""
    sentences = []
    for one in error.errors():
        key = tuple(str(part) for part in one["loc"])
        message = one["msg"].removeprefix("Value error, ")
        if one["type"] == "extra_forbidden":
            message = "there is no such key"
        name = ".".join(key)
        sentences.append(f"{_where(key, path, text)}: {name + ': ' if name else ''}{message}")
    return LocalError("the configuration is wrong: " + "; ".join(sentences), remedy="correct it")


def _where(key: tuple[str, ...], path: Path | None, text: str) -> str:
    """Tell which variable, or which line of the file, sets a key."""
    for depth in range(len(key), 0, -1):
        variable = ENV_PREFIX + "__".join(key[:depth]).upper()
        if variable in os.environ:
            return variable
    if path is None:
        return "default"
    line = _line(key, text)
    return path.name if line is None else f"{path.name}:{line}"


def _line(key: tuple[str, ...], text: str) -> int | None:
    """Return the line of a key or, failing that, of its table; the first is 1."""
    table: tuple[str, ...] = ()
    of_table = None
    for number, line in enumerate(text.splitlines(), 1):
        if header := re.match(r"\s*\[\s*([A-Za-z0-9_.\s-]+?)\s*\]", line):
            table = tuple(part.strip() for part in header[1].split("."))
            if key[: len(table)] == table:
                of_table = number
        elif assigned := re.match(r"\s*([A-Za-z0-9_.-]+)\s*=", line):
            full = (*table, *assigned[1].split("."))
            if full == key or (full == key[: len(full)] and len(full) > len(table)):
                return number
    return of_table


# ---- an example for each role ---------------------------------------------------------------

_COMMON: Final = """\
# Configuration of an identic node. Every key can be set from outside as well, as in
# IDENTIC_LISTEN=0.0.0.0:7400 or IDENTIC_LIMITS__MEMORY_BYTES=16GiB.

name = "{name}"
# Keys, log and blobs; relative to this file. identity.key in it is this node: keep a copy offline.
data_dir = "{name}-data"
# Where others reach this node. 0.0.0.0 listens on all networks of the machine.
listen = "{listen}"
# Contact cards (*.card) of the nodes that may connect; relative to data_dir, followed at once.
peers = "peers"
# Threads of the operators, 0 for every core.
threads = 0
# What computes jobs: "cpu", "cuda", "cuda:1"; "auto" takes a CUDA device that gives the known bits.
device = "auto"

[log]
# "console" for people, "json" for machines, "auto" to choose by where stderr goes.
format = "auto"
level = "info"

[metrics]
# Prometheus; without an address nothing is served.
# listen = "127.0.0.1:9400"

[limits]
# A job that needs more is refused.
memory_bytes = "8GiB"
# Of one step: loads and results, operands, arithmetic operations.
# step_values = 262144
# step_references = 2097152
# step_flops = 72057594037927936
disk_bytes = "50GiB"
# Stored states of one run; fewer make an answer in a dispute take longer.
states_bytes = "20GiB"
"""

_NETWORK: Final = """
[network]
coordinator = "127.0.0.1:7400"
# The coordinator's contact card; relative to this file. Its operator has it as <name>.card.
card = "coordinator.card"
"""

_ROLE: Final = {
    "coordinator": """
[coordinator]
# Credits given once to a party that is new here.
grant = "1000"
# Jobs whose clocks leave less time for a move, in seconds, are refused; 0 takes all.
shortest_clock_s = 10
# Hours that data and states of a job stay after its end; model and receipt always do. 0: all stay.
keep_states_h = 0
""",
    "solver": """
[solver]
# Most credits at risk at any time.
stake = "100"
# Jobs at work at the same time.
max_jobs = 1
""",
    "verifier": """
# A verifier is drawn by lot for as many jobs as its balance has bonds for.
[verifier]
""",
    "whistleblower": """
[whistleblower]
# Most credits at risk at any time.
stake = "100"
# Intervals between stored states to execute again in each finished run; 0 takes all.
intervals = 1
""",
}


def write_example(role: str, name: str) -> str:
    """Return the text of a commented configuration for a role, with the default values.

    Raises:
        LocalError: there is no such role.
    """
    if role not in _ROLE:
        raise LocalError(f"there is no role {role!r}", remedy=f"choose one of {', '.join(ROLES)}")
    port = 7400 + ROLES.index(role)
    network = "" if role == "coordinator" else _NETWORK
    return _COMMON.format(name=name, listen=f"127.0.0.1:{port}") + network + _ROLE[role]
