"""`fairlead env`: the line by which a shell makes the running laptop its cluster."""

from __future__ import annotations

import argparse
import shlex
from typing import Final

from fairlead.cli.frame.context import Context
from fairlead.cli.servers.flags import path_name
from fairlead.errors import UserError

NAME = "env"
READS_A_CLUSTER = False
HELP = """Print what makes the laptop that runs on this machine (`fairlead up`) the cluster of a
shell, for kubectl and arena alike:

    eval "$(fairlead env)"                  sh, bash, zsh
    fairlead env --shell fish | source      fish

It sets KUBECONFIG and nothing else. Where no laptop runs it prints nothing and ends with 1."""

SHELLS: Final = ("posix", "fish")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--shell",
        metavar="NAME",
        choices=SHELLS,
        default="posix",
        help="posix (sh, bash, zsh) or fish (default posix)",
    )
    parser.add_argument(
        "--state-dir",
        metavar="DIR",
        type=path_name,
        help="of the laptop, where several run and it was started with one",
    )


def run(args: argparse.Namespace, context: Context) -> int:
    state_dir = args.state_dir or ""
    laptop = context.machine.laptop(state_dir)
    if laptop is None:
        home = context.machine.laptop_home(state_dir)
        raise UserError(
            f"no laptop keeps its files in `{home}`",
            "start one with `fairlead up`, or name its directory with --state-dir",
        )
    context.stdout.write(line(laptop.kubeconfig, args.shell))
    return 0


def line(kubeconfig: str, shell: str) -> str:
    r"""
    >>> print(line("/home/ann/o'neil", "fish"), end="")
    set -gx KUBECONFIG '/home/ann/o\'neil'
    >>> print(line("/home/ann b/k", "posix"), end="")
    export KUBECONFIG='/home/ann b/k'
    """
    if shell == "fish":
        escaped = kubeconfig.replace("\\", "\\\\").replace("'", "\\'")
        return f"set -gx KUBECONFIG '{escaped}'\n"
    return f"export KUBECONFIG={shlex.quote(kubeconfig)}\n"
