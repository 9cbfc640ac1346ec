"""`fairlead up`: the laptop, a simulated GPU cluster with all of Fairlead in one process."""

from __future__ import annotations

import argparse

from fairlead.cli.frame.context import Context
from fairlead.cli.frame.flags import BooleanFlag
from fairlead.cli.servers.flags import add_scenario, path_name, port

NAME = "up"
READS_A_CLUSTER = False
HELP = """Start the laptop: a simulated GPU cluster, served as a Kubernetes API on loopback, with
the GPU exporter, the cluster exporter and the console, in one process. It prints the console's
address and the path of a kubeconfig for kubectl, and stays in the foreground until Ctrl-C. While it
runs, commands such as `arena top node` use it.

The printed address has a code that signs the browser in once, as the administrator. Who is signed
in with it may look as each user of the simulated cluster.

It listens only on 127.0.0.1. If another process uses a default port, it uses a free port
and prints it.

Each start creates a new cluster, unless --state-dir names a directory that keeps it. Every
acknowledged write is on disk there, even if the process is killed; the next start continues from
it. While the laptop is stopped, nothing happens: at the next start the clock jumps to the present,
and programs continue with the rest of their runs.

With --from-snapshot the cluster is a copy of a real one: the same nodes, GPUs, pods, jobs and
quotas, at the time of the snapshot. You can try changes there (a drain, a new job,
another quota)."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_scenario(parser)
    parser.set_defaults(scenario=None, seed=None)  # a kept world knows its own
    parser.add_argument(
        "--from-snapshot",
        metavar="FILE",
        type=path_name,
        help="start with the cluster of a saved snapshot, instead of a scenario",
    )
    parser.add_argument("--port", metavar="P", type=port, help="port of the console (default 8080)")
    parser.add_argument(
        "--gpu-exporter-port",
        metavar="P",
        type=port,
        help="port of the GPU exporter (default 9400)",
    )
    parser.add_argument(
        "--cluster-exporter-port",
        metavar="P",
        type=port,
        help="port of the cluster exporter (default 9401)",
    )
    parser.add_argument(
        "--api-port", metavar="P", type=port, help="port of the Kubernetes API (default 6443)"
    )
    parser.add_argument(
        "--state-dir",
        metavar="DIR",
        type=path_name,
        help=(
            "keep the cluster here: continue with the existing one, or create it (default: each "
            "start is a new one)"
        ),
    )
    parser.add_argument(
        "--kubeconfig",
        metavar="FILE",
        type=path_name,
        help="also write a kubeconfig here (default: only in the state directory); "
        "the laptop's context is merged into an existing file, "
        "for `kubectl --context fairlead`, and removed at the end",
    )
    parser.add_argument(
        "--use-context",
        action=BooleanFlag,
        help="make the laptop the current context of that kubeconfig until it ends",
    )
    parser.add_argument(
        "--sign-in",
        action=BooleanFlag,
        default=True,
        help=(
            "users sign in at the console, and the printed address has a one-time code (default "
            "true); --sign-in=false: every client of the console is an administrator"
        ),
    )
    parser.add_argument(
        "--ready-file",
        metavar="FILE",
        type=path_name,
        help="write the addresses here as JSON when all servers are ready",
    )


def run(args: argparse.Namespace, context: Context) -> int:
    return context.world.run_process(NAME, args)
