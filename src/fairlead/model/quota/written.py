"""What admission sees of an object that somebody writes, and who writes it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from fairlead.model.resources import NOTHING, Amounts


class Writer(Struct, frozen=True):
    """Who asks the API server, as it knows him."""

    user: str
    groups: tuple[str, ...] = ()


class Written(Struct, frozen=True):
    """A pod as it is written, or a Binding, or the owner of pods: these have labels and annotations alone.

    `requests`: what its containers that stay ask for together, or the whole pod where that is said (what a
    resize can change). Of a job: its `kind`, that of its `controller`, whether it `is_suspended`, and whether
    it `has_deadline`: `activeDeadlineSeconds`, where its controller lets it be suspended.
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
"""Controllers (Kubernetes, KubeDL, Argo) that create jobs and leave them alone, each a job of its own."""
DEADLINE_KINDS: Final[Mapping[str, Mapping[str, tuple[str, ...]]]] = {
    "batch/v1": {"Job": ()},
    "kubeflow.org/v1": {"TFJob": ("runPolicy",), "PyTorchJob": ("runPolicy",), "MPIJob": ("runPolicy",)},
    "kubeflow.org/v2beta1": {"MPIJob": ("runPolicy",)},
    "ray.io/v1": {"RayJob": ()},
}
"""Jobs that may have a deadline whose clock stands still while they are suspended: kinds by version, with the
place below `spec` where both are written."""


def job_part(obj: Any) -> Mapping[str, Any] | None:
    """Where a job of these kinds says `suspend` and `activeDeadlineSeconds`; None = it is none of them.

    >>> job_part({"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "spec": {"runPolicy": {"suspend": True}}})
    {'suspend': True}
    """
    place = DEADLINE_KINDS.get(str(obj.get("apiVersion")), {}).get(str(obj.get("kind"))) if isinstance(obj, dict) else None
    if place is None:
        return None
    part = obj.get("spec")
    for name in place:
        part = part.get(name) if isinstance(part, dict) else None
    return part if isinstance(part, dict) else None


def written_job(obj: Any, labels: Mapping[str, str], annotations: Mapping[str, str]) -> Written:
    """An owner of pods as it is written: the labels and annotations, and what a job says of itself."""
    part = job_part(obj)
    if part is None:
        return Written(labels, annotations)
    owners = (obj.get("metadata") or {}).get("ownerReferences") or ()
    controller = next((str(each.get("kind", "")) for each in owners if isinstance(each, dict) and each.get("controller")), "")
    kind, is_suspended = str(obj["kind"]), bool(part.get("suspend"))
    deadline = bool(part.get("activeDeadlineSeconds")) and (kind != "RayJob" or is_suspendable_ray_job(part))
    return Written(labels, annotations, kind=kind, controller=controller, is_suspended=is_suspended, has_deadline=deadline)


def is_suspendable_ray_job(spec: Mapping[str, Any]) -> bool:
    """Whether kuberay-operator lets a RayJob with this `spec` be suspended. It calls any other suspended one
    invalid and leaves its pods as they are (`ValidateRayJobSpec`, 1.4.2).

    >>> ray = {"shutdownAfterJobFinishes": True}
    >>> specs = ray, {}, {**ray, "clusterSelector": {"ray.io/cluster": "shared"}}
    >>> tuple(map(is_suspendable_ray_job, specs))
    (True, False, False)
    """
    return bool(spec.get("shutdownAfterJobFinishes")) and not spec.get("clusterSelector")
