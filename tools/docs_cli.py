"""Writes docs/reference/cli.md, the reference of `fairlead` and `arena`, from the parsers.

`tests/docs` compares. Run as a program it writes the manual page (`docs_man`) as well.
"""

from __future__ import annotations

import argparse
import importlib
from pathlib import Path

from fairlead.cli.frame.arena_config import SETTINGS
from fairlead.cli.frame.flags import BooleanFlag
from fairlead.cli.frame.parser import Parser, make_parser
from fairlead.cli.frame.verbs import VERBS, Verb

FILE = Path(__file__).parent.parent / "docs" / "reference" / "cli.md"

HEAD = """# Command line

Written by `python tools/docs_cli.py` from the parsers; do not edit.

`fairlead` has every command. `arena` has the commands of [arena](https://github.com/kubeflow/arena)
and prints the same bytes on stdout; its messages on stderr are arena's log lines. Flags may be
before, between and after arguments, as `--flag value`, `--flag=value` or `--bool=false`; after `--`
everything is an argument.

Which cluster a command speaks to: `--snapshot FILE`, else `--kubeconfig` (`--config`), else \
`KUBECONFIG` (`a:b` lists merge), else
`~/.kube/config`, else the pod's service account, else a laptop that runs on this machine \
(`fairlead up`), else an embedded simulated
cluster, which is reported on stderr.

| exit status of `fairlead` | meaning |
|---|---|
| 0 | done; also when stdout was closed by its reader |
| 1 | a person can mend it: a flag, a file, a name |
| 2 | the outside failed: an API server, Prometheus, a disk |
| 3 | a bug; the message names a report file |
| 130 | Ctrl-C |

`arena` ends with 1 where `fairlead` ends with 2. A server that ends by SIGTERM or Ctrl-C ends \
with 0. SIGHUP ends `fairlead up`
(its terminal is closed) and no other server; the GPU exporter reads its counters file again.
"""


def cli_text() -> str:
    """The whole file."""
    parts = [HEAD, _settings(), _commands(), _globals()]
    return "\n".join(parts + [_section(verb) for verb in VERBS])


def _settings() -> str:
    rows = "\n".join(f"| `{key}` | {_escaped(what)} |" for key, what in SETTINGS.items())
    return (
        "arena's config file (`$ARENA_CONFIG`, else `~/.arena/config`) has lines `key=value`:\n\n"
        f"| key | |\n|---|---|\n{rows}\n\n"
        "Without `prometheus_address` Fairlead searches a Prometheus of the cluster by the labels "
        "of its Service, through the API server.\n"
    )


def _commands() -> str:
    rows = [
        (
            f"| [`{verb.spellings}`](#{_anchor(verb)}) | {'yes' if verb.is_arenas else ''} | "
            f"{verb.summary} |"
        )
        for verb in VERBS
    ]
    return "| command | also `arena` | what it does |\n|---|---|---|\n" + "\n".join(rows) + "\n"


def _globals() -> str:
    parser = _parser(next(verb for verb in VERBS if verb.is_arenas))
    group = next(group for group in parser._action_groups if group.title == "global flags")
    return "## Global flags\n\n" + _table(group._group_actions)


def _section(verb: Verb) -> str:
    parser = _parser(verb)
    own = [group for group in parser._action_groups if group.title != "global flags"]
    actions = [action for group in own for action in group._group_actions]
    text = f"## {verb.name}\n\n`{parser.usage}`\n\n{parser.description}\n"
    return text + ("\n" + _table(actions) if actions else "")


def _parser(verb: Verb) -> Parser:
    module = importlib.import_module(f"fairlead.cli.{verb.module}")
    return make_parser(module, "arena" if verb.is_arenas else "fairlead")


def _table(actions: list[argparse.Action]) -> str:
    rows = [
        f"| {_spelling(action)} | {_escaped(action.help or '')} |"
        for action in actions
        if action.help != argparse.SUPPRESS
    ]
    return "| flag | |\n|---|---|\n" + "\n".join(rows) + "\n"


def _spelling(action: argparse.Action) -> str:
    if not action.option_strings:
        return f"`{action.metavar or action.dest}`"
    value = "" if isinstance(action, BooleanFlag) or action.nargs == 0 else f" {action.metavar}"
    return _escaped(", ".join(f"`{spelling}{value}`" for spelling in action.option_strings))


def _escaped(text: str) -> str:
    return text.replace("|", "\\|")


def _anchor(verb: Verb) -> str:
    return verb.name.replace(" ", "-")


if __name__ == "__main__":
    import docs_man

    FILE.write_text(cli_text(), encoding="utf-8")
    docs_man.write()
