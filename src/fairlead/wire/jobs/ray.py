"""RayJob objects of kuberay-operator: the fields that Fairlead reads.

A RayJob has two status words and no conditions; this module converts them to the conditions that
other kinds have.
"""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct

from fairlead.model.jobs.job import Job, Role
from fairlead.model.node import Condition
from fairlead.model.resources import CPU, MEMORY
from fairlead.wire.jobs.job_object import make_job
from fairlead.wire.jobs.kubeflow import WireReplica, WireTemplate, parse_roles
from fairlead.wire.kube.objects import WireMeta, epoch, parse_labels
from fairlead.wire.names import LABEL_RAY_CLUSTER


class WireRayGroup(Struct, gc=False, rename="camel"):
    group_name: str | None = None
    replicas: int | None = None
    num_of_hosts: int | None = None
    template: WireTemplate | None = None


class WireRayClusterSpec(Struct, gc=False, rename="camel"):
    head_group_spec: WireRayGroup | None = None
    worker_group_specs: list[WireRayGroup] | None = None


class WireRaySpec(Struct, gc=False, rename="camel"):
    ray_cluster_spec: WireRayClusterSpec | None = None
    suspend: bool | None = None
    shutdown_after_job_finishes: bool | None = None
    cluster_selector: dict[str, str] | None = None
    submission_mode: str | None = None
    submitter_pod_template: WireTemplate | None = None


class WireRayStatus(Struct, gc=False, rename="camel"):
    job_status: str | None = None
    job_deployment_status: str | None = None
    ray_cluster_name: str | None = None
    start_time: datetime | None = None
    end_time: datetime | None = None
    message: str | None = None


class WireRayJob(Struct, gc=False, rename="camel"):
    metadata: WireMeta
    api_version: str | None = None
    spec: WireRaySpec | None = None
    status: WireRayStatus | None = None


_SUBMITTER = Role(
    "submitter", 1, limits={CPU: 1000, MEMORY: 1 << 30}, requests={CPU: 500, MEMORY: 200 << 20}
)
"""The operator's default resources of the submitter pod."""
_STOPPED = "STOPPED"
"""A user stopped the program: neither success nor failure, shown with Ray's word."""
_DEPLOYMENT_STATES = {
    "Running": "Running",
    "Complete": "Succeeded",
    "Failed": "Failed",
    "Suspended": "Suspended",
    "Retrying": "Restarting",
}


def parse_ray_job(wire: WireRayJob, type_: str, kind: str, api_version: str) -> Job:
    """The job; the name of its RayCluster, a label of its pods, is added to its labels."""
    meta, spec, status = wire.metadata, wire.spec or WireRaySpec(), wire.status or WireRayStatus()
    labels = dict(parse_labels(meta.labels))
    if status.ray_cluster_name:
        labels[LABEL_RAY_CLUSTER] = status.ray_cluster_name
    return make_job(
        wire,
        type_,
        kind,
        api_version,
        labels=labels,
        roles=()
        if spec.cluster_selector
        else _parse_roles(spec.ray_cluster_spec or WireRayClusterSpec()),
        conditions=_parse_conditions(status, is_suspended=bool(spec.suspend)),
        word=_STOPPED if status.job_status == _STOPPED else "",
        suspended=bool(spec.suspend),
        priority_class=_priority_class(spec.ray_cluster_spec),
        started_at=epoch(status.start_time),
        finished_at=epoch(status.end_time),
        late=_parse_submitter(spec),
        can_suspend=bool(spec.shutdown_after_job_finishes) and not spec.cluster_selector,
    )


def _parse_roles(spec: WireRayClusterSpec) -> tuple[Role, ...]:
    head = spec.head_group_spec or WireRayGroup()
    groups = {"head": WireReplica(1, head.template)}
    for group in spec.worker_group_specs or ():
        groups[group.group_name or "worker"] = WireReplica(
            (group.replicas or 0) * max(1, group.num_of_hosts or 1), group.template
        )
    return parse_roles(groups)


def _parse_submitter(spec: WireRaySpec) -> tuple[Role, ...]:
    """The pod that submits the program to the Ray cluster, if the operator creates one."""
    if spec.submission_mode not in (None, "", "K8sJobMode"):
        return ()
    template = spec.submitter_pod_template
    if template is None:
        return (_SUBMITTER,)
    return parse_roles({_SUBMITTER.name: WireReplica(1, template)})


def _priority_class(spec: WireRayClusterSpec | None) -> str:
    head = spec and spec.head_group_spec and spec.head_group_spec.template
    return (head and head.spec and head.spec.priority_class_name) or ""


def _parse_conditions(status: WireRayStatus, *, is_suspended: bool) -> tuple[Condition, ...]:
    word = _DEPLOYMENT_STATES.get(status.job_deployment_status or "", "Created")
    if word == "Succeeded" and status.job_status == "FAILED":
        word = "Failed"
    if word == "Created" and is_suspended:
        word = "Suspended"
    at = epoch(status.end_time) or epoch(status.start_time)
    return (Condition(type=word, status="True", message=status.message or "", at=at),)
