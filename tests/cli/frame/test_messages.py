"""stderr in two formats: Fairlead's, and arena's log lines on a terminal and in a pipe.

See docs/spec/arena-cli.md#log-lines.
"""

from __future__ import annotations

import io
import logging

import pytest

from fairlead.cli.frame.messages import Messages
from fairlead.run.log_lines import LogLine


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def utc(monkeypatch: pytest.MonkeyPatch) -> None:
    import time

    monkeypatch.setenv("TZ", "UTC")
    time.tzset()


def test_fairlead_prints_error_and_hint_on_lines_of_their_own() -> None:
    stream = io.StringIO()
    messages = Messages("fairlead", stream)
    messages.error(
        "job `mpi-test` is not in namespace `default`", "`arena list -A` shows every namespace"
    )
    messages.warn("slow")
    messages.debug("unseen")
    assert stream.getvalue() == (
        "error: job `mpi-test` is not in namespace `default`\nhint: `arena list -A` shows "
        "every namespace\nwarning: slow\n"
    )


def test_arena_in_a_pipe_writes_logfmt() -> None:
    stream = io.StringIO()
    messages = Messages("arena", stream, now=lambda: 1795259228.0)
    messages.error('no "x"')
    messages.warn("skipped")
    assert stream.getvalue() == (
        'time="2026-11-21T11:07:08Z" level=error msg="no '
        '\\"x\\""\ntime="2026-11-21T11:07:08Z" level=warning msg=skipped\n'
    )


def test_arena_on_a_terminal_writes_a_coloured_padded_line_with_seconds_since_the_start() -> None:
    stream, clock = Terminal(), iter([100.0, 112.9])
    Messages("arena", stream, now=lambda: next(clock)).error("not found")
    assert stream.getvalue() == "\x1b[31mERRO\x1b[0m[0012] not found" + " " * 36 + "\n"


def test_the_level_hides_what_lies_below_it() -> None:
    stream = io.StringIO()
    messages = Messages("fairlead", stream, level="error")
    messages.warn("unseen")
    messages.error("seen")
    assert stream.getvalue() == "error: seen\n"


def test_a_warning_that_repeats_itself_is_reported_once() -> None:
    """`list -w` and `top node -r` meet the same fault every two seconds."""
    stream = io.StringIO()
    messages = Messages("fairlead", stream)
    for text in ("skipped pods", "skipped pods", "metrics are gone", "skipped pods"):
        messages.warn(text)
    assert stream.getvalue() == "warning: skipped pods\nwarning: metrics are gone\n"


def test_what_the_cluster_sends_never_moves_the_cursor() -> None:
    plain, coloured = io.StringIO(), Terminal()
    for messages in (Messages("fairlead", plain), Messages("arena", coloured, now=lambda: 0.0)):
        messages.error("no \x1b[2J", "see \x1b[2J\r")
        messages.plain("note \x1b[2J")
    assert plain.getvalue() == "error: no ^[[2J\nhint: see ^[[2J\\r\nnote ^[[2J\n"
    assert "\x1b[2J" not in coloured.getvalue() and coloured.getvalue().count("^[[2J") == 3
    assert coloured.getvalue().startswith("\x1b[31mERRO\x1b[0m[0000] no ^[[2J")


def test_a_log_line_of_a_server_neither() -> None:
    record = logging.LogRecord("x", logging.WARNING, "", 0, "printed: %s", ("\x1b[2J\r",), None)
    assert LogLine("%(levelname)s %(message)s").format(record) == "WARNING printed: ^[[2J\\r"
