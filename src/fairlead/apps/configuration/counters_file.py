"""The counters of a GPU exporter: a CSV file, read again when it changes, or the built-in ones.

A CSV that becomes unusable never empties the page: the last good counters stay, and the self
metrics show that the reload failed. A file that is being written is read once it has stopped
changing. Reading may be slow (100,000 rows take seconds), so it is done in a thread.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Final, Protocol

from fairlead.apps.configuration.regular_file import read_regular_file
from fairlead.errors import UserError
from fairlead.model.devices.counter import CounterSet
from fairlead.wire.metrics.counters_csv import parse_counters

BYTES_MAX: Final = 16 << 20
REASONS_MAX: Final = 5
LOOK_SECONDS: Final = 1.0
UNCHANGED_SECONDS: Final = 0.2
"""`UNCHANGED_SECONDS`: a file must not have changed for this time, nor while it was read."""
_MOST_TRIES: Final = 10
USUAL_FILE: Final = "/etc/dcgm-exporter/default-counters.csv"
_log = logging.getLogger(__name__)


_Stamp = tuple[int, int, int]


class CountersInForce(Protocol):
    """The counters in force, from any source."""

    @property
    def counters(self) -> CounterSet: ...

    @property
    def reload_succeeded(self) -> bool: ...

    @property
    def is_reloading(self) -> bool:
        """Whether new counters are being read now."""

    def reload_if_changed(self, *, is_asked: bool = False) -> None:
        """Called in a thread, before each page. `is_asked`: a user wants them read again."""

    async def follow(self, news: Callable[[], None]) -> None:
        """Until cancelled, call `news` when there may be new counters.

        Returns if they cannot change.
        """

    def ask_now(self) -> None:
        """Check now instead of at the next regular time."""


def built_in_counters() -> CounterSet:
    return parse_counters(
        files("fairlead.wire.metrics").joinpath("default-counters.csv").read_text(encoding="utf-8")
    )


def usual_file() -> str:
    """The counters file of dcgm-exporter's images if it exists,
    else "" for the built-in counters.
    """
    return USUAL_FILE if Path(USUAL_FILE).is_file() else ""


def counters_of(
    text: str, what: str, *, is_strict: bool = False, may_be_empty: bool = False
) -> CounterSet:
    """The counters of a CSV; skipped rows are logged. `what` it is: ``counters file `/a` ``.

    Raises UserError for a CSV without a usable row, unless it `may_be_empty`, and with `is_strict`
    for one with any unusable row.
    """
    found = parse_counters(text)
    if is_strict and found.rejected:
        row = found.rejected[0]
        raise UserError(
            f"{what} line {row.line}: {row.reason} (`{row.text}`)",
            "correct the row, or start without `--strict-csv` to skip it",
        )
    if not found.counters and may_be_empty:
        _log.warning(
            "%s has no usable row, so that no metric of DCGM is printed: %s",
            what,
            _reasons(found),
        )
        return found
    if not found.counters:
        raise UserError(
            f"{what} has no usable row: {_reasons(found)}", "write rows `FIELD, type, help`"
        )
    if found.rejected:
        _log.warning("%s: %s", what, _reasons(found))
    return found


class FixedCounters:
    """Counters that do not change: `text` of a configuration file. Raises UserError."""

    is_reloading = False

    def __init__(self, text: str, what: str, *, is_strict: bool = False) -> None:
        self.counters = counters_of(text, what, is_strict=is_strict, may_be_empty=not is_strict)
        self.reload_succeeded = bool(self.counters.counters)

    def reload_if_changed(self, *, is_asked: bool = False) -> None:
        """Does nothing."""

    async def follow(self, news: Callable[[], None]) -> None:
        """Returns at once."""

    def ask_now(self) -> None:
        """Does nothing."""


class CountersFile:
    """The counters of a file, "" = the built-in ones.

    Raises UserError at the start if the named file cannot be used; never later. `sleep` is called
    in the thread that reads.
    """

    def __init__(
        self,
        path: str = "",
        *,
        is_strict: bool = False,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._path = path
        self._sleep = sleep
        self._seen: _Stamp | None = None
        self.is_reloading = False
        self.counters = (
            self._read(is_strict=is_strict, may_be_empty=not is_strict)
            if path
            else built_in_counters()
        )
        self.reload_succeeded = bool(self.counters.counters)

    def reload_if_changed(self, *, is_asked: bool = False) -> None:
        """Read the file if it changed or on request. With at least one usable row it takes effect.

        A file that is still changing is read the next time.
        """
        if not self._path:
            return
        try:
            if self._stamp() == self._seen and self._seen is not None and not is_asked:
                return
            self.is_reloading = True
            found = self._read_still()
            if found is None:
                return
            self.counters = found
            self.reload_succeeded = True
            _log.info(
                "counters read again from `%s`: %d rows", self._path, len(self.counters.counters)
            )
        except UserError as error:
            if self.reload_succeeded:
                _log.warning("counters stay as they were: %s", error.log_line)
            self.reload_succeeded = False
        finally:
            self.is_reloading = False

    async def follow(self, news: Callable[[], None]) -> None:
        """Check the file at short intervals: the next page may be half a minute away."""
        if not self._path:
            return
        known = await asyncio.to_thread(self._stamp)
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            seen = await asyncio.to_thread(self._stamp)
            if seen != known:
                known = seen
                news()

    def ask_now(self) -> None:
        """The next page reads the file."""

    def _read_still(self) -> CounterSet | None:
        """None if the file is still changing. Raises UserError."""
        for _ in range(_MOST_TRIES):
            before = self._stamp()
            self._sleep(UNCHANGED_SECONDS)
            if self._stamp() != before:
                continue
            found: CounterSet | UserError
            try:
                found = self._read()
            except UserError as error:
                found = error
            if self._stamp() != before:
                continue
            if isinstance(found, UserError):
                raise found
            return found
        return None

    def _read(self, *, is_strict: bool = False, may_be_empty: bool = False) -> CounterSet:
        """Read the file.

        `_seen` is set only if the file could be read, with any content: only such a file is not
        read again.
        """
        what, hint, self._seen = "counters file", "name a readable CSV with `--collectors`", None
        stamp = self._stamp()
        read = read_regular_file(Path(self._path), BYTES_MAX, what, hint)
        self._seen = stamp
        try:
            text = read.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise UserError(
                f"{what} `{self._path}` cannot be read: not UTF-8 text", hint
            ) from error
        return counters_of(
            text, f"{what} `{self._path}`", is_strict=is_strict, may_be_empty=may_be_empty
        )

    def _stamp(self) -> _Stamp | None:
        try:
            stat = Path(self._path).stat()
        except OSError:
            return None
        return stat.st_mtime_ns, stat.st_ino, stat.st_size


def _reasons(found: CounterSet) -> str:
    """The first few skipped rows, and their number."""
    if not found.rejected:
        return "it is empty"
    lines = "; ".join(f"line {row.line} {row.reason}" for row in found.rejected[:REASONS_MAX])
    return (
        f"{len(found.rejected)} rows skipped: "
        f"{lines}{'; …' if len(found.rejected) > REASONS_MAX else ''}"
    )
