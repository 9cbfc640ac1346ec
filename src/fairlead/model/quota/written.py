"""The part of a written object that admission checks, and the user that writes it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from fairlead.model.resources import NOTHING, Amounts


class Writer(Struct, frozen=True):
    """The user of a request to the API server."""

    user: str
    groups: tuple[str, ...] = ()


class WrittenObject(Struct, frozen=True):
    """A pod that is written, or a Binding, or an owner of pods.

    The latter two have only labels and annotations.

    `requests`: of regular containers and sidecars together, or of the whole pod if it sets them
    (what a resize can change). For a job: its `kind`, the kind of its `controller`, whether it
    `is_suspended`, and whether it `has_deadline` (`activeDeadlineSeconds`), if its controller can
    suspend it.
    """

    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    gates: tuple[str, ...] = ()
    node: str = ""
    requests: Amounts = NOTHING
    kind: str = ""
    controller: str = ""
    is_suspended: bool = False
    has_deadline: bool = False


MAKERS: Final = ("CronJob", "Cron", "Workflow")
"""Controllers (Kubernetes, KubeDL, Argo) that create independent jobs and do not change them later.
"""
DEADLINE_KINDS: Final[Mapping[str, Mapping[str, tuple[str, ...]]]] = {
    "batch/v1": {"Job": ()},
    "kubeflow.org/v1": {
        "TFJob": ("runPolicy",),
        "PyTorchJob": ("runPolicy",),
        "MPIJob": ("runPolicy",),
    },
    "kubeflow.org/v2beta1": {"MPIJob": ("runPolicy",)},
    "ray.io/v1": {"RayJob": ()},
}
"""Jobs with a deadline whose clock stops while they are suspended: kinds by version, with the path
below `spec` of both fields.
"""


def job_part(obj: Any) -> Mapping[str, Any] | None:
    """The part of a job with `suspend` and `activeDeadlineSeconds`; None for other objects.

    >>> spec = {"runPolicy": {"suspend": True}}
    >>> job_part({"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "spec": spec})
    {'suspend': True}
    """
    place = (
        DEADLINE_KINDS.get(str(obj.get("apiVersion")), {}).get(str(obj.get("kind")))
        if isinstance(obj, dict)
        else None
    )
    if place is None:
        return None
    part = obj.get("spec")
    for name in place:
        part = part.get(name) if isinstance(part, dict) else None
    return part if isinstance(part, dict) else None


def written_job(
    obj: Any, labels: Mapping[str, str], annotations: Mapping[str, str]
) -> WrittenObject:
    """An owner of pods that is written: labels and annotations, and the fields of a job."""
    part = job_part(obj)
    if part is None:
        return WrittenObject(labels, annotations)
    owners = (obj.get("metadata") or {}).get("ownerReferences") or ()
    controller = next(
        (
            str(each.get("kind", ""))
            for each in owners
            if isinstance(each, dict) and each.get("controller")
        ),
        "",
    )
    kind, is_suspended = str(obj["kind"]), bool(part.get("suspend"))
    deadline = bool(part.get("activeDeadlineSeconds")) and (
        kind != "RayJob" or is_suspendable_ray_job(part)
    )
    return WrittenObject(
        labels,
        annotations,
        kind=kind,
        controller=controller,
        is_suspended=is_suspended,
        has_deadline=deadline,
    )


def is_suspendable_ray_job(spec: Mapping[str, Any]) -> bool:
    """Whether kuberay-operator can suspend a RayJob with this `spec`.

    It reports any other suspended RayJob as invalid and does not touch its pods
    (`ValidateRayJobSpec`, 1.4.2).

    >>> ray = {"shutdownAfterJobFinishes": True}
    >>> specs = ray, {}, {**ray, "clusterSelector": {"ray.io/cluster": "shared"}}
    >>> tuple(map(is_suspendable_ray_job, specs))
    (True, False, False)
    """
    return bool(spec.get("shutdownAfterJobFinishes")) and not spec.get("clusterSelector")
