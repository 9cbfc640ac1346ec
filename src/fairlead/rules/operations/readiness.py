"""Whether an object is ready, and else why not (docs/spec/operations.md#readiness)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from msgspec import Struct

from fairlead.model.actions import Manifest, ObjectRef
from fairlead.rules.installation.order import is_ready, old_pods_text

_COUNTED: Final = ("Deployment", "StatefulSet", "DaemonSet")
_PHASES: Final = {
    "Dataset": ("Bound",),
    "DataLoad": ("Complete",),
    "PersistentVolumeClaim": ("Bound",),
    "PersistentVolume": ("Available", "Bound"),
    "Namespace": ("Active",),
    "Pod": ("Succeeded",),
}
"""The phases of `status.phase` in which an object of a kind is ready."""
_FAILED_PHASES: Final = {"DataLoad": ("Failed",), "Pod": ("Failed",)}
"""The phases from which an object of a kind does not come back."""


class Readiness(Struct, frozen=True):
    """`message`: why the object is not ready. `is_failed`: it will not become ready."""

    is_ready: bool
    message: str = ""
    is_failed: bool = False


READY: Final = Readiness(is_ready=True)


def readiness(obj: Manifest | None, pods: Iterable[Manifest] = ()) -> Readiness:
    """`obj`: None = it does not exist. `pods`: of a workload."""
    if obj is None:
        return Readiness(is_ready=False, message="does not exist")
    if obj["metadata"].get("deletionTimestamp"):
        return Readiness(is_ready=False, message=being_deleted(obj))
    kind, status = obj["kind"], obj.get("status") or {}
    if kind in _COUNTED:
        return _of_workload(obj, status, pods)
    if kind == "Job":
        return _of_job(status)
    if kind in _PHASES:
        return _of_phase(kind, status)
    return READY if is_ready(obj) else Readiness(is_ready=False, message="is not ready")


def still_there(obj: Manifest | None, target: ObjectRef) -> str:
    """Why an object is not gone, "" = it is. Another object of the name is not the target."""
    if obj is None or (target.uid and obj["metadata"].get("uid") != target.uid):
        return ""
    return being_deleted(obj) if obj["metadata"].get("deletionTimestamp") else "exists"


def being_deleted(obj: Any) -> str:
    """
    >>> being_deleted({"metadata": {"finalizers": ["a/b"]}})
    'is being deleted; its finalizers `a/b` are not removed yet'
    """
    finalizers = obj["metadata"].get("finalizers") or ()
    if not finalizers:
        return "is being deleted"
    names = ", ".join(f"`{each}`" for each in finalizers)
    return f"is being deleted; its finalizers {names} are not removed yet"


def _of_workload(obj: Any, status: Any, pods: Iterable[Any]) -> Readiness:
    if obj["kind"] == "StatefulSet":
        wanted = (obj.get("spec") or {}).get("replicas", 1)
        is_new = status.get("observedGeneration", 0) >= obj["metadata"].get("generation", 0)
        is_good = is_new and status.get("readyReplicas", 0) == wanted
        # a set that deletes its pods only when they are deleted has no newer ones to wait for
        counts = f"{status.get('readyReplicas', 0)} of {wanted} pods are ready"
    elif obj["kind"] == "Deployment":
        is_good = is_ready(obj)
        wanted = obj["spec"].get("replicas", 1)
        counts = f"{status.get('availableReplicas', 0)} of {wanted} pods are available"
        counts += old_pods_text(obj)
    else:
        is_good = is_ready(obj)
        wanted = status.get("desiredNumberScheduled", 0)
        counts = f"{status.get('numberAvailable', 0)} of {wanted} pods are available"
    if is_good:
        return READY
    trouble = pod_trouble(pods)
    return Readiness(is_ready=False, message=f"{counts}; {trouble}" if trouble else counts)


def pod_trouble(pods: Iterable[Any]) -> str:
    """Why the first pod that is not ready is not, "" = nothing is reported.

    >>> waiting = {"waiting": {"reason": "ErrImagePull", "message": "not found"}}
    >>> pod_trouble([{"metadata": {"name": "a-1"}, "status": {
    ...     "phase": "Pending", "containerStatuses": [{"name": "a", "state": waiting}]}}])
    'pod `a-1`: ErrImagePull: not found'
    """
    for pod in pods:
        status = pod.get("status") or {}
        if status.get("phase") == "Succeeded" or _is_true(status, "Ready"):
            continue
        reason = _container_trouble(status) or _unscheduled(status)
        if not reason and status.get("phase") == "Failed":
            reason = status.get("reason") or "Failed"
        if reason:
            return f"pod `{pod['metadata']['name']}`: {reason}"
    return ""


def _container_trouble(status: Any) -> str:
    containers = (
        *(status.get("initContainerStatuses") or ()),
        *(status.get("containerStatuses") or ()),
    )
    for each in containers:
        waiting = (each.get("state") or {}).get("waiting") or {}
        if waiting.get("reason") not in (None, "", "ContainerCreating", "PodInitializing"):
            return _sentence(waiting)
    return ""


def _unscheduled(status: Any) -> str:
    for each in status.get("conditions") or ():
        if each.get("type") == "PodScheduled" and each.get("status") == "False":
            return _sentence(each)
    return ""


def _sentence(found: Mapping[str, str]) -> str:
    return ": ".join(filter(None, (found.get("reason"), found.get("message"))))


def _of_job(status: Any) -> Readiness:
    if _is_true(status, "Complete"):
        return READY
    for each in status.get("conditions") or ():
        if each.get("type") == "Failed" and each.get("status") == "True":
            return Readiness(is_ready=False, message=_sentence(each), is_failed=True)
    return Readiness(is_ready=False, message="has not ended")


def _of_phase(kind: str, status: Any) -> Readiness:
    phase = status.get("phase") or "Pending"
    if phase in _PHASES[kind]:
        return READY
    faults = [
        _sentence(each)
        for each in status.get("conditions") or ()
        if _sentence(each) and each.get("status") == ("True" if kind == "DataLoad" else "False")
    ]
    message = f"{phase}: {faults[-1]}" if faults else phase
    return Readiness(
        is_ready=False, message=message, is_failed=phase in _FAILED_PHASES.get(kind, ())
    )


def _is_true(status: Any, condition: str) -> bool:
    return any(
        (each.get("type"), each.get("status")) == (condition, "True")
        for each in status.get("conditions") or ()
    )
