"""What the simulated controllers of Fluid share: whether one runs, labels, releases of Helm, and
which pods mount a data set.

Fluid 1.0.8 is the model; `wire/data/stand_in` installs what these controllers need.
"""

from __future__ import annotations

import gzip
import json
from base64 import b64encode
from typing import Any

from fairlead.wire.data.fluid import ALLUXIO, DATASET, FLUID_NAMESPACE, VERSION
from fairlead.wire.kube.time import parse_time, render_time
from fairlead.wire.names import FLUID_GROUP
from fairlead_sim.controllers.plan import Plan, View, is_going
from fairlead_sim.objects.conditions import find_condition, phase_of, status_of
from fairlead_sim.objects.mounts import mounted_claims

Object = dict[str, Any]

API_VERSION = f"{FLUID_GROUP}/{VERSION}"
OPERATION = "DataLoad"
"""The key of `status.operationRef` of a Dataset."""
DATASET_FINALIZER = "fluid-dataset-controller-finalizer"
RETRY_SECONDS = 20.0
"""After how long Fluid's controllers look again at what is not ready."""
MOST_RELEASE_NAME = 53
_LONGEST_LABEL = 63


def is_running(view: View, controller: str) -> bool:
    """Whether a Deployment of Fluid has a ready pod; without one nothing is reconciled."""
    found = view.find("apps/v1", "Deployment", controller, FLUID_NAMESPACE)
    return found is not None and bool(status_of(found).get("readyReplicas"))


def dataset_of(view: View, obj: Object) -> Object | None:
    """The Dataset of the same name."""
    metadata = obj["metadata"]
    return view.find(API_VERSION, DATASET[3], metadata["name"], metadata["namespace"])


def runtime_of(view: View, obj: Object) -> Object | None:
    """The AlluxioRuntime of the same name."""
    metadata = obj["metadata"]
    return view.find(API_VERSION, ALLUXIO[3], metadata["name"], metadata["namespace"])


def owner_reference(owner: Object, *, controls: bool) -> Object:
    metadata = owner["metadata"]
    reference = {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": metadata["name"],
        "uid": metadata["uid"],
    }
    return reference | ({"controller": True, "blockOwnerDeletion": False} if controls else {})


def adopted(obj: Object, dataset: Object, finalizer: str) -> Object:
    """The object with its Dataset as an owner, and the finalizer."""
    metadata = obj["metadata"]
    owners = metadata.get("ownerReferences") or []
    if all(owner["uid"] != dataset["metadata"]["uid"] for owner in owners):
        owners = [*owners, owner_reference(dataset, controls=False)]
    kept = {"ownerReferences": owners, "finalizers": finalizers_with(obj, finalizer)}
    return {**obj, "metadata": {**metadata, **kept}}


def finalizers_with(obj: Object, finalizer: str) -> list[str]:
    return list(dict.fromkeys((*(obj["metadata"].get("finalizers") or ()), finalizer)))


def without_finalizer(obj: Object, finalizer: str) -> Object:
    metadata = obj["metadata"]
    kept = [each for each in metadata.get("finalizers") or () if each != finalizer]
    return {**obj, "metadata": {**metadata, "finalizers": kept}}


def identity(dataset: Object, prefix: str = "") -> str:
    """`NAMESPACE-NAME` after a prefix, or the Dataset's uid where that is too long for a label.

    >>> identity({"metadata": {"namespace": "demo", "name": "images", "uid": "1"}}, "fluid.io/f-")
    'fluid.io/f-demo-images'
    """
    metadata = dataset["metadata"]
    words = f"{prefix}{metadata['namespace']}-{metadata['name']}"
    return words if len(words) < _LONGEST_LABEL else f"{prefix}{metadata['uid']}"


def with_fluid_condition(
    conditions: list[Object],
    kind: str,
    status: str,
    reason: str,
    message: str,
    view: View,
    *,
    seen: str,
) -> list[Object]:
    """Fluid's conditions have, beside the time of the last change, one of the last write (`seen`
    names the field). It stays while the condition is the same.
    """
    old = find_condition(conditions, kind)
    words = {"type": kind, "status": status, "reason": reason, "message": message}
    if old is not None and words.items() <= old.items():
        return conditions
    moved = old is None or old["status"] != status
    since = view.time if moved or old is None else old.get("lastTransitionTime", view.time)
    new = {**words, seen: view.time, "lastTransitionTime": since}
    if old is None:
        return [*conditions, new]
    return [new if each is old else each for each in conditions]


# --- pods -----------------------------------------------------------------------------------------


def mounting_pods(view: View, namespace: str, claim: str) -> list[Object]:
    """Pods that mount the claim, and have neither ended nor been deleted."""
    return [
        pod
        for pod in view.pods_in(namespace)
        if claim in mounted_claims(pod)
        and not is_going(pod)
        and phase_of(pod) not in ("Succeeded", "Failed")
    ]


# --- releases of Helm -----------------------------------------------------------------------------


def release_name(name: str, revision: int = 1) -> str:
    return f"sh.helm.release.v1.{name}.v{revision}"


def release_of(
    name: str, namespace: str, chart: Object, objects: list[Object], now: float
) -> Object:
    """The ConfigMap in which Fluid's Helm keeps a release that is deployed."""
    at = render_time(now)
    release = {
        "name": name,
        "namespace": namespace,
        "version": 1,
        "info": {
            "status": "deployed",
            "first_deployed": at,
            "last_deployed": at,
            "description": "Install complete",
        },
        "chart": {"metadata": {"apiVersion": "v2", **chart}, "templates": [], "values": {}},
        "config": {},
        "manifest": "".join(f"---\n{json.dumps(each, sort_keys=True)}\n" for each in objects),
    }
    packed = b64encode(gzip.compress(json.dumps(release, sort_keys=True).encode(), mtime=0))
    labels = {"name": name, "owner": "helm", "status": "deployed", "version": "1"}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": release_name(name),
            "namespace": namespace,
            "labels": {**labels, "modifiedAt": str(int(now))},
        },
        "data": {"release": packed.decode()},
    }


def install_fault(chart: str, release: str) -> str:
    """Why Helm does not install a release of this name, as Fluid reports it; "" if it does.

    >>> install_fault("alluxio", "images"), install_fault("alluxio", "x" * 54)[-27:]
    ('', 'x" exceeds max length of 53')
    """
    if len(release) <= MOST_RELEASE_NAME:
        return ""
    return failed_install(
        chart, f'release name "{release}" exceeds max length of {MOST_RELEASE_NAME}'
    )


def failed_install(chart: str, why: str) -> str:
    where = f"failed to install kubernetes resources of /charts/{chart}"
    return f"{where}: Error: INSTALLATION FAILED: {why}"


def releases(view: View, namespace: str, name: str) -> list[Object]:
    """All revisions of a release, Fluid's or a foreign one. Fluid's Helm does not see releases that
    are kept in Secrets.
    """
    return [
        found
        for found in view.listed("v1", "ConfigMap", namespace)
        if (labels := found["metadata"].get("labels") or {}).get("owner") == "helm"
        and labels.get("name") == name
    ]


def helm_labels(release: str, chart: str, version: str, dataset: Object) -> dict[str, str]:
    """The labels that every object of Fluid's charts has."""
    return {
        "release": release,
        "heritage": "Helm",
        "app.kubernetes.io/name": chart,
        "app.kubernetes.io/instance": release,
        "app.kubernetes.io/managed-by": "Helm",
        "fluid.io/managed-by": "fluid",
        "fluid.io/dataset-id": identity(dataset),
    }


def asked_to_end_at(obj: Object) -> float:
    return parse_time(obj["metadata"]["deletionTimestamp"])


# --- operations -----------------------------------------------------------------------------------


def operations_of(dataset: Object) -> list[str]:
    """The DataLoads that run on the Dataset."""
    words = (status_of(dataset).get("operationRef") or {}).get(OPERATION) or ""
    return [name for name in words.split(",") if name]


def set_operations(dataset: Object, names: list[str], plan: Plan) -> None:
    """Write which DataLoads run on the Dataset."""
    if names == operations_of(dataset):
        return
    before = status_of(dataset)
    others = dict(before.get("operationRef") or {})
    others.pop(OPERATION, None)
    if names:
        others[OPERATION] = ",".join(names)
    kept = {key: each for key, each in before.items() if key != "operationRef"}
    plan.statuses.append((dataset, {**kept, **({"operationRef": others} if others else {})}))
