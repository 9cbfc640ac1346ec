"""The number of allocated GPUs is the same in the cluster exporter, the scheduler extender and the
containers of the GPU exporter.

docs/spec/telemetry.md#recording-rules-and-alerts defines five sums: cluster, node, job, namespace,
leaf. The oracle is what `kubectl` shows: the limits of pods that are on a node, where a share
counts as its units divided by the node's units per GPU.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

import pytest
from tests.sim.small_world import EPOCH

from fairlead.kinds.instances import all_instances
from fairlead.model.metric import Family
from fairlead.rules.metrics.cluster import native_families
from fairlead.rules.metrics.container_gpu import container_families
from fairlead.rules.metrics.gpu import gpu_families
from fairlead.rules.reports.cluster import summarize
from fairlead.rules.sharing.ledger import ledger_of
from fairlead.rules.sharing.metrics import share_families
from fairlead.run.hooks.sharing_hooks import sharing_world
from fairlead_sim.objects.resources import ELASTIC_QUOTA_TREES, NODES, PODS
from fairlead_sim.scenario.file import load_scenario
from fairlead_sim.world.snapshot import take_snapshot
from fairlead_sim.world.world import World

SHARED = "aliyun.com/gpu-mem"
WHOLE = "nvidia.com/gpu"
HELD_STATES = ("reserved", "bound", "assigned")
Row = dict[str, str]
Rows = Iterable[tuple[Row, float]]
Sums = dict[str, float]


@pytest.fixture(scope="module")
def world() -> World:
    """The default world: exclusive and shared nodes, jobs, a quota tree, one unhealthy card."""
    made = sharing_world(load_scenario("default"), 0, EPOCH)
    made.warm_up()
    return made


@pytest.fixture(scope="module")
def reported(world: World) -> Mapping[str, list[tuple[Row, float]]]:
    """Every series of the three components, by the name of its metric."""
    seen, cards = take_snapshot(world), world.devices.sample()
    summary = summarize(seen, all_instances(seen), world.clock.now())
    shares = share_families(ledger_of(seen), {}, is_leading=True, doubts=0)
    families = (
        *native_families(summary),
        *gpu_families(cards),
        *container_families(cards),
        *shares,
    )
    return {family.name: list(series(family)) for family in families}


def series(family: Family) -> Rows:
    for key, value in zip(family.keys, family.values, strict=True):
        if value is not None:
            yield dict(zip(family.metric.labels, key, strict=True)), value


@pytest.fixture(scope="module")
def seated(world: World) -> list[tuple[Row, float]]:
    """The pods that are on a node and have not ended, and the number of GPUs in their limits."""
    per_gpu = {}
    for node in world.cluster.list(NODES):
        capacity = node["status"]["capacity"]
        if SHARED in capacity:
            per_gpu[node["metadata"]["name"]] = int(capacity[SHARED]) / int(
                capacity["aliyun.com/gpu-count"]
            )
    found = []
    for pod in world.cluster.list(PODS):
        node = pod["spec"].get("nodeName", "")
        if node and pod["status"]["phase"] not in ("Succeeded", "Failed"):
            units, whole = limit(pod, SHARED), limit(pod, WHOLE)
            gpus = whole + (units / per_gpu[node] if units else 0)
            found.append(
                (
                    {
                        "node": node,
                        "namespace": pod["metadata"]["namespace"],
                        "pod": pod["metadata"]["name"],
                    },
                    gpus,
                )
            )
    return found


def limit(pod: Mapping[str, Any], resource: str) -> int:
    return sum(
        int(container.get("resources", {}).get("limits", {}).get(resource, 0))
        for container in pod["spec"]["containers"]
    )


def summed(rows: Rows, *labels: str) -> Sums:
    """Sums by the joined values of these labels; sums of 0 are left out."""
    sums: Sums = defaultdict(float)
    for row, value in rows:
        sums["/".join(row[label] for label in labels)] += value
    return {key: value for key, value in sums.items() if value}


def containers(reported: Mapping[str, list[tuple[Row, float]]]) -> list[tuple[Row, float]]:
    """The values of `limit / on (node_name, uuid) group_left grantable`, the expression in the
    specification.
    """
    grantable = {
        (row["node_name"], row["uuid"]): value
        for row, value in reported["fairlead_gpu_memory_grantable_bytes"]
    }
    limits = reported["fairlead_container_gpu_memory_limit_bytes"]
    return [(row, value / grantable[row["node_name"], row["uuid"]]) for row, value in limits]


def near(expected: Sums) -> Any:
    """A grant is rounded down to whole MiB, so a share is too small by less than 1 / 16130 of a
    card.

    See docs/spec/gpu-sharing.md#units-and-the-proportional-grant.
    """
    return pytest.approx(expected, abs=20 / 16130)


def test_the_world_has_shares_and_whole_gpus(seated: list[tuple[Row, float]]) -> None:
    assert any(gpus % 1 for _, gpus in seated)
    assert any(gpus >= 1 for _, gpus in seated)


def test_of_the_cluster(
    reported: Mapping[str, list[tuple[Row, float]]], seated: list[tuple[Row, float]]
) -> None:
    expected = sum(gpus for _, gpus in seated)
    ((_, cluster),) = reported["fairlead_cluster_gpus_allocated"]
    assert cluster == pytest.approx(expected)
    assert {"": sum(ratio for _, ratio in containers(reported))} == near({"": expected})


def test_of_each_node(
    reported: Mapping[str, list[tuple[Row, float]]], seated: list[tuple[Row, float]]
) -> None:
    expected = summed(seated, "node")
    assert summed(reported["fairlead_node_gpus_allocated"], "node_name") == pytest.approx(expected)
    assert summed(containers(reported), "node_name") == near(expected)


def test_of_each_shared_card(reported: Mapping[str, list[tuple[Row, float]]]) -> None:
    """The extender's held units of a card, divided by all its units, equal the shares of its
    containers and its `allocated_ratio`.
    """
    units = reported["fairlead_gpushare_units"]
    totals = {row["uuid"]: value for row, value in units if row["state"] == "total"}
    held = summed(
        (
            ({"uuid": row["uuid"]}, value / totals[row["uuid"]])
            for row, value in units
            if row["state"] in HELD_STATES
        ),
        "uuid",
    )
    assert len(held) > 1
    shares = summed(
        ((row, ratio) for row, ratio in containers(reported) if row["allocate_mode"] == "share"),
        "uuid",
    )
    assert shares == near(held)
    cards = summed(reported["fairlead_gpu_allocated_ratio"], "uuid")
    assert {uuid: cards[uuid] for uuid in held} == near(held)


def test_of_each_job(
    reported: Mapping[str, list[tuple[Row, float]]], seated: list[tuple[Row, float]]
) -> None:
    job_of = {
        (row["job_namespace"], row["instance_name"]): row["job_name"]
        for row, _ in reported["fairlead_job_instance_info"]
    }
    expected = summed(with_job(seated, job_of, "namespace", "pod"), "job")
    assert len(expected) > 3
    assert summed(
        with_job(reported["fairlead_job_gpus_allocated"], {}, "job_namespace", "job_name"), "job"
    ) == pytest.approx(expected)
    assert summed(
        with_job(containers(reported), job_of, "namespace_name", "pod_name"), "job"
    ) == near(expected)


def with_job(rows: Rows, job_of: Mapping[tuple[str, str], str], space: str, name: str) -> Rows:
    for row, value in rows:
        job = job_of.get((row[space], row[name])) if job_of else row[name]
        if job is not None:
            yield {"job": f"{row[space]}/{job}"}, value


def test_of_each_namespace(
    reported: Mapping[str, list[tuple[Row, float]]], seated: list[tuple[Row, float]]
) -> None:
    assert summed(containers(reported), "namespace_name") == near(summed(seated, "namespace"))


def test_of_each_leaf(
    world: World, reported: Mapping[str, list[tuple[Row, float]]], seated: list[tuple[Row, float]]
) -> None:
    (tree,) = world.cluster.list(ELASTIC_QUOTA_TREES)
    leaf_of = dict(leaves(tree["spec"]["root"]))
    expected = summed(
        (
            ({"leaf": leaf_of[row["namespace"]]}, gpus)
            for row, gpus in seated
            if row["namespace"] in leaf_of
        ),
        "leaf",
    )
    names = set(leaf_of.values())
    # 16130 MiB are 15 units (docs/spec/gpu-sharing.md#units-and-the-proportional-grant)
    per_gpu = {WHOLE: 1, SHARED: 15}
    used = [
        (row, value / per_gpu[row["resource"]])
        for row, value in reported["fairlead_quota_used"]
        if row["resource"] in per_gpu
    ]
    assert summed(
        ((row, value) for row, value in used if row["quota"] in names), "quota"
    ) == pytest.approx(expected)
    held = (
        ({"leaf": leaf_of[row["namespace_name"]]}, ratio)
        for row, ratio in containers(reported)
        if row["namespace_name"] in leaf_of
    )
    assert summed(held, "leaf") == near(expected)


def leaves(node: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    for child in node.get("children") or ():
        yield from leaves(child)
    yield from ((name, node["name"]) for name in node.get("namespaces") or ())
