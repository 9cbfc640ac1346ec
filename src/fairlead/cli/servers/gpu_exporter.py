"""`fairlead gpu-exporter`: Prometheus metrics of GPU devices, with the flags and variables of
dcgm-exporter (docs/spec/telemetry.md#flags-and-environment-variables).
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping

import fairlead
from fairlead.cli.frame.context import Context
from fairlead.cli.frame.flags import BooleanFlag
from fairlead.cli.servers.dcgm_flags import FLAGS, add_dcgm_flags, fill_dcgm_flags, warnings_of
from fairlead.cli.servers.exporter_flags import OWN_FLAGS, add_own_flags, fill_own_flags
from fairlead.cli.servers.flags import TWO_ADDRESSES, add_scenario, port
from fairlead.errors import UserError

NAME = "gpu-exporter"
READS_A_CLUSTER = False
HAS_GO_FLAGS = True
HELP = """Serve Prometheus metrics of GPU devices on /metrics: DCGM names,
fairlead_gpu_* and nvidia_gpu_*.

It reads the devices of this node by NVML. The backend `sim` serves simulated devices: those of one
node of a simulated cluster, or of all nodes with --all-nodes. It accepts every flag of
dcgm-exporter, with one dash or two, and its variables (DCGM_EXPORTER_LISTEN,
DCGM_EXPORTER_INTERVAL, …), and warns of flags without effect at the start. The other flags have
variables FAIRLEAD_EXPORTER_NAME. On SIGHUP it reads the counters and the web
configuration again."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_own_flags(parser)
    parser.add_argument(
        "--port",
        metavar="P",
        type=port,
        help="instead of --listen: only the port, 0 for a free one",
    )
    add_scenario(parser)
    add_dcgm_flags(parser)
    parser.add_argument(
        "--version",
        "-v",
        action=BooleanFlag,
        help="print the version, as dcgm-exporter does, and end",
    )


def run(args: argparse.Namespace, context: Context) -> int:
    if args.version:
        context.stdout.write(f"DCGM Exporter version fairlead-{fairlead.__version__}\n")
        return 0
    fill_from_variables(args, context.env)
    args.backend = chosen_backend(args)
    for sentence in warnings_of(args):
        context.messages.warn(sentence)
    return context.world.run_process(NAME, args)


def chosen_backend(args: argparse.Namespace) -> str:
    """Simulated devices must be requested: they must not replace a real page by mistake."""
    if args.backend == "nvml" and (args.sim_gpus or args.fake_gpus):
        asked = "--sim-gpus" if args.sim_gpus else "--fake-gpus"
        raise UserError(f"`--backend nvml` and `{asked}` were given", "leave one of them out")
    if not args.backend and not (args.sim_gpus or args.fake_gpus):
        if args.all_nodes or args.scenario != "default":
            raise UserError(
                "simulated devices were requested, but the backend is nvml",
                "add `--backend sim`",
            )
        return "nvml"
    return args.backend or "sim"


def fill_from_variables(args: argparse.Namespace, env: Mapping[str, str]) -> None:
    """Flag, else variable, else default. Raises UserError for one that is not of its kind.

    `args.given_flags` contains the flags that the user gave; they override a configuration file.
    """
    every = (*OWN_FLAGS, *FLAGS)
    args.given_flags = frozenset(
        flag.name for flag in every if getattr(args, flag.name) is not None or env.get(flag.env)
    )
    if args.port is not None and args.listen is not None:
        raise UserError(TWO_ADDRESSES, "`--port P` is `--listen :P`")
    if args.port is not None:
        args.listen = f":{args.port}"
    fill_own_flags(args, env)
    fill_dcgm_flags(args, env)
    args.node = env.get("NODE_NAME", "")
