"""Flags as arena has them: texts, repeatable texts, truths, `-A`, and deprecated spellings of each.

arena kept the old spelling of many flags (`--workingDir`). Such a twin writes into the flag that replaced it,
is told on stderr once per use (`tell_deprecations`), and is in no help text.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

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
    """Its help ends with its default, unless that is nothing or none, or the help tells it already."""
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


def add_all_namespaces(parser: argparse.ArgumentParser) -> None:
    truth_flag(parser, "--all-namespaces", "-A", help="of all namespaces", twin="allNamespaces")


def tell_deprecations(args: argparse.Namespace, messages: Messages) -> None:
    for note in getattr(args, "deprecations", ()):
        messages.plain(note)
