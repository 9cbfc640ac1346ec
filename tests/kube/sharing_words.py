"""Pods that share GPUs, for both control planes, and their results."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.kube.control_plane import ControlPlane
from tests.kube.kubectl import KubectlError

from fairlead.wire import names

Object = dict[str, Any]
ROOT = Path(__file__).resolve().parents[2]
POLICIES = ROOT / "deploy" / "gpushare-admission.yaml"
CLASSES = {"low": 0, "middle": 5, "high": 9}


def priority_class(name: str, value: int) -> Object:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
    }


def pod(
    name: str,
    units: int,
    *,
    parts: Sequence[int] = (),
    rank: str = "",
    core: int = 0,
    **metadata: Any,
) -> Object:
    containers = []
    for number, each in enumerate(parts or (units,)):
        limits = {
            "cpu": "100m",
            "memory": "64Mi",
            **({"aliyun.com/gpu-mem": str(each)} if each else {}),
        }
        limits |= {"aliyun.com/gpu-core.percentage": str(core)} if core else {}
        containers.append({"name": f"c{number}", "image": "app:1", "resources": {"limits": limits}})
    spec: Object = {
        "containers": containers,
        "terminationGracePeriodSeconds": 0,
        **({"priorityClassName": rank} if rank else {}),
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", **metadata},
        "spec": spec,
    }


def fate(obj: Object | None) -> Object | None:
    """The pod's node, its cards, and the message of its condition."""
    if obj is None:
        return None
    text = obj["metadata"].get("annotations", {}).get(names.ANNOTATION_ALLOCATION, "{}")
    cards = {
        part: [[each["index"], each["units"], each["mib"]] for each in given]
        for part, given in json.loads(text).items()
    }
    conditions = obj["status"].get("conditions", ())
    reported = next(
        (
            each.get("message", "")
            for each in conditions
            if each["type"] == "PodScheduled" and each["status"] == "False"
        ),
        "",
    )
    return {
        "node": obj["spec"].get("nodeName", ""),
        "cards": cards,
        "told": reported,
        "scheduler": obj["spec"]["schedulerName"],
    }


def as_real(node: Object) -> Object:
    metadata = node["metadata"]
    annotations = {**metadata.get("annotations", {}), "kwok.x-k8s.io/node": "fake"}
    status = {key: node["status"][key] for key in ("capacity", "allocatable")}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": metadata["name"],
            "labels": metadata["labels"],
            "annotations": annotations,
        },
        "status": status,
    }


def ready(cluster: ControlPlane) -> list[str]:
    conditions = {
        node["metadata"]["name"]: node["status"].get("conditions", ())
        for node in cluster.admin.get("nodes")
    }
    untainted = {
        node["metadata"]["name"]
        for node in cluster.admin.get("nodes")
        if not node["spec"].get("taints")
    }
    return [
        name
        for name, held in conditions.items()
        if name in untainted and any((c["type"], c["status"]) == ("Ready", "True") for c in held)
    ]


FORGED = {names.ANNOTATION_GPU_INDEX: "0"}


def is_refused(cluster: ControlPlane) -> bool:
    try:
        dry_run(cluster, pod("forged", 4, annotations=FORGED))
    except KubectlError as error:
        return "only Fairlead" in str(error)
    return False


def sends(cluster: ControlPlane) -> bool:
    return bool(dry_run(cluster, pod("asks", 4))["spec"]["schedulerName"] == "fairlead-scheduler")


def dry_run(cluster: ControlPlane, obj: Object) -> Object:
    answer: Object = json.loads(
        cluster.admin.run(
            "create", "--dry-run=server", "-o", "json", "-f", "-", stdin=json.dumps(obj)
        )
    )
    return answer


def found(cluster: ControlPlane, name: str) -> Object | None:
    return next(
        (
            obj
            for obj in cluster.admin.get("pods", "-n", "default")
            if obj["metadata"]["name"] == name
        ),
        None,
    )


def settled(obj: Object | None) -> bool:
    seen = fate(obj)
    return seen is not None and bool(seen["node"] or seen["told"])
