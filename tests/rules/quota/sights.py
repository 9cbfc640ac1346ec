"""Objects as an API server returns them, from which quota reads its state: pods, their owners,
budgets, nodes, a tree.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from fairlead.kinds.workloads import WORKLOAD_KINDS
from fairlead.model.pod import Pod
from fairlead.model.quota.rows import Budget, Namespace, Workload
from fairlead.model.quota.state import QuotaPod
from fairlead.model.quota.tree import QuotaSettings
from fairlead.rules.quota.sight import PodContext, quota_pod
from fairlead.wire.kube.budgets import WireBudget, WireNamespace, parse_budget, parse_namespace
from fairlead.wire.kube.objects import WirePod, parse_pod

Object = dict[str, Any]


def meta(name: str, *, owner: Object | None = None, namespace: str = "team", **more: Any) -> Object:
    """Metadata of an object. `owner`: the object that controls it."""
    found: Object = {
        "name": name,
        "namespace": namespace,
        "uid": f"uid-{name}",
        "creationTimestamp": "2026-01-05T08:00:00Z",
        **more,
    }
    if owner is not None:
        above = owner["metadata"]
        reference = {
            "apiVersion": owner["apiVersion"],
            "kind": owner["kind"],
            "name": above["name"],
            "uid": above["uid"],
        }
        found["ownerReferences"] = [{**reference, "controller": True, "blockOwnerDeletion": True}]
    return found


def template(cpu: str = "1", **spec: Any) -> Object:
    return {
        "spec": {
            "containers": [{"name": "main", "image": "i", "resources": {"requests": {"cpu": cpu}}}],
            **spec,
        }
    }


def workload(
    api_version: str,
    kind: str,
    name: str,
    spec: Object | None = None,
    status: Object | None = None,
    **more: Any,
) -> Object:
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": meta(name, **more),
        "spec": spec or {},
        "status": status or {},
    }


def pod(
    name: str = "p",
    *,
    cpu: str = "1",
    spec: Object | None = None,
    status: Object | None = None,
    **more: Any,
) -> Object:
    """A pod that runs on node n1."""
    return {
        "metadata": meta(name, **more),
        "spec": {**template(cpu)["spec"], "nodeName": "n1", "priority": 0, **(spec or {})},
        "status": {
            "phase": "Running",
            "conditions": [{"type": "Ready", "status": "True"}],
            **(status or {}),
        },
    }


def gated(name: str = "p", **more: Any) -> Object:
    """A pod as admission creates it, before quota admits it."""
    found = pod(name, status={"phase": "Pending", "conditions": []}, **more)
    del found["spec"]["nodeName"]
    found["spec"]["schedulingGates"] = [{"name": "fairlead.io/quota"}]
    found["metadata"].setdefault("labels", {})["fairlead.io/managed"] = "true"
    return found


def condition(
    status: str, reason: str, at: str = "2026-01-05T08:10:00Z", message: str = ""
) -> Object:
    return {
        "type": "fairlead.io/QuotaAdmitted",
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": at,
    }


def read_pod(value: Object) -> Pod:
    return parse_pod(msgspec.json.decode(msgspec.json.encode(value), type=WirePod))


def read_namespace(name: str, **marks: Object) -> Namespace:
    value = {"metadata": {"name": name, "uid": name, **marks}}
    return parse_namespace(msgspec.json.decode(msgspec.json.encode(value), type=WireNamespace))


def read_budget(name: str, spec: Object, status: Object, generation: int = 1) -> Budget:
    value = {"metadata": meta(name, generation=generation), "spec": spec, "status": status}
    return parse_budget(msgspec.json.decode(msgspec.json.encode(value), type=WireBudget))


def read_workload(value: Object) -> Workload:
    group, _, version = value["apiVersion"].rpartition("/")
    kind = next(
        each for each in WORKLOAD_KINDS if (each.group, each.kind) == (group, value["kind"])
    )
    assert version in kind.versions
    return kind.parse(msgspec.json.decode(msgspec.json.encode(value), type=kind.wire), version)


def seen(
    value: Object, owners: Iterable[Object] = (), budgets: Iterable[Budget] = (), **settings: Any
) -> QuotaPod | None:
    """The pod as quota reads it, given these owners and budgets."""
    around = PodContext(QuotaSettings(**settings))
    for each in owners:
        around.put(read_workload(each))
    for budget in budgets:
        around.put_budget(budget)
    return quota_pod(read_pod(value), around)


def counted(
    value: Object, owners: Iterable[Object] = (), budgets: Iterable[Budget] = (), **settings: Any
) -> QuotaPod:
    found = seen(value, owners, budgets, **settings)
    assert found is not None
    return found
