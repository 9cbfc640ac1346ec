"""The verbs that are neither a read nor a write of a whole object: bind, evict, scale.

The words of the refusals are the real server's: schedulers and `kubectl drain` look at them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from fairlead.wire.kube.time import render_time
from fairlead_sim.objects import resources as served
from fairlead_sim.objects.conditions import conditions_of, with_condition
from fairlead_sim.objects.pod_counts import replica_errors
from fairlead_sim.objects.watch_log import Object
from fairlead_sim.schema.jsonpath import find_first
from fairlead_sim.schema.resource import ResourceKind
from fairlead_sim.schema.selector import selects
from fairlead_sim.schema.status import (
    ApiStatus,
    conflict,
    failed_precondition,
    invalid,
    not_found,
    stale_write,
)

if TYPE_CHECKING:
    from fairlead_sim.store.cluster import StoredCluster

_PODS_BINDING = ResourceKind("", "v1", "Binding", "pods/binding", "binding")
_SCALES = ResourceKind("autoscaling", "v1", "Scale", "scales", "scale")
_VIOLATES_BUDGET = "Cannot evict pod as it would violate the pod's disruption budget."
_BUDGET_CAUSE = "DisruptionBudget"


def bind(cluster: StoredCluster, namespace: str, name: str, binding: Object) -> Object:
    """Give a pod its node; the binding's annotations and labels are merged into the pod.

    Raises 409 when the pod cannot be bound.
    """
    target = str((binding.get("target") or {}).get("name") or "")
    if not target:
        raise ApiStatus(500, "", "target.name: Required value")
    kind = str((binding.get("target") or {}).get("kind") or "")
    if kind not in ("", "Node"):
        raise ApiStatus(
            500,
            "",
            (f'target.kind: Unsupported value: "{kind}": supported values: "Node", "<empty>"'),
        )
    pod = cluster.get(served.PODS, namespace, name)
    if pod is None:
        raise not_found(served.PODS, name)
    given = binding.get("metadata") or {}
    if given.get("uid") and given["uid"] != pod["metadata"]["uid"]:
        raise failed_precondition(served.PODS, name, "UID", given["uid"], pod["metadata"]["uid"])
    why = _unbindable(pod)
    if why:
        raise conflict(_PODS_BINDING, name, why)
    now = render_time(cluster.clock.now())
    bound = cluster.mutate(
        served.PODS, namespace, name, lambda old: _bound(old, target, given, now)
    )
    assert bound is not None
    return bound


def _unbindable(pod: Object) -> str:
    name, spec = pod["metadata"]["name"], pod["spec"]
    if "deletionTimestamp" in pod["metadata"]:
        return f"pod {name} is being deleted, cannot be assigned to a host"
    if spec.get("nodeName"):
        return f'pod {name} is already assigned to node "{spec["nodeName"]}"'
    if spec.get("schedulingGates"):
        return f"pod {name} has non-empty .spec.schedulingGates"
    return ""


def _bound(pod: Object, node: str, given: Object, now: str) -> Object:
    metadata = dict(pod["metadata"])
    for key in ("annotations", "labels"):
        if given.get(key):
            metadata[key] = {**(metadata.get(key) or {}), **given[key]}
    status = {
        key: value for key, value in (pod.get("status") or {}).items() if key != "nominatedNodeName"
    }
    scheduled = {
        "type": "PodScheduled",
        "status": "True",
        "lastProbeTime": None,
        "lastTransitionTime": now,
    }
    status["conditions"] = [
        *(held for held in status.get("conditions") or () if held["type"] != "PodScheduled"),
        scheduled,
    ]
    return {
        **pod,
        "metadata": metadata,
        "spec": {**pod["spec"], "nodeName": node},
        "status": status,
    }


def evict(cluster: StoredCluster, namespace: str, name: str, options: Object) -> None:
    """Delete a pod if its disruption budget allows it (429 otherwise); pods that are done, pending
    or stopping need no permission. A condition names the eviction.
    """
    pod = cluster.get(served.PODS, namespace, name)
    if pod is None:
        raise not_found(served.PODS, name)
    if (pod.get("status") or {}).get("phase") == "Running" and "deletionTimestamp" not in pod[
        "metadata"
    ]:
        _spend_budget(cluster, pod)
    conditions = options.get("preconditions") or {}
    grace, uid = options.get("gracePeriodSeconds"), conditions.get("uid")
    if uid in (None, "", pod["metadata"]["uid"]):
        _note_eviction(cluster, pod)
    cluster.delete(served.PODS, namespace, name, grace_seconds=grace, uid=uid)


def _note_eviction(cluster: StoredCluster, pod: Object) -> None:
    now = render_time(cluster.clock.now())
    conditions = with_condition(
        conditions_of(pod),
        "DisruptionTarget",
        "True",
        "EvictionByEvictionAPI",
        "Eviction API: evicting",
        now,
    )
    status = {**(pod.get("status") or {}), "conditions": conditions}
    cluster.update_status({**pod, "status": status})


def _spend_budget(cluster: StoredCluster, pod: Object) -> None:
    namespace, name = pod["metadata"]["namespace"], pod["metadata"]["name"]
    budgets = cluster.list(served.POD_DISRUPTION_BUDGETS, namespace)
    held_by = [budget for budget in budgets if selects(budget["spec"].get("selector"))(pod)]
    if len(held_by) > 1:
        raise ApiStatus(
            500,
            "InternalError",
            (
                "This pod has more than one PodDisruptionBudget, which the eviction subresource "
                "does not support."
            ),
        )
    for budget in held_by:
        status = budget.get("status") or {}
        if status.get("observedGeneration", 0) < budget["metadata"].get("generation", 1):
            raise _over_budget(
                (
                    f"The disruption budget {budget['metadata']['name']} is still being "
                    "processed by the server."
                ),
                10,
            )
        if status.get("disruptionsAllowed", 0) <= 0:
            raise _over_budget(_budget_words(budget["metadata"]["name"], status), 0)
        disrupted = {**status.get("disruptedPods", {}), name: render_time(cluster.clock.now())}
        spent = {
            **status,
            "disruptionsAllowed": status["disruptionsAllowed"] - 1,
            "disruptedPods": disrupted,
        }
        cluster.update_status({**budget, "status": spent})


def _budget_words(name: str, status: Object) -> str:
    wanted, healthy = status.get("desiredHealthy", 0), status.get("currentHealthy", 0)
    if healthy <= wanted:
        return (
            f"The disruption budget {name} needs {wanted} healthy pods and has {healthy} currently"
        )
    return f"The disruption budget {name} does not allow evicting pods currently"


def _over_budget(why: str, retry_seconds: int) -> ApiStatus:
    details: dict[str, Any] = {"causes": [{"reason": _BUDGET_CAUSE, "message": why}]}
    if retry_seconds:
        details["retryAfterSeconds"] = retry_seconds
    return ApiStatus(429, "TooManyRequests", _VIOLATES_BUDGET, details)


# Where the built-in kinds keep their number of replicas, the number they reached, and their
# selector.
_SCALE_PATHS = {
    "specReplicasPath": ".spec.replicas",
    "statusReplicasPath": ".status.replicas",
    "labelSelectorPath": ".spec.selector.matchLabels",
}


def scale_of(ref: ResourceKind, obj: Object) -> Object:
    """The `autoscaling/v1` Scale of an object."""
    paths = _scale_paths(ref)
    metadata = obj["metadata"]
    status: Object = {"replicas": _at(obj, paths["statusReplicasPath"])}
    selector = find_first(paths["labelSelectorPath"], obj) if "labelSelectorPath" in paths else None
    if isinstance(selector, dict):
        selector = ",".join(f"{key}={value}" for key, value in sorted(selector.items()))
    if selector:
        status["selector"] = selector
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {key: metadata[key] for key in kept if key in metadata},
        "spec": {"replicas": _at(obj, paths["specReplicasPath"])},
        "status": status,
    }


def scaled(ref: ResourceKind, obj: Object, replicas: int) -> Object:
    """The object with this number of replicas."""
    path = tuple(_scale_paths(ref)["specReplicasPath"].strip(".").split("."))
    return _with(obj, path, replicas)


def scale(
    cluster: StoredCluster,
    ref: ResourceKind,
    namespace: str,
    name: str,
    wish: Object,
    entries: list[Object] | None = None,
) -> Object:
    """Set the number of replicas from a Scale, and the object's `managedFields` if they are given;
    returns the new Scale.

    Raises 409 for a stale resourceVersion.
    """
    stored = ref.stored_as or ref
    obj = cluster.get(stored, namespace, name)
    if obj is None:
        raise not_found(ref, name)
    version = (wish.get("metadata") or {}).get("resourceVersion")
    if version and version != obj["metadata"]["resourceVersion"]:
        raise stale_write(ref, name)
    replicas = int((wish.get("spec") or {}).get("replicas") or 0)
    errors = replica_errors("spec.replicas", replicas, least=0)
    if errors:
        raise invalid(_SCALES, name, errors)
    noted = {} if entries is None else {"managedFields": entries}

    def change(old: Object) -> Object:
        return {**scaled(ref, old, replicas), "metadata": {**old["metadata"], **noted}}

    changed = cluster.mutate(stored, namespace, name, change)
    assert changed is not None
    return scale_of(ref, changed)


def _scale_paths(ref: ResourceKind) -> Mapping[str, str]:
    return ref.custom.scale if ref.custom is not None and ref.custom.scale else _SCALE_PATHS


def _at(obj: Object, path: str) -> int:
    return int(find_first(path, obj) or 0)


def _with(obj: Object, path: tuple[str, ...], value: Any) -> Object:
    head, rest = path[0], path[1:]
    return {**obj, head: _with(obj.get(head) or {}, rest, value) if rest else value}
