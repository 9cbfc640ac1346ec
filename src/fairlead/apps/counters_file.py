"""The counters of a GPU exporter: a CSV that a person named, read again when it changes, else the built-in.

A file that turns bad later never empties the page: the last good counters stay, and the self metrics say that
the reload failed. Reading may be slow (a hundred thousand rows take seconds), so it is done in a thread.
"""

from __future__ import annotations

import logging
import os
import stat
from importlib.resources import files
from pathlib import Path
from typing import Final

from fairlead.errors import UserError
from fairlead.model.devices.counter import CounterSet
from fairlead.wire.metrics.counters_csv import parse_counters

BYTES_MAX: Final = 16 << 20
REASONS_MAX: Final = 5
USUAL_FILE: Final = "/etc/dcgm-exporter/default-counters.csv"
_log = logging.getLogger(__name__)


def built_in_counters() -> CounterSet:
    return parse_counters(files("fairlead.wire.metrics").joinpath("default-counters.csv").read_text(encoding="utf-8"))


def usual_file() -> str:
    """The counters file of dcgm-exporter's images where it exists, else "" for the built-in counters."""
    return USUAL_FILE if Path(USUAL_FILE).is_file() else ""


class CountersFile:
    """The counters in force.

    Raises UserError at the start when the named file cannot be used; never later.
    """

    def __init__(self, path: str = "", *, is_strict: bool = False) -> None:
        self._path = path
        self._seen: tuple[int, int] | None = None
        self.reload_succeeded = True
        self.counters = self._read() if path else built_in_counters()
        if is_strict and self.counters.rejected:
            row = self.counters.rejected[0]
            raise UserError(
                f"`{path}` line {row.line}: {row.reason} (`{row.text}`)", "correct the row, or start without `--strict-csv` to skip it"
            )
        self._warn_of_rejected()

    def reload_if_changed(self, *, is_asked: bool = False) -> None:
        """Read the file if it changed or somebody asks; a readable one with a row that counts is in force."""
        if not self._path:
            return
        try:
            if self._stamp() == self._seen and not is_asked:
                return
            self.counters = self._read()
            self.reload_succeeded = True
            _log.info("counters read again from `%s`: %d rows", self._path, len(self.counters.counters))
            self._warn_of_rejected()
        except (OSError, UserError) as error:
            if self.reload_succeeded:
                _log.warning("counters stay as they were: %s", getattr(error, "log_line", error))
            self.reload_succeeded = False

    def _read(self) -> CounterSet:
        try:
            self._seen, text = self._stamp(), _text_of(Path(self._path))
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
            raise UserError(f"counters file `{self._path}` cannot be read: {why}", "name a readable CSV with `--collectors`") from error
        found = parse_counters(text)
        if not found.counters:
            raise UserError(f"counters file `{self._path}` has no usable row: {_reasons(found)}", "write rows `FIELD, type, help`")
        return found

    def _stamp(self) -> tuple[int, int]:
        stat = Path(self._path).stat()
        return stat.st_mtime_ns, stat.st_ino

    def _warn_of_rejected(self) -> None:
        if self.counters.rejected:
            _log.warning("counters file `%s`: %s", self._path, _reasons(self.counters))


def _text_of(path: Path) -> str:
    """Raises UserError for what is no file of rows: a pipe would wait for ever, a device never end."""
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise UserError(f"counters file `{path}` is no regular file", "name a CSV with `--collectors`")
        data = file.read(BYTES_MAX + 1)
    if len(data) > BYTES_MAX:
        raise UserError(f"counters file `{path}` is larger than {BYTES_MAX >> 20} MiB", "name a CSV of fields, a row for each")
    return data.decode("utf-8-sig")


def _reasons(found: CounterSet) -> str:
    """The first few of the rows that were skipped, and how many there are."""
    if not found.rejected:
        return "it is empty"
    told = "; ".join(f"line {row.line} {row.reason}" for row in found.rejected[:REASONS_MAX])
    return f"{len(found.rejected)} rows skipped: {told}{'; …' if len(found.rejected) > REASONS_MAX else ''}"
