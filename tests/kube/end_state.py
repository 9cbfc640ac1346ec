"""The end state of a workload: the contents of a namespace, without what may differ between two
clusters (hashes, times, versions).

Counts, phases, conditions with their messages, revisions, owners and the reasons of events stay.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Any

from tests.kube.places import Place

Object = dict[str, Any]

_KINDS = (
    "configmaps",
    "controllerrevisions",
    "cronjobs",
    "daemonsets",
    "deployments",
    "jobs",
    "poddisruptionbudgets",
    "pods",
    "replicasets",
    "statefulsets",
)
_TIMES = ("startTime", "completionTime", "lastScheduleTime", "lastSuccessfulTime")
_UNSTABLE = ("NoPods",)
"""Reasons of events that appear or not, depending on how fast controllers are."""
_OWN_ONLY = ("kubelet", "kwok")
"""Components whose events are not compared: the nodes are played, in each world by other means."""


def end_state(place: Place) -> Object:
    """The namespace as plain values, which are equal for two worlds that agree."""
    objects = {plural: place.list(plural) for plural in _KINDS}
    aliases = _aliases(objects)
    state: Object = {
        plural: _tally(_SHOWN[plural](obj, aliases) for obj in items if _counts(obj))
        for plural, items in objects.items()
    }
    state["events"] = sorted(
        {_event(event, aliases) for event in place.list("events") if _is_compared(event)}
    )
    return {plural: found for plural, found in state.items() if found}


def _counts(obj: Object) -> bool:
    return bool(obj["metadata"]["name"] != "kube-root-ca.crt")


def _aliases(objects: dict[str, list[Object]]) -> dict[str, str]:
    """The alias of an object with a generated name: its owner
    and, of a ReplicaSet, its revision.
    """
    aliases: dict[str, str] = {}
    for plural in ("replicasets", "jobs", "pods", "controllerrevisions"):
        for obj in objects[plural]:
            owner = _controller(obj)
            if owner is None and obj["metadata"].get("generateName"):
                aliases[obj["metadata"]["name"]] = f"{obj['metadata']['generateName']}…"
            if owner is None or (owner["kind"] == "StatefulSet" and plural == "pods"):
                continue
            mark = "revision" if plural == "replicasets" else plural.rstrip("s")
            number = _revision(obj) if plural == "replicasets" else ""
            aliases[obj["metadata"]["name"]] = (
                f"{aliases.get(owner['name'], owner['name'])}/{mark}{number}"
            )
    return aliases


def _controller(obj: Object) -> Object | None:
    return next(
        (
            owner
            for owner in obj["metadata"].get("ownerReferences") or ()
            if owner.get("controller")
        ),
        None,
    )


def _revision(obj: Object) -> str:
    return str(
        (obj["metadata"].get("annotations") or {}).get("deployment.kubernetes.io/revision", "")
    )


def _tally(items: Iterable[tuple[Any, ...]]) -> dict[str, int]:
    return dict(
        sorted(
            Counter(
                " ".join(str(part) for part in item if part not in ("", None, {}, []))
                for item in items
            ).items()
        )
    )


def _name(obj: Object, aliases: dict[str, str]) -> str:
    name = obj["metadata"]["name"]
    return aliases.get(name, name)


def _words(text: str, aliases: dict[str, str]) -> str:
    for name, alias in sorted(aliases.items(), reverse=True):
        text = text.replace(name, alias)
    return text


def _metadata(obj: Object) -> Object:
    """Owners, finalizers, and whether the object is being deleted."""
    metadata = obj["metadata"]
    found: Object = (
        {"finalizers": sorted(metadata.get("finalizers") or ())}
        if metadata.get("finalizers")
        else {}
    )
    if "deletionTimestamp" in metadata:
        found["going"] = True
    owners = sorted(
        f"{owner['kind']}{'!' if owner.get('controller') else ''}"
        for owner in metadata.get("ownerReferences") or ()
    )
    return found | ({"owners": owners} if owners else {})


def _conditions(obj: Object, aliases: dict[str, str], without: tuple[str, ...] = ()) -> Object:
    return {
        item["type"]: ": ".join(
            part
            for part in (
                item["status"],
                item.get("reason", ""),
                _words(item.get("message", ""), aliases),
            )
            if part
        )
        for item in sorted(
            (obj.get("status") or {}).get("conditions") or (), key=lambda item: str(item["type"])
        )
        if item["type"] not in without
    }


_UNCOMPARED = (
    *_TIMES,
    "conditions",
    "observedGeneration",
    "collisionCount",
    "currentRevision",
    "updateRevision",
    "active",
    "disruptedPods",
)


def _status(obj: Object) -> Object:
    """Counts; of times only whether they are set."""
    status = obj.get("status") or {}
    found = {
        key: value
        for key, value in sorted(status.items())
        if key not in _UNCOMPARED and value not in (0, {}, None)
    }
    found |= {key: "set" for key in _TIMES if status.get(key)}
    found |= (
        {
            "active": len(status["active"])
            if isinstance(status.get("active"), list)
            else status["active"]
        }
        if status.get("active")
        else {}
    )
    if "observedGeneration" in status and status["observedGeneration"] != obj["metadata"].get(
        "generation"
    ):
        found["lags"] = True
    if "updateRevision" in status:
        found["updated"] = status.get("currentRevision") == status["updateRevision"]
    return found


def _plain(obj: Object, aliases: dict[str, str]) -> tuple[Any, ...]:
    return _name(obj, aliases), _metadata(obj)


def _workload(obj: Object, aliases: dict[str, str]) -> tuple[Any, ...]:
    wanted = obj["spec"].get("replicas")
    return (
        _name(obj, aliases),
        _revision(obj),
        _metadata(obj),
        wanted,
        _status(obj),
        _conditions(obj, aliases),
    )


def _controller_revision(obj: Object, aliases: dict[str, str]) -> tuple[Any, ...]:
    return _name(obj, aliases), obj["revision"], _metadata(obj)


def _pod(obj: Object, aliases: dict[str, str]) -> tuple[Any, ...]:
    status = obj.get("status") or {}
    conditions = {
        kind: text
        for kind, text in _conditions(obj, aliases).items()
        if kind in ("DisruptionTarget",) or _is_unscheduled(kind, text)
    }
    ready = next(
        (item["status"] for item in status.get("conditions") or () if item["type"] == "Ready"),
        "False",
    )
    index = (obj["metadata"].get("annotations") or {}).get(
        "batch.kubernetes.io/job-completion-index", ""
    )
    images = [container["image"] for container in obj["spec"]["containers"]]
    node = obj["spec"].get("nodeName", "")
    place = (
        node
        if not obj["spec"].get("nodeSelector") or "role" not in obj["spec"]["nodeSelector"]
        else bool(node)
    )
    return (
        _name(obj, aliases),
        index,
        _metadata(obj),
        images,
        status.get("phase"),
        status.get("reason", ""),
        f"ready={ready}",
        f"node={place}",
        conditions,
        obj["spec"].get("priority") or "",
        status.get("nominatedNodeName", ""),
    )


def _is_unscheduled(kind: str, text: str) -> bool:
    return kind == "PodScheduled" and not text.startswith("True")


_SHOWN = {
    "configmaps": _plain,
    "controllerrevisions": _controller_revision,
    "cronjobs": _workload,
    "daemonsets": _workload,
    "deployments": _workload,
    "jobs": _workload,
    "poddisruptionbudgets": _workload,
    "pods": _pod,
    "replicasets": _workload,
    "statefulsets": _workload,
}


def _is_compared(event: Object) -> bool:
    source = (event.get("source") or {}).get("component") or event.get("reportingComponent") or ""
    return not source.startswith(_OWN_ONLY) and event["reason"] not in _UNSTABLE


def _event(event: Object, aliases: dict[str, str]) -> str:
    about = event["involvedObject"]
    # A pod or set that is gone has no alias: use its owner's name, without the generated end.
    name = aliases.get(about["name"]) or re.sub(
        r"-([a-z0-9]{8,10}|\d{8})(-[a-z0-9]{5})?$", "", about["name"]
    )
    owner = re.sub(r"/.*|-[a-z0-9]{5}$", "", name)
    return f"{event['type']} {event['reason']} of {about['kind']} {owner}"
