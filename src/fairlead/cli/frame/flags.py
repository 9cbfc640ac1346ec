"""The flags of arena's commands: their kinds, tables of them, and how a command line is split.

A command line is split by Go's pflag rules, as users of `arena` and `kubectl` know them. argparse
is stricter (`--gpus -1`, `--details=false`, flags between positionals), so the arguments are
brought into one canonical order first (`canonical_order`): `--flag=value …`, then `--`, then
positionals.

Flags are texts, repeatable texts, truths and `-A`. arena kept the old spelling of many flags
(`--workingDir`). Such a twin writes into the flag that replaced it, is reported on stderr once per
use (`report_deprecations`), and is in no help text.

A table of flags (`Flag`) has how each is spelt, and which field of a spec its value becomes.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from fairlead.cli.frame.messages import Messages
from fairlead.errors import UserError

_LONGEST_WAIT: Final = 30 * 86400
_TRUE: Final = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_FALSE: Final = frozenset({"0", "f", "F", "FALSE", "false", "False"})


class BooleanFlag(argparse.Action):
    """A flag that is true when named, and false as `--flag=false`; the last mention counts."""

    def __init__(
        self,
        option_strings: Sequence[str],
        dest: str,
        default: bool = False,
        help: str | None = None,
    ) -> None:
        super().__init__(option_strings, dest, nargs=1, default=default, help=help)

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option: str | None = None,
    ) -> None:
        setattr(namespace, self.dest, values[0] == "true")


def canonical_order(
    argv: Sequence[str], actions: Mapping[str, argparse.Action], *, is_go: bool = False
) -> list[str]:
    """The same arguments as `--flag=value` words, then `--` and the positionals if any.

    `actions` maps every spelling to its flag. `is_go`: one dash is as good as two, and letters are
    not put together, as Go's own package has it (`-collectors x`, `-c=x`, `--c x`).

    Raises UserError for flags that do not exist, lack their value, or carry a boolean that is none.
    """
    words: list[str] = []
    positionals: list[str] = []
    rest = list(argv)
    while rest:
        word = rest.pop(0)
        if word == "--":
            positionals += rest
            break
        if is_go and word.startswith("-") and word != "-":
            word = _as_pflag(word, actions)
        if word.startswith("--"):
            words.append(_long_flag(word, rest, actions))
        elif word.startswith("-") and word != "-":
            words += _short_flags(word, rest, actions)
        else:
            positionals.append(word)
    return [*words, "--", *positionals] if positionals else words


def _as_pflag(word: str, actions: Mapping[str, argparse.Action]) -> str:
    """A word of Go's own flags as pflag spells it; one that is no
    flag stays, to be complained of.
    """
    name, equals, value = word.partition("=")
    bare = name.lstrip("-")
    for spelling in (f"--{bare}", f"-{bare}"):
        if spelling in actions:
            return f"{_long_spelling(spelling, actions[spelling])}{equals}{value}"
    return f"--{bare}{equals}{value}"


def _long_flag(word: str, rest: list[str], actions: Mapping[str, argparse.Action]) -> str:
    name, has_value, value = word.partition("=")
    action = actions.get(name)
    if action is None:
        raise UserError(f"unknown flag: {name}", _nearest(name, actions))
    if _is_help(action):
        return name
    if isinstance(action, BooleanFlag):
        return f"{name}={_boolean(name, value)}" if has_value else f"{name}=true"
    return f"{name}={value if has_value else _next_value(name, rest)}"


def _short_flags(word: str, rest: list[str], actions: Mapping[str, argparse.Action]) -> list[str]:
    """`-dm e`, `-me`, `-m=e` and `-d`: letters up to the first that takes a value.

    `-rbmn` where a flag is spelt so.
    """
    whole, equals, text = word.partition("=")
    if len(whole) > 2 and whole in actions:
        return [_long_flag(f"{_long_spelling(whole, actions[whole])}{equals}{text}", rest, actions)]
    words: list[str] = []
    letters = word[1:]
    while letters:
        name, letters = f"-{letters[0]}", letters[1:]
        action = actions.get(name)
        if action is None:
            raise UserError(f"unknown shorthand flag: '{name[1]}' in {word}")
        long = _long_spelling(name, action)
        if _is_help(action):
            words.append(long)
        elif isinstance(action, BooleanFlag):
            has_value = letters.startswith("=")
            words.append(f"{long}={_boolean(name, letters[1:]) if has_value else 'true'}")
            letters = "" if has_value else letters
        else:
            # pflag: `-m=` is `-m` and the value `=`
            has_equals = letters.startswith("=") and letters != "="
            value = letters[has_equals:] if letters else _next_value(name, rest)
            words.append(f"{long}={value}")
            letters = ""
    return words


def _long_spelling(name: str, action: argparse.Action) -> str:
    return next((each for each in action.option_strings if each.startswith("--")), name)


def _next_value(name: str, rest: list[str]) -> str:
    if not rest:
        raise UserError(f"flag needs an argument: {name}")
    return rest.pop(0)


def _boolean(name: str, text: str) -> str:
    truth = is_true(text)
    if truth is None:
        raise UserError(
            f'invalid argument "{text}" for "{name}" flag: it is true or false',
            f"write `{name}` or `{name}=false`",
        )
    return "true" if truth else "false"


def is_true(text: str) -> bool | None:
    """What Go's strconv.ParseBool takes; None for anything else.

    >>> is_true("T"), is_true("0"), is_true("yes")
    (True, False, None)
    """
    return True if text in _TRUE else False if text in _FALSE else None


def _is_help(action: argparse.Action) -> bool:
    return "--help" in action.option_strings


_REPLICAS: Final = ("--workers", "--worker-replicas", "--task-replicas", "--replicas")
_GPUS: Final = ("--gpus", "--worker-gpu", "--task-gpus")
_IMAGES: Final = ("--image", "--task-images")
_TWINS: Final = {name: names for names in (_REPLICAS, _GPUS, _IMAGES) for name in names}
"""What one kind of job calls so, another calls otherwise:
spelling alone would suggest something else.
"""


def _nearest(name: str, actions: Mapping[str, argparse.Action]) -> str:
    """A hint naming the flag that was probably meant; only
    failing command lines pay for difflib.
    """
    import difflib

    for twin in _TWINS.get(name, ()):
        if twin in actions:
            return f"did you mean `{twin}`?"
    near = difflib.get_close_matches(name, [each for each in actions if each.startswith("--")], n=1)
    return f"did you mean `{near[0]}`?" if near else ""


class DeprecatedFlag(argparse.Action):
    """The deprecated spelling of another flag."""

    def __init__(
        self, option_strings: Sequence[str], dest: str, replaced_by: argparse.Action
    ) -> None:
        super().__init__(option_strings, dest, default=argparse.SUPPRESS, help=argparse.SUPPRESS)
        self._replaced_by = replaced_by

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option: str | None = None,
    ) -> None:
        new = next(each for each in self._replaced_by.option_strings if each.startswith("--"))
        _note(namespace, self.option_strings[0], new)
        self._replaced_by(parser, namespace, values, option)


class DeprecatedBooleanFlag(BooleanFlag):
    """The deprecated spelling of a flag that is true when named: a flag without a value itself."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option: str | None = None,
    ) -> None:
        super().__call__(parser, namespace, values, option)
        _note(namespace, self.option_strings[0], f"--{self.dest.replace('_', '-')}")


def _note(namespace: argparse.Namespace, old: str, new: str) -> None:
    note = f"Flag {old} has been deprecated, please use {new} instead"
    namespace.deprecations = (*getattr(namespace, "deprecations", ()), note)


def text_flag(
    parser: argparse.ArgumentParser,
    *spellings: str,
    help: str,
    default: str = "",
    metavar: str = "",
    twin: str = "",
) -> None:
    """Adds the default to the help, unless it is empty or 0, or the help contains it already."""
    has_default = default in ("", "0") or "(default" in help
    action = parser.add_argument(
        *spellings,
        default=default,
        metavar=metavar or "TEXT",
        help=help if has_default else f"{help} (default {default})",
    )
    _add_twin(parser, action, twin)


def many_flag(
    parser: argparse.ArgumentParser, *spellings: str, help: str, metavar: str, twin: str = ""
) -> None:
    """Repeatable; the values collect."""
    action = parser.add_argument(
        *spellings, action="append", default=[], metavar=metavar, help=help
    )
    _add_twin(parser, action, twin)


def truth_flag(
    parser: argparse.ArgumentParser,
    *spellings: str,
    help: str,
    default: bool = False,
    twin: str = "",
) -> None:
    action = parser.add_argument(*spellings, action=BooleanFlag, default=default, help=help)
    if twin:
        parser.add_argument(
            f"--{twin}",
            action=DeprecatedBooleanFlag,
            dest=action.dest,
            default=argparse.SUPPRESS,
            help=argparse.SUPPRESS,
        )


def _add_twin(parser: argparse.ArgumentParser, action: argparse.Action, twin: str) -> None:
    if twin:
        parser.add_argument(
            f"--{twin}", action=DeprecatedFlag, dest=action.dest, replaced_by=action
        )


def add_all_namespaces(parser: argparse.ArgumentParser) -> None:
    truth_flag(parser, "--all-namespaces", "-A", help="of all namespaces", twin="allNamespaces")


def report_deprecations(args: argparse.Namespace, messages: Messages) -> None:
    for note in getattr(args, "deprecations", ()):
        messages.plain(note)


Read = Callable[[str, Any], object]


class Flag(NamedTuple):
    """One row of a table. `add` puts it on a parser.

    `read` makes a value of the flag's name and its text (all its texts, of a repeatable one); it
    raises UserError for what it cannot read. `field` is what the value is called, "" where
    something else reads the flag.
    """

    spelling: str
    add: Callable[[argparse.ArgumentParser], None]
    field: str
    read: Read


def _as_it_is(name: str, value: object) -> object:
    return value


def text(spellings: str, field: str = "", read: Read = _as_it_is, **settings: str) -> Flag:
    """`spellings`: `--env -e`; `settings`: those of `text_flag`."""
    return Flag(
        spellings.split()[0],
        lambda parser: text_flag(parser, *spellings.split(), **settings),
        field,
        read,
    )


def many(spellings: str, field: str = "", read: Read = _as_it_is, **settings: str) -> Flag:
    return Flag(
        spellings.split()[0],
        lambda parser: many_flag(parser, *spellings.split(), **settings),
        field,
        read,
    )


def truth(
    spelling: str, field: str = "", *, help: str, default: bool = False, twin: str = ""
) -> Flag:
    return Flag(
        spelling,
        lambda parser: truth_flag(parser, spelling, help=help, default=default, twin=twin),
        field,
        _as_it_is,
    )


def add_flags(parser: argparse.ArgumentParser, table: Iterable[Flag]) -> None:
    """The parser itself goes along: a command line without a command is answered with its help."""
    parser.set_defaults(parser=parser)
    for flag in table:
        flag.add(parser)


def read_flags(args: argparse.Namespace, table: Iterable[Flag]) -> dict[str, Any]:
    """The fields of a spec, by their names, in the order of the table.

    Raises UserError for the first bad value.
    """
    named = ((flag, flag.spelling.removeprefix("--")) for flag in table if flag.field)
    return {
        flag.field: flag.read(name, getattr(args, name.replace("-", "_"))) for flag, name in named
    }


def chart_folder(text: str) -> str:
    """The value of `--charts`. Raises ArgumentTypeError for what is no folder of a registry.

    >>> chart_folder("oci://registry.example.com:5000/charts")
    'oci://registry.example.com:5000/charts'
    """
    from msgspec import ValidationError, convert

    from fairlead.model.installation import ChartFolder

    try:
        found: str = convert(text, ChartFolder)
    except ValidationError as error:
        what = f"`{text}` is no folder of charts in a registry, without a slash at its end"
        raise argparse.ArgumentTypeError(
            f"{what}; e.g. oci://registry.example.com/charts"
        ) from error
    return found


def wait_seconds(text: str) -> float:
    """The value of `--wait`. Raises ArgumentTypeError for what is no length of time.

    >>> wait_seconds("0.5")
    0.5
    """
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds <= _LONGEST_WAIT:
        raise argparse.ArgumentTypeError(
            f"`{text}` is no number of seconds from 0 to {_LONGEST_WAIT}; e.g. 300"
        )
    return seconds
