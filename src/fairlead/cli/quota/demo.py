"""`fairlead quota demo`: the demo of the guide (document 004), played in a simulated cluster."""

from __future__ import annotations

import argparse

from fairlead.cli.frame.context import Context

NAME = "quota demo"
PROCESS = "quota-demo"
READS_A_CLUSTER = False
HELP = """Run the demo of elastic quota in a simulated cluster. It takes a second and does
not touch any other cluster.

The tree has 40 cores and four leaves, each with min 10 and max 20. Four Deployments of five pods
with 5 cores are created one after the other. The table shows how many pods of each run when nothing
changes any more, how many were evicted, and which wait and why."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--reclaim-scope",
        choices=("leaf", "subtree"),
        default="leaf",
        help=(
            "what a leaf can reclaim: its own min (leaf), or also the min of its parents (subtree)"
        ),
    )


def run(args: argparse.Namespace, context: Context) -> int:
    return context.world.run_process(PROCESS, args)
