"""The report that a user attaches when Fairlead failed: version, platform, command, traceback.

Users publish it, so it contains only what is known to be harmless. Of the command line: the verb,
the names of its flags, and values from a fixed choice. Of an exception: its class, and its text if
that comes from Python or the system. The text of other exceptions may quote a file, an object of
the cluster or a flag's value.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, cast

from fairlead import __version__
from fairlead.cli.frame.flags import BooleanFlag
from fairlead.cli.frame.parser import VerbModule, make_parser, split_verb
from fairlead.edge.files.own_files import make_private, state_home
from fairlead.wire.text.printable_address import without_userinfo

HIDDEN: Final = "***"
_WORDS_OF_PYTHON: Final = frozenset(
    {
        *(
            AttributeError,
            ImportError,
            IndexError,
            MemoryError,
            ModuleNotFoundError,
            NameError,
            OverflowError,
        ),
        *(RecursionError, RuntimeError, TypeError, UnboundLocalError, ZeroDivisionError),
    }
)
"""Classes whose text names code or numbers of items, never a value that was read."""
_LEFT_OUT: Final = "(its words are left out, because they may hold values)"


def write_bug_report(
    program: str, argv: Sequence[str], error: BaseException, env: Mapping[str, str]
) -> Path | None:
    """The path of the report, which only its owner may read; None if no directory is writable."""
    import tempfile

    text = bug_report(program, argv, error)
    for directory in (state_home(env) / "reports", Path(tempfile.gettempdir())):
        path = directory / f"bug-{time.strftime('%Y%m%dT%H%M%S')}-{os.getpid()}.txt"
        try:
            make_private(directory)
            # another file may have this path, and a link in /tmp may lead anywhere
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace") as file:
                file.write(text)
        except OSError:
            continue
        return path
    return None


def bug_report(program: str, argv: Sequence[str], error: BaseException) -> str:
    return (
        f"fairlead {__version__}, Python {sys.version.split()[0]}, "
        f"{' '.join(os.uname()[i] for i in (0, 2, 4))}\n"
        f"command: {' '.join([program, *shown_words(program, argv)])}\n\n{_traceback(error)}"
    )


def shown_words(program: str, argv: Sequence[str]) -> list[str]:
    """The command line for a report: verb, names of flags, values of fixed choices, else `***`.

    Nothing after `--` is shown: it is the user's own command.
    """
    try:
        verb, rest = split_verb(argv, program)
        if verb is None:
            return [HIDDEN] * len(argv)
        module = cast("VerbModule", importlib.import_module(f"fairlead.cli.{verb.module}"))
        return [
            *verb.words,
            *_shown_rest(rest, make_parser(module, program)._option_string_actions),
        ]
    except Exception:  # noqa: BLE001 - no such verb, or the bug is in what reads the command line: the report comes all the same
        return [HIDDEN] * len(argv)


def _shown_rest(words: Sequence[str], flags: Mapping[str, argparse.Action]) -> Iterator[str]:
    waiting: argparse.Action | None = None  # the flag whose value is the next word
    for place, word in enumerate(words):
        if waiting is not None:
            yield _shown_value(waiting, word)
            waiting = None
        elif word == "--":
            yield word
            yield from [HIDDEN] * (len(words) - place - 1)
            return
        else:
            name, equals, value = word.partition("=")
            flag = flags.get(name)
            if flag is not None:
                yield f"{name}={_shown_value(flag, value)}" if equals else name
                waiting = flag if _takes_value(flag) and not equals else None
            elif (
                not word.startswith("--") and (flag := flags.get(word[:2])) is not None
            ):  # `-eKEY=VALUE`
                yield f"{word[:2]}{HIDDEN}"
            else:
                yield HIDDEN


def _takes_value(flag: argparse.Action) -> bool:
    return flag.nargs != 0 and not isinstance(flag, BooleanFlag)


def _shown_value(flag: argparse.Action, value: str) -> str:
    if isinstance(flag, BooleanFlag):
        return value if value in ("true", "false") else HIDDEN
    return value if flag.choices is not None and value in flag.choices else HIDDEN


def _traceback(error: BaseException) -> str:
    """Python's traceback, the causes first, with harmless text only."""
    import traceback

    return "".join(
        (
            "Traceback (most recent call "
            f"last):\n{''.join(traceback.format_tb(each.__traceback__))}{_class_and_words(each)}\n"
        )
        for each in reversed(list(_chain(error, set())))
    )


def _chain(error: BaseException, seen: set[int]) -> Iterator[BaseException]:
    """The exception, the members of a group, and their causes; each once."""
    if id(error) in seen:
        return
    seen.add(id(error))
    yield error
    members: Sequence[BaseException] = getattr(error, "exceptions", ())
    for each in (error.__cause__, error.__context__, *members):
        if isinstance(each, BaseException):
            yield from _chain(each, seen)


def _class_and_words(error: BaseException) -> str:
    kind = type(error)
    name = (
        kind.__qualname__
        if kind.__module__ == "builtins"
        else f"{kind.__module__}.{kind.__qualname__}"
    )
    return f"{name}: {_harmless_words(error)}"


def _harmless_words(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"[Errno {error.errno}] {error.strerror}"
    return without_userinfo(str(error)) if type(error) in _WORDS_OF_PYTHON else _LEFT_OUT
