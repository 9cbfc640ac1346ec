"""The snapshot answers its questions from indexes, and its plans from copies."""

from __future__ import annotations

import msgspec

from fairlead.model.gpu import GpuReading
from fairlead.model.node import Node
from fairlead.model.pod import Owner, Pod
from fairlead.model.quota import QuotaNode
from fairlead.model.snapshot import ClusterSnapshot, Source


def small_cluster() -> ClusterSnapshot:
    pods = (
        Pod("a", "p1", uid="1", node="n1", labels={"job": "x"}, owners=(Owner("Job", "x", "u1", True),)),
        Pod("a", "p2", uid="2", node="n2", labels={"job": "x"}),
        Pod("b", "p3", uid="3", labels={"job": "x"}),
    )
    leaf = QuotaNode("root.a", "root.a", parent="root", namespaces=("a",))
    return ClusterSnapshot(nodes=(Node("n1"), Node("n2")), pods=pods, quota=QuotaNode("root", "root", children=(leaf,)), version=7)


def test_questions_are_answered_by_node_namespace_owner_and_label() -> None:
    snapshot = small_cluster()
    assert [pod.name for pod in snapshot.pods_on("n1")] == ["p1"]
    assert [pod.name for pod in snapshot.pods_in("a")] == ["p1", "p2"]
    assert [pod.name for pod in snapshot.pods_owned_by("u1")] == ["p1"]
    assert [pod.name for pod in snapshot.pods_labelled("a", "job", "x")] == ["p1", "p2"]
    assert snapshot.pods_labelled("a", "job", "y") == []
    assert snapshot.node_by_name["n2"].name == "n2"


def test_a_plan_without_victims_leaves_the_original_alone() -> None:
    snapshot = small_cluster()
    assert len(snapshot.pods_on("n1")) == 1
    without = snapshot.without([snapshot.pods[0]])
    assert without.pods_on("n1") == []
    assert len(snapshot.pods_on("n1")) == 1


def test_readings_are_ordered_and_their_source_is_kept() -> None:
    gpus = (GpuReading("n2", 0, "c"), GpuReading("n1", 1, "b"), GpuReading("n1", 0, "a"))
    snapshot = small_cluster().with_gpus(gpus, Source("gpu-telemetry"))
    assert [gpu.uuid for gpu in snapshot.gpus] == ["a", "b", "c"]
    assert [gpu.uuid for gpu in snapshot.gpus_on("n1")] == ["a", "b"]
    assert snapshot.sources["gpu-telemetry"].state == "ok"


def test_a_snapshot_survives_a_round_trip_through_json() -> None:
    snapshot = small_cluster().with_gpus((GpuReading("n1", 0, "a", utilization_ratio=0.5),))
    again = msgspec.json.decode(msgspec.json.encode(snapshot), type=ClusterSnapshot)
    assert again == snapshot


def test_quota_nodes_show_their_own_part_of_a_dotted_name() -> None:
    node = QuotaNode("root.a.1", "root.a.1", parent="root.a")
    assert node.short_name == "1"
    assert QuotaNode("free", "root.free", parent="root").short_name == "free"
