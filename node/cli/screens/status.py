"""How a node fares: roles, their last errors in words, memory, disk, peers."""

from __future__ import annotations

from rich.text import Text

from identic.node.cli import words
from identic.node.cli.output import Lines, columns
from identic.node.views import NodeStatus, RoleState

_MARKS = {
    RoleState.STARTING: ("… starting", "yellow"),
    RoleState.RUNNING: ("✓ running", "green"),
    RoleState.WAITING: ("! failed, starts again", "bold red"),
    RoleState.STOPPED: ("– stopped", "dim"),
}


def lines(status: NodeStatus) -> Lines:
    """The whole screen."""
    up = words.duration((status.now_ms - status.started_ms) / 1000)
    head = Text(status.name, style="bold")
    head.append(
        f"  {status.party.hex()[:6]}…  identic {status.version}, "
        f"kernel set {status.kernel_set}, up {up}",
        style="not bold",
    )
    out: list[Text | str] = [head]
    for role in status.roles:
        text, style = _MARKS[role.state]
        line = Text(f"{role.name:<14} ", style="bold")
        line.append(text, style=f"not bold {style}")
        if role.restarts:
            line.append(f"   {words.plural(role.restarts, 'restart')}", style="not bold yellow")
        out.append(line)
        out += [f"  {key}: {value}" for key, value in role.details.items()]
        if role.last_error:
            when = words.moment(role.last_error_ms)
            out.append(Text(f"  last error, {when}: {role.last_error}", style="red"))
    used, offered = words.size(status.memory_used_bytes), words.size(status.memory_limit_bytes)
    held, quota = words.size(status.blob_bytes), words.size(status.disk_limit_bytes)
    rows = [
        ["memory", f"{used} used of {offered} offered"],
        ["disk", f"{held} of {quota} offered, {words.size(status.disk_free_bytes)} free"],
        ["peers", f"{status.known_peers} known"],
    ]
    return [*out, *columns(rows)]
