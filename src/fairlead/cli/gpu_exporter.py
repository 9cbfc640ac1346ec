"""`fairlead gpu-exporter`: Prometheus metrics of GPU devices, compatible with dcgm-exporter."""

from __future__ import annotations

import argparse

from fairlead.cli.context import Context
from fairlead.cli.server_flags import add_listen, add_scenario

NAME = "gpu-exporter"
READS_A_CLUSTER = False
HELP = """Serve Prometheus metrics of GPU devices on /metrics: DCGM names, fairlead_gpu_* and nvidia_gpu_*.

The backend `sim` serves the devices of all nodes of a simulated cluster on one page."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_listen(parser, ":9400", "--address", "-a")
    parser.add_argument("--backend", metavar="NAME", choices=("sim",), default="sim", help="where devices come from: sim (default sim)")
    add_scenario(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    return context.world.run_process(NAME, args)
