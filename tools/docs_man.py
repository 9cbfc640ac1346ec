"""Writes man/arena.1, the manual page of `arena`, from the parsers themselves.

`tools/docs_cli.py` runs it, `tests/docs` compares.
"""

from __future__ import annotations

import argparse
import importlib
from pathlib import Path

from fairlead.cli.frame.arena_config import SETTINGS
from fairlead.cli.frame.flags import BooleanFlag
from fairlead.cli.frame.parser import Parser, make_parser
from fairlead.cli.frame.verbs import Verb, verbs_of

FILE = Path(__file__).parent.parent / "man" / "arena.1"

DESCRIPTION = """arena submits training and serving jobs to a Kubernetes cluster and shows them, \
their logs, and how nodes and
GPUs are used. It speaks to the API server itself: no kubectl, no helm, no charts."""

CLUSTER = """The cluster of
.BR \\-\\-kubeconfig ,
else of the environment variable
.BR KUBECONFIG ,
else of
.IR ~/.kube/config ,
else that of the pod it runs in, else the laptop (fairlead up) that runs on this machine, else an \
embedded simulated cluster, which is
reported on standard error.
Flags may stand before, between and after arguments; after
.B \\-\\-
everything is an argument."""

FILES = {
    "~/.kube/config": "clusters, users and contexts, as kubectl has them",
    "~/.arena/config": "settings, one key=value a line",
    "~/.local/state/fairlead/reports": "what to attach to an issue when arena itself broke",
}
ENVIRONMENT = {
    "KUBECONFIG": "kubeconfig files, separated by colons",
    "ARENA_CONFIG": "the settings file, in place of ~/.arena/config",
    "ARENA_OUTPUT": "legacy: the tables of arena 0.4",
    "PROMETHEUS_ADDRESS, PROMETHEUS_TOKEN": "where GPU values come from, before the settings",
    "HTTPS_PROXY, HTTP_PROXY, NO_PROXY": "proxies on the way to the API server",
}
STATUS = {
    "0": "done; also when standard output was closed by its reader",
    "1": "it could not be done, and standard error has the reason",
    "3": "a bug; the message names a report file",
    "130": "Ctrl\\-C",
}
EXAMPLES = {
    (
        "arena submit mpijob \\-\\-name=bert \\-\\-gpus=1 \\-\\-workers=4 \\-\\-image=IMAGE "
        "'mpirun train'"
    ): "Submit a job of four.",
    "arena list \\-A \\-\\-status PENDING": "What waits, in all namespaces.",
    "arena get bert \\-\\-explain": "Why does it wait?",
    "arena logs \\-f bert": "Follow its log, also before it has begun.",
    "arena top node \\-d gpu\\-1": "Who sits on which GPU of a node.",
}


def man_text() -> str:
    """The whole page, in the man macros of roff."""
    verbs = verbs_of("arena")
    parts = [
        '.TH ARENA 1 "" "Fairlead" "Fairlead"',
        ".SH NAME\narena \\- submit and look at GPU work on Kubernetes",
        ".SH SYNOPSIS\n.B arena\n.I COMMAND\n.RI [ FLAGS ]",
        f".SH DESCRIPTION\n{DESCRIPTION}\n.PP\n{CLUSTER}",
        ".SH COMMANDS",
        *(_section(verb) for verb in verbs),
        ".SH GLOBAL FLAGS\n" + _flags(_globals(verbs[0])),
        _definitions("ENVIRONMENT", ENVIRONMENT),
        _definitions("FILES", FILES),
        _definitions("SETTINGS", {key: _plain(what) for key, what in SETTINGS.items()}),
        _definitions("EXIT STATUS", STATUS),
        _definitions("EXAMPLES", EXAMPLES),
        ".SH SEE ALSO\n.BR kubectl (1)",
    ]
    return "\n".join(parts) + "\n"


def _section(verb: Verb) -> str:
    parser = _parser(verb)
    actions = [
        action
        for group in parser._action_groups
        if group.title != "global flags"
        for action in group._group_actions
    ]
    description = _plain(str(parser.description)).replace("\n", "\n.br\n")
    return f".SS {_plain(str(parser.usage))}\n{description}\n{_flags(actions)}".rstrip("\n")


def _globals(verb: Verb) -> list[argparse.Action]:
    return next(
        group for group in _parser(verb)._action_groups if group.title == "global flags"
    )._group_actions


def _parser(verb: Verb) -> Parser:
    return make_parser(importlib.import_module(f"fairlead.cli.{verb.module}"), "arena")


def _flags(actions: list[argparse.Action]) -> str:
    shown = [action for action in actions if action.help != argparse.SUPPRESS]
    return "".join(
        f".TP\n.B {_spelling(action)}\n{_plain(action.help or '')}\n" for action in shown
    )


def _spelling(action: argparse.Action) -> str:
    if not action.option_strings:
        return _plain(str(action.metavar or action.dest))
    value = "" if isinstance(action, BooleanFlag) or action.nargs == 0 else f" {action.metavar}"
    return _plain(", ".join(f"{spelling}{value}" for spelling in action.option_strings))


def _definitions(title: str, entries: dict[str, str]) -> str:
    return f".SH {title}\n" + "\n".join(f".TP\n.B {key}\n{what}" for key, what in entries.items())


def _plain(text: str) -> str:
    """Text that roff prints as it is.

    Backslashes and dashes are escaped, no line begins like a request, and no line is blank.
    """
    escaped = text.replace("\\", "\\e").replace("-", "\\-").replace("`", "")
    lines = [line.strip() for line in escaped.splitlines()]
    return "\n".join(
        f"\\&{line}" if line.startswith((".", "'")) else line for line in lines if line
    )


def write() -> None:
    FILE.parent.mkdir(exist_ok=True)
    FILE.write_text(man_text(), encoding="utf-8")


if __name__ == "__main__":
    write()
