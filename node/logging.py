"""Structured logging of a node: lines for people on a terminal, JSON for machines elsewhere.

Logs go to stderr. Nothing important is only in a log: what an operator must act on is in the
node's status as well.
"""

from __future__ import annotations

import logging
import sys
from typing import Literal

import structlog

Format = Literal["auto", "console", "json"]
Level = Literal["debug", "info", "warning", "error"]

Log = structlog.typing.FilteringBoundLogger


def configure(form: Format = "auto", level: Level = "info") -> None:
    """Set up logging for the whole process.

    Args:
        form: "auto" takes "console" where stderr is a terminal and "json" elsewhere.
        level: the least severity that is written.
    """
    console = form == "console" or (form == "auto" and sys.stderr.isatty())
    tail: list[structlog.typing.Processor] = (
        [structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())]
        if console
        else [structlog.processors.dict_tracebacks, structlog.processors.JSONRenderer(default=str)]
    )
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.StackInfoRenderer(),
            *tail,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(
            logging.getLevelNamesMapping()[level.upper()]
        ),
        logger_factory=structlog.WriteLoggerFactory(file=sys.stderr),
        cache_logger_on_first_use=False,
    )


def get_logger(part: str) -> Log:
    """Return the logger of a part of the node, such as "rpc"."""
    log: Log = structlog.get_logger().bind(part=part)
    return log
