"""The snapshot answers questions from indexes, and plans change only copies."""

from __future__ import annotations

import msgspec

from fairlead.model.devices.gpu import GpuReading
from fairlead.model.devices.topology import GpuTopology
from fairlead.model.node import Node
from fairlead.model.pod import Owner, Pod
from fairlead.model.quota.tree import QuotaNode
from fairlead.model.snapshot import ClusterSnapshot, build_snapshot
from fairlead.model.source import Source


def small_cluster() -> ClusterSnapshot:
    pods = (
        Pod(
            "a",
            "p1",
            uid="1",
            node="n1",
            labels={"job": "x"},
            owners=(Owner("Job", "x", "u1", True),),
        ),
        Pod("a", "p2", uid="2", node="n2", labels={"job": "x"}),
        Pod("b", "p3", uid="3", labels={"job": "x"}),
    )
    leaf = QuotaNode("root.a", "root.a", parent="root", namespaces=("a",))
    return ClusterSnapshot(
        nodes=(Node("n1"), Node("n2")),
        pods=pods,
        quota=QuotaNode("root", "root", children=(leaf,)),
        version=7,
    )


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


def test_a_snapshot_is_built_sorted_and_of_its_nodes_and_lists_what_was_not_requested() -> None:
    labelled = Node("n2", labels={"ack.node.gpu.schedule": "topology"})
    pods = (Pod("a", "p1"), Pod("b", "p0"))
    snapshot = build_snapshot(
        nodes=[labelled, Node("n1")],
        pods=pods,
        topologies=[("n2", GpuTopology()), ("n1", GpuTopology()), ("", GpuTopology())],
        withheld=[("n1", {3, 0}), ("", {1}), ("n2", ())],
        sources=[Source("nodes"), Source("gpu-topologies")],
        taken_at=5.0,
    )
    assert [node.name for node in snapshot.nodes] == ["n1", "n2"]
    assert snapshot.pods is pods, (
        "a tuple is sorted already: who compares snapshots sees that it has not changed"
    )
    assert (list(snapshot.topologies), snapshot.withheld) == (["n2"], {"n1": (0, 3)})
    assert [
        name
        for name in ("nodes", "gpu-topologies", "gpu-withheld", "pods")
        if snapshot.was_read(name)
    ] == ["nodes", "gpu-topologies"]
    assert {name: source.state for name, source in snapshot.sources.items()} == {
        "nodes": "ok",
        "gpu-topologies": "ok",
        "gpu-withheld": "off",
    }
    assert list(snapshot.main_sources) == ["nodes"]


def test_an_unchanged_cluster_read_again_keeps_its_indexes_and_has_new_sources() -> None:
    snapshot = small_cluster()
    before = snapshot.pods_on("n1")
    later = snapshot.as_of(9.0, [Source("nodes", good_at=9.0)])
    assert later.pods_on("n1") is before
    assert (later.taken_at, later.sources["nodes"].good_at, list(later.main_sources)) == (
        9.0,
        9.0,
        ["nodes"],
    )


def test_a_snapshot_survives_a_round_trip_through_json() -> None:
    snapshot = small_cluster().with_gpus((GpuReading("n1", 0, "a", utilization_ratio=0.5),))
    again = msgspec.json.decode(msgspec.json.encode(snapshot), type=ClusterSnapshot)
    assert again == snapshot


def test_quota_nodes_show_their_own_part_of_a_dotted_name() -> None:
    node = QuotaNode("root.a.1", "root.a.1", parent="root.a")
    assert node.short_name == "1"
    assert QuotaNode("free", "root.free", parent="root").short_name == "free"
