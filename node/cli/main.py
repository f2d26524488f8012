"""Entry point of the ``identic`` command: the tree of commands, built from its table.

A command's module is imported when the command runs, so that ``identic --help`` imports
nothing of the rest and only the commands that capture import torch.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import sys
import typing
from collections.abc import Callable, Sequence
from importlib import metadata
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from identic.node.cli import faults
from identic.node.cli.commands import COMMANDS, NOUNS, Command
from identic.node.cli.output import Answer, Output, use
from identic.protocol.errors import IdenticError, LocalError

SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(metadata.version("identic"))
        raise typer.Exit


Version = Annotated[
    bool,
    typer.Option("--version", help="Print the version and exit.", is_eager=True, callback=_version),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object, and nothing else.")]


def main() -> None:
    """Run the command line of this process."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code."""
    output = Output(json="--json" in arguments)
    try:
        code: int | None = tree()(args=list(arguments), prog_name="identic", standalone_mode=True)
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else faults.FAULT
    except BrokenPipeError:
        return faults.unread()
    except IdenticError as error:
        return faults.report(error, output)
    except Exception as error:  # noqa: BLE001 - the last resort; nothing is swallowed
        return faults.unexpected(error, output)
    return code or faults.YES


# ---- the tree -------------------------------------------------------------------------------


class Lazy(TyperGroup):
    """A noun, or the whole: commands that are imported when they are called."""

    entries: tuple[Command, ...] = COMMANDS
    prefix: str = ""

    def list_commands(self, ctx: Any) -> list[str]:
        """Names in the order of the table."""
        del ctx
        inside = (e.path.removeprefix(self.prefix) for e in self._inside())
        return list(dict.fromkeys(path.partition(" ")[0] for path in inside))

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Import a command, or make the group of a noun."""
        del ctx
        path = self.prefix + cmd_name
        if path in NOUNS:
            return _noun(path)
        entry = next((e for e in self.entries if e.path == path), None)
        return None if entry is None else leaf(entry)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """List the commands with the table's words, importing none."""
        summaries = {e.path: e.summary for e in self.entries} | NOUNS
        rows = [(name, summaries[self.prefix + name]) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def _inside(self) -> list[Command]:
        return [e for e in self.entries if e.path.startswith(self.prefix)]


def _group(kind: type[Lazy], summary: str, callback: Callable[..., None]) -> Any:
    app = typer.Typer(
        cls=kind,
        help=summary,
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings=SETTINGS,
    )
    app.callback()(callback)
    return typer.main.get_command(app)


def _noun(path: str) -> Any:
    def nothing() -> None:
        """Do nothing before the verb."""

    kind = type("Noun", (Lazy,), {"prefix": f"{path} "})
    group = _group(kind, NOUNS[path], nothing)
    group.name = path
    return group


def tree() -> Any:
    """The whole command."""

    def root(version: Version = False) -> None:
        del version

    summary = "Training runs that anyone can re-execute, bit for bit."
    return _group(Lazy, summary, root)


def leaf(entry: Command) -> Any:
    """Import the function of a command and make the command."""
    module, _, name = entry.target.partition(":")
    try:
        function = getattr(importlib.import_module(module), name)
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise LocalError(
            f"`identic {entry.path}` needs torch, which is not installed",
            remedy="pip install 'identic[torch]'; nodes and all other commands do without",
        ) from error
    app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    app.command(name=entry.path.rpartition(" ")[2], context_settings=SETTINGS)(guarded(function))
    return typer.main.get_command(app)


def guarded(function: Callable[..., Answer]) -> Callable[..., None]:
    """The function with ``--json`` added, its answer printed, and its errors put into words."""

    def command(*, json: bool, **arguments: Any) -> None:
        output = Output(json=json)
        use(output)
        raise typer.Exit(_answered(functools.partial(function, **arguments), output))

    shape = inspect.signature(function)
    hints = typing.get_type_hints(function, include_extras=True)
    parameters = [p.replace(annotation=hints[n]) for n, p in shape.parameters.items()]
    flag = inspect.Parameter("json", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=Json)
    kept = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in parameters]
    vars(command)["__signature__"] = inspect.Signature([*kept, flag])
    command.__annotations__ = {p.name: p.annotation for p in [*kept, flag]}
    command.__doc__ = function.__doc__
    return command


def _answered(ask: Callable[[], Answer], output: Output) -> int:
    try:
        answer = ask()
        output.answer(answer)
    except IdenticError as error:
        return faults.report(error, output)
    except BrokenPipeError:
        return faults.unread()
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)  # noqa: T201
        return faults.INTERRUPTED
    except Exception as error:  # noqa: BLE001 - the last resort; nothing is swallowed
        return faults.unexpected(error, output)
    if answer.code is not None:
        return answer.code
    return faults.YES if answer.yes else faults.NO


if __name__ == "__main__":
    main()
