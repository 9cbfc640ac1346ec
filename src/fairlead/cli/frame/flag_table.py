"""Tables of flags: how each is spelt and told, and which field of a spec its value becomes."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from fairlead.cli.frame.arena_flags import many_flag, text_flag, truth_flag


class Flag(NamedTuple):
    """One row of a table. `add` puts it on a parser.

    `read` makes a value of the flag's name and its text (all its texts, of a repeatable one); it raises
    UserError for what it cannot read. `field` is what the value is called, "" where something else reads the
    flag.
    """

    spelling: str
    add: Callable[[argparse.ArgumentParser], None]
    field: str
    read: Callable[[str, Any], object]


def _as_it_is(name: str, value: object) -> object:
    return value


Read = Callable[[str, Any], object]


def text(spellings: str, field: str = "", read: Read = _as_it_is, **told: str) -> Flag:
    """`spellings`: `--env -e`; `told`: the arguments of `text_flag`."""
    return Flag(spellings.split()[0], lambda parser: text_flag(parser, *spellings.split(), **told), field, read)


def many(spellings: str, field: str = "", read: Read = _as_it_is, **told: str) -> Flag:
    return Flag(spellings.split()[0], lambda parser: many_flag(parser, *spellings.split(), **told), field, read)


def truth(spelling: str, field: str = "", *, help: str, default: bool = False, twin: str = "") -> Flag:
    return Flag(spelling, lambda parser: truth_flag(parser, spelling, help=help, default=default, twin=twin), field, _as_it_is)


def add_flags(parser: argparse.ArgumentParser, table: Iterable[Flag]) -> None:
    """The parser itself goes along: a command line without a command is answered with its help."""
    parser.set_defaults(parser=parser)
    for flag in table:
        flag.add(parser)


def read_flags(args: argparse.Namespace, table: Iterable[Flag]) -> dict[str, Any]:
    """The fields of a spec, by their names, in the order of the table.

    Raises UserError for the first bad value.
    """
    told = ((flag, flag.spelling.removeprefix("--")) for flag in table if flag.field)
    return {flag.field: flag.read(name, getattr(args, name.replace("-", "_"))) for flag, name in told}
