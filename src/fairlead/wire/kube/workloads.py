"""Kubernetes' own owners of pods as `Workload` rows: ReplicaSets, Jobs, PodGroups, and whatever stands above.

Only what quota asks of them is decoded: there may be ten times as many ReplicaSets as Deployments.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct

from fairlead.model.keys import ANNOTATION_SUSPENDED_FOR, LABEL_USER
from fairlead.model.pod import controller_of, needed_by
from fairlead.model.quota.rows import Workload, preemptible, suspended_priority
from fairlead.model.resources import NOTHING, Amounts
from fairlead.wire.kube.objects import WireCondition, WireMeta, WirePodSpec, epoch, parse_containers, parse_labels, parse_owners
from fairlead.wire.kube.quantity import parse_amounts

REVISION: Final = "deployment.kubernetes.io/revision"
_ENDED: Final = ("Complete", "Failed")


class WireOwnerObject(Struct, gc=False):
    """Any object that owns pods, or owns an owner of pods."""

    metadata: WireMeta


class WireJobTemplate(Struct, gc=False):
    spec: WirePodSpec | None = None


class WireBatchJobSpec(Struct, gc=False, rename="camel"):
    parallelism: int | None = None
    completions: int | None = None
    suspend: bool | None = None
    template: WireJobTemplate | None = None


class WireBatchJobStatus(Struct, gc=False):
    succeeded: int | None = None
    conditions: list[WireCondition] | None = None


class WireBatchJob(Struct, gc=False):
    metadata: WireMeta
    spec: WireBatchJobSpec | None = None
    status: WireBatchJobStatus | None = None


class WirePodGroupSpec(Struct, gc=False, rename="camel"):
    min_member: int | None = None


class WirePodGroup(Struct, gc=False):
    metadata: WireMeta
    spec: WirePodGroupSpec | None = None


def parse_owner_object(wire: WireOwnerObject, kind: str, api_version: str) -> Workload:
    """What its metadata say; the revision, of a ReplicaSet."""
    return _workload(wire.metadata, kind, api_version)


def parse_batch_job(wire: WireBatchJob, kind: str, api_version: str) -> Workload:
    """A Job. When resumed it brings as many pods as may run at once and are still missing."""
    spec, status = wire.spec or WireBatchJobSpec(), wire.status or WireBatchJobStatus()
    pod = (spec.template and spec.template.spec) or WirePodSpec()
    pods = 1 if spec.parallelism is None else spec.parallelism
    if spec.completions is not None:
        pods = min(pods, spec.completions - (status.succeeded or 0))
    return _workload(
        wire.metadata,
        kind,
        api_version,
        can_suspend=True,
        is_suspended=bool(spec.suspend),
        pods=max(0, pods),
        request=times(pods, template_request(pod)),
        priority=pod.priority or suspended_priority(wire.metadata.annotations or {}),
        is_finished=any(each.type in _ENDED and each.status == "True" for each in status.conditions or ()),
    )


def parse_pod_group(wire: WirePodGroup, kind: str, api_version: str) -> Workload:
    return _workload(wire.metadata, kind, api_version, least=max(0, (wire.spec and wire.spec.min_member) or 0))


def template_request(spec: WirePodSpec) -> Amounts:
    """What one pod of a template asks for; raises ValueError (quantity named) for amounts the API would
    refuse.
    """
    containers, inits = parse_containers(spec.containers), parse_containers(spec.init_containers)
    return needed_by(containers, inits, lambda container: container.requests, parse_amounts(spec.overhead))


def times(count: int, request: Amounts) -> Amounts:
    """
    >>> times(3, {"cpu": 500}), times(0, {"cpu": 500})
    ({'cpu': 1500}, {})
    """
    return {name: count * amount for name, amount in request.items()} if count > 0 else NOTHING


def _workload(meta: WireMeta, kind: str, api_version: str, **more: Any) -> Workload:
    labels, owner, annotations = parse_labels(meta.labels), controller_of(parse_owners(meta.owner_references)), meta.annotations or {}
    revision = annotations.get(REVISION) or ""
    return Workload(
        kind,
        api_version,
        meta.namespace or "",
        meta.name or "",
        meta.uid or "",
        owner=owner.uid if owner else "",
        owner_kind=owner.kind if owner else "",
        revision=int(revision) if revision.isdecimal() else 0,
        suspended_for=annotations.get(ANNOTATION_SUSPENDED_FOR) or "",
        is_preemptible=preemptible(labels),
        user=labels.get(LABEL_USER, ""),
        created_at=epoch(meta.creation_timestamp) or 0.0,
        **more,
    )
