"""`fairlead quota demo`: the demo of the guide (document 004), played in a simulated cluster."""

from __future__ import annotations

import argparse

from fairlead.cli.frame.context import Context

NAME = "quota demo"
PROCESS = "quota-demo"
READS_A_CLUSTER = False
HELP = """Play the demo of elastic quota in a simulated cluster, within a second and without touching any other cluster.

A tree of 40 cores with four leaves, each guaranteed 10 and at most 20. Four Deployments of five pods with 5 cores come one after the
other. The table shows how many pods of each run once nothing changes any more, how many were evicted until then, and who waits and why."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--reclaim-scope",
        choices=("leaf", "subtree"),
        default="leaf",
        help="who may take back what: a leaf its own min (leaf), or also what its parents are guaranteed (subtree)",
    )


def run(args: argparse.Namespace, context: Context) -> int:
    return context.world.run_process(PROCESS, args)
