"""Flags as arena has them: texts, repeatable texts, truths, `-A`, deprecated spellings, and tables of them.

A row of a table says of one flag how it is spelt and told, and which field of a spec its value becomes.

arena kept the old spelling of many flags (`--workingDir`). Such a twin writes into the flag that replaced it, is told on
stderr once per use (`tell_deprecations`), and is in no help text.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from fairlead.cli.frame.flags import BooleanFlag
from fairlead.cli.frame.messages import Messages


class Twin(argparse.Action):
    """The deprecated spelling of another flag."""

    def __init__(self, option_strings: Sequence[str], dest: str, replaced_by: argparse.Action) -> None:
        super().__init__(option_strings, dest, default=argparse.SUPPRESS, help=argparse.SUPPRESS)
        self._replaced_by = replaced_by

    def __call__(self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, option: str | None = None) -> None:
        new = next(each for each in self._replaced_by.option_strings if each.startswith("--"))
        _note(namespace, self.option_strings[0], new)
        self._replaced_by(parser, namespace, values, option)


class TruthTwin(BooleanFlag):
    """The deprecated spelling of a flag that is true when named: a flag without a value itself."""

    def __call__(self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, option: str | None = None) -> None:
        super().__call__(parser, namespace, values, option)
        _note(namespace, self.option_strings[0], f"--{self.dest.replace('_', '-')}")


def _note(namespace: argparse.Namespace, old: str, new: str) -> None:
    told = f"Flag {old} has been deprecated, please use {new} instead"
    namespace.deprecations = (*getattr(namespace, "deprecations", ()), told)


def text_flag(parser: argparse.ArgumentParser, *spellings: str, help: str, default: str = "", metavar: str = "", twin: str = "") -> None:
    """Its help ends with its default, if that says more than nothing or none and the help does not tell it already."""
    is_told = default in ("", "0") or "(default" in help
    action = parser.add_argument(
        *spellings, default=default, metavar=metavar or "TEXT", help=help if is_told else f"{help} (default {default})"
    )
    _add_twin(parser, action, twin)


def many_flag(parser: argparse.ArgumentParser, *spellings: str, help: str, metavar: str, twin: str = "") -> None:
    """Repeatable; the values collect."""
    action = parser.add_argument(*spellings, action="append", default=[], metavar=metavar, help=help)
    _add_twin(parser, action, twin)


def truth_flag(parser: argparse.ArgumentParser, *spellings: str, help: str, default: bool = False, twin: str = "") -> None:
    action = parser.add_argument(*spellings, action=BooleanFlag, default=default, help=help)
    if twin:
        parser.add_argument(f"--{twin}", action=TruthTwin, dest=action.dest, default=argparse.SUPPRESS, help=argparse.SUPPRESS)


def _add_twin(parser: argparse.ArgumentParser, action: argparse.Action, twin: str) -> None:
    if twin:
        parser.add_argument(f"--{twin}", action=Twin, dest=action.dest, replaced_by=action)


class Flag(NamedTuple):
    """One row of a table. `add` puts it on a parser.

    `read` makes a value of the flag's name and its text (all its texts, of a repeatable one); it raises UserError for
    what it cannot read. `field` is what the value is called, "" where something else reads the flag.
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


def truth(spelling: str, field: str = "", *, help: str, default: bool = False) -> Flag:
    return Flag(spelling, lambda parser: truth_flag(parser, spelling, help=help, default=default), field, _as_it_is)


def add_flags(parser: argparse.ArgumentParser, table: Iterable[Flag]) -> None:
    """The parser itself goes along: a command line without a command is answered with its help."""
    parser.set_defaults(parser=parser)
    for flag in table:
        flag.add(parser)


def read_flags(args: argparse.Namespace, table: Iterable[Flag]) -> dict[str, Any]:
    """The fields of a spec, by their names, in the order of the table. Raises UserError for the first bad value."""
    told = ((flag, flag.spelling.removeprefix("--")) for flag in table if flag.field)
    return {flag.field: flag.read(name, getattr(args, name.replace("-", "_"))) for flag, name in told}


def add_all_namespaces(parser: argparse.ArgumentParser) -> None:
    truth_flag(parser, "--all-namespaces", "-A", help="of all namespaces", twin="allNamespaces")


def tell_deprecations(args: argparse.Namespace, messages: Messages) -> None:
    for note in getattr(args, "deprecations", ()):
        messages.plain(note)
