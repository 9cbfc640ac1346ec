"""Objects of a cluster as facts about an installation (`model/installed`).

Every field may be absent.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import msgspec
import yaml
from msgspec import Raw, Struct

from fairlead.model.actions import Manifest
from fairlead.model.installed.facts import (
    ExtenderFact,
    LeaseFact,
    NodeFact,
    PodFact,
    WorkloadFact,
)
from fairlead.model.node import Taint
from fairlead.model.node_choice import NodeChoice
from fairlead.model.resources import ALIYUN_GPU, GPU_MEMORY, MIG_PREFIX, NVIDIA_GPU
from fairlead.settings import PART_LABEL
from fairlead.wire.files.bounded import load_yaml
from fairlead.wire.kube.node_choice import parse_node_choice
from fairlead.wire.kube.time import parse_time

_CONFIGURATION: Final = "KubeSchedulerConfiguration"
_GPUS: Final = (NVIDIA_GPU, ALIYUN_GPU, GPU_MEMORY)


class SeenMeta(Struct, gc=False):
    name: str = ""
    namespace: str = ""
    uid: str | None = None
    labels: dict[str, str] | None = None


class _Condition(Struct, gc=False):
    type: str = ""
    status: str = ""
    message: str = ""


class _Waiting(Struct, gc=False):
    reason: str = ""
    message: str = ""


class _Ended(Struct, gc=False, rename="camel"):
    reason: str = ""
    finished_at: str | None = None


class _ContainerState(Struct, gc=False):
    waiting: _Waiting | None = None
    terminated: _Ended | None = None


class _Container(Struct, gc=False, rename="camel"):
    name: str = ""
    restart_count: int = 0
    state: _ContainerState | None = None
    last_state: _ContainerState | None = None


class _PodSpec(Struct, gc=False, rename="camel"):
    node_name: str = ""


class _PodStatus(Struct, gc=False, rename="camel"):
    conditions: list[_Condition] | None = None
    container_statuses: list[_Container] | None = None
    init_container_statuses: list[_Container] | None = None


class SeenPod(Struct, gc=False):
    metadata: SeenMeta
    spec: _PodSpec | None = None
    status: _PodStatus | None = None


class _LeaseSpec(Struct, gc=False, rename="camel"):
    holder_identity: str | None = None
    renew_time: str | None = None
    lease_duration_seconds: int | None = None


class SeenLease(Struct, gc=False):
    metadata: SeenMeta
    spec: _LeaseSpec | None = None


class _Image(Struct, gc=False):
    image: str = ""


class _WorkloadPod(Struct, gc=False, rename="camel"):
    containers: list[_Image] | None = None
    node_selector: Raw = Raw()
    affinity: Raw = Raw()
    tolerations: Raw = Raw()


class _Template(Struct, gc=False):
    spec: _WorkloadPod


class _WorkloadSpec(Struct, gc=False):
    template: _Template
    replicas: int = 1


class _WorkloadStatus(Struct, gc=False, rename="camel"):
    desired_number_scheduled: int = 0


class SeenWorkload(Struct, gc=False):
    metadata: SeenMeta
    spec: _WorkloadSpec
    status: _WorkloadStatus | None = None


class _NodeInfo(Struct, gc=False, rename="camel"):
    kubelet_version: str = ""
    container_runtime_version: str = ""
    kernel_version: str = ""


class _NodeSpec(Struct, gc=False):
    taints: list[Taint] | None = None


class _NodeStatus(Struct, gc=False, rename="camel"):
    capacity: dict[str, str | int] | None = None
    conditions: list[_Condition] | None = None
    node_info: _NodeInfo | None = None


class SeenNode(Struct, gc=False):
    metadata: SeenMeta
    spec: _NodeSpec | None = None
    status: _NodeStatus | None = None


class SeenConfigMap(Struct, gc=False):
    metadata: SeenMeta
    data: dict[str, str] | None = None


def parse_seen_pod(wire: SeenPod) -> PodFact:
    meta, status = wire.metadata, wire.status or _PodStatus()
    containers = [*(status.init_container_statuses or ()), *(status.container_statuses or ())]
    ends = [
        parse_time(ended.finished_at)
        for each in containers
        for state in (each.state, each.last_state)
        if state is not None and (ended := state.terminated) is not None and ended.finished_at
    ]
    conditions = {each.type: each for each in status.conditions or ()}
    ready = conditions.get("Ready")
    return PodFact(
        meta.namespace,
        meta.name,
        (meta.labels or {}).get(PART_LABEL, ""),
        wire.spec.node_name if wire.spec is not None else "",
        ready is not None and ready.status == "True",
        sum(each.restart_count for each in containers),
        max(ends, default=None),
        _trouble(conditions.get("PodScheduled"), containers),
    )


def _trouble(scheduled: _Condition | None, containers: Iterable[_Container]) -> str:
    """The first reason that a status gives."""
    if scheduled is not None and scheduled.status == "False":
        return scheduled.message or "it is on no node"
    for each in containers:
        waiting = each.state.waiting if each.state is not None else None
        if waiting is not None and waiting.reason not in ("", "PodInitializing"):
            more = f": {waiting.message}" if waiting.message else ""
            return f"container {each.name}: {waiting.reason}{more}"
    return ""


def parse_seen_lease(wire: SeenLease) -> LeaseFact:
    spec = wire.spec or _LeaseSpec()
    return LeaseFact(
        wire.metadata.namespace,
        wire.metadata.name,
        spec.holder_identity or "",
        parse_time(spec.renew_time) if spec.renew_time else None,
        spec.lease_duration_seconds or 0,
    )


def parse_seen_deployment(wire: SeenWorkload) -> WorkloadFact:
    return _workload("Deployment", wire, wire.spec.replicas)


def parse_seen_daemon_set(wire: SeenWorkload) -> WorkloadFact:
    status = wire.status or _WorkloadStatus()
    return _workload("DaemonSet", wire, status.desired_number_scheduled)


def _workload(kind: str, wire: SeenWorkload, wanted: int) -> WorkloadFact:
    pod = wire.spec.template.spec
    return WorkloadFact(
        kind,
        wire.metadata.namespace,
        wire.metadata.name,
        tuple(each.image for each in pod.containers or ()),
        wanted,
        parse_node_choice(pod.node_selector, pod.affinity, pod.tolerations),
    )


def node_choice_of(workload: Manifest) -> NodeChoice:
    """The nodes that pods of a Deployment or DaemonSet may use."""
    seen = msgspec.json.decode(msgspec.json.encode(workload), type=SeenWorkload)
    return parse_seen_deployment(seen).choice


def parse_seen_node(wire: SeenNode) -> NodeFact:
    status = wire.status or _NodeStatus()
    info = status.node_info or _NodeInfo()
    capacity = status.capacity or {}
    ready = [each.status for each in status.conditions or () if each.type == "Ready"]
    return NodeFact(
        wire.metadata.name,
        wire.metadata.labels or {},
        tuple((wire.spec.taints if wire.spec is not None else None) or ()),
        ready == ["True"],
        info.container_runtime_version,
        info.kubelet_version,
        info.kernel_version,
        tuple(
            name
            for name in sorted(capacity)
            if (name in _GPUS or name.startswith(MIG_PREFIX)) and str(capacity[name]) != "0"
        ),
    )


def parse_seen_extenders(wire: SeenConfigMap) -> ExtenderFact:
    """The extenders of the kube-scheduler's configurations in a ConfigMap; most have none."""
    found = [
        address
        for text in (wire.data or {}).values()
        if _CONFIGURATION in text
        for address in _extenders(text)
    ]
    return ExtenderFact(wire.metadata.namespace, wire.metadata.name, tuple(found))


def _extenders(text: str) -> list[str]:
    """Of a text that is no such configuration, none."""
    try:
        found: Any = load_yaml(text)
        return [str(each["urlPrefix"]) for each in found["extenders"]]
    except (yaml.YAMLError, TypeError, KeyError):
        return []


def named_in_roles(objects: Iterable[Manifest], plural: str) -> list[tuple[str, str]]:
    """Namespace and name of each object of a resource that a Role names: what a process holds.

    >>> rule = {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"],
    ...     "verbs": ["get"], "resourceNames": ["x"]}
    >>> meta = {"name": "r", "namespace": "s"}
    >>> named_in_roles([{"kind": "Role", "metadata": meta, "rules": [rule]}], "leases")
    [('s', 'x')]
    """
    found = [
        (str(role["metadata"]["namespace"]), str(name))
        for role in objects
        if role["kind"] == "Role"
        for rule in role["rules"]
        if plural in rule["resources"]
        for name in rule.get("resourceNames", ())
    ]
    return list(dict.fromkeys(found))
