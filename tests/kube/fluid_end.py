"""What Fluid leaves in a namespace, as plain values, equal for two clusters that agree.

It leaves out what may differ: times, uids, ports, generated names, the amounts that a cache holds,
and on which node a worker runs if it may choose.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any

from tests.kube.fluid_places import DataPlace
from tests.kube.places import Object

_AMOUNTS = (
    *("UFS TOTAL SIZE", "CACHED", "CACHE CAPACITY", "CACHED PERCENTAGE", "TOTAL FILES"),
    *("CACHE HIT RATIO", "AGE", "DURATION", "HCFS URL"),
)
_HOST = "kubernetes.io/hostname"
_RELEASE = ("name", "owner", "status", "version")
_BY_CHANCE = ("ErrorProcessRuntime",)
"""Events of attempts that fail, and are repeated, only if another controller is slower."""
_FAILED = "NotReady=True DatasetFailedToSetup: "
_MISSING = _FAILED + 'StatefulSet.apps "{}" not found'
_CHANGED = f"{_FAILED}Operation cannot be fulfilled on statefulsets.apps "
_CLUSTER_OBJECTS = ("kube-root-ca.crt",)
_LOAD_NAME = "raw-acc-LOAD"
_LOAD = re.compile(r"\braw-acc-[a-z0-9]{12}\b")
"""A DataLoad of Fairlead: its name ends with the id of the operation."""
_NUMBERS = re.compile(r".*(Number|Phase|Reason)")


def fluid_end(place: DataPlace) -> Object:
    """Each kind that has objects, by name."""
    sets = _named(place.list("statefulsets"), _set)
    found = {
        "datasets": _named(place.list("datasets"), lambda each: _data_set(each, sets)),
        "runtimes": _named(place.list("alluxioruntimes"), _runtime),
        "loads": _named(place.list("dataloads"), _load),
        "claims": _named(place.list("persistentvolumeclaims"), _claim),
        "volumes": _named(_volumes(place), _volume),
        "sets": sets,
        "daemons": _named(place.list("daemonsets"), _owned),
        "services": _named(place.list("services"), _owned),
        "jobs": _named(place.list("jobs"), _job),
        "pods": sorted(_pod(each) for each in place.list("pods")),
        "configmaps": _named(place.list("configmaps"), _config),
        "secrets": _named(place.list("secrets"), lambda each: each["type"]),
        "labels of nodes": _labels(place),
        "events": sorted({_event(each) for each in place.list("events") if _is_fluids(each)}),
        "columns": _columns(place),
    }
    text = _LOAD.sub(_LOAD_NAME, json.dumps({key: each for key, each in found.items() if each}))
    plain: Object = json.loads(text)
    return plain


def _named(items: list[Object], shown: Any) -> Object:
    return {
        each["metadata"]["name"]: shown(each)
        for each in items
        if each["metadata"]["name"] not in _CLUSTER_OBJECTS
    }


def _meta(obj: Object) -> Object:
    meta = obj["metadata"]
    owners = [
        f"{each['kind']} {each['name']}{' controls' if each.get('controller') else ''}"
        for each in meta.get("ownerReferences") or ()
    ]
    shown = {
        "finalizers": sorted(meta.get("finalizers") or ()),
        "owners": owners,
        "going": "deletionTimestamp" in meta,
    }
    return {key: value for key, value in shown.items() if value}


def _fluid_labels(obj: Object) -> Object:
    labels = obj["metadata"].get("labels") or {}
    return {key: labels[key] for key in sorted(labels) if "fluid.io" in key}


def _conditions(status: Object) -> list[str]:
    return [
        f"{each['type']}={each['status']} {each.get('reason', '')}: {each.get('message', '')}"
        for each in status.get("conditions") or ()
    ]


def _data_set(obj: Object, sets: Object) -> Object:
    """Without faults that are found only while Fluid's cache is late: a StatefulSet is missing that
    exists, or has changed meanwhile.
    """
    status = obj.get("status") or {}
    missing = {_MISSING.format(name) for name in sets}
    return {
        **_meta(obj),
        "labels": _fluid_labels(obj),
        "accelerates": (obj["metadata"].get("annotations") or {}).get("fairlead.io/accelerates"),
        "spec": obj["spec"],
        "phase": status.get("phase"),
        "conditions": [
            each
            for each in _conditions(status)
            if each not in missing and not each.startswith(_CHANGED)
        ],
        "amounts": sorted(status.get("cacheStates") or ()),
        "has total": bool(status.get("ufsTotal")),
        "endpoint": re.sub(r"\d+$", "PORT", (status.get("hcfs") or {}).get("endpoint", "")),
        "mounts": status.get("mounts"),
        "runtimes": status.get("runtimes"),
        "operations": status.get("operationRef"),
    }


def _runtime(obj: Object) -> Object:
    """Amounts are compared once a worker is ready.

    Before, they depend on chance: Fluid sets the number of workers, and then reads it from a cache.
    If the cache still has the 0 of the chart, the workers count as ready for this one look, and
    Fluid writes what the empty cache holds.
    """
    status = obj.get("status") or {}
    amounts = status.get("cacheStates") if status.get("workerNumberReady") else None
    return {
        **_meta(obj),
        "labels": _fluid_labels(obj),
        "replicas": obj["spec"].get("replicas"),
        "conditions": _conditions(status),
        "numbers": {key: status[key] for key in sorted(status) if _NUMBERS.match(key)},
        "amounts": sorted(amounts or ()),
    }


def _load(obj: Object) -> Object:
    status = obj.get("status") or {}
    return {
        **_meta(obj),
        "phase": status.get("phase"),
        "conditions": _conditions(status),
        "timed": bool(status.get("duration")),
    }


def _claim(obj: Object) -> Object:
    spec, status = obj["spec"], obj.get("status") or {}
    return {
        **_meta(obj),
        "labels": _fluid_labels(obj),
        "made by": (obj["metadata"].get("annotations") or {}).get("CreatedBy"),
        "spec": {
            "accessModes": spec.get("accessModes"),
            "class": spec.get("storageClassName"),
            "volume": spec.get("volumeName"),
            "asked": spec.get("resources"),
        },
        "phase": status.get("phase"),
        "capacity": status.get("capacity"),
    }


def _volumes(place: DataPlace) -> list[Object]:
    return [
        each
        for each in place.list("persistentvolumes")
        if (each["spec"].get("claimRef") or {}).get("namespace") == place.namespace
    ]


def _volume(obj: Object) -> Object:
    spec = obj["spec"]
    return {
        **_meta(obj),
        "labels": _fluid_labels(obj),
        "made by": (obj["metadata"].get("annotations") or {}).get("CreatedBy"),
        "claim": spec["claimRef"]["name"],
        "class": spec.get("storageClassName"),
        "modes": spec["accessModes"],
        "capacity": spec["capacity"],
        "reclaim": spec.get("persistentVolumeReclaimPolicy"),
        "csi": spec.get("csi"),
        "phase": (obj.get("status") or {}).get("phase"),
    }


def _owned(obj: Object) -> Object:
    return {**_meta(obj), "role": (obj["metadata"].get("labels") or {}).get("role")}


def _set(obj: Object) -> Object:
    status = obj.get("status") or {}
    return {
        **_owned(obj),
        "replicas": obj["spec"].get("replicas"),
        "ready": status.get("readyReplicas", 0),
        "mounts": _mounted(obj["spec"]["template"]["spec"]),
        "selector": obj["spec"]["template"]["spec"].get("nodeSelector"),
    }


def _mounted(spec: Object) -> list[str]:
    volumes = [each.get("persistentVolumeClaim") for each in spec.get("volumes") or ()]
    return [each["claimName"] for each in volumes if each]


def _job(obj: Object) -> Object:
    conditions = (obj.get("status") or {}).get("conditions") or ()
    kinds = sorted(each["type"] for each in conditions if each["status"] == "True")
    return {**_owned(obj), "conditions": kinds}


def _pod(obj: Object) -> str:
    """With its node, if it may run on this one only."""
    name = re.sub(r"-(job|fuse)-[a-z0-9]{5}$", r"-\1-POD", obj["metadata"]["name"])
    name = _LOAD.sub(_LOAD_NAME, name)
    node = obj["spec"].get("nodeName", "") if _is_pinned(obj["spec"]) else ""
    return f"{name} {(obj.get('status') or {}).get('phase')} {node}".rstrip()


def _is_pinned(spec: Object) -> bool:
    """By the name of the host, which the pods of a DaemonSet do not use."""
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    keys = {
        each["key"]
        for term in required.get("nodeSelectorTerms") or ()
        for each in term.get("matchExpressions") or ()
    }
    return _HOST in {*keys, *(spec.get("nodeSelector") or ())}


def _config(obj: Object) -> Object:
    labels = obj["metadata"].get("labels") or {}
    if labels.get("owner") == "helm":
        return {key: labels.get(key) for key in _RELEASE}
    return _meta(obj)


def _labels(place: DataPlace) -> Object:
    """How many nodes have each label of a data set of this namespace."""
    mark = f"{place.namespace}-"
    counts = Counter(
        key
        for node in place.list("nodes")
        for key in node["metadata"].get("labels") or {}
        if "fluid.io/" in key and mark in key
    )
    return dict(sorted(counts.items()))


def _is_fluids(event: Object) -> bool:
    about = event["involvedObject"]
    is_fluids = about.get("apiVersion", "").startswith("data.fluid.io/")
    return is_fluids and event["reason"] not in _BY_CHANCE


def _event(event: Object) -> str:
    about = event["involvedObject"]
    return f"{event['type']} {event['reason']} of {about['kind']}: {event['message']}"


def _columns(place: DataPlace) -> list[str]:
    """What real kubectl prints of Fluid's kinds, amounts left out."""
    shown = []
    for kind in ("dataset", "alluxioruntime", "dataload"):
        text = place.world.kubectl("get", kind, "-o", "wide", "-n", place.namespace)
        shown += [" | ".join(row) for row in _cells(text)]
    return shown


def _cells(text: str) -> list[list[str]]:
    heads, *rows = text.splitlines() or [""]
    if not rows:
        return []
    starts = [found.start() for found in re.finditer(r"(?<!\S)\S+( \S+)*", heads)]
    ends = [*starts[1:], None]
    cut = [
        [line[start:end].strip() for start, end in zip(starts, ends, strict=True)]
        for line in (heads, *rows)
    ]
    names = cut[0]
    return [
        names,
        *(
            [("…" if name in _AMOUNTS else cell) for name, cell in zip(names, row, strict=True)]
            for row in cut[1:]
        ),
    ]
