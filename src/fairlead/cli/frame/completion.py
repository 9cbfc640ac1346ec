"""`arena completion bash|zsh|fish` prints a completion script.

It completes commands, flags, and the names of jobs and nodes.

Commands and flags are written into the script from the parsers, so pressing Tab starts a program
only where the name of a job or a node is wanted; those are asked of the cluster that the line
itself names (-n, --kubeconfig, --context, --snapshot).
"""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from fairlead.cli.frame.context import Context
from fairlead.errors import UserError

if TYPE_CHECKING:
    from fairlead.cli.frame.parser import VerbModule

NAME = "completion"
READS_A_CLUSTER = False
HELP = """Print a script that completes commands, flags, jobs and nodes. SHELL is bash, zsh or fish.

    source <(arena completion bash)          in ~/.bashrc
    source <(arena completion zsh)           in ~/.zshrc
    arena completion fish | source           in ~/.config/fish/config.fish"""

_NAMES: Final = {"JOB": "jobs", "NODE": "nodes", "SERVING_JOB": "servings"}
_PASSED_ON: Final = ("-n", "--namespace", "--kubeconfig", "--config", "--context", "--snapshot")
_FIRST_COLUMN: Final = "NR > 1 { print $1 }"
"""awk: the first column of a table, without its head."""


class _Words(NamedTuple):
    """What may follow a command: its flags, and `jobs`, `nodes`, `servings` or "" for its
    arguments.
    """

    summary: str
    flags: tuple[str, ...]
    names: str


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", metavar="SHELL", help="bash, zsh or fish")


def run(args: argparse.Namespace, context: Context) -> int:
    render = _SHELLS.get(args.shell)
    if render is None:
        raise UserError(
            f"Invalid shell '{args.shell}'. The supported shells are bash, zsh and fish.",
            "`arena completion bash` for one",
        )
    context.stdout.write(render(context.program, _commands(context.program)))
    return 0


def _commands(program: str) -> dict[str, _Words]:
    """Every command, `top node` as two words, with what its parser takes."""
    from fairlead.cli.frame.parser import make_parser
    from fairlead.cli.frame.verbs import verbs_of

    found = {}
    for verb in verbs_of(program):
        module = cast("VerbModule", importlib.import_module(f"fairlead.cli.{verb.module}"))
        parser = make_parser(module, program)
        shown = [action for action in parser._actions if action.help != argparse.SUPPRESS]
        flags = sorted(
            {
                spelling
                for action in shown
                for spelling in action.option_strings
                if spelling.startswith("--")
            }
        )
        names = next(
            (
                _NAMES[str(action.metavar)]
                for action in shown
                if str(action.metavar) in _NAMES and not action.option_strings
            ),
            "",
        )
        found[verb.name] = _Words(verb.summary, tuple(flags), names)
    return found


def _first_words(commands: Mapping[str, _Words]) -> dict[str, list[str]]:
    """First words of commands, each with the second words it may have."""
    found: dict[str, list[str]] = {}
    for name in commands:
        first, _, second = name.partition(" ")
        found.setdefault(first, []).extend([second] if second else [])
    return found


def _bash(program: str, commands: Mapping[str, _Words]) -> str:
    firsts = _first_words(commands)
    groups = {first: seconds for first, seconds in firsts.items() if seconds}
    function = f"_{program}_complete"
    cases = [f'        "") words="{" ".join(firsts)}" ;;']
    cases += [
        f'        "{first}") words="{" ".join(seconds)}" ;;' for first, seconds in groups.items()
    ]
    for name, command in commands.items():
        names = (
            f' words="$({program}_names {command.names} "${{options[@]}}")"'
            if command.names
            else ""
        )
        cases.append(
            f'        "{name}") flags="{" ".join(command.flags)}"\n'
            f'            [[ "$current" == -* ]] ||{names or " words="} ;;'
        )
    with_values = "|".join(f"{flag}=*" for flag in _PASSED_ON if flag.startswith("--"))
    return f"""# Completion of {program} for bash; load it with: source <({program} completion bash)
{program}_names() {{
    local what="$1"
    shift
    case "$what" in
        jobs) {program} list "$@" 2>/dev/null | awk '{_FIRST_COLUMN}' ;;
        servings) {program} serve list "$@" 2>/dev/null | awk '{_FIRST_COLUMN}' ;;
        nodes) {program} top node "$@" 2>/dev/null | awk '/^---/ {{ exit }} {_FIRST_COLUMN}' ;;
    esac
}}

{function}() {{
    local current="${{COMP_WORDS[COMP_CWORD]}}" verb="" words="" flags="" word place=1
    local options=()
    while [ "$place" -lt "$COMP_CWORD" ]; do
        word="${{COMP_WORDS[place]}}"
        case "$word" in
            {"|".join(_PASSED_ON)})
                [ "${{COMP_WORDS[place + 1]}}" = "=" ] && place=$((place + 1))
                place=$((place + 1))
                options+=("$word" "${{COMP_WORDS[place]}}")
                ;;
            {with_values}) options+=("$word") ;;
            -*) ;;
            *)
                case "$verb" in
                    ""{"".join(f"|{first}" for first in groups)}) verb="${{verb:+$verb }}$word" ;;
                esac
                ;;
        esac
        place=$((place + 1))
    done
    case "$verb" in
{chr(10).join(cases)}
    esac
    COMPREPLY=($(compgen -W "$words $flags" -- "$current"))
}}

complete -F {function} {program}
"""


def _zsh(program: str, commands: Mapping[str, _Words]) -> str:
    """zsh runs bash's script through its own emulation."""
    return (
        f"#compdef {program}\nautoload -U +X compinit && compinit\nautoload -U +X bashcompinit && "
        "bashcompinit\n\n"
    ) + _bash(program, commands)


def _fish(program: str, commands: Mapping[str, _Words]) -> str:
    options = f"(__{program}_options) 2>/dev/null"
    lines = [
        f"# Completion of {program} for fish; load it with: {program} completion fish | source",
        f"complete -c {program} -f",
        *_fish_options(program),
        f"function __{program}_names",
        "    switch $argv[1]",
        "        case jobs",
        f"            {program} list {options} | awk '{_FIRST_COLUMN}'",
        "        case servings",
        f"            {program} serve list {options} | awk '{_FIRST_COLUMN}'",
        "        case nodes",
        f"            {program} top node {options} | awk '/^---/ {{ exit }} {_FIRST_COLUMN}'",
        "    end",
        "end",
    ]
    for first, seconds in _first_words(commands).items():
        summary = commands[first].summary if first in commands else f"{first} {'|'.join(seconds)}"
        lines.append(
            f"complete -c {program} -n __fish_use_subcommand -a {first} -d {_quoted(summary)}"
        )
    for name, command in commands.items():
        first, _, second = name.partition(" ")
        seen = f"__fish_seen_subcommand_from {first}"
        if second:
            lines.append(
                f"complete -c {program} -n "
                f"'{seen}; and not __fish_seen_subcommand_from {second}' -a {second}"
            )
            seen += f"; and __fish_seen_subcommand_from {second}"
        lines += [f"complete -c {program} -n '{seen}' -l {flag[2:]}" for flag in command.flags]
        if command.names:
            lines.append(
                f"complete -c {program} -n '{seen}' -a '(__{program}_names {command.names})'"
            )
    return "\n".join(lines) + "\n"


def _fish_options(program: str) -> list[str]:
    """A function that prints the words of the line that select the cluster."""
    with_value = " ".join(_PASSED_ON)
    joined = " ".join(f"'{flag}=*'" for flag in _PASSED_ON if flag.startswith("--"))
    return [
        f"function __{program}_options",
        "    set -l words (commandline -opc)",
        "    set -l place 2",
        "    while test $place -le (count $words)",
        "        switch $words[$place]",
        f"            case {with_value}",
        "                set -l next (math $place + 1)",
        (
            "                test $next -le (count $words); and printf '%s\\n' $words[$place] "
            "$words[$next]"
        ),
        "                set place $next",
        f"            case {joined}",
        "                echo $words[$place]",
        "        end",
        "        set place (math $place + 1)",
        "    end",
        "end",
    ]


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


_SHELLS: Final[dict[str, Callable[[str, Mapping[str, _Words]], str]]] = {
    "bash": _bash,
    "zsh": _zsh,
    "fish": _fish,
}
