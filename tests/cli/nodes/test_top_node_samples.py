"""`arena top node` prints docs/spec/arena-cli-samples.md#tables-of-top-node,
docs/spec/arena-cli-samples.md#details-of-top-node byte for byte, from API objects that describe the
samples.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.api_objects import node, pod, reading, snapshot_of, topology_map
from tests.cli.command import run_command

from fairlead.model.snapshot import ClusterSnapshot

SAMPLES = Path(__file__).parents[2] / "golden" / "top_node"
MASTER = node(
    "cn-beijing.192.168.0.10", "192.168.0.10", labels={"node-role.kubernetes.io/master": ""}
)
EXCLUSIVE = node("cn-beijing.192.168.0.11", "192.168.0.11", {"nvidia.com/gpu": "4"})
SHARE = node(
    "cn-beijing.192.168.0.12",
    "192.168.0.12",
    {"aliyun.com/gpu-mem": "30", "aliyun.com/gpu-count": "2"},
)
TOPOLOGY = node(
    "cn-beijing.192.168.0.13",
    "192.168.0.13",
    {"aliyun.com/gpu": "2"},
    labels={"ack.node.gpu.schedule": "topology"},
)
WORKER = pod("mpi-test-worker-0", "cn-beijing.192.168.0.11", {"nvidia.com/gpu": "2"})
NOTEBOOKS = [
    pod(
        name,
        "cn-beijing.192.168.0.12",
        {"aliyun.com/gpu-mem": "6"},
        annotations={"scheduler.framework.gpushare.allocation": '{"0":{"0":6}}'},
    )
    for name in ("nb-1", "nb-2")
]
TOPOLOGY_POD = pod(
    "mpi-w-0",
    "cn-beijing.192.168.0.13",
    {"aliyun.com/gpu": "2"},
    annotations={"topology.kubernetes.io/gpu-group": "0,1"},
)
TOPOLOGIES = {
    "cn-beijing.192.168.0.13": topology_map(
        {"1": "Healthy", "0": "Healthy"},
        [["N-A", "NV2"], ["NV2", "N-A"]],
        [[738.42, 96.44], [96.26, 744.05]],
    )
}


def company() -> ClusterSnapshot:
    """Nodes of all four modes; the node with GPU topology is idle."""
    return snapshot_of([SHARE, TOPOLOGY, EXCLUSIVE, MASTER], [WORKER, *NOTEBOOKS], TOPOLOGIES)


def busy_topology() -> ClusterSnapshot:
    return snapshot_of([TOPOLOGY], [TOPOLOGY_POD], TOPOLOGIES)


def unhealthy_gpu() -> ClusterSnapshot:
    sick = node(
        "cn-beijing.192.168.0.11",
        "192.168.0.11",
        {"nvidia.com/gpu": "4"},
        allocatable={"nvidia.com/gpu": "3"},
    )
    return snapshot_of([MASTER, sick], [WORKER])


def share_with_readings() -> ClusterSnapshot:
    readings = [
        reading(
            "cn-beijing.192.168.0.12",
            0,
            15.0,
            9.3,
            71.0,
            [("default", "nb-1"), ("default", "nb-2")],
        ),
        reading("cn-beijing.192.168.0.12", 1, 15.0, 0.4, 3.0),
    ]
    return snapshot_of([SHARE], NOTEBOOKS, readings=readings)


def share_with_cores() -> ClusterSnapshot:
    capacity = {
        "aliyun.com/gpu-mem": "15",
        "aliyun.com/gpu-count": "1",
        "aliyun.com/gpu-core.percentage": "100",
    }
    notes = {
        "scheduler.framework.gpushare.allocation": '{"0":{"0":6}}',
        "gpushare.alibabacloud.com/core-percentage": '{"0":{"0":40}}',
    }
    limits = {"aliyun.com/gpu-mem": "6", "aliyun.com/gpu-core.percentage": "40"}
    holder = pod("nb-1", "cn-beijing.192.168.0.12", limits, annotations=notes)
    return snapshot_of([node("cn-beijing.192.168.0.12", "192.168.0.12", capacity)], [holder])


def sample(name: str) -> str:
    return (SAMPLES / f"{name}.txt").read_text()


@pytest.mark.parametrize(
    ("name", "flags", "snapshot"),
    [
        ("S1", "", company()),
        ("S2", "", unhealthy_gpu()),
        ("S3", "-m s", company()),
        ("S4", "-m e", company()),
    ],
)
def test_tables(name: str, flags: str, snapshot: ClusterSnapshot) -> None:
    assert run_command(f"top node {flags}", snapshot).out == sample(name)


@pytest.mark.parametrize(
    ("name", "flags", "snapshot", "blank_lines"),
    [
        ("S5", "-m s -d", company(), "\n\n"),
        ("S8", "-m t -d", busy_topology(), "\n"),
        ("S9", "-m e -d", company(), "\n"),
    ],
)
def test_details_are_the_sample_and_the_blank_lines_of_rule_2_1(
    name: str, flags: str, snapshot: ClusterSnapshot, blank_lines: str
) -> None:
    assert run_command(f"top node {flags}", snapshot).out == sample(name) + blank_lines


def test_metrics_of_a_share_node_from_gpus_on() -> None:
    out = run_command("top node -m s -d --metric", share_with_readings()).out
    assert out.endswith(sample("S6") + "\n\n")


def test_core_percentages_of_a_share_node() -> None:
    out = run_command("top node -m s -d", share_with_cores()).out
    assert sample("S7") in out
    assert out.endswith("  Total GPU Core: 100\n  Allocated GPU Core: 40\n\n\n")
    assert (
        "  2.Pods can request resource 'aliyun.com/gpu-mem' to use gpu sharing feature on "
        "this node\n"
        "  3.Pods can request resource 'aliyun.com/gpu-core.percentage' to use gpu sharing "
        "feature on this node\n"
    ) in out
