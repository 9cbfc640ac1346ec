"""`fairlead device-plugin`: the agent of one node, which gives containers the cards of their pods."""

from __future__ import annotations

import argparse

from fairlead import settings
from fairlead.cli.frame.context import Context
from fairlead.cli.servers.flags import add_listen
from fairlead.errors import UserError

NAME = "device-plugin"
HELP = """Serve the GPUs of this node to its kubelet: whole ones as nvidia.com/gpu or, where the node's label says cgpu=true, shared ones
as aliyun.com/gpu-mem and aliyun.com/gpu-core.percentage. A container gets the card, and as much of it, as its pod was placed on by the
scheduler extender (deploy/node-agent.yaml, docs/how-to/gpu-node.md).

It follows the cluster of --kubeconfig (else KUBECONFIG, ~/.kube/config, in-cluster). The backend `sim` needs no GPU: any machine with a
kubelet plays a node with the cards of --sim-gpus. Containers that run are left alone when it ends."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add_listen(parser, f":{settings.NODE_AGENT_PORT}")
    add("--node", metavar="NAME", default="", help="this node (default: the variable NODE_NAME)")
    add("--kubelet-dir", metavar="DIR", default="/var/lib/kubelet", help="of the kubelet (default /var/lib/kubelet)")
    add("--cdi-dir", metavar="DIR", default="/var/run/cdi", help="where the container runtime looks for CDI files (default /var/run/cdi)")
    add(
        "--state-dir",
        metavar="DIR",
        default="/var/lib/fairlead/gpu",
        help="what containers were given (default /var/lib/fairlead/gpu)",
    )
    add(
        "--run-dir",
        metavar="DIR",
        default="/run/fairlead/gpu",
        help="what their guard counts, in memory (default /run/fairlead/gpu)",
    )
    add("--backend", metavar="NAME", choices=("nvml", "sim"), default="nvml", help="where GPUs come from: nvml or sim (default nvml)")
    add("--sim-gpus", metavar="GPUS", default="", help="with `sim`: which, such as 2xTesla-T4,1xNVIDIA-H200")
    add("--memory-unit", choices=("GiB", "MiB"), default="GiB", metavar="UNIT", help="one unit of aliyun.com/gpu-mem (default GiB)")
    add("--ignore-xids", metavar="XIDS", default="", help="XIDs that are no fault of the GPU, beside those of programs, such as 63,94")
    add(
        "--over-grant",
        choices=("report", "evict", "off"),
        default="report",
        metavar="POLICY",
        help="what is done about a container that uses more memory than its grant: report, evict or off (default report)",
    )
    add(
        "--test-image",
        metavar="IMAGE",
        default="",
        help="an image with /bin/sh: once for each version of kubelet and runtime a pod of it finds out whether the runtime does CDI."
        " Without it nothing is put off until a container starts",
    )
    add("--namespace", metavar="NS", default=settings.SYSTEM_NAMESPACE, help=f"of that pod (default {settings.SYSTEM_NAMESPACE})")


def run(args: argparse.Namespace, context: Context) -> int:
    args.node = args.node or context.env.get("NODE_NAME", "")
    if not args.node:
        raise UserError("it is not said which node this is", "pass --node NAME, or set NODE_NAME (spec.nodeName of the pod)")
    if args.backend == "sim" and not args.sim_gpus:
        raise UserError("the backend `sim` has no GPUs of its own", "pass --sim-gpus, such as 2xTesla-T4")
    if args.backend != "sim" and args.sim_gpus:
        raise UserError("--sim-gpus are GPUs of the backend `sim`", "add --backend sim")
    args.ignored_xids = frozenset(_xids(args.ignore_xids))
    return context.world.run_process(NAME, args)


def _xids(text: str) -> list[int]:
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if wrong := [part for part in parts if not (part.isascii() and part.isdigit())]:
        raise UserError(f"`{wrong[0]}` of --ignore-xids is no XID", "give numbers, such as 63,94")
    return [int(part) for part in parts]
