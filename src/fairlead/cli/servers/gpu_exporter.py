"""`fairlead gpu-exporter`: Prometheus metrics of GPU devices, with the flags and variables of dcgm-exporter
(telemetry contract 1.2).
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Final

from fairlead.cli.frame.context import Context
from fairlead.cli.frame.flags import BooleanFlag
from fairlead.cli.servers.dcgm_flags import add_dcgm_flags, fill_dcgm_flags, refuse_open_page, warnings_of
from fairlead.cli.servers.flags import add_listen, add_scenario, whole
from fairlead.errors import UserError

NAME = "gpu-exporter"
NVML: Final = "libnvidia-ml.so.1"
READS_A_CLUSTER = False
HELP = """Serve Prometheus metrics of GPU devices on /metrics: DCGM names, fairlead_gpu_* and nvidia_gpu_*.

The devices are those of this node, by NVML. The backend `sim` serves invented ones: of one node of a simulated cluster, or of
all with --all-nodes. Every flag of dcgm-exporter is taken, and read from dcgm-exporter's variables, too
(DCGM_EXPORTER_LISTEN, DCGM_EXPORTER_INTERVAL, …); one that changes nothing is said at the start. On SIGHUP the counters file is
read again."""

_VARIABLES: Final[Mapping[str, str]] = {
    "listen": "DCGM_EXPORTER_LISTEN",
    "collectors": "DCGM_EXPORTER_COLLECTORS",
    "collect_interval": "DCGM_EXPORTER_INTERVAL",
    "compat": "FAIRLEAD_EXPORTER_COMPAT",
    "hostname_label": "FAIRLEAD_EXPORTER_HOSTNAME_LABEL",
    "node": "NODE_NAME",
}
_DEFAULTS: Final[Mapping[str, str | int]] = {
    "listen": ":9400",
    "collectors": "",
    "collect_interval": 5000,
    "compat": "dcgm,legacy",
    "hostname_label": "Hostname",
    "node": "",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_listen(parser, ":9400", "--address", "-a")
    parser.set_defaults(listen=None)
    parser.add_argument("--backend", metavar="NAME", choices=("nvml", "sim"), help="where devices come from: nvml or sim (default nvml)")
    parser.add_argument("--nvml-library", metavar="PATH", default=NVML, help=f"NVIDIA's library, by name or path (default {NVML})")
    parser.add_argument(
        "--slow-interval",
        metavar="S",
        type=whole(1, 86_400),
        default=60,
        help="seconds between samples of what changes slowly (default 60)",
    )
    parser.add_argument(
        "--call-timeout",
        metavar="S",
        type=whole(1, 3600),
        default=10,
        help="after so many seconds a call of the driver is stuck (default 10)",
    )
    parser.add_argument(
        "--stale-after",
        metavar="S",
        type=whole(1, 86_400),
        help="so old a value may be before it is dropped (default: three intervals, 15 at least)",
    )
    parser.add_argument(
        "--kmsg", metavar="on|off", choices=("on", "off"), default="on", help="read missed XIDs from /dev/kmsg: on or off (default on)"
    )
    parser.add_argument(
        "--mig-device-fields",
        metavar="once|repeat",
        choices=("once", "repeat"),
        default="once",
        help="what is a divided card's own: once, or for each of its instances as dcgm-exporter does (default once)",
    )
    parser.add_argument("--all-nodes", action=BooleanFlag, help="of a simulated cluster the cards of all nodes on one page")
    parser.add_argument("--collectors", "-f", metavar="FILE", help="CSV of the DCGM fields to print (default: built in)")
    parser.add_argument(
        "--collect-interval", "-c", metavar="MS", type=whole(1, 86_400_000), help="milliseconds between samples (default 5000)"
    )
    parser.add_argument("--compat", metavar="FAMILIES", help="dcgm, legacy, custom beside the native ones, or none (default dcgm,legacy)")
    parser.add_argument("--hostname-label", metavar="NAME", help="Hostname, hostname or both (default Hostname)")
    parser.add_argument("--strict-csv", action=BooleanFlag, help="a bad row of the CSV ends the start instead of being counted")
    add_scenario(parser)
    parser.add_argument(
        "--sim-gpus", metavar="GPUS", default="", help="of this node alone, such as 2xTesla-T4: the kubelet tells which pods have them"
    )
    parser.add_argument("--kubelet-dir", metavar="DIR", default="/var/lib/kubelet", help="of the kubelet (default /var/lib/kubelet)")
    parser.add_argument(
        "--grants-file",
        metavar="FILE",
        default="/var/lib/fairlead/gpu/grants.json",
        help="of the node agent (default /var/lib/fairlead/gpu/grants.json)",
    )
    parser.add_argument(
        "--pod-map-ttl",
        metavar="S",
        type=whole(1, 86_400),
        default=60,
        help="so long a kubelet may be silent before series lose their pods (default 60)",
    )
    add_dcgm_flags(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    fill_from_variables(args, context.env)
    refuse_open_page(args)
    args.backend = chosen_backend(args)
    for sentence in warnings_of(args):
        context.messages.warn(sentence)
    return context.world.run_process(NAME, args)


def chosen_backend(args: argparse.Namespace) -> str:
    """Invented devices are for who asks for them: fiction must not take the place of a real page."""
    if args.backend == "nvml" and (args.sim_gpus or args.fake_gpus):
        asked = "--sim-gpus" if args.sim_gpus else "--fake-gpus"
        raise UserError(f"`--backend nvml` and `{asked}` were given", "leave one of them out")
    if args.backend is None and not (args.sim_gpus or args.fake_gpus):
        if args.all_nodes or args.scenario != "default":
            raise UserError("simulated devices were asked for, and the backend is nvml", "add `--backend sim`")
        return "nvml"
    return args.backend or "sim"


def fill_from_variables(args: argparse.Namespace, env: Mapping[str, str]) -> None:
    """Flag, else variable, else default. Raises UserError for a variable that does not say what is needed."""
    fill_dcgm_flags(args, env)
    for name, default in _DEFAULTS.items():
        if getattr(args, name, None) is None:
            setattr(args, name, env.get(_VARIABLES[name]) or default)
    if isinstance(args.collect_interval, str):
        if not (args.collect_interval.isascii() and args.collect_interval.isdigit()):
            raise UserError(f"DCGM_EXPORTER_INTERVAL is `{args.collect_interval}`, not a number of milliseconds", "give one such as 5000")
        args.collect_interval = int(args.collect_interval)
