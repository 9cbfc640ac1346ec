"""All readers report the same numbers for one node: arena, boards, metrics, `inspect` and the
scheduler's ledger are views of one account.
"""

from __future__ import annotations

import msgspec
import pytest
from tests.rules.sharing import container, node, pod

from fairlead.model.devices.gpu import GpuReading, GpuSlot, Grant
from fairlead.model.jobs.instances import JobInstances
from fairlead.model.jobs.job import Job
from fairlead.model.node import Node
from fairlead.model.pod import Pod
from fairlead.model.resources import GPU_COUNT, GPU_MEMORY, NVIDIA_GPU
from fairlead.model.snapshot import ClusterSnapshot
from fairlead.rules.holding.occupancy import node_occupancy
from fairlead.rules.metrics.arena import arena_families
from fairlead.rules.metrics.cluster import native_families
from fairlead.rules.reports.cluster import summarize
from fairlead.rules.reports.node import report_nodes
from fairlead.rules.sharing.inspect import inspect_shares
from fairlead.rules.sharing.ledger import ledger_of

MIB = 1 << 20


def bare(units: int, gpus: int, **more: object) -> Node:
    """A node of a foreign plugin: it has the number of units and GPUs, but neither the unit nor the
    cards.
    """
    capacity = {GPU_MEMORY: units, GPU_COUNT: gpus}
    return Node("n", labels={"cgpu": "true"}, capacity=capacity, allocatable=capacity, **more)  # type: ignore[arg-type]


def sharer(units: int, index: int = 0, uuid: str = "") -> Pod:
    return msgspec.structs.replace(
        pod("a", units), node="n", phase="Running", grants={"main": (Grant(uuid, index, units),)}
    )


def mib_by_reader(shared: Node, *pods: Pod) -> dict[str, list[float]]:
    """Total MiB, allocated MiB and MiB of each card, by reader; the metrics have no values per
    card.
    """
    seen = ClusterSnapshot(nodes=(shared,), pods=pods)
    (report,), occupied, ledger = report_nodes(seen), node_occupancy(shared, seen), ledger_of(seen)
    summary = summarize(seen, (), 0)
    reported = {
        family.name: family.values
        for family in (*arena_families(summary), *native_families(summary))
    }
    (inspected,) = inspect_shares(ledger)
    held = [
        part.mib or 0
        for card in inspected.cards
        for each in card.pods
        for part in each.containers.values()
    ]
    return {
        "arena": [report.memory_bytes / MIB, report.memory_allocated_bytes / MIB]
        + [device.units * report.unit_bytes / MIB for device in report.devices],
        "boards": [
            occupied.memory_total_mib or 0,
            occupied.memory_allocated_mib or 0,
            *(card.memory_total_mib or 0 for card in occupied.cards),
        ],
        "ledger": [0, 0, *(card.memory_mib for card in ledger.nodes["n"].cards)],
        "inspect": [
            sum(card.memory_mib for card in inspected.cards),
            sum(held),
            *(card.memory_mib for card in inspected.cards),
        ],
        "arena_*": [
            (reported[f"arena_{name}_gpu_memory_of_cluster"][0] or 0) / MIB
            for name in ("total", "allocated")
        ],
        "fairlead_*": [
            (reported[f"fairlead_node_gpu_memory{name}_bytes"][0] or 0) / MIB
            for name in ("", "_allocated")
        ],
    }


@pytest.mark.parametrize(
    ("units", "gpus", "grant", "total", "each"),
    [
        pytest.param(32260, 2, 4000, 32260, 16130, id="two V100 of document 001, counted in MiB"),
        pytest.param(30, 2, 4, 30 * 1024, 15 * 1024, id="the same in GiB"),
        pytest.param(2048, 2, 4, 2048 * 1024, 1024 * 1024, id="1024 units of a card are still GiB"),
        pytest.param(2049, 2, 4, 2049, 1024.5, id="more than 1024 are MiB"),
        pytest.param(
            29, 2, 4, 29 * 1024, 14.5 * 1024, id="units that the cards do not share equally"
        ),
    ],
)
def test_memory_of_a_node_that_reports_neither_its_unit_nor_its_cards(
    units: int, gpus: int, grant: int, total: int, each: float
) -> None:
    """docs/spec/gpu-sharing.md#node-labels-annotations-and-inventory,
    docs/spec/arena-cli.md#legacy-tables-of-share-nodes: the first divides gpu-mem by gpu-count; in
    the second units are MiB when there are more than 1024 per GPU.
    """
    reported = mib_by_reader(bare(units, gpus), sharer(grant))
    # whole units (docs/spec/arena-cli.md#share-nodes); all others in proportion
    # (docs/spec/gpu-sharing.md#units-and-the-proportional-grant)
    allocated = {"arena": grant * total // units}
    in_proportion = int(each) * grant // (units // gpus)
    for reader in ("arena", "boards", "arena_*", "fairlead_*"):
        assert reported[reader][:2] == [total, allocated.get(reader, in_proportion)], reader
    assert reported["arena"][2:] == reported["boards"][2:] == [each] * gpus
    assert reported["ledger"][2:] == reported["inspect"][2:] == [int(each)] * gpus, (
        "a card's MiB are whole where they are shared out"
    )
    assert reported["inspect"][:2] == [int(each) * gpus, in_proportion]


def cards_by_reader(
    shared: Node, *pods: Pod, gpus: tuple[GpuReading, ...] = ()
) -> dict[str, dict[int, tuple[float, int]]]:
    """Units of each card and the units held of it, by its index."""
    seen = ClusterSnapshot(nodes=(shared,), pods=pods).with_gpus(gpus)
    (report,), ledger = report_nodes(seen), ledger_of(seen)
    (inspected,) = inspect_shares(ledger)
    return {
        "arena": {
            device.index: (device.units, device.units_allocated) for device in report.devices
        },
        "boards": {
            card.index: (card.units, card.units_allocated)
            for card in node_occupancy(shared, seen).cards
        },
        "ledger": {card.index: (card.units, card.used) for card in ledger.nodes["n"].cards},
        "inspect": {card.index: (card.total, card.used) for card in inspected.cards},
    }


def test_a_device_that_does_not_report_takes_no_units_from_the_others() -> None:
    """Two GPUs share 30 units, and the exporter has lost one of them. The other does not become a
    card of 30.
    """
    reported = cards_by_reader(
        bare(30, 2), sharer(4, 1), gpus=(GpuReading("n", 0, "GPU-0", memory_total_mib=16130),)
    )
    assert all(each == {0: (15, 0), 1: (15, 4)} for each in reported.values()), reported


def test_whole_gpus_beside_shared_ones_take_no_units() -> None:
    mixed = bare(30, 2)
    capacity = {**mixed.capacity, NVIDIA_GPU: 4}
    reported = cards_by_reader(msgspec.structs.replace(mixed, capacity=capacity), sharer(4))
    assert all(each == {0: (15, 4), 1: (15, 0)} for each in reported.values()), reported


def test_a_grant_follows_its_uuid_when_a_driver_has_numbered_the_cards_anew() -> None:
    """The ledger uses UUIDs as keys
    (docs/spec/gpu-sharing.md#node-labels-annotations-and-inventory).
    """
    shared = node("n", (15, 15), slots={0: {"uuid": "GPU-b"}, 1: {"uuid": "GPU-a"}})
    reported = cards_by_reader(shared, sharer(4, 0, "GPU-a"))
    assert all(each == {0: (15, 0), 1: (15, 4)} for each in reported.values()), reported


def test_a_grant_of_a_card_that_is_gone_is_on_no_other_card() -> None:
    reported = cards_by_reader(node("n", (15, 15)), sharer(4, 0, "GPU-gone"))
    assert all(each == {0: (15, 0), 1: (15, 0)} for each in reported.values()), reported


def test_an_inventory_that_claims_more_than_the_memory_is_not_believed() -> None:
    shared = node("n", (15, 15), slots={0: {"units": 900, "memory_mib": 16130}})
    reported = cards_by_reader(
        msgspec.structs.replace(shared, capacity={GPU_MEMORY: 30, GPU_COUNT: 2})
    )
    assert all(each == {0: (15, 0), 1: (15, 0)} for each in reported.values()), reported


def test_compute_that_only_an_init_container_needs_is_no_whole_card() -> None:
    """Main container 4 units / 10 %, init container 4 units / 60 %: the card gives 4 units and 60
    %, and the rest stays free.

    See docs/spec/gpu-sharing.md#need-of-a-pod.
    """
    asker = pod(containers=[container("main", 4, 10)], init_containers=(container("init", 4, 60),))
    grants = {"main": (Grant("", 0, 4, None, 10),), "init": (Grant("", 0, 4, None, 60),)}
    shared = node("n", (15,), core=True)
    seen = ClusterSnapshot(
        nodes=(shared,),
        pods=(msgspec.structs.replace(asker, node="n", phase="Running", grants=grants),),
    )
    found = node_occupancy(shared, seen)
    (card,) = found.cards
    assert {holder.mode for holder in card.holders} == {"share"}
    assert (found.gpus_allocated, card.units_free, card.core_used, card.core_free) == (
        pytest.approx(4 / 15),
        11,
        60,
        40,
    )


def test_a_job_whose_pods_share_cards_holds_their_parts() -> None:
    """docs/spec/telemetry.md#definitions: a share counts as its part of the card, in the sum of a
    job as well as in those of the node and the cluster.
    """
    pods = tuple(
        msgspec.structs.replace(sharer(units, 0, "GPU-n-0"), name=name, uid=name)
        for name, units in (("w-0", 4), ("w-1", 3))
    )
    seen = ClusterSnapshot(nodes=(node("n", (15,)),), pods=pods)
    job = Job("mpijob", "MPIJob", "kubeflow.org/v2beta1", "default", "bert", uid="u")
    summary = summarize(seen, (JobInstances(job, pods, ("worker", "worker")),), 0)
    reported = {family.name: family.values for family in native_families(summary)}
    for level in ("job", "node", "cluster"):
        assert reported[f"fairlead_{level}_gpus_allocated"] == [pytest.approx(7 / 15)], level


def test_a_card_of_an_inventory_without_memory_has_what_its_units_are() -> None:
    shared = msgspec.structs.replace(
        node("n", (15,)), gpus=(GpuSlot(0, "GPU-n-0", units=15, mode="shared"),)
    )
    reported = mib_by_reader(shared, sharer(4, 0, "GPU-n-0"))
    assert reported["boards"] == reported["inspect"] == [15360, 4096, 15360]
