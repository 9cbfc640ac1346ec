"""stderr in two dialects: Fairlead's, and arena's log lines on a terminal and in a pipe (contract §9.1)."""

from __future__ import annotations

import io

import pytest

from fairlead.cli.messages import Messages


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def utc(monkeypatch: pytest.MonkeyPatch) -> None:
    import time

    monkeypatch.setenv("TZ", "UTC")
    time.tzset()


def test_fairlead_says_error_and_hint_on_lines_of_their_own() -> None:
    stream = io.StringIO()
    messages = Messages("fairlead", stream)
    messages.error("job `mpi-test` is not in namespace `default`", "`arena list -A` shows every namespace")
    messages.warn("slow")
    messages.debug("unseen")
    assert stream.getvalue() == (
        "error: job `mpi-test` is not in namespace `default`\nhint: `arena list -A` shows every namespace\nwarning: slow\n"
    )


def test_arena_in_a_pipe_writes_logfmt() -> None:
    stream = io.StringIO()
    messages = Messages("arena", stream, now=lambda: 1795259228.0)
    messages.error('no "x"')
    messages.warn("skipped")
    assert stream.getvalue() == (
        'time="2026-11-21T11:07:08Z" level=error msg="no \\"x\\""\ntime="2026-11-21T11:07:08Z" level=warning msg=skipped\n'
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


def test_a_warning_that_repeats_itself_is_said_once() -> None:
    """As `list -w` and `top node -r` meet the same trouble every two seconds."""
    stream = io.StringIO()
    messages = Messages("fairlead", stream)
    for text in ("skipped pods", "skipped pods", "metrics are gone", "skipped pods"):
        messages.warn(text)
    assert stream.getvalue() == "warning: skipped pods\nwarning: metrics are gone\n"
