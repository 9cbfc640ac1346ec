"""Words about a node: mode by capacity, status without the scheduling state, roles sorted."""

from __future__ import annotations

import pytest
from tests.rules.builders import exclusive_node, reading, shared_node, snapshot

from fairlead.model.devices.topology import GpuTopology
from fairlead.model.node import Condition, Node
from fairlead.model.snapshot import build_snapshot
from fairlead.model.source import Source
from fairlead.rules.nodes.status import (
    arena_mode,
    gpu_mode,
    gpu_model,
    node_ip,
    role_text,
    status_word,
)
from fairlead.rules.reports.node import report_nodes

TOPOLOGY_LABEL = {"ack.node.gpu.schedule": "topology"}


@pytest.mark.parametrize(
    ("capacity", "labels", "mode"),
    [
        ({}, {}, "none"),
        ({"nvidia.com/gpu": 0}, {}, "none"),
        ({"nvidia.com/gpu": 8}, {}, "exclusive"),
        ({"nvidia.com/gpu": 8, "aliyun.com/gpu-mem": 15}, {}, "share"),
        ({"aliyun.com/gpu": 4}, TOPOLOGY_LABEL, "topology"),
        ({"nvidia.com/gpu": 4}, TOPOLOGY_LABEL, "topology"),
        ({"aliyun.com/gpu-mem": 15}, TOPOLOGY_LABEL, "share"),
        ({"nvidia.com/mig-1g.18gb": 7}, {}, "mig"),
    ],
)
def test_the_mode_follows_from_capacity(
    capacity: dict[str, int], labels: dict[str, str], mode: str
) -> None:
    node = Node("n", capacity=capacity, labels=labels)
    assert gpu_mode(node) == mode


@pytest.mark.parametrize(
    ("topologies", "state", "mode"),
    [
        pytest.param({"n": GpuTopology()}, "ok", "topology", id="it has one"),
        pytest.param({"other": GpuTopology()}, "ok", "exclusive", id="another node has one"),
        pytest.param({}, "ok", "exclusive", id="they were read and there is none"),
        pytest.param({}, "forbidden", "topology", id="no right to know"),
        pytest.param({}, "off", "topology", id="not requested"),
    ],
)
def test_where_topologies_were_read_a_topology_node_needs_one(
    topologies: dict[str, GpuTopology], state: str, mode: str
) -> None:
    node = Node("n", capacity={"aliyun.com/gpu": 4}, labels=TOPOLOGY_LABEL)
    read = build_snapshot(
        nodes=[node],
        topologies=topologies.items(),
        sources=[Source("gpu-topologies", state)],
        taken_at=0,
    )
    assert gpu_mode(node, read) == mode
    assert [report.mode == "topology" for report in report_nodes(read)] == [mode == "topology"]


def test_arena_knows_no_mig() -> None:
    assert [arena_mode(mode) for mode in ("mig", "exclusive", "share", "topology", "none")] == [
        "exclusive",
        "exclusive",
        "share",
        "topology",
        "none",
    ]


@pytest.mark.parametrize(
    ("status", "word"),
    [("True", "Ready"), ("False", "NotReady"), ("Unknown", "Unknown"), ("", "Unknown")],
)
def test_the_status_word_contains_nothing_about_scheduling(status: str, word: str) -> None:
    assert (
        status_word(Node("n", conditions=(Condition("Ready", status),), unschedulable=True)) == word
    )


def test_a_node_that_never_spoke_is_unknown() -> None:
    assert status_word(Node("n", conditions=(Condition("MemoryPressure", "False"),))) == "Unknown"


def test_roles_come_from_both_labels() -> None:
    labels = {
        "node-role.kubernetes.io/worker": "",
        "node-role.kubernetes.io/": "",
        "kubernetes.io/role": "gpu",
        "x": "y",
    }
    assert role_text(Node("n", labels=labels)) == "gpu,worker"
    assert role_text(Node("n")) == "<none>"


def test_the_address_is_the_first_internal_one() -> None:
    addresses = (("Hostname", "n"), ("InternalIP", "10.0.0.1"), ("InternalIP", "fd00::1"))
    assert node_ip(Node("n", addresses=addresses)) == "10.0.0.1"
    assert node_ip(Node("n", addresses=addresses[:1])) == "n"
    assert node_ip(Node("n")) == ""


def test_the_model_is_what_devices_report_then_the_inventory_then_labels() -> None:
    shared, plain = shared_node(), exclusive_node(labels={"nvidia.com/gpu.product": "A10"})
    assert gpu_model(shared, snapshot([shared])) == "Tesla V100"
    assert gpu_model(plain, snapshot([plain])) == "A10"
    assert gpu_model(plain, snapshot([plain], [], [reading("n1", 0)])) == "Tesla T4"
