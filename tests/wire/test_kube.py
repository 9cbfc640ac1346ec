"""Kubernetes objects become rows: which fields are kept, which values are shared, and how Go's
nulls are read.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from fairlead.wire.kube.objects import (
    WireEvent,
    WireNode,
    WirePod,
    parse_event,
    parse_node,
    parse_pod,
)


def pod_object(**changes: Any) -> dict[str, Any]:
    return {
        "metadata": {
            "name": "p",
            "namespace": "ns",
            "uid": "u",
            "labels": {"app": "x"},
            "annotations": {
                "fairlead.io/gpu-allocation": "{}",
                "kubectl.kubernetes.io/last-applied-configuration": "x" * 100,
            },
            "creationTimestamp": "2026-01-05T08:00:00Z",
            "ownerReferences": [{"kind": "Job", "name": "j", "uid": "ju", "controller": True}],
        },
        "spec": {
            "nodeName": "n1",
            "containers": [
                {
                    "name": "c",
                    "image": "i",
                    "resources": {"limits": {"nvidia.com/gpu": "2", "cpu": "500m"}},
                    "env": None,
                }
            ],
            **changes.pop("spec", {}),
        },
        "status": {
            "phase": "Running",
            "hostIP": "10.0.0.1",
            "podIP": "10.1.0.1",
            "startTime": "2026-01-05T08:00:01Z",
            "containerStatuses": [
                {
                    "name": "c",
                    "ready": True,
                    "restartCount": 3,
                    "state": {"running": {"startedAt": "2026-01-05T08:00:02Z"}},
                    "lastState": {
                        "terminated": {
                            "exitCode": 1,
                            "reason": "Error",
                            "finishedAt": "2026-01-05T08:00:00Z",
                        }
                    },
                }
            ],
            **changes.pop("status", {}),
        },
        **changes,
    }


def read_pod(value: dict[str, Any]) -> Any:
    return parse_pod(msgspec.json.decode(json.dumps(value), type=WirePod))


def test_a_pod_becomes_a_row() -> None:
    pod = read_pod(pod_object())
    assert (pod.key, pod.uid, pod.node, pod.phase, pod.host_ip) == (
        "ns/p",
        "u",
        "n1",
        "Running",
        "10.0.0.1",
    )
    assert pod.limits == {"nvidia.com/gpu": 2, "cpu": 500}
    assert pod.requests == {"nvidia.com/gpu": 2, "cpu": 500}, (
        "a limit without a request is its own request"
    )
    assert pod.annotations == {"fairlead.io/gpu-allocation": "{}"}, (
        "annotations without a reader are dropped"
    )
    assert pod.created_at == 1767600000.0
    assert pod.statuses[0].restarts == 3
    assert pod.statuses[0].started_at == 1767600002.0
    assert pod.controller is not None
    assert pod.controller.uid == "ju"


def test_null_lists_and_missing_parts_are_no_error() -> None:
    bare = {"metadata": {"name": "p", "labels": None, "annotations": None, "ownerReferences": None}}
    assert read_pod({**bare, "spec": None, "status": None}).phase == "Pending"
    nulls = {"containers": None, "initContainers": None, "schedulingGates": None, "overhead": None}
    pod = read_pod(
        {**bare, "spec": nulls, "status": {"containerStatuses": None, "conditions": None}}
    )
    assert pod.containers == ()
    assert pod.limits == {}


def test_equal_label_sets_and_containers_are_shared() -> None:
    first, second = read_pod(pod_object()), read_pod(pod_object())
    assert first.labels is second.labels
    assert first.containers[0] is second.containers[0]


def test_a_terminated_container_keeps_its_end() -> None:
    end = {
        "exitCode": 137,
        "signal": 9,
        "reason": "OOMKilled",
        "startedAt": "2026-01-05T08:00:02Z",
        "finishedAt": "2026-01-05T08:01:02Z",
    }
    status = {"containerStatuses": [{"name": "c", "state": {"terminated": end}}]}
    found = read_pod(pod_object(status=status)).statuses[0]
    assert (found.state, found.reason, found.exit_code, found.signal) == (
        "terminated",
        "OOMKilled",
        137,
        9,
    )
    assert found.finished_at - found.started_at == 60


def test_a_container_that_could_not_be_started_did_not_start_in_1970() -> None:
    end = {
        "exitCode": 128,
        "reason": "StartError",
        "startedAt": "1970-01-01T00:00:00Z",
        "finishedAt": "2026-01-05T08:01:02Z",
    }
    status = {"containerStatuses": [{"name": "c", "state": {"terminated": end}}]}
    found = read_pod(pod_object(status=status)).statuses[0]
    assert (found.reason, found.started_at) == ("StartError", None) and found.finished_at


def test_a_bad_quantity_is_a_value_error_that_names_it() -> None:
    broken = {"containers": [{"name": "c", "resources": {"limits": {"nvidia.com/gpu": "many"}}}]}
    with pytest.raises(ValueError, match=r"nvidia\.com/gpu.*many"):
        read_pod(pod_object(spec=broken))


def test_a_node_becomes_a_row() -> None:
    slot = {
        "index": 1,
        "minor": 1,
        "uuid": "GPU-1",
        "model": "Tesla T4",
        "memoryMiB": 15079,
        "units": 14,
    }
    node = parse_node(
        msgspec.json.decode(
            json.dumps(
                {
                    "metadata": {
                        "name": "n",
                        "labels": {"cgpu": "true"},
                        "annotations": {"fairlead.io/gpus": json.dumps([slot, "junk"])},
                    },
                    "spec": {
                        "unschedulable": True,
                        "taints": [{"key": "k", "effect": "NoSchedule"}],
                    },
                    "status": {
                        "capacity": {"aliyun.com/gpu-mem": "14", "memory": "64Gi"},
                        "allocatable": None,
                        "addresses": [{"type": "InternalIP", "address": "10.0.0.9"}],
                        "conditions": [{"type": "Ready", "status": "True"}],
                    },
                }
            ),
            type=WireNode,
        )
    )
    assert node.capacity == {"aliyun.com/gpu-mem": 14, "memory": 64 << 30}
    assert node.allocatable == {}
    assert node.unschedulable
    assert [gpu.uuid for gpu in node.gpus] == ["GPU-1"], (
        "an entry that does not parse does not take the others along"
    )
    assert node.gpus[0].memory_mib == 15079


def test_an_inventory_that_is_no_json_is_no_inventory() -> None:
    wire = msgspec.json.decode(
        b'{"metadata":{"name":"n","annotations":{"fairlead.io/gpus":"{"}}}', type=WireNode
    )
    assert parse_node(wire).gpus == ()


def test_an_event_reports_when_it_was_last_seen() -> None:
    body = {
        "metadata": {"name": "e", "namespace": "ns", "creationTimestamp": "2026-01-05T08:00:00Z"},
        "involvedObject": {"kind": "Pod", "namespace": "ns", "name": "p"},
        "type": "Warning",
        "reason": "FailedScheduling",
        "series": {"count": 4, "lastObservedTime": "2026-01-05T08:10:00.5Z"},
    }
    event = parse_event(msgspec.json.decode(json.dumps(body), type=WireEvent))
    assert (event.count, event.at, event.object_name) == (4, 1767600600.5, "p")


@pytest.mark.parametrize(
    ("conditions", "kept"),
    [
        (
            [
                {"type": "Ready", "status": "True", "lastProbeTime": None},
                {"type": "PodScheduled", "status": "True", "reason": ""},
            ],
            ["PodScheduled"],
        ),
        (
            [
                {"type": "Ready", "status": "True"},
                {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"},
            ],
            ["PodScheduled"],
        ),
        ([{"type": "Ready", "status": "Unknown"}], ["Ready"]),
        ([{"type": "Ready"}], ["Ready"]),
        (
            [{"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}],
            ["DisruptionTarget"],
        ),
        ([{"type": "Ready", "status": "True", "message": "why"}], ["Ready"]),
        ([], []),
        (None, []),
    ],
)
def test_of_a_pods_conditions_those_with_news_are_kept_and_when_it_was_bound(
    conditions: Any, kept: list[str]
) -> None:
    assert [
        condition.type
        for condition in read_pod(pod_object(status={"conditions": conditions})).conditions
    ] == kept


@pytest.mark.parametrize("conditions", [5, "x", {}, [5], [{"status": 1}]])
def test_conditions_that_are_none_make_the_pod_malformed(conditions: Any) -> None:
    with pytest.raises(msgspec.ValidationError):
        read_pod(pod_object(status={"conditions": conditions}))
