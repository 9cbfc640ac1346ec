"""The log of servers: lines for people, or JSON objects as Go's slog writes them."""

from __future__ import annotations

import logging
import sys
from datetime import UTC, datetime
from typing import Final

import msgspec

from fairlead.wire.text.printable_address import without_userinfo
from fairlead.wire.text.terminal_text import escape_terminal

_LEVELS: Final = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warn": logging.WARNING,
    "error": logging.ERROR,
}


class LogLine(logging.Formatter):
    """Escapes text of the cluster that may be part of a line, since terminals show it.

    Traces contain text of libraries: passwords in addresses are removed.
    """

    def format(self, record: logging.LogRecord) -> str:
        return escape_terminal(without_userinfo(super().format(record)))


def log_to_stderr(level: str) -> None:
    """Servers log lines with the local time, for a terminal or `kubectl logs`."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        LogLine("%(asctime)s %(levelname)s %(name)s: %(message)s", "%Y-%m-%dT%H:%M:%S%z")
    )
    logging.basicConfig(handlers=[handler], level=_LEVELS[level])
    # it logs each step of opening a store
    logging.getLogger("alembic").setLevel(logging.WARNING)
    # it logs its start and end once per port
    logging.getLogger("uvicorn").setLevel(logging.WARNING)


def log_as_json() -> None:
    """Every line of the log as one JSON object, with the keys that Go's slog writes."""
    for handler in logging.getLogger().handlers:
        handler.setFormatter(JsonLine())


class JsonLine(logging.Formatter):
    """Time with zone, level, logger, message, and a trace if there is one."""

    def format(self, record: logging.LogRecord) -> str:
        at = (
            datetime.fromtimestamp(record.created, UTC)
            .isoformat(timespec="milliseconds")
            .replace("+00:00", "Z")
        )
        level = {"WARNING": "WARN", "CRITICAL": "ERROR"}.get(record.levelname, record.levelname)
        line = {
            "time": at,
            "level": level,
            "logger": record.name,
            "msg": without_userinfo(record.getMessage()),
        }
        if record.exc_info:
            line["stacktrace"] = without_userinfo(self.formatException(record.exc_info))
        return msgspec.json.encode(line).decode()
