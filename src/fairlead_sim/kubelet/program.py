"""What a container's command does, as far as it is understood: what it prints, how long it takes,
how it ends. Pure.

The commands of tutorials: `true`, `false`, `echo`, `date`, `sleep`, `exit`, `tail -f`, and a
shell's one-liner of these. If anything else is in it, the whole is not understood (None): half a
script would be a wrong one.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

from msgspec import Struct

INSTANT_SECONDS = 0.1
"""What a command takes that does not wait."""
MOST_LINES = 5000
"""Lines of a loop that are kept: the newest ones."""

Line = tuple[float, str | None]
"""Seconds after the start, and what was printed; None = the date of that instant."""

_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_SLEEP = re.compile(r"([0-9]++\.?[0-9]*+|\.[0-9]++)([smhd]?)")
_PROGRAM = re.compile(r"(?:(?:/usr(?:/local)?)?/bin/)?([^/]+)")
_SHELLS = ("sh", "bash", "ash", "dash")
_SHELL_FLAGS = re.compile(r"-[el]*c[el]*")
# no backtracking: a text that does not match would be tried with all ways to cut
# names in pieces
_TOKEN = re.compile(
    r"""[ \t]*+(?:(?P<sign>&&|\|\||;|\n)"""
    r"""|(?P<word>(?:'[^']*+'"""
    r"""|"(?:[^"\\`$]|\$\w++|\$\{\w++\})*+"|[\w@%+=:,./!^-]|\$\w++|\$\{\w++\})++))"""
)
_PIECE = re.compile(r"""'([^']*)'|"([^"]*)"|([^'"]+)""")
_NAME = re.compile(r"\$(?:\{(\w+)\}|(\w+))")
_SPLIT_OR_MATCHED = re.compile(r"[\s*?\[]")
_EXPANSION = re.compile(r"\$\$|\$\(([-._a-zA-Z][-._a-zA-Z0-9]*)\)")
_ENDLESS = re.compile(
    r"\bwhile\s+(?:true|:|\[\s*1\s*\])[ \t]*+(?:;|\n)\s*+do\b(?P<body>.*)\bdone\b", re.S
)
_LEAVES = re.compile(r"\b(?:break|exit|return|kill)\b")


class Program(Struct, frozen=True, gc=False):
    """`run_seconds` None = for ever. `loop`: the lines of one round of an endless loop; the first
    begins at `loop_from`, each takes `loop_seconds`.
    """

    run_seconds: float | None
    exit_code: int = 0
    lines: tuple[Line, ...] = ()
    loop: tuple[Line, ...] = ()
    loop_from: float = 0.0
    loop_seconds: float = 0.0

    def printed(self, seconds: float) -> list[Line]:
        """What it has printed after this time."""
        words_shown = [line for line in self.lines if line[0] <= seconds]
        if not self.loop or seconds < self.loop_from:
            return words_shown
        rounds = int((seconds - self.loop_from) / self.loop_seconds) + 1
        first = max(0, rounds - MOST_LINES // len(self.loop))
        begins = (self.loop_from + number * self.loop_seconds for number in range(first, rounds))
        return words_shown + [
            (begin + at, text)
            for begin in begins
            for at, text in self.loop
            if begin + at <= seconds
        ]


def program_of(
    command: Sequence[str], arguments: Sequence[str], environment: Mapping[str, str]
) -> Program | None:
    """What a container does with this `command` and these `args`, None when its words are not
    understood (or there are none).

    >>> ended = program_of(["sh", "-c", "echo hi; sleep 5; exit 3"], [], {})
    >>> ended == Program(5.0, 3, lines=((0.0, "hi"),))
    True
    >>> program_of([], ["sleep", "infinity"], {}).run_seconds is None
    True
    >>> program_of(["python", "train.py"], [], {}) is None
    True
    """
    words = (*command, *arguments)
    return _understood(words, tuple(environment.items())) if words else None


@lru_cache(maxsize=1024)
def _understood(words: tuple[str, ...], environment: tuple[tuple[str, str], ...]) -> Program | None:
    values = dict(environment)
    words_shown = [_EXPANSION.sub(lambda found: _expanded(found, values), word) for word in words]
    try:
        if _name(words_shown) not in _SHELLS:
            return _Script([(";", words_shown)], stops_at_error=False).program()
        if len(words_shown) == 3 and _SHELL_FLAGS.fullmatch(words_shown[1]):
            return _shell(words_shown[2], values, stops_at_error="e" in words_shown[1])
    except _UnsupportedCommandError:
        pass
    return None


def _expanded(found: re.Match[str], values: Mapping[str, str]) -> str:
    """`$(NAME)` as Kubernetes expands it: what is not known stays as it is."""
    return "$" if found[0] == "$$" else values.get(found[1], found[0])


class _UnsupportedCommandError(Exception):
    pass


def _shell(text: str, values: Mapping[str, str], *, stops_at_error: bool) -> Program:
    try:
        return _Script(_commands(text, values), stops_at_error).program()
    except _UnsupportedCommandError:
        endless = _ENDLESS.search(text)
        if endless is None or _LEAVES.search(text):
            raise
    try:
        head, body = _commands(text[: endless.start()], values), _commands(endless["body"], values)
        before, once = _Script(head, stops_at_error), _Script(body, stops_at_error)
    except _UnsupportedCommandError:
        return Program(None)  # whatever it does, it goes on doing it
    if before.is_over or once.is_over:
        return _Script([*head, *body], stops_at_error).program()
    return Program(
        None,
        0,
        tuple(before.lines),
        tuple(once.lines),
        before.seconds,
        max(INSTANT_SECONDS, once.seconds),
    )


_Commands = list[tuple[str, list[str]]]
"""Each with the sign before it: `;`, `&&` or `||`."""


def _commands(text: str, values: Mapping[str, str]) -> _Commands:
    found: _Commands = []
    sign, words, at, text = ";", list[str](), 0, text.strip()
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None:
            raise _UnsupportedCommandError
        at = token.end()
        if token["word"]:
            words.append(_word(token["word"], values))
            continue
        if words:
            found.append((sign, words))
        elif token["sign"] != "\n":
            raise _UnsupportedCommandError
        sign, words = (
            ";" if token["sign"] == "\n" and words else token["sign"] if words else sign,
            [],
        )
    if words:
        found.append((sign, words))
    elif sign in ("&&", "||"):
        raise _UnsupportedCommandError
    return found


def _word(text: str, values: Mapping[str, str]) -> str:
    """A word without its quotes, with the values of the names in it; a name without a value, or
    with one that a shell would split, is not understood.
    """
    parts = []
    for single, double, plain in _PIECE.findall(text):
        names = [braced or bare for braced, bare in _NAME.findall(double or plain)]
        if any(name not in values or (plain and not _is_one_word(values[name])) for name in names):
            raise _UnsupportedCommandError
        parts.append(
            single or _NAME.sub(lambda found: values[found[1] or found[2]], double or plain)
        )
    return "".join(parts)


def _is_one_word(value: str) -> bool:
    """Whether a shell takes it unchanged: blanks split words, patterns match file names."""
    return value != "" and not _SPLIT_OR_MATCHED.search(value)


class _Script:
    """Commands one after another, lived through.

    `is_over`: what comes after them is never reached.
    """

    def __init__(self, commands: _Commands, stops_at_error: bool) -> None:
        self.seconds = 0.0
        self._status = 0
        self.lines: list[Line] = []
        self.is_over = False
        self._begun = ""
        if any(_name(words) not in _RUN for _, words in commands):
            raise _UnsupportedCommandError
        for number, (sign, words) in enumerate(commands):
            if self.is_over or (sign != ";" and (sign == "&&") is not (self._status == 0)):
                continue
            _RUN[_name(words)](self, words[1:])
            is_asked = number + 1 < len(commands) and commands[number + 1][0] != ";"
            self.is_over |= stops_at_error and self._status != 0 and not is_asked
        if self._begun:
            self.lines.append((self.seconds, self._begun))

    def program(self) -> Program:
        seconds = None if math.isinf(self.seconds) else max(INSTANT_SECONDS, self.seconds)
        return Program(seconds, self._status, tuple(self.lines))

    def true(self, _: Sequence[str]) -> None:
        self._status = 0

    def false(self, _: Sequence[str]) -> None:
        self._status = 1

    def exit(self, words: Sequence[str]) -> None:
        if len(words) > 1 or not all(word.isascii() and word.isdecimal() for word in words):
            raise _UnsupportedCommandError
        self._status = int(words[0]) % 256 if words else self._status
        self.is_over = True

    def echo(self, words: Sequence[str]) -> None:
        is_open = bool(words) and words[0] == "-n"
        words_shown = words[1:] if is_open else words
        if any("\\" in word for word in words_shown) or (
            words_shown and re.fullmatch("-[neE]+", words_shown[0])
        ):
            raise _UnsupportedCommandError
        self._print(" ".join(words_shown), is_open=is_open)

    def date(self, words: Sequence[str]) -> None:
        if words or self._begun:
            raise _UnsupportedCommandError
        self.lines.append((self.seconds, None))
        self._status = 0

    def sleep(self, words: Sequence[str]) -> None:
        if not words:
            raise _UnsupportedCommandError
        self.seconds += sum(_slept(word) for word in words)
        self.is_over, self._status = math.isinf(self.seconds), 0

    def tail(self, words: Sequence[str]) -> None:
        if len(words) != 2 or words[0] not in ("-f", "-F"):
            raise _UnsupportedCommandError
        self.seconds, self.is_over = math.inf, True

    def _print(self, text: str, *, is_open: bool) -> None:
        self._begun += text
        self._status = 0
        if not is_open:
            self.lines += [(self.seconds, line) for line in self._begun.split("\n")]
            self._begun = ""


_RUN = {
    "true": _Script.true,
    ":": _Script.true,
    "false": _Script.false,
    "exit": _Script.exit,
    "echo": _Script.echo,
    "date": _Script.date,
    "sleep": _Script.sleep,
    "tail": _Script.tail,
}


def _name(words: Sequence[str]) -> str:
    """The name of the program; "" if its place is unusual: `/app/echo` is a user's server."""
    found = _PROGRAM.fullmatch(words[0])
    return found[1] if found else ""


def _slept(word: str) -> float:
    if word in ("infinity", "inf"):
        return math.inf
    found = _SLEEP.fullmatch(word)
    if found is None:
        raise _UnsupportedCommandError
    return float(found[1]) * _UNITS[found[2]]
