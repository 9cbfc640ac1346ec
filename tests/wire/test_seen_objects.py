"""Objects as the API server sends them, as facts about an installation."""

from __future__ import annotations

from typing import Any

import msgspec

from fairlead.model.installed.facts import ExtenderFact, LeaseFact, NodeFact, PodFact
from fairlead.model.node import Taint
from fairlead.wire.installation.seen_objects import (
    SeenConfigMap,
    SeenLease,
    SeenNode,
    SeenPod,
    SeenWorkload,
    parse_seen_daemon_set,
    parse_seen_deployment,
    parse_seen_extenders,
    parse_seen_lease,
    parse_seen_node,
    parse_seen_pod,
)

META = {"name": "x", "namespace": "s", "uid": "1", "labels": {"app.kubernetes.io/name": "part"}}


def pod(**status: Any) -> PodFact:
    wire = {"metadata": META, "spec": {"nodeName": "n"}, "status": status}
    return parse_seen_pod(msgspec.convert(wire, SeenPod))


def test_a_pod_counts_the_restarts_of_all_containers_and_their_newest_end() -> None:
    ended = {"terminated": {"reason": "OOMKilled", "finishedAt": "2026-01-05T08:00:00Z"}}
    earlier = {"terminated": {"finishedAt": "2026-01-05T07:00:00Z"}}
    found = pod(
        conditions=[{"type": "Ready", "status": "True"}],
        containerStatuses=[
            {"name": "a", "restartCount": 2, "state": {"running": {}}, "lastState": ended},
            {"name": "b", "restartCount": 1, "state": earlier, "lastState": {}},
        ],
    )
    assert found == PodFact("s", "x", "part", "n", True, 3, 1767600000.0)


def test_a_pods_trouble_is_in_the_words_of_its_status() -> None:
    unplaced = {"type": "PodScheduled", "status": "False", "message": "0/3 nodes are available"}
    assert pod(conditions=[unplaced]).trouble == "0/3 nodes are available"
    waiting = {"reason": "ErrImagePull", "message": "not found"}
    statuses = [{"name": "a", "state": {"waiting": waiting}}]
    assert pod(containerStatuses=statuses).trouble == "container a: ErrImagePull: not found"
    begins = [{"name": "a", "state": {"waiting": {"reason": "PodInitializing"}}}]
    assert pod(containerStatuses=begins).trouble == ""
    assert not parse_seen_pod(msgspec.convert({"metadata": META}, SeenPod)).is_ready


def test_a_lease_that_was_never_held_has_no_holder() -> None:
    held = {
        "holderIdentity": "p",
        "leaseDurationSeconds": 15,
        "renewTime": "2026-01-05T08:00:00.250000Z",
    }
    parsed = parse_seen_lease(msgspec.convert({"metadata": META, "spec": held}, SeenLease))
    assert parsed == LeaseFact("s", "x", "p", 1767600000.25, 15)
    assert parse_seen_lease(msgspec.convert({"metadata": META}, SeenLease)).holder == ""


def test_a_node_has_the_resources_of_gpus_that_it_has_any_of() -> None:
    wire = {
        "metadata": {"name": "n", "labels": {"a": "b"}},
        "spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]},
        "status": {
            "capacity": {"cpu": "8", "nvidia.com/gpu": "0", "nvidia.com/mig-1g.10gb": "7"},
            "conditions": [{"type": "Ready", "status": "Unknown"}],
            "nodeInfo": {
                "kubeletVersion": "v1.36.3",
                "containerRuntimeVersion": "containerd://2.1.4",
                "kernelVersion": "6.12.9",
            },
        },
    }
    assert parse_seen_node(msgspec.convert(wire, SeenNode)) == NodeFact(
        "n",
        {"a": "b"},
        (Taint("k", "", "NoSchedule"),),
        False,
        "containerd://2.1.4",
        "v1.36.3",
        "6.12.9",
        ("nvidia.com/mig-1g.10gb",),
    )


def test_a_workload_has_its_images_and_the_nodes_that_it_may_use() -> None:
    spec = {"containers": [{"image": "i:1"}], "nodeSelector": {"gpu": "yes"}}
    wire = {
        "metadata": META,
        "spec": {"replicas": 3, "template": {"spec": spec}},
        "status": {"desiredNumberScheduled": 4},
    }
    seen = msgspec.json.decode(msgspec.json.encode(wire), type=SeenWorkload)
    deployment, daemon_set = parse_seen_deployment(seen), parse_seen_daemon_set(seen)
    assert (deployment.wanted, daemon_set.wanted) == (3, 4)
    assert deployment.images == ("i:1",)
    assert deployment.choice.selector == (("gpu", "yes"),)


def test_extenders_are_read_from_the_configurations_of_kube_scheduler_alone() -> None:
    text = "kind: KubeSchedulerConfiguration\nextenders:\n- urlPrefix: http://127.0.0.1:32766/x\n"
    data = {"a": text, "b": "extenders: [{urlPrefix: no}]", "c": "KubeSchedulerConfiguration: ["}
    wire = msgspec.convert({"metadata": META, "data": data}, SeenConfigMap)
    assert parse_seen_extenders(wire) == ExtenderFact("s", "x", ("http://127.0.0.1:32766/x",))
    empty = msgspec.convert({"metadata": META}, SeenConfigMap)
    assert parse_seen_extenders(empty).addresses == ()
