"""Parses a command line: finds the verb, then parses with that verb's flags only.

Global flags may stand before, between or after everything else (docs/spec/arena-cli.md#parsing), so
the verb's words are found and taken out first, and the rest goes through one parser that has both
the verb's and the global flags.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, NoReturn, Protocol

from fairlead.cli.frame.context import Context, GlobalOptions
from fairlead.cli.frame.flags import BooleanFlag, canonical_order
from fairlead.cli.frame.messages import LEVELS
from fairlead.cli.frame.object_names import check_namespace
from fairlead.cli.frame.verbs import (
    PLANNED,
    PLUGINS,
    Verb,
    find_verb,
    plugin_verb,
    suggest_verb,
    verbs_of,
)
from fairlead.errors import UserError

if TYPE_CHECKING:
    from _typeshed import SupportsWrite

_GLOBAL_WITH_VALUE: Final = (
    "--kubeconfig", "--config", "--context", "--namespace", "-n", "--arena-namespace",
    "--loglevel", "--snapshot", "--helm-binary",
)  # fmt: skip
_SOURCE_WITH_VALUE: Final = (
    "--console", "--console-ca-file", "--store", "--store-password-file", "--store-ca-file",
)  # fmt: skip
_AT: Final = "at"
_FLAG: Final = re.compile(r"-(?!\d)")
"""A flag, but not a moment such as `-2h`."""
_TWO_DASHES: Final = "--"
_KEPT: Final = "\0--"
"""Stands for `--` while argparse reads: no word of a command line can hold a NUL."""


class VerbModule(Protocol):
    """The interface of a verb's module. `HELP` is the paragraph below its usage line."""

    NAME: str
    HELP: str

    def add_arguments(self, parser: argparse.ArgumentParser) -> None: ...

    def run(self, args: argparse.Namespace, context: Context) -> int: ...


class Parser(argparse.ArgumentParser):
    """argparse that reports mistakes as `UserError`, prints help on stdout and has pflag's order.

    `has_go_flags`: long flags may have one dash, as in programs with Go's own flags.
    """

    has_go_flags = False

    def error(self, message: str) -> NoReturn:
        raise UserError(_sentence(message.replace(_KEPT, _TWO_DASHES)), self._help_hint())

    def print_help(self, file: SupportsWrite[str] | None = None) -> None:
        raise HelpRequested(self.format_help())

    def parse(self, argv: Sequence[str]) -> argparse.Namespace:
        try:
            words = canonical_order(argv, self._option_string_actions, is_go=self.has_go_flags)
        except UserError as error:
            raise UserError(error.what, error.hint or self._help_hint()) from error
        return self.parse_args(_kept(words), argparse.Namespace(words=tuple(words)))

    def _get_value(self, action: argparse.Action, arg_string: str) -> Any:
        return super()._get_value(action, _TWO_DASHES if arg_string == _KEPT else arg_string)

    def _help_hint(self) -> str:
        return f"`{self.prog} --help` shows what it takes"


def _kept(words: Sequence[str]) -> list[str]:
    """Words in canonical order, with every `--` that is a value or an argument in a spelling that
    argparse leaves alone.

    Python 3.11 takes the first `--` out of whatever belongs to a flag or an argument, later
    versions only the one that ends the flags.

    >>> [each.replace("\\0", "!") for each in _kept(["--mode=--", "--", "sh", "--"])]
    ['--mode=!--', '--', 'sh', '!--']
    """
    end = words.index(_TWO_DASHES) if _TWO_DASHES in words else len(words)
    flags = (
        f"{name}{equals}{_KEPT if value == _TWO_DASHES else value}"
        for name, equals, value in (word.partition("=") for word in words[:end])
    )
    return [
        *flags,
        *words[end : end + 1],
        *(_KEPT if word == _TWO_DASHES else word for word in words[end + 1 :]),
    ]


class HelpRequested(Exception):
    """`--help` was given: `text` goes to stdout and the program ends with 0."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text


class _HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Same bytes in every terminal width; boolean flags without a placeholder."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=34, width=120)

    def _format_action_invocation(self, action: argparse.Action) -> str:
        if isinstance(action, BooleanFlag):
            return ", ".join(action.option_strings)
        if action.option_strings and action.nargs != 0:
            return (
                f"{', '.join(action.option_strings)} "
                f"{self._format_args(action, str(action.metavar or action.dest.upper()))}"
            )
        return super()._format_action_invocation(action)


def split_moment(argv: Sequence[str], program: str) -> tuple[str, list[str]]:
    """The moment of `fairlead at MOMENT COMMAND …`, and the arguments without both; "" = it is
    another command, or there is nothing to print (`fairlead at --help`).

    A moment may begin with a dash (`-2h`). Raises UserError for a command without a moment.

    >>> split_moment(["at", "-2h", "top", "node", "-d"], "fairlead")
    ('-2h', ['top', 'node', '-d'])
    >>> split_moment(["at", "--store", "sqlite:///x", "yesterday 02:00", "list"], "fairlead")
    ('yesterday 02:00', ['--store', 'sqlite:///x', 'list'])
    >>> split_moment(["top", "node"], "fairlead")
    ('', ['top', 'node'])
    """
    whole, places = list(argv), _word_places(argv)
    if program != "fairlead" or not places or argv[places[0]] != _AT:
        return "", whole
    place = places[0] + 1
    while place < len(whole) and _FLAG.match(whole[place]):
        place += 2 if whole[place] in (*_GLOBAL_WITH_VALUE, *_SOURCE_WITH_VALUE) else 1
    rest = [*whole[: places[0]], *whole[places[0] + 1 : place], *whole[place + 1 :]]
    if place >= len(whole) or not _word_places(rest, _SOURCE_WITH_VALUE):
        asks_help = not {"-h", "--help"}.isdisjoint(whole)
        return "", [_AT, "--help"] if asks_help else [_AT]
    if any(verb.words[0] == whole[place] for verb in verbs_of(program)):
        raise UserError(
            f"`{_AT}` needs a moment before `{whole[place]}`",
            "for example `fairlead at -2h top node`",
        )
    return whole[place], rest


def split_verb(argv: Sequence[str], program: str) -> tuple[Verb | None, list[str]]:
    """The verb and the arguments without its words; None when only help is wanted.

    Raises UserError for a verb that does not exist or is not built yet.
    """
    if (plugin := plugin_verb(program)) is not None:
        return plugin, list(argv)
    places = _word_places(argv)
    words = [argv[place] for place in places]
    if words[:1] == ["help"] and (verb := find_verb(words[1:], program)) is not None:
        return verb, ["--help"]
    verb = find_verb(words, program)
    while (
        verb is None and len(places) > 1 and places[0] > 0 and argv[places[0] - 1].startswith("-")
    ):
        # The word may be the value of a flag of the verb's own (`-m e top node`), which only the
        # verb's parser knows.
        places, words = places[1:], words[1:]
        verb = find_verb(words, program)
    if verb is not None:
        taken = set(places[: len(verb.words)])
        return verb, [word for place, word in enumerate(argv) if place not in taken]
    if not words or words[0] == "help":
        return None, list(argv)
    if (two := " ".join(words[:2])) in PLANNED:
        raise UserError(f"not implemented: {two}", PLANNED[two])
    if words[0] in PLANNED:
        raise UserError(f"not implemented: {words[0]}", PLANNED[words[0]])
    is_group = any(each.words[0] == words[0] and len(each.words) > 1 for each in verbs_of(program))
    if is_group and (len(words) == 1 or "--help" in argv or "-h" in argv):
        return None, list(argv)
    unknown = " ".join(words[:2]) if is_group else words[0]
    raise UserError(f'unknown command "{unknown}" for "{program}"', suggest_verb(words, program))


def _word_places(argv: Sequence[str], more: Sequence[str] = ()) -> list[int]:
    """Where the words stand that are neither flags nor values of global flags. `more`: further
    flags with a value.
    """
    places: list[int] = []
    is_value = False
    for place, word in enumerate(argv):
        if is_value:
            is_value = False
        elif word == _TWO_DASHES:
            break
        elif word.startswith("-"):
            is_value = word in _GLOBAL_WITH_VALUE or word in more
        else:
            places.append(place)
    return places


def make_parser(
    module: VerbModule,
    program: str,
    more: Callable[[argparse.ArgumentParser], None] | None = None,
) -> Parser:
    """The parser of one verb: its own flags, then the global ones it does not define itself.

    `more`: adds flags of `fairlead at`.
    """
    prog = program if program in PLUGINS else f"{program} {module.NAME}"
    parser = Parser(
        prog=prog,
        description=module.HELP,
        formatter_class=_HelpFormatter,
        allow_abbrev=False,
        add_help=False,
    )
    parser.has_go_flags = getattr(module, "HAS_GO_FLAGS", False)
    module.add_arguments(parser)
    if more is not None:
        more(parser)
    parser.usage = " ".join([parser.prog, *_placeholders(parser), "[FLAGS]"])
    _add_globals(parser, is_of_cluster=getattr(module, "READS_A_CLUSTER", True))
    return parser


def _placeholders(parser: argparse.ArgumentParser) -> list[str]:
    """Placeholders of positional arguments, such as `[NODE ...]`, for the usage line."""
    formatter = parser._get_formatter()
    return [
        formatter._format_args(action, str(action.metavar or action.dest))
        for action in parser._get_positional_actions()
    ]


def _add_globals(parser: Parser, *, is_of_cluster: bool) -> None:
    """The global flags.

    A verb that brings its own cluster accepts those about clusters too, but does not show them.
    """
    group = parser.add_argument_group("global flags")
    own = set(parser._option_string_actions)

    def add(*spellings: str, **settings: Any) -> None:
        free = [spelling for spelling in spellings if spelling not in own]
        if free:
            settings["help"] = (
                settings["help"]
                if is_of_cluster or spellings[0] == "--loglevel"
                else argparse.SUPPRESS
            )
            settings.setdefault("dest", "global_" + spellings[0].lstrip("-").replace("-", "_"))
            group.add_argument(*free, **settings)

    add(
        "--kubeconfig",
        "--config",
        metavar="FILE",
        default="",
        help="kubeconfig of the cluster (else KUBECONFIG, ~/.kube/config, …)",
    )
    add("--context", metavar="NAME", default="", help="context of the kubeconfig")
    add(
        "--namespace",
        "-n",
        metavar="NS",
        default="",
        help="namespace (else the context's, else default)",
    )
    add(
        "--snapshot",
        metavar="FILE",
        default="",
        help="read a file that `fairlead snapshot save` wrote instead of a cluster",
    )
    add("--loglevel", metavar="LEVEL", default="info", help="debug, info, warn or error")
    add(
        "--arena-namespace",
        metavar="NS",
        default="arena-system",
        help="namespace of arena's own objects",
    )
    add("--pprof", action=BooleanFlag, help=argparse.SUPPRESS)
    add("--trace", action=BooleanFlag, help=argparse.SUPPRESS)
    add("--helm-binary", default="", help=argparse.SUPPRESS)
    group.add_argument("--help", "-h", action="help", help="show this help")


def global_options(args: argparse.Namespace) -> GlobalOptions:
    """The checked global flags.

    A verb with a flag of the same spelling keeps that flag for itself.
    """
    defaults = GlobalOptions._field_defaults
    options = GlobalOptions(
        *(str(getattr(args, f"global_{name}", defaults[name])) for name in GlobalOptions._fields)
    )
    if options.loglevel not in LEVELS:
        raise UserError(
            (
                "failed to create arena client: unknown loglevel,only "
                "support:[info,debug,error,warn]"
            ),
            "`--loglevel info` is the default",
        )
    for name in filter(None, (options.namespace, options.arena_namespace)):
        check_namespace(name)
    return options


def overview(program: str, words: Sequence[str] = ()) -> str:
    """The text of `fairlead --help`, or of one group (`fairlead snapshot`)."""
    known, group = verbs_of(program), tuple(words[:1])
    verbs = [verb for verb in known if verb.words[:1] == group] or known
    width = max(len(verb.spellings) for verb in verbs)
    lines = "".join(f"  {verb.spellings:<{width}}  {verb.summary}\n" for verb in verbs)
    purpose = {
        "arena": (
            "Submit and inspect GPU work on Kubernetes (the arena-compatible verbs of Fairlead)."
        )
    }.get(
        program,
        "A self-hosted GPU platform for Kubernetes: monitor, share, allocate and run GPU work.",
    )
    return (
        f"{purpose}\n\nusage: {program} COMMAND [FLAGS]\n\ncommands:\n{lines}\n`{program} "
        "COMMAND --help` shows the flags of a command.\n"
    )


_MISSING: Final = "the following arguments are required: "
_NAMES: Final = {"JOB": "job", "SERVING_JOB": "serving job", "CRON": "cron"}
"""Arguments of which arena has a sentence of its own for the case that they are missing."""


def _sentence(message: str) -> str:
    """argparse's complaint with the values in backticks.

    >>> _sentence("unrecognized arguments: -- x")
    'it takes no argument `x`'
    >>> _sentence("argument --port: invalid int value: 'x'")
    'argument --port: invalid int value: `x`'
    """
    if (name := _NAMES.get(message.removeprefix(_MISSING))) is not None:
        return f"not set {name} name,please set it"
    extra = message.removeprefix("unrecognized arguments: ")
    if extra != message:
        return f"it takes no argument `{extra.removeprefix('-- ')}`"
    return re.sub(r"'([^']*)'", r"`\1`", message)
