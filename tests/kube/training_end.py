"""The end state of a training job: the job, its pods and their surroundings as plain values, equal
for two worlds that agree.

It leaves out what may differ: times, hashes, generated names, the contents of keys, the environment
that the operators give containers, and what training-operator itself leaves to chance (it handles
the roles of a PyTorchJob in no order).
"""

from __future__ import annotations

import re
from typing import Any

from tests.kube.places import Object, Place

_RUN_LABELS = ("controller-uid", "batch.kubernetes.io/controller-uid")
_HURRIED = ("FailedScheduling", "Unschedulable", "ExitedWithCode")
"""Reasons of events that appear or not, depending on which controller is faster; the simulated
operators write no events about exit codes.
"""


def training_end(place: Place, plural: str, name: str) -> Object:
    found = place.the(plural, name)
    events = [
        event for event in place.list("events") if event["involvedObject"]["kind"] == found["kind"]
    ]
    return {
        "job": _status(found),
        "pods": sorted((_pod(pod) for pod in place.list("pods")), key=lambda pod: str(pod["name"])),
        "jobs": [_batch_job(batch) for batch in place.list("jobs")],
        "services": sorted(
            (_service(each) for each in place.list("services")), key=lambda each: str(each["name"])
        ),
        "kept": sorted(
            f"{kind}/{_plain(each)}"
            for kind in ("configmaps", "secrets")
            for each in place.list(kind)
            if _owner(each)
        ),
        "events": sorted(
            {
                f"{event['type']} {event['reason']}: {event['message']}"
                for event in events
                if event["reason"] not in _HURRIED
            }
        ),
    }


def _status(job: Object) -> Object:
    status = job.get("status") or {}
    conditions = [
        f"{each['type']}={each['status']} {each['reason']}: {each['message']}"
        for each in status.get("conditions") or ()
    ]
    times = sorted(key for key in ("startTime", "completionTime") if status.get(key))
    counts = status.get("replicaStatuses") or {}
    replicas = {
        role: {key: value for key, value in each.items() if key != "selector"}
        for role, each in counts.items()
    }
    return {"conditions": conditions, "replicas": replicas, "times": times}


def _pod(pod: Object) -> Object:
    labels = {
        key: value for key, value in pod["metadata"]["labels"].items() if key not in _RUN_LABELS
    }
    spec = pod["spec"]
    return {
        "name": re.sub(r"(?<=-launcher-)[a-z0-9]{5}$", "…", pod["metadata"]["name"]),
        "owner": _owner(pod),
        "labels": labels,
        "phase": pod["status"]["phase"],
        "restart": spec["restartPolicy"],
        "host": [spec.get("hostname"), spec.get("subdomain")],
        "inits": [(each["name"], each["image"]) for each in spec.get("initContainers") or ()],
        "command": spec["containers"][0].get("command"),
    }


def _batch_job(job: Object) -> Object:
    conditions = [
        f"{each['type']}={each['status']} {each.get('reason', '')}"
        for each in job["status"].get("conditions") or ()
    ]
    spec = {
        key: job["spec"].get(key) for key in ("backoffLimit", "activeDeadlineSeconds", "suspend")
    }
    return {
        "name": job["metadata"]["name"],
        "labels": job["metadata"].get("labels"),
        "spec": spec,
        "conditions": sorted(conditions),
    }


def _service(service: Object) -> Object:
    spec: dict[str, Any] = service["spec"]
    ports = [(port.get("name"), port["port"]) for port in spec.get("ports") or ()]
    kept = {key: spec.get(key) for key in ("clusterIP", "selector", "publishNotReadyAddresses")}
    return {
        "name": service["metadata"]["name"],
        "labels": service["metadata"].get("labels"),
        "owner": _owner(service),
        "ports": ports,
        **kept,
    }


def _plain(obj: Object) -> str:
    return (
        f"{obj['metadata']['name']} {sorted(obj.get('data') or ())} {obj.get('type', '')} "
        f"{obj['metadata'].get('labels')}"
    )


def _owner(obj: Object) -> str:
    """The kind of the controller, with a mark when it blocks the owner's deletion."""
    owners = [
        owner for owner in obj["metadata"].get("ownerReferences") or () if owner.get("controller")
    ]
    return " ".join(f"{owner['kind']} {owner.get('blockOwnerDeletion')}" for owner in owners)
