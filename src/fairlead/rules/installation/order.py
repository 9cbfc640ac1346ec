"""The order in which objects of an installation are written and removed, and what is left over."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any, Final

from fairlead.model.actions import Manifest, ObjectRef, object_ref
from fairlead.settings import USERS_NAMESPACE

_WRITTEN: Final = (
    "Namespace",
    "CustomResourceDefinition",
    "ServiceAccount",
    "ClusterRole",
    "ClusterRoleBinding",
    "Role",
    "RoleBinding",
    "ConfigMap",
    "Service",
    "PersistentVolumeClaim",
    "Ingress",
    "NetworkPolicy",
    "PodDisruptionBudget",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
    "MutatingAdmissionPolicy",
    "MutatingAdmissionPolicyBinding",
    "Deployment",
    "DaemonSet",
    "ValidatingWebhookConfiguration",
    "MutatingWebhookConfiguration",
)
"""Kinds in the order of writing.

Limits before the pods that they limit, webhooks after the server that answers them.
"""
_ADMISSION: Final = tuple(
    kind for kind in reversed(_WRITTEN) if "Admission" in kind or "Webhook" in kind
)
_WEBHOOKS: Final = ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration")
_OTHER_WORKLOADS: Final = ("StatefulSet", "Job", "CronJob", "ReplicaSet", "Pod")
DATA_KINDS: Final = frozenset({"CustomResourceDefinition"})
"""Kinds with records of users: they are removed only with the users' consent."""
CLAIM: Final = "PersistentVolumeClaim"
"""The kind of the volume with the console's store."""
_USERS_SPACE: Final = ("Namespace", USERS_NAMESPACE)
WORKLOADS: Final = frozenset({"Deployment", "DaemonSet"})
NAMESPACE: Final = "Namespace"


def in_order(objects: Iterable[Manifest]) -> list[Manifest]:
    """The objects in the order of writing. Objects of one kind keep their order."""
    return sorted(objects, key=lambda each: _WRITTEN.index(each["kind"]))


def in_any_order(objects: Iterable[Manifest]) -> list[Manifest]:
    """As `in_order`, for objects of any kind: what Fairlead's own installation does not have comes
    before the workloads, and other workloads come with them.

    >>> kinds = ("DaemonSet", "StatefulSet", "Secret", "Namespace", "MutatingWebhookConfiguration")
    >>> [each["kind"] for each in in_any_order([{"kind": kind} for kind in kinds])]
    ['Namespace', 'Secret', 'DaemonSet', 'StatefulSet', 'MutatingWebhookConfiguration']
    """
    return sorted(objects, key=lambda each: _place(str(each["kind"])))


def _place(kind: str) -> float:
    if kind in _WRITTEN:
        return _WRITTEN.index(kind)
    if kind in _OTHER_WORKLOADS:
        return _WRITTEN.index("DaemonSet") + 0.5
    return _WRITTEN.index("Deployment") - 0.5


def in_any_removal_order(objects: Iterable[ObjectRef]) -> list[ObjectRef]:
    """Objects of any kind: admission first, then the others in the reverse order of writing.

    >>> refs = [ObjectRef("v1", kind, "x") for kind in ("Namespace", "Secret", "StatefulSet",
    ...     "ValidatingWebhookConfiguration")]
    >>> [each.kind for each in in_any_removal_order(refs)]
    ['ValidatingWebhookConfiguration', 'StatefulSet', 'Secret', 'Namespace']
    """
    return sorted(objects, key=lambda each: (each.kind not in _ADMISSION, -_place(each.kind)))


Identity = tuple[str, str, str, str]


def removal_order(
    objects: Iterable[ObjectRef], limits: Collection[Identity] = ()
) -> list[ObjectRef]:
    """The objects in the order of removal.

    Admission first, so that no removed server is asked; the namespace last. `limits`: admission
    objects that bind only Fairlead's own accounts; they outlive the pods and rights of these.

    >>> refs = [ObjectRef("v1", kind, "x") for kind in ("Namespace", "DaemonSet",
    ...     "ValidatingAdmissionPolicy", "ClusterRole")]
    >>> [each.kind for each in removal_order(refs)]
    ['ValidatingAdmissionPolicy', 'DaemonSet', 'ClusterRole', 'Namespace']
    """
    order = (*_ADMISSION, *(kind for kind in reversed(_WRITTEN) if kind not in _ADMISSION))
    place = {kind: index for index, kind in enumerate(order)}
    last = place[NAMESPACE]

    def key(each: ObjectRef) -> tuple[int, int]:
        own = place.get(each.kind, len(_ADMISSION))
        return (last, own - len(order)) if each.identity in limits else (own, 0)

    return sorted(objects, key=key)


def is_data(target: ObjectRef) -> bool:
    """Whether records of users go with the object.

    >>> [is_data(ObjectRef("v1", "Namespace", name)) for name in ("kube-ai", "fairlead-system")]
    [True, False]
    """
    return target.kind in (*DATA_KINDS, CLAIM) or (target.kind, target.name) == _USERS_SPACE


def is_admission(target: ObjectRef) -> bool:
    return target.kind in _ADMISSION


def left_over(
    before: Iterable[ObjectRef], after: Iterable[Manifest], limits: Collection[Identity] = ()
) -> list[ObjectRef]:
    """What an earlier installation wrote and the next does not have, in the order of removing.

    Definitions of kinds stay, and the users namespace: all objects of the kind, or in the
    namespace, would go.
    """
    kept = {object_ref(each).identity for each in after}
    gone = (each for each in before if each.identity not in kept and not is_data(each))
    return removal_order(gone, limits)


def is_webhooks(obj: Manifest) -> bool:
    return obj["kind"] in _WEBHOOKS


def without_refusals(configuration: Any) -> Manifest:
    """The same webhooks, but what they cannot answer is admitted.

    >>> without_refusals({"webhooks": [{"name": "a", "failurePolicy": "Fail"}]})["webhooks"]
    [{'name': 'a', 'failurePolicy': 'Ignore'}]
    """
    hooks = [{**each, "failurePolicy": "Ignore"} for each in configuration["webhooks"]]
    return {**configuration, "webhooks": hooks}


def old_pods(deployment: Any) -> int:
    """Pods of older specs that the Deployment has not removed yet.

    >>> old_pods({"status": {"replicas": 3, "updatedReplicas": 2}})
    1
    """
    status = deployment.get("status") or {}
    return max(0, int(status.get("replicas", 0)) - int(status.get("updatedReplicas", 0)))


def old_pods_text(deployment: Any) -> str:
    """What stands behind the count of a Deployment's pods, "" = no old pod is there."""
    old = old_pods(deployment)
    return f"; {old} of an older version still to be removed" if old else ""


def is_ready(obj: Any) -> bool:
    """Whether a Deployment, DaemonSet or CustomResourceDefinition has reached its newest spec, and
    every webhook of a configuration has the authority of its server; True for all other objects.
    """
    status = obj.get("status") or {}
    if obj["kind"] == "CustomResourceDefinition":
        return any(
            (each["type"], each["status"]) == ("Established", "True")
            for each in status.get("conditions") or ()
        )
    if obj["kind"] in _WEBHOOKS:
        return all(each["clientConfig"].get("caBundle") for each in obj.get("webhooks") or ())
    # Other kinds have a generation, too, and report none.
    if obj["kind"] in WORKLOADS and (
        status.get("observedGeneration", 0) < obj["metadata"].get("generation", 0)
    ):
        return False
    if obj["kind"] == "Deployment":
        wanted, updated = obj["spec"].get("replicas", 1), status.get("updatedReplicas", 0)
        # Available pods may be old ones that serve until the new ones are available, too.
        return bool(updated == wanted == status.get("availableReplicas", 0) and old_pods(obj) == 0)
    if obj["kind"] == "DaemonSet":
        wanted = status.get("desiredNumberScheduled", 0)
        counts = (status.get("updatedNumberScheduled", 0), status.get("numberAvailable", 0))
        return counts == (wanted, wanted)
    return True
