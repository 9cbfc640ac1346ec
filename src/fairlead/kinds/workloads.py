"""The owners of pods that quota follows: their resources, and how each object becomes a `Workload`.

A training job is parsed once, by its kind; its workload is made from the parsed job.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from msgspec import Struct

from fairlead.kinds.parts.kind import JobKind, source_of
from fairlead.kinds.registry import KINDS, one_per_resource
from fairlead.model.jobs.job import Job, Role
from fairlead.model.keys import ANNOTATION_SUSPENDED_FOR, LABEL_USER
from fairlead.model.quota.rows import Workload, preemptible, stale_marks, suspended_priority
from fairlead.model.resources import Amounts, sum_of
from fairlead.wire.kube.workloads import (
    WireBatchJob,
    WireOwnerObject,
    WirePodGroup,
    parse_batch_job,
    parse_owner_object,
    parse_pod_group,
    times,
)

_SUSPENDABLE: Final = {
    "MPIJob": ("v2beta1", "v1"),
    "TFJob": ("v1",),
    "PyTorchJob": ("v1",),
    "RayJob": ("v1",),
}
"""Kinds whose pods must run together, and their versions that can be suspended.

Specification: docs/spec/quota.md#units-and-gangs.
"""


class WorkloadKind(Struct, frozen=True):
    """A kind of workload.

    `name`: of the source, distinct for two kinds with one plural. `versions`: supported, best
    first.
    """

    name: str
    group: str
    versions: tuple[str, ...]
    kind: str
    plural: str
    wire: type[Any]
    parse: Callable[[Any, str], Workload]


def workload_of(job: Job) -> Workload:
    """The workload of a training job.

    A job that cannot be suspended is not preemptible, unless its label allows it.
    """
    version = job.api_version.rpartition("/")[2]
    on_time = [role for role in job.roles if role not in job.late]
    now, later = (sum(role.replicas for role in roles) for roles in (on_time, job.late))
    is_gang = job.kind in _SUSPENDABLE
    can_suspend = job.can_suspend and version in _SUSPENDABLE.get(job.kind, ())
    label = preemptible(job.labels)
    return Workload(
        job.kind,
        job.api_version,
        job.namespace,
        job.name,
        job.uid,
        owner=job.owner.uid if job.owner else "",
        owner_kind=job.owner.kind if job.owner else "",
        can_suspend=can_suspend,
        is_suspended=job.suspended,
        suspended_for=job.annotations.get(ANNOTATION_SUSPENDED_FOR, ""),
        pods=now + later,
        request=_requested((*on_time, *job.late)),
        least=min(now, job.least or now) if is_gang else 0,
        late=_requested(job.late),
        late_pods=later,
        priority=suspended_priority(job.annotations),
        is_preemptible=False if label is None and not can_suspend else label,
        user=job.labels.get(LABEL_USER, ""),
        is_finished=job.finished_at is not None,
        created_at=job.created_at or 0.0,
        stale=stale_marks(job.annotations, is_suspended=job.suspended),
        has_annotations=bool(job.annotations),
    )


def _requested(roles: list[Role] | tuple[Role, ...]) -> Amounts:
    return sum_of(times(role.replicas, role.requests) for role in roles)


def _own(
    group: str,
    version: str,
    kind: str,
    wire: type[Any],
    parse: Callable[[Any, str, str], Workload],
    name: str = "",
) -> WorkloadKind:
    def read(item: Any, version: str) -> Workload:
        return parse(item, kind, f"{group}/{version}")

    plural = f"{kind.lower()}s"
    return WorkloadKind(name or plural, group, (version,), kind, plural, wire, read)


def _training(kind: JobKind) -> WorkloadKind:
    def read(item: Any, version: str) -> Workload:
        return workload_of(kind.parse(item, version))

    return WorkloadKind(
        source_of(kind), kind.GROUP, kind.VERSIONS, kind.KIND, kind.PLURAL, kind.WIRE, read
    )


OWNER_KINDS: Final = (
    _own("apps", "v1", "ReplicaSet", WireOwnerObject, parse_owner_object),
    _own("apps", "v1", "Deployment", WireOwnerObject, parse_owner_object),
    _own("apps", "v1", "StatefulSet", WireOwnerObject, parse_owner_object),
    _own("batch", "v1", "Job", WireBatchJob, parse_batch_job, "jobs.batch"),
    _own("batch", "v1", "CronJob", WireOwnerObject, parse_owner_object),
    _own("ray.io", "v1", "RayCluster", WireOwnerObject, parse_owner_object),
    _own("apps.kubedl.io", "v1alpha1", "Cron", WireOwnerObject, parse_owner_object),
    _own(
        "scheduling.x-k8s.io",
        "v1alpha1",
        "PodGroup",
        WirePodGroup,
        parse_pod_group,
        "podgroups.scheduling.x-k8s.io",
    ),
    _own(
        "scheduling.volcano.sh",
        "v1beta1",
        "PodGroup",
        WirePodGroup,
        parse_pod_group,
        "podgroups.scheduling.volcano.sh",
    ),
)
"""Owners that are no training jobs."""
WORKLOAD_KINDS: Final = (*OWNER_KINDS, *(_training(kind) for kind in one_per_resource(KINDS)))
