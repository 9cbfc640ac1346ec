"""`fairlead place` says where pods that share a GPU would go.

Nothing is created; the cluster or a snapshot is only read.
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
    "Say where pods that ask for a part of a GPU would go now, one after another, by the scheduler's rules: a pod of so many units, or "
    "those of a manifest (a Pod, or a workload with a pod template; a Service beside it is passed over). Who finds no room is told why, "
    "and which pods would have to go. "
    "Only shared GPUs are looked at, on nodes that its nodeSelector, node affinity and tolerations allow; kube-scheduler also looks at "
    "cpu, memory and other pods."
)
MOST_PODS: Final = 1000
Object = dict[str, Any]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--gpu-mem", type=int, metavar="UNITS", help="a pod with so many units of aliyun.com/gpu-mem")
    parser.add_argument("--gpu-count", type=int, metavar="M", default=1, help="split over so many GPUs of one node")
    parser.add_argument("--gpu-core", type=int, metavar="PERCENT", default=0, help="and so much of its cores")
    parser.add_argument("--replicas", type=int, metavar="N", default=0, help="so many of them (of a manifest: what it says)")
    parser.add_argument("--filename", "-f", metavar="FILE", default="", help="a manifest in YAML or JSON instead (`-`: stdin)")


def run(args: argparse.Namespace, context: Context) -> int:
    """0 when all find room, 1 otherwise, so that a script can ask."""
    pods = _pods(args, context.options.namespace or "default", context.machine)
    from fairlead.rules.sharing.ledger import ledger_of
    from fairlead.rules.sharing.what_if import place_pods

    outcomes = place_pods(ledger_of(context.world.reader().read_all()), pods)
    context.stdout.write(_table(outcomes))
    return 0 if all(outcome.node for outcome in outcomes) else 1


def _pods(args: argparse.Namespace, namespace: str, machine: Machine) -> list[Pod]:
    if bool(args.filename) == (args.gpu_mem is not None):
        raise UserError(
            "say which pods: either a number of units or a manifest", "`fairlead place --gpu-mem 4` or `fairlead place -f pod.yaml`"
        )
    if args.gpu_mem is not None and args.gpu_mem < 1:
        raise UserError(f"a pod cannot have {args.gpu_mem} units", "`--gpu-mem` is a whole number from 1 on")
    manifests = _read(args.filename, machine) if args.filename else [_asked(args)]
    templates = [_template(each) for each in manifests if len(manifests) == 1 or _has_pods(each)]
    if not templates:
        raise UserError(f"no object of manifest `{args.filename}` has pods", "a Pod, Deployment, StatefulSet, ReplicaSet or Job has some")
    counts = [args.replicas or replicas for _, _, replicas in templates]
    if min(counts) < 1 or sum(counts) > MOST_PODS:
        raise UserError(f"{min(counts) if min(counts) < 1 else sum(counts)} replicas cannot be placed", f"ask for 1 to {MOST_PODS}")
    named = [
        (name if count == 1 else f"{name}-{number}", template)
        for (name, template, _), count in zip(templates, counts, strict=True)
        for number in range(count)
    ]
    return [_pod(template, namespace, name, f"asked/{position}") for position, (name, template) in enumerate(named)]


def _asked(args: argparse.Namespace) -> Object:
    limits = {"aliyun.com/gpu-mem": str(args.gpu_mem)}
    if args.gpu_core:
        limits["aliyun.com/gpu-core.percentage"] = str(args.gpu_core)
    labels = {"aliyun.com/gpu-count": str(args.gpu_count)} if args.gpu_count != 1 else {}
    container = {"name": "main", "resources": {"limits": limits}}
    return {"kind": "Pod", "metadata": {"name": "pod", "labels": labels}, "spec": {"containers": [container]}}


def _read(filename: str, machine: Machine) -> list[Object]:
    """The objects of the file, at least one. Raises UserError when it cannot be read."""
    import sys

    import yaml

    from fairlead.wire.files.bounded import load_yaml_documents

    try:
        text = sys.stdin.buffer.read() if filename == "-" else machine.read(filename)
        found = [each for each in load_yaml_documents(text) if each is not None]
    except OSError as error:
        raise UserError(f"manifest `{filename}` cannot be read: {error.strerror}", "name a file with one Pod or workload") from error
    except yaml.YAMLError as error:
        raise UserError(f"manifest `{filename}` is not YAML: {error}", "name a file with one Pod or workload") from error
    objects = [each for each in found if isinstance(each, dict)]
    if not objects or len(objects) < len(found):
        raise UserError(f"manifest `{filename}` holds no object, or something else beside it", "name a file with one Pod or workload")
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
        raise UserError(f"the {kind} has no pod template", "a Pod, Deployment, StatefulSet, ReplicaSet or Job has one")
    replicas = spec.get("replicas", spec.get("parallelism", 1))
    return name, template, replicas if isinstance(replicas, int) else 1


def _pod(template: Object, namespace: str, name: str, uid: str) -> Pod:
    import msgspec

    from fairlead.wire.kube.objects import WirePod, parse_pod

    metadata = {**(template.get("metadata") or {}), "name": name, "namespace": namespace, "uid": uid}
    try:
        return parse_pod(msgspec.json.decode(msgspec.json.encode({"metadata": metadata, "spec": template["spec"]}), type=WirePod))
    except (msgspec.MsgspecError, ValueError, TypeError) as error:
        raise UserError(f"the pod cannot be read: {error}", "`kubectl apply --dry-run=server` says more") from error


def _table(outcomes: Sequence[PodPlan]) -> str:
    rows = [("POD", "NODE", "GPU", "MEMORY")]
    waiting: dict[str, PodPlan] = {}
    for outcome in outcomes:
        if not outcome.node:
            waiting.setdefault(outcome.reason, outcome)
            rows.append((outcome.pod.name, "-", "-", "finds no room"))
        for grants in outcome.grants.values():
            gpus = ",".join(str(grant.index) for grant in grants)
            mib = sum(grant.memory_mib or 0 for grant in grants)
            rows.append((outcome.pod.name, outcome.node, gpus, f"{sum(grant.units for grant in grants)} {outcome.unit} ({mib} MiB)"))
        if outcome.node and not outcome.grants:
            rows.append((outcome.pod.name, "any", "-", "asks for no shared GPU"))
    told = "".join(f"\n{reason}\n{_help(outcome)}" for reason, outcome in waiting.items())
    return f"{render_rows(rows)}{told}"


def _help(outcome: PodPlan) -> str:
    if outcome.sacrifice is None:
        return ""
    who = ", ".join(f"{pod.key} (priority {pod.priority})" for pod in outcome.sacrifice.pods)
    return f"{outcome.pod.name} would fit on {outcome.sacrifice.node} without {who}\n"
