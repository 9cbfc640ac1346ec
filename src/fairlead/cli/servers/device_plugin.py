"""`fairlead device-plugin`: the agent of one node, which gives containers their cards."""

from __future__ import annotations

import argparse

from fairlead import settings
from fairlead.cli.frame.context import Context
from fairlead.cli.servers.flags import add_listen
from fairlead.errors import UserError
from fairlead.model.installation import NODE_NAMESPACE

NAME = "device-plugin"
HELP = """Serve the GPUs of this node to its kubelet: whole GPUs as nvidia.com/gpu or, if the node
has the label cgpu=true, shared GPUs as aliyun.com/gpu-mem and aliyun.com/gpu-core.percentage. A
container gets the GPU, and the part of it, that the scheduler extender chose for its pod
(deploy/node-agent.yaml, docs/how-to/gpu-node.md).

It follows the cluster of --kubeconfig (else KUBECONFIG, ~/.kube/config, in-cluster). The backend
`sim` needs no GPU: any machine with a kubelet simulates a node with the GPUs of --sim-gpus. Running
containers continue when it ends."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add_listen(parser, f":{settings.NODE_AGENT_PORT}")
    add("--node", metavar="NAME", default="", help="this node (default: the variable NODE_NAME)")
    add(
        "--kubelet-dir",
        metavar="DIR",
        default="/var/lib/kubelet",
        help="directory of the kubelet (default /var/lib/kubelet)",
    )
    add(
        "--cdi-dir",
        metavar="DIR",
        default="/var/run/cdi",
        help="where the container runtime looks for CDI files (default /var/run/cdi)",
    )
    add(
        "--state-dir",
        metavar="DIR",
        default="/var/lib/fairlead/gpu",
        help="directory for the record of grants (default /var/lib/fairlead/gpu)",
    )
    add(
        "--run-dir",
        metavar="DIR",
        default="/run/fairlead/gpu",
        help="directory for the guard's counters, in memory (default /run/fairlead/gpu)",
    )
    add(
        "--backend",
        metavar="NAME",
        choices=("nvml", "sim"),
        default="nvml",
        help="where GPUs come from: nvml or sim (default nvml)",
    )
    add(
        "--sim-gpus",
        metavar="GPUS",
        default="",
        help="GPUs of the backend `sim`, such as 2xTesla-T4,1xNVIDIA-H200",
    )
    add(
        "--memory-unit",
        choices=("GiB", "MiB"),
        default="GiB",
        metavar="UNIT",
        help="one unit of aliyun.com/gpu-mem (default GiB)",
    )
    add(
        "--ignore-xids",
        metavar="XIDS",
        default="",
        help="further XIDs that are not faults of the GPU, such as 63,94",
    )
    add(
        "--over-grant",
        choices=("report", "evict", "off"),
        default="report",
        metavar="POLICY",
        help=(
            "reaction to a container that uses more memory than its grant: report, evict or off "
            "(default report)"
        ),
    )
    add(
        "--test-image",
        metavar="IMAGE",
        default="",
        help="an image with python3, as Fairlead's has: for each version of kubelet and runtime, "
        "a pod with it tests once whether the runtime supports CDI. "
        "Without it nothing is deferred until a container starts",
    )
    add(
        "--namespace",
        metavar="NS",
        default=NODE_NAMESPACE,
        help=f"namespace of that pod (default {NODE_NAMESPACE})",
    )


def run(args: argparse.Namespace, context: Context) -> int:
    args.node = args.node or context.env.get("NODE_NAME", "")
    if not args.node:
        raise UserError(
            "the name of this node is unknown",
            "pass --node NAME, or set NODE_NAME (spec.nodeName of the pod)",
        )
    if args.backend == "sim" and not args.sim_gpus:
        raise UserError(
            "the backend `sim` has no GPUs of its own", "pass --sim-gpus, such as 2xTesla-T4"
        )
    if args.backend != "sim" and args.sim_gpus:
        raise UserError("--sim-gpus are GPUs of the backend `sim`", "add --backend sim")
    args.ignored_xids = frozenset(_xids(args.ignore_xids))
    return context.world.run_process(NAME, args)


def _xids(text: str) -> list[int]:
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if wrong := [part for part in parts if not (part.isascii() and part.isdigit())]:
        raise UserError(
            f"`{wrong[0]}` of --ignore-xids is not an XID", "give numbers, such as 63,94"
        )
    return [int(part) for part in parts]
