"""`fairlead place` prints where pods that share a GPU would be placed.

Nothing is created; the command only reads a cluster or a snapshot.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from fairlead.cli.frame.context import Context, Machine
from fairlead.errors import UserError
from fairlead.wire.text.tabwriter import render_rows

if TYPE_CHECKING:
    from fairlead.model.pod import Pod
    from fairlead.rules.sharing.what_if import PodPlan

NAME = "place"
HELP = (
    "Print where pods that request a part of a GPU would be placed now, one after another, "
    "by the scheduler's rules: pods with a number of units, or the pods of a manifest (a Pod, "
    "or a workload with a pod template; a Service in it is ignored). For pods without room, "
    "print the reason and which pods would have to be evicted. Only shared GPUs are considered, "
    "on nodes that nodeSelector, node affinity and tolerations allow; "
    "kube-scheduler also considers cpu, memory and other pods."
)
MOST_PODS: Final = 1000
Object = dict[str, Any]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--gpu-mem",
        type=int,
        metavar="UNITS",
        help="units of aliyun.com/gpu-mem that a pod requests",
    )
    parser.add_argument(
        "--gpu-count",
        type=int,
        metavar="M",
        default=1,
        help="number of GPUs of one node to split them over (default 1)",
    )
    parser.add_argument(
        "--gpu-core",
        type=int,
        metavar="PERCENT",
        default=0,
        help="percent of a GPU's cores that it requests",
    )
    parser.add_argument(
        "--replicas",
        type=int,
        metavar="N",
        default=0,
        help="number of pods (default 1, or the replicas of the manifest)",
    )
    parser.add_argument(
        "--filename",
        "-f",
        metavar="FILE",
        default="",
        help="a manifest in YAML or JSON instead (`-`: stdin)",
    )


def run(args: argparse.Namespace, context: Context) -> int:
    """Exit status 0 if all pods have room, 1 otherwise."""
    pods = _pods(args, context.options.namespace or context.world.namespace(), context.machine)
    from fairlead.rules.sharing.ledger import ledger_of
    from fairlead.rules.sharing.what_if import place_pods

    outcomes = place_pods(ledger_of(context.world.reader().read_all()), pods)
    context.stdout.write(_table(outcomes))
    return 0 if all(outcome.node for outcome in outcomes) else 1


def _pods(args: argparse.Namespace, namespace: str, machine: Machine) -> list[Pod]:
    if bool(args.filename) == (args.gpu_mem is not None):
        raise UserError(
            "name the pods: either --gpu-mem or a manifest",
            "`fairlead place --gpu-mem 4` or `fairlead place -f pod.yaml`",
        )
    if args.gpu_mem is not None and args.gpu_mem < 1:
        raise UserError(
            f"a pod cannot have {args.gpu_mem} units",
            "`--gpu-mem` is a whole number of 1 or more",
        )
    manifests = _read(args.filename, machine) if args.filename else [_asked(args)]
    templates = [_template(each) for each in manifests if len(manifests) == 1 or _has_pods(each)]
    if not templates:
        raise UserError(
            f"no object of manifest `{args.filename}` has pods",
            "use a Pod, Deployment, StatefulSet, ReplicaSet or Job",
        )
    counts = [args.replicas or replicas for _, _, replicas in templates]
    if min(counts) < 1 or sum(counts) > MOST_PODS:
        raise UserError(
            f"{min(counts) if min(counts) < 1 else sum(counts)} replicas cannot be placed",
            f"use 1 to {MOST_PODS}",
        )
    named = [
        (name if count == 1 else f"{name}-{number}", template)
        for (name, template, _), count in zip(templates, counts, strict=True)
        for number in range(count)
    ]
    return [
        _pod(template, namespace, name, f"asked/{position}")
        for position, (name, template) in enumerate(named)
    ]


def _asked(args: argparse.Namespace) -> Object:
    limits = {"aliyun.com/gpu-mem": str(args.gpu_mem)}
    if args.gpu_core:
        limits["aliyun.com/gpu-core.percentage"] = str(args.gpu_core)
    labels = {"aliyun.com/gpu-count": str(args.gpu_count)} if args.gpu_count != 1 else {}
    container = {"name": "main", "resources": {"limits": limits}}
    return {
        "kind": "Pod",
        "metadata": {"name": "pod", "labels": labels},
        "spec": {"containers": [container]},
    }


def _read(filename: str, machine: Machine) -> list[Object]:
    """The objects of the file, at least one. Raises UserError when it cannot be read."""
    import yaml

    from fairlead.cli.frame.input_files import read_input
    from fairlead.wire.files.bounded import load_yaml_documents

    text = read_input(machine, filename, "manifest", "name a file with one Pod or workload")
    try:
        found = [each for each in load_yaml_documents(text) if each is not None]
    except yaml.YAMLError as error:
        raise UserError(
            f"manifest `{filename}` is not YAML: {error}",
            "name a file with one Pod or workload",
        ) from error
    objects = [each for each in found if isinstance(each, dict)]
    if not objects or len(objects) < len(found):
        raise UserError(
            f"manifest `{filename}` contains no object, or other data",
            "name a file with one Pod or workload",
        )
    return objects


def _has_pods(manifest: Object) -> bool:
    spec = manifest.get("spec")
    return isinstance(spec, dict) and ("containers" in spec or "template" in spec)


def _template(manifest: Object) -> tuple[str, Object, int]:
    """Name, pod (or pod template) and replicas of a Pod or of a workload."""
    kind, spec = manifest.get("kind", "object"), manifest.get("spec")
    metadata = manifest.get("metadata") if isinstance(manifest.get("metadata"), dict) else {}
    name = str((metadata or {}).get("name") or "pod")
    if not isinstance(spec, dict):
        raise UserError(f"the {kind} has no spec", "name a file with one Pod or workload")
    if isinstance(spec.get("containers"), list):
        return name, {"metadata": metadata, "spec": spec}, 1
    template = spec.get("template")
    if not isinstance(template, dict) or not isinstance(template.get("spec"), dict):
        raise UserError(
            f"the {kind} has no pod template",
            "use a Pod, Deployment, StatefulSet, ReplicaSet or Job",
        )
    replicas = spec.get("replicas", spec.get("parallelism", 1))
    return name, template, replicas if isinstance(replicas, int) else 1


def _pod(template: Object, namespace: str, name: str, uid: str) -> Pod:
    import msgspec

    from fairlead.wire.kube.objects import WirePod, parse_pod

    metadata = {
        **(template.get("metadata") or {}),
        "name": name,
        "namespace": namespace,
        "uid": uid,
    }
    try:
        return parse_pod(
            msgspec.json.decode(
                msgspec.json.encode({"metadata": metadata, "spec": template["spec"]}), type=WirePod
            )
        )
    except (msgspec.MsgspecError, ValueError, TypeError) as error:
        raise UserError(
            f"the pod cannot be read: {error}", "`kubectl apply --dry-run=server` shows details"
        ) from error


def _table(outcomes: Sequence[PodPlan]) -> str:
    rows = [("POD", "NODE", "GPU", "MEMORY")]
    waiting: dict[str, PodPlan] = {}
    for outcome in outcomes:
        if not outcome.node:
            waiting.setdefault(outcome.reason, outcome)
            rows.append((outcome.pod.name, "-", "-", "no room"))
        for grants in outcome.grants.values():
            gpus = ",".join(str(grant.index) for grant in grants)
            mib = sum(grant.memory_mib or 0 for grant in grants)
            rows.append(
                (
                    outcome.pod.name,
                    outcome.node,
                    gpus,
                    f"{sum(grant.units for grant in grants)} {outcome.unit} ({mib} MiB)",
                )
            )
        if outcome.node and not outcome.grants:
            rows.append((outcome.pod.name, "any", "-", "requests no shared GPU"))
    reasons = "".join(f"\n{reason}\n{_help(outcome)}" for reason, outcome in waiting.items())
    return f"{render_rows(rows)}{reasons}"


def _help(outcome: PodPlan) -> str:
    if outcome.sacrifice is None:
        return ""
    who = ", ".join(f"{pod.key} (priority {pod.priority})" for pod in outcome.sacrifice.pods)
    return f"{outcome.pod.name} would fit on {outcome.sacrifice.node} without {who}\n"
