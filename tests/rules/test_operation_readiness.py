"""When an object is ready, and what is reported while it is not (docs/spec/operations.md)."""

from __future__ import annotations

from typing import Any

import pytest

from fairlead.model.actions import ObjectRef
from fairlead.rules.operations.readiness import pod_trouble, readiness, still_there

Object = dict[str, Any]


def obj(kind: str, status: Any = None, spec: Any = None, **meta: Any) -> Object:
    return {
        "kind": kind,
        "metadata": {"name": "a", **meta},
        "spec": spec or {},
        "status": status or {},
    }


def pod(name: str, **status: Any) -> Object:
    return {"metadata": {"name": name}, "status": {"phase": "Pending", **status}}


UNBOUND = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "Unschedulable",
    "message": "0/3 nodes are available",
}
DEPLOYMENT = {"observedGeneration": 2, "updatedReplicas": 2, "availableReplicas": 2}


@pytest.mark.parametrize(
    ("found", "pods", "message"),
    [
        (None, [], "does not exist"),
        (obj("Deployment", DEPLOYMENT, {"replicas": 2}, generation=2), [], ""),
        (
            obj("Deployment", DEPLOYMENT, {"replicas": 2}, generation=3),
            [],
            "2 of 2 pods are available",
        ),
        (
            obj("Deployment", {**DEPLOYMENT, "replicas": 3}, {"replicas": 2}, generation=2),
            [],
            "2 of 2 pods are available; 1 of an older version still to be removed",
        ),
        (
            obj("Deployment", {"observedGeneration": 1}, {"replicas": 1}, generation=1),
            [pod("a-1", conditions=[UNBOUND])],
            "0 of 1 pods are available; pod `a-1`: Unschedulable: 0/3 nodes are available",
        ),
        (obj("StatefulSet", {"readyReplicas": 1}, {"replicas": 1}), [], ""),
        (obj("StatefulSet", {}, {"replicas": 2}), [], "0 of 2 pods are ready"),
        (obj("DaemonSet", {"observedGeneration": 1}, generation=1), [], ""),
        (
            obj("DaemonSet", {"desiredNumberScheduled": 3, "numberAvailable": 1}),
            [],
            "1 of 3 pods are available",
        ),
        (obj("Dataset", {"phase": "Bound"}), [], ""),
        (obj("Dataset"), [], "Pending"),
        (
            obj(
                "Dataset",
                {
                    "phase": "NotBound",
                    "conditions": [
                        {"type": "Ready", "status": "False", "message": "no runtime"},
                        {"type": "Initialized", "status": "True", "message": "done"},
                    ],
                },
            ),
            [],
            "NotBound: no runtime",
        ),
        (obj("DataLoad", {"phase": "Complete"}), [], ""),
        (obj("DataLoad", {"phase": "Executing"}), [], "Executing"),
        (obj("PersistentVolumeClaim", {"phase": "Lost"}), [], "Lost"),
        (obj("Job", {"conditions": [{"type": "Complete", "status": "True"}]}), [], ""),
        (obj("Job"), [], "has not ended"),
        (obj("ConfigMap"), [], ""),
        (
            obj("ConfigMap", deletionTimestamp="2026-01-01T00:00:00Z", finalizers=["a/b"]),
            [],
            "is being deleted; its finalizers `a/b` are not removed yet",
        ),
        (
            obj(
                "CustomResourceDefinition",
                {"conditions": [{"type": "Established", "status": "True"}]},
            ),
            [],
            "",
        ),
        (obj("CustomResourceDefinition"), [], "is not ready"),
    ],
)
def test_each_kind_has_its_own_readiness(
    found: Object | None, pods: list[Object], message: str
) -> None:
    state = readiness(found, pods)
    assert (state.is_ready, state.message) == (not message, message)
    assert not state.is_failed


@pytest.mark.parametrize(
    "found",
    [
        obj("DataLoad", {"phase": "Failed"}),
        obj("Pod", {"phase": "Failed"}),
        obj("Job", {"conditions": [{"type": "Failed", "status": "True", "reason": "Backoff"}]}),
    ],
)
def test_what_failed_for_good_is_not_waited_for(found: Object) -> None:
    assert readiness(found).is_failed


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (
            {"containerStatuses": [{"state": {"waiting": {"reason": "ImagePullBackOff"}}}]},
            "pod `a`: ImagePullBackOff",
        ),
        ({"containerStatuses": [{"state": {"waiting": {"reason": "ContainerCreating"}}}]}, ""),
        (
            {"initContainerStatuses": [{"state": {"waiting": {"reason": "CrashLoopBackOff"}}}]},
            "pod `a`: CrashLoopBackOff",
        ),
        ({"phase": "Failed", "reason": "Evicted"}, "pod `a`: Evicted"),
        ({"conditions": [{"type": "Ready", "status": "True"}, UNBOUND]}, ""),
        ({"phase": "Succeeded", "conditions": [UNBOUND]}, ""),
    ],
)
def test_the_first_pod_with_a_reason_is_named(status: Object, reason: str) -> None:
    assert pod_trouble([pod("a", **status)]) == reason


def test_an_object_is_gone_when_another_one_has_its_name() -> None:
    target = ObjectRef("v1", "ConfigMap", "a", uid="1")
    assert still_there(None, target) == ""
    assert still_there(obj("ConfigMap", uid="2"), target) == ""
    assert still_there(obj("ConfigMap", uid="1"), target) == "exists"
    assert still_there(obj("ConfigMap", uid="2"), ObjectRef("v1", "ConfigMap", "a")) == "exists"
    leaving = obj("ConfigMap", uid="1", deletionTimestamp="2026-01-01T00:00:00Z")
    assert still_there(leaving, target) == "is being deleted"
