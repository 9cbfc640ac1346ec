"""Messages of commands on stderr, in two dialects: Fairlead's (`error: …`, `hint: …`) and arena's
log lines (docs/spec/arena-cli.md#log-lines).

arena's lines are logrus's, so they differ between a terminal (coloured, padded to 44 columns) and a
pipe (logfmt). Nothing here goes to stdout; a closed stderr is not an error. Text of the cluster is
printed as kubectl prints it, in logfmt as Go quotes it; escape codes for colours come only from
this module.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, TextIO

from fairlead.cli.frame.standard_streams import silence
from fairlead.wire.text.printable_address import without_userinfo
from fairlead.wire.text.terminal_text import escape_terminal

LEVELS: Final = ("debug", "info", "warn", "error")
_LOGFMT_LEVEL: Final = {"warn": "warning"}
_COLOUR: Final = {"debug": 37, "info": 36, "warn": 33, "error": 31}
_SHORT: Final = {"debug": "DEBU", "info": "INFO", "warn": "WARN", "error": "ERRO"}
_FAIRLEAD_WORD: Final = {"debug": "debug", "info": "info", "warn": "warning", "error": "error"}
_KUBECTL_WORD: Final = {**_FAIRLEAD_WORD, "error": "Error"}
_BARE: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._/@^+")
_ESCAPES: Final = {
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
    '"': '\\"',
    "\\": "\\\\",
}


class Messages:
    """Lines on stderr from `level` up, in the dialect of `program`.

    That of kubectl's plug-ins is Fairlead's, but for `Error:`.
    """

    def __init__(
        self,
        program: str,
        stream: TextIO,
        now: Callable[[], float] = time.time,
        level: str = "info",
    ) -> None:
        self._program = program
        self._stream = stream
        self._now = now
        self._started_at = now()
        self._warned: set[str] = set()
        self.level = level

    def error(self, what: str, hint: str = "") -> None:
        self._say("error", what)
        if hint and self._program == "arena":
            self._say("info", f"hint: {hint}")
        elif hint:
            self._write(f"hint: {escape_terminal(without_userinfo(hint))}\n")

    def warn(self, text: str) -> None:
        """Prints each text once: with `-w` and `-r` it would repeat every two seconds."""
        if text not in self._warned:
            self._warned.add(text)
            self._say("warn", text)

    def info(self, text: str) -> None:
        self._say("info", text)

    def debug(self, text: str) -> None:
        self._say("debug", text)

    def plain(self, line: str) -> None:
        """A line that has no level in either dialect, as pflag writes its notes."""
        self._write(f"{escape_terminal(line)}\n")

    def _say(self, level: str, text: str) -> None:
        if LEVELS.index(level) < LEVELS.index(self.level):
            return
        text = without_userinfo(text)
        if self._program != "arena":
            words = _KUBECTL_WORD if self._program.startswith("kubectl") else _FAIRLEAD_WORD
            self._write(f"{words[level]}: {escape_terminal(text)}\n")
        elif self._stream.isatty():
            self._write(terminal_line(level, escape_terminal(text), self._now() - self._started_at))
        else:
            self._write(logfmt_line(level, text, self._now()))

    def _write(self, line: str) -> None:
        try:
            self._stream.write(line)
            self._stream.flush()
        except OSError:
            silence(self._stream)  # stderr has no reader; the exit status remains


def terminal_line(level: str, text: str, seconds: float) -> str:
    """logrus's coloured line.

    >>> terminal_line("error", "no", 3.9)
    '\\x1b[31mERRO\\x1b[0m[0003] no                                           \\n'
    """
    return f"\x1b[{_COLOUR[level]}m{_SHORT[level]}\x1b[0m[{int(seconds):04d}] {text:<44} \n"


def logfmt_line(level: str, text: str, now: float) -> str:
    """logrus's line for pipes, with the local time as RFC 3339.

    >>> logfmt_line("warn", 'a "b"', 0.0)[-29:]
    ' level=warning msg="a \\\\"b\\\\""\\n'
    """
    return (
        f'time="{rfc3339_local(now)}" level={_LOGFMT_LEVEL.get(level, level)} msg={quoted(text)}\n'
    )


def rfc3339_local(now: float) -> str:
    moment = time.localtime(now)
    offset = time.strftime("%z", moment)
    zone = "Z" if offset in ("+0000", "") else f"{offset[:3]}:{offset[3:]}"
    return time.strftime("%Y-%m-%dT%H:%M:%S", moment) + zone


def quoted(text: str) -> str:
    """The text as logrus writes a value: bare when it is one plain word, else as Go quotes strings.

    >>> quoted("plain-word"), quoted("two words"), quoted("")
    ('plain-word', '"two words"', '')
    """
    if all(letter in _BARE for letter in text):
        return text
    return '"' + "".join(_ESCAPES.get(letter) or _printable(letter) for letter in text) + '"'


def _printable(letter: str) -> str:
    if letter.isprintable():
        return letter
    code = ord(letter)
    return (
        f"\\x{code:02x}"
        if code < 0x80
        else f"\\u{code:04x}"
        if code < 0x10000
        else f"\\U{code:08x}"
    )
