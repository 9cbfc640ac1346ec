"""Kubernetes' owners of pods as `Workload` rows: ReplicaSets, Jobs, PodGroups, and their owners.

Only the fields that quota uses are decoded: there may be ten times as many ReplicaSets as
Deployments.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from fairlead.model.keys import (
    ANNOTATION_LOWERED,
    ANNOTATION_PARALLELISM,
    ANNOTATION_SUSPENDED_FOR,
    GANG_KOORDINATOR,
    GANG_VOLCANO,
    LABEL_GANG,
    LABEL_OLD_GANG,
    LABEL_POD_GROUP,
    LABEL_USER,
)
from fairlead.model.pod import controller_of, needed_by
from fairlead.model.quota.rows import Workload, preemptible, stale_marks, suspended_priority
from fairlead.model.resources import NOTHING, Amounts
from fairlead.wire.kube.objects import (
    WireCondition,
    WireMeta,
    WirePodSpec,
    epoch,
    parse_containers,
    parse_labels,
    parse_owners,
)
from fairlead.wire.kube.quantity import parse_amounts

REVISION: Final = "deployment.kubernetes.io/revision"
_ENDED: Final = ("Complete", "Failed")
_GANG_LABELS: Final = (LABEL_POD_GROUP, LABEL_GANG, LABEL_OLD_GANG)
_GANG_ANNOTATIONS: Final = (GANG_KOORDINATOR, GANG_VOLCANO)


class WireOwnerObject(Struct, gc=False):
    """Any object that owns pods, or owns another owner."""

    metadata: WireMeta


class WireJobTemplate(Struct, gc=False):
    metadata: WireMeta | None = None
    spec: WirePodSpec | None = None


class WireBatchJobSpec(Struct, gc=False, rename="camel"):
    parallelism: int | None = None
    completions: int | None = None
    completion_mode: str | None = None
    suspend: bool | None = None
    template: WireJobTemplate | None = None


class WireUncountedPods(Struct, gc=False):
    succeeded: list[str] | None = None


class WireBatchJobStatus(Struct, gc=False, rename="camel"):
    succeeded: int | None = None
    failed_indexes: str | None = None
    uncounted_terminated_pods: WireUncountedPods | None = None
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
    """The workload with its metadata; the revision, if it is a ReplicaSet."""
    return _workload(wire.metadata, kind, api_version)


def parse_batch_job(wire: WireBatchJob, kind: str, api_version: str) -> Workload:
    """A Job. When it is resumed, it starts as many pods as may run at once and are still missing.

    A Job without `completions` starts no further pods once a pod has succeeded, so suspending it
    would lose work for good: it is not preemptible unless its label allows it.
    """
    spec, status = wire.spec or WireBatchJobSpec(), wire.status or WireBatchJobStatus()
    template = spec.template or WireJobTemplate()
    pod, made = template.spec or WirePodSpec(), template.metadata or WireMeta()
    annotations = wire.metadata.annotations or {}
    parallelism = 1 if spec.parallelism is None else spec.parallelism
    own = _own_parallelism(annotations, parallelism)
    left, each = _left(spec, status), template_request(pod)
    pods = max(0, parallelism if left is None else min(parallelism, left))
    is_at_once = spec.completion_mode == "Indexed" and parallelism >= (spec.completions or 0)
    is_winding_down = spec.completions is None and bool(_succeeded(status))
    label = preemptible(parse_labels(made.labels))
    label = preemptible(parse_labels(wire.metadata.labels)) if label is None else label
    suspended = bool(spec.suspend)
    return _workload(
        wire.metadata,
        kind,
        api_version,
        can_suspend=True,
        is_suspended=suspended,
        pods=pods,
        request=times(pods, each),
        least=pods if is_at_once else 0,
        priority=pod.priority or suspended_priority(annotations),
        is_preemptible=False if label is None and is_winding_down else label,
        is_finished=any(
            each.type in _ENDED and each.status == "True" for each in status.conditions or ()
        ),
        parallelism=parallelism,
        own_parallelism=own,
        each=each,
        held=max(0, (own if left is None else min(own, left)) - pods) if own else 0,
        can_lower=not is_at_once and not is_winding_down,
        is_gang=is_at_once or _names_gang(made),
        stale=stale_marks(annotations, is_suspended=suspended, own_parallelism=own),
        has_annotations=bool(annotations),
    )


def _succeeded(status: WireBatchJobStatus) -> int:
    """The number of pods that succeeded, with those that the Job controller has not yet counted."""
    uncounted = status.uncounted_terminated_pods
    return (status.succeeded or 0) + len((uncounted and uncounted.succeeded) or ())


def _left(spec: WireBatchJobSpec, status: WireBatchJobStatus) -> int | None:
    """The number of pods that must still succeed; None = not set.

    Failed indexes start no more pods.
    """
    if spec.completions is None:
        return None
    return spec.completions - _succeeded(status) - count_indexes(status.failed_indexes or "")


def count_indexes(text: str) -> int:
    """The number of indexes that a Job's status lists; malformed ranges count as 0.

    >>> count_indexes("0-2,5"), count_indexes(""), count_indexes("x")
    (4, 0, 0)
    """
    count = 0
    for part in text.split(","):
        first, _, last = part.partition("-")
        if first.isdecimal() and (not last or last.isdecimal()):
            count += int(last or first) - int(first) + 1
    return count


def _own_parallelism(annotations: Mapping[str, str | None], parallelism: int) -> int:
    """The owner's `parallelism` before Fairlead lowered it.

    0 = it was not lowered, or has changed since.
    """
    own, lowered = (
        annotations.get(key) or "" for key in (ANNOTATION_PARALLELISM, ANNOTATION_LOWERED)
    )
    if (
        not (own.isdecimal() and lowered.isdecimal() and len(own) < 11)
        or int(lowered) != parallelism
    ):
        return 0
    return int(own) if int(own) > parallelism else 0


def _names_gang(made: WireMeta) -> bool:
    labels, annotations = parse_labels(made.labels), made.annotations or {}
    return any(labels.get(key) for key in _GANG_LABELS) or any(
        annotations.get(key) for key in _GANG_ANNOTATIONS
    )


def parse_pod_group(wire: WirePodGroup, kind: str, api_version: str) -> Workload:
    return _workload(
        wire.metadata, kind, api_version, least=max(0, (wire.spec and wire.spec.min_member) or 0)
    )


def template_request(spec: WirePodSpec) -> Amounts:
    """The request of one pod of a template.

    Raises ValueError (quantity named) for amounts that the API would refuse.
    """
    containers, inits = parse_containers(spec.containers), parse_containers(spec.init_containers)
    return needed_by(
        containers, inits, lambda container: container.requests, parse_amounts(spec.overhead)
    )


def times(count: int, request: Amounts) -> Amounts:
    """
    >>> times(3, {"cpu": 500}), times(0, {"cpu": 500})
    ({'cpu': 1500}, {})
    """
    return {name: count * amount for name, amount in request.items()} if count > 0 else NOTHING


def _workload(meta: WireMeta, kind: str, api_version: str, **more: Any) -> Workload:
    labels, owner, annotations = (
        parse_labels(meta.labels),
        controller_of(parse_owners(meta.owner_references)),
        meta.annotations or {},
    )
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
        user=labels.get(LABEL_USER, ""),
        created_at=epoch(meta.creation_timestamp) or 0.0,
        **{"is_preemptible": preemptible(labels), **more},
    )
