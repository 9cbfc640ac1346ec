"""`fairlead up`: the laptop. A simulated GPU cluster and everything of Fairlead around it, in one process."""

from __future__ import annotations

import argparse

from fairlead.cli.frame.context import Context
from fairlead.cli.frame.flags import BooleanFlag
from fairlead.cli.servers.flags import add_scenario, path_name, port

NAME = "up"
READS_A_CLUSTER = False
HELP = """Start the laptop: a simulated GPU cluster, served as a Kubernetes API on loopback, with the GPU exporter, the cluster
exporter and the console, in one process. Prints the console's address and the path of a kubeconfig for kubectl, and
stays in the foreground until Ctrl-C. While it runs, `arena top node` and the like speak to it.

The ports are taken on 127.0.0.1 alone. Where a default port is taken by somebody else, a free one is used and said.

Each start begins a new world, unless --state-dir names a directory to keep one in. What the API has answered is on disk
there, even when the process is killed; the next start goes on from it. In between the world stands still: its clock jumps
to the present, and programs go on with what was left of their runs.

With --from-snapshot the cluster is a real one's copy: the same nodes, cards, pods, jobs and quotas, at the time when it was
saved. What would happen there (a drain, a new job, another quota) can be tried here."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_scenario(parser)
    parser.set_defaults(scenario=None, seed=None)  # a kept world knows its own
    parser.add_argument(
        "--from-snapshot",
        metavar="FILE",
        type=path_name,
        help="begin with the cluster of a saved snapshot, instead of a scenario",
    )
    parser.add_argument("--port", metavar="P", type=port, help="port of the console (default 8080)")
    parser.add_argument("--gpu-exporter-port", metavar="P", type=port, help="port of the GPU exporter (default 9400)")
    parser.add_argument("--cluster-exporter-port", metavar="P", type=port, help="port of the cluster exporter (default 9401)")
    parser.add_argument("--api-port", metavar="P", type=port, help="port of the Kubernetes API (default 6443)")
    parser.add_argument(
        "--state-dir",
        metavar="DIR",
        type=path_name,
        help="keep the world here: go on with the one that is there, or begin it (default: each start is a new one)",
    )
    parser.add_argument(
        "--kubeconfig",
        metavar="FILE",
        type=path_name,
        help="also write a kubeconfig here (default: only in the state directory); into one that exists the laptop's context "
        "is merged, for `kubectl --context fairlead`, and taken out at the end",
    )
    parser.add_argument("--use-context", action=BooleanFlag, help="make it the current context of that kubeconfig until the end")
    parser.add_argument("--ready-file", metavar="FILE", type=path_name, help="write the addresses here as JSON once all of them answer")


def run(args: argparse.Namespace, context: Context) -> int:
    return context.world.run_process(NAME, args)
