"""Which pods hold the cards, while a kubelet answers, stops answering and answers again."""

from __future__ import annotations

import asyncio
from collections.abc import Collection

import msgspec
import pytest
from msgspec import structs
from tests.apps.fakes import EPOCH, device, lost_device, memory
from tests.rules.devices.pod_devices import IDS, MEMORY, given, held
from tests.waiting import HANG_SECONDS, until

from fairlead.apps.pod_map import PLACEMENT, RETRY_SECONDS, PodMap
from fairlead.errors import OutsideError
from fairlead.model.devices.device import DeviceSample, DeviceSnapshot, MigInstance
from fairlead.model.devices.driver import ProcessHome
from fairlead.model.devices.kubelet import (
    CardLimit,
    ContainerLimits,
    GivenShare,
    HeldDevices,
    Region,
    RegionCard,
)
from fairlead.model.devices.readings import GpuProcess
from fairlead.model.devices.series_names import LocalPod
from fairlead.model.refusal import Refusal
from fairlead.rules.metrics.container_gpu import container_families, process_families
from fairlead.rules.metrics.exporter import ExporterState, exporter_families
from fairlead.rules.metrics.gpu import gpu_families
from fairlead.wire.kube.local_pod import WireLocalPod, parse_local_pod
from fairlead_sim.gpus.node_cards import simulated_uuid

CARD = simulated_uuid("n1", 0)


class Node:
    """A kubelet and a grants file whose contents a test sets."""

    def __init__(self) -> None:
        self.held = (held(MEMORY, *IDS),)
        self.given: tuple[GivenShare, ...] | Refusal = (given(CARD),)
        self.failure = ""
        self.moment = 0.0
        self.asked = 0

    async def list_held(self) -> tuple[HeldDevices, ...]:
        self.asked += 1
        if self.failure:
            raise OutsideError("kubelet", self.failure)
        return self.held

    def read_given(self) -> tuple[GivenShare, ...] | Refusal:
        return self.given


@pytest.fixture
def node() -> Node:
    return Node()


@pytest.fixture
def pods(node: Node) -> PodMap:
    return PodMap(node, node, 60.0, lambda: node.moment)


def names(pods: PodMap) -> list[str]:
    samples = pods.attributed([structs.replace(device(), uuid=CARD)])
    assert len(samples) == 1, "a device's series never go"
    return [process.pod for process in samples[0].processes]


async def test_a_silent_kubelet_costs_names_only_after_a_while(node: Node, pods: PodMap) -> None:
    assert names(pods) == []
    assert pods.state.age_seconds is None
    assert await pods.ask()
    assert names(pods) == ["p"]
    node.failure = "away"
    assert not await pods.ask()
    node.moment = 60.0
    assert names(pods) == ["p"]
    node.moment = 60.5
    assert names(pods) == []
    assert pods.state.errors == (
        ("grants", 0),
        ("kubelet", 1),
        ("no_host_pid", 0),
        ("placement", 0),
    )
    assert pods.state.age_seconds == 60.5
    node.failure = ""
    assert await pods.ask()
    assert names(pods) == ["p"]


class Guarded:
    """Files of the memory guard; `cards` None: the container does not have it."""

    def __init__(self, cards: tuple[RegionCard, ...] | None) -> None:
        self.cards = cards
        self.asked: list[str] = []

    def read_guard(self, token: str) -> tuple[ContainerLimits, Region] | Refusal | None:
        self.asked.append(token)
        limits = ContainerLimits((CardLimit("GPU-other", 100), CardLimit(CARD, 100)), "/r")
        return None if self.cards is None else (limits, Region(1, self.cards))


def counters(pods: PodMap) -> list[tuple[str, str, float | int | None]]:
    """Name without its prefix, type and value of each counter of the guard."""
    samples = pods.attributed([structs.replace(device(), uuid=CARD)])
    return [
        (each.name.removeprefix("fairlead_container_gpu_"), each.metric.type, value)
        for each in container_families(samples)
        if each.name.endswith(("accounted_bytes", "denied_total", "allocators_total"))
        for value in each.values
        if value is not None
    ]


async def test_a_container_with_the_guard_has_its_counters(
    node: Node, caplog: pytest.LogCaptureFixture
) -> None:
    files = Guarded(None)
    pods = PodMap(node, node, 60.0, lambda: node.moment, guard=files)
    await pods.ask()
    assert counters(pods) == []
    assert files.asked == [given(CARD).token]
    files.cards = (RegionCard(1, 2, 3, 4), RegionCard(100 << 20, 6, 7, 8))
    expected = [
        ("memory_accounted_bytes", "gauge", 100 << 20),
        ("allocations_denied_total", "counter", 7),
        ("unknown_allocators_total", "counter", 8),
    ]
    assert counters(pods) == expected
    assert not caplog.messages
    files.cards = (RegionCard(1), RegionCard((100 << 20) + 1))
    assert counters(pods) == counters(pods) == []
    (line,) = caplog.messages
    assert line.endswith(
        "the region counts 104857601 bytes of GPU " + CARD + ", its limit is 104857600"
    )
    files.cards = (RegionCard(), RegionCard())
    assert [value for _, _, value in counters(pods)] == [0, 0, 0]


async def test_names_that_come_or_go_are_news_and_nothing_else_is(node: Node) -> None:
    pods = PodMap(node, node, 60.0, lambda: node.moment, ask_seconds=0.01)
    received: list[int] = []
    running = asyncio.create_task(pods.run(lambda: received.append(1)))
    asked = 0

    async def after(change: object) -> int:
        """The number of announcements after two more reads."""
        nonlocal asked
        received.clear()
        wanted = node.asked + 3
        await until(lambda: node.asked >= wanted)
        return len(received)

    try:
        await until(lambda: received)
        assert await after(None) == 0
        node.held = ()
        assert await after("gone") == 1
        node.held = (held(MEMORY, *IDS),)
        assert await after("back") == 1
        node.given = (given(CARD, core=30),)
        assert await after("another grant") == 1
    finally:
        running.cancel()


async def test_each_outage_is_reported_and_counted_as_a_collector(
    node: Node, pods: PodMap, caplog: pytest.LogCaptureFixture
) -> None:
    def success() -> list[float | int | None]:
        state = ExporterState("n1", "1", pods=pods.state)
        return next(
            list(each.values)
            for each in exporter_families(state, DeviceSnapshot(), EPOCH)
            if each.name.endswith("_success")
        )

    assert success() == [1], "it is there from the start"
    for outage in (1, 2):
        node.failure = "away"
        for _ in range(3):
            await pods.ask()
        assert success() == [0]
        node.failure = ""
        await pods.ask()
        assert success() == [1]
        assert len([each for each in caplog.messages if "away" in each]) == outage
    unasked = PodMap(node, node, 60.0, lambda: node.moment, is_wanted=False)
    pods = unasked
    node.failure = "no kubelet here"
    await unasked.ask()
    assert success() == [], "names were not requested, and no kubelet is reached"
    node.failure = ""
    await unasked.ask()
    assert success() == [1]


async def test_a_damaged_grants_file_leaves_what_was_read_before(node: Node, pods: PodMap) -> None:
    assert await pods.ask()
    node.given = Refusal("garbage")
    assert not await pods.ask()
    assert names(pods) == ["p"]
    assert pods.state.errors == (
        ("grants", 1),
        ("kubelet", 0),
        ("no_host_pid", 0),
        ("placement", 0),
    )


async def test_a_pod_that_is_gone_is_not_named(node: Node, pods: PodMap) -> None:
    await pods.ask()
    node.held = ()
    await pods.ask()
    assert names(pods) == []
    assert pods.state.containers == 0


class Homes:
    """Pid 7 belongs to the pod, pid 8 to no pod."""

    def homes(self, pids: Collection[int]) -> dict[int, ProcessHome]:
        return {
            pid: ProcessHome("u" if pid == 7 else "", name=f"program-{pid}")
            for pid in pids
            if pid in (7, 8)
        }


async def test_processes_are_put_to_their_containers(node: Node) -> None:
    pods = PodMap(node, node, 60.0, lambda: node.moment, Homes())
    await pods.ask()
    seen = (
        GpuProcess(7, "C", 300 << 20, 40.0),
        GpuProcess(8, "C", 100 << 20, 5.0),
        GpuProcess(9, "C", 1 << 40, 100.0),
    )
    (sample,) = pods.attributed([structs.replace(device(), uuid=CARD, seen=seen)])
    rows = [
        (each.pod, each.memory_used_bytes >> 20, each.sm_percent, each.processes)
        for each in sample.processes
    ]
    assert rows == [("p", 300.0, 40.0, 1), ("", 100.0, 5.0, 1)], (
        "one that has ended meanwhile has no owner"
    )


async def test_each_process_has_its_series_when_they_are_asked_for(node: Node) -> None:
    pods = PodMap(node, node, 60.0, lambda: node.moment, Homes())
    await pods.ask()
    seen = (
        GpuProcess(8, "C+G", 100 << 20, None),
        GpuProcess(7, "C", None, 150.0),
        GpuProcess(9, "C", 1 << 40, 100.0),
    )
    memory, work = process_families(
        pods.attributed([structs.replace(device(), uuid=CARD, seen=seen)])
    )
    labels = [dict(zip(memory.metric.labels, key, strict=True)) for key in memory.keys]
    assert [
        (each["pod_name"], each["pid"], each["process_name"], each["process_type"])
        for each in labels
    ] == [
        ("", "8", "program-8", "C+G"),
        ("p", "7", "program-7", "C"),
    ]
    assert (memory.values, work.values) == ([100 << 20, None], [None, 1.0]), (
        "unknown is absent, and nothing is above the whole"
    )


async def test_without_processes_a_shared_card_has_no_values_and_a_sole_holder_those_of_the_card(
    node: Node,
) -> None:
    pods = PodMap(node, node, 60.0, lambda: node.moment)
    card = structs.replace(
        device(used=500, util=42), uuid=CARD, seen=(GpuProcess(1, "C", 300 << 20, 40.0),)
    )
    await pods.ask()
    (shared,) = pods.attributed([card])
    assert [(each.memory_used_bytes, each.processes) for each in shared.processes] == [(None, None)]
    node.held = (held("nvidia.com/gpu", CARD),)
    await pods.ask()
    (alone,) = pods.attributed([card])
    assert [
        (each.pod, each.memory_used_bytes >> 20, each.sm_percent) for each in alone.processes
    ] == [("p", 500, 42)]


async def test_holders_of_a_card_that_an_unknown_resource_names_are_unknown(
    node: Node, caplog: pytest.LogCaptureFixture
) -> None:
    pods = PodMap(node, node, 60.0, lambda: node.moment)
    card = structs.replace(device(), uuid=CARD)
    node.held = (held("nvidia.com/gpu.team-a", f"{CARD}::1"),)
    await pods.ask()
    await pods.ask()
    families = {each.metric.name: each for each in gpu_families(pods.attributed([card]))}
    assert families["fairlead_gpu_containers"].values == [None]
    assert families["fairlead_gpu_allocated_ratio"].values == [None]
    assert [each.message for each in caplog.records].count(
        "the kubelet gives cards of this node as `nvidia.com/gpu.team-a`, a resource whose "
        "ids are not read: their holders are unknown;"
        " name it with --nvidia-resource-names"
    ) == 1
    node.held = (held("nvidia.com/gpu.shared", f"{CARD}::1"),)
    await pods.ask()
    families = {each.metric.name: each for each in gpu_families(pods.attributed([card]))}
    assert families["fairlead_gpu_containers"].values == [1]


async def test_a_driver_that_does_not_report_processes_leaves_an_only_holder_the_cards_values(
    node: Node,
) -> None:
    """docs/spec/telemetry.md#container-metrics: for an exclusive holder the device's value is used;
    for sharers the values are unknown.
    """
    pods = PodMap(node, node, 60.0, lambda: node.moment, Homes())
    mute = structs.replace(
        device(used=500, util=42), uuid=CARD, seen=(GpuProcess(7, "C", None, None),)
    )
    await pods.ask()
    (shared,) = pods.attributed([mute])
    assert [
        (each.memory_used_bytes, each.sm_percent, each.processes) for each in shared.processes
    ] == [(None, None, 1)]
    used, _, worked, *_ = container_families([shared])
    assert (used.values, worked.values) == ([None], [None]), "unknown is absent"
    node.held = (
        held("nvidia.com/gpu", CARD),
        HeldDevices("nvidia.com/gpu", (CARD,), "c", pod_uid="u"),
    )
    await pods.ask()
    for card in (mute, structs.replace(mute, seen=None)):
        (alone,) = pods.attributed([card])
        assert [(each.memory_used_bytes, each.sm_percent) for each in alone.processes] == [
            (500 << 20, 42)
        ]


async def test_a_mig_instance_reports_what_its_only_holder_uses_and_several_in_one_share_it(
    node: Node,
) -> None:
    pods = PodMap(node, node, 60.0, lambda: node.moment, Homes())
    reported = {"DCGM_FI_PROF_GR_ENGINE_ACTIVE": 0.25, **memory(TOTAL=70000, USED=1000)}
    parts = [
        MigInstance(1, 0, "3g.71gb", "MIG-a", reported, (GpuProcess(7, "C", 300 << 20, None),))
    ]
    node.held = (
        held("nvidia.com/mig-3g.71gb", "MIG-a"),
        HeldDevices("nvidia.com/mig-3g.71gb", ("MIG-a",), "c", pod_uid="u"),
    )
    await pods.ask()

    def use(*instances: MigInstance) -> list[tuple[int | None, float | None, int | None]]:
        (card,) = pods.attributed([structs.replace(device(), uuid=CARD, instances=instances)])
        assert card.knows_foreign
        return [
            (each.memory_used_bytes, each.sm_percent, each.memory_limit_bytes)
            for each in card.instances[0].processes
        ]

    assert use(*parts) == [(300 << 20, 25.0, 70000 << 20)]
    other = MigInstance(1, 1, "1c.3g.71gb", "MIG-b", reported, ())
    assert use(*parts, other) == [(300 << 20, None, 70000 << 20)], (
        "what the two do together has no owner"
    )


class Known:
    """`ports.PodIdentities`: pod `p` with these annotations, as read from the API server."""

    def __init__(self, annotations: dict[str, str]) -> None:
        spec = {
            "containers": [{"name": "first"}, {"name": "c", "resources": {"limits": {MEMORY: "4"}}}]
        }
        meta = {"namespace": "ns", "name": "p", "uid": "u", "annotations": annotations}
        self._pod = parse_local_pod(
            msgspec.json.decode(
                msgspec.json.encode({"metadata": meta, "spec": spec}), type=WireLocalPod
            )
        )

    def latest(self) -> dict[tuple[str, str], LocalPod]:
        return {("ns", "p"): self._pod}


OWN = {
    "fairlead.io/gpu-allocation": f'{{"c":[{{"uuid":"{CARD}","index":7,"units":4,"mib":4301}}]}}'
}
THEIRS = {"scheduler.framework.gpushare.allocation": '{"1":{"0":4}}'}
OLDER = {"ALIYUN_COM_GPU_MEM_IDX": "0"}


@pytest.mark.parametrize(("annotations", "mib"), [(OWN, 4301), (THEIRS, None), (OLDER, None)])
async def test_without_a_row_of_the_agent_a_pods_annotations_name_the_card_it_shares(
    node: Node, annotations: dict[str, str], mib: int | None
) -> None:
    """docs/spec/telemetry.md#device-ids: first the agent's ledger, then the annotations, the newest
    first.
    """
    node.given = ()
    pods = PodMap(node, node, 60.0, lambda: node.moment, Homes(), identities=Known(annotations))
    await pods.ask()
    await pods.ask()
    (card,) = pods.attributed(
        [structs.replace(device(), uuid=CARD, seen=(GpuProcess(7, "C", 300 << 20, 40.0),))]
    )
    (holder,) = card.processes
    assert (holder.pod, holder.container, holder.allocate_mode, holder.memory_used_bytes) == (
        "p",
        "c",
        "share",
        300 << 20,
    )
    assert holder.memory_limit_bytes == (None if mib is None else mib << 20), (
        "units are of no size that the exporter knows"
    )
    assert card.knows_foreign and PLACEMENT not in pods.state.faults
    node.given = (given(CARD),)
    await pods.ask()
    (card,) = pods.attributed([structs.replace(device(), uuid=CARD, seen=())])
    assert [each.memory_limit_bytes for each in card.processes] == [
        given(CARD).grant.memory_mib << 20
    ], "the ledger is exact"


async def test_a_sharer_of_a_card_without_a_name_is_not_called_foreign(
    node: Node, caplog: pytest.LogCaptureFixture
) -> None:
    """Shares of another plugin, or a grants file that is not mounted: an alert on foreign processes
    would be false.
    """
    node.given = ()
    pods = PodMap(node, node, 60.0, lambda: node.moment, Homes())
    shared = structs.replace(device(), uuid=CARD, seen=(GpuProcess(7, "C", 300 << 20, 40.0),))
    other = structs.replace(device(1), seen=(GpuProcess(8, "C", 1 << 20, 1.0),))
    for number in range(3):
        await pods.ask()
        found = {each.name: each.values for each in gpu_families(pods.attributed([shared, other]))}
        assert found["fairlead_gpu_foreign_processes"] == [None, 1]
        assert found["fairlead_gpu_containers"] == [None, 0]
        assert (PLACEMENT in pods.state.faults) is (number > 0), (
            "the file may be a moment behind the list"
        )
    assert [record.message for record in caplog.records] == [
        (
            "the holders of cards are unknown: ns/p/c has shared memory, and neither the grants "
            "file nor its pod names the card"
        )
    ]
    node.given = (given(CARD),)
    await pods.ask()
    (card, _) = pods.attributed([shared, other])
    assert card.knows_foreign and PLACEMENT not in pods.state.faults


@pytest.mark.parametrize("mode", ["no list", "no processes", "no names"])
async def test_what_is_unknown_of_a_cards_users_is_absent(node: Node, mode: str) -> None:
    """A card whose processes cannot be seen has no value for foreign bytes, not 0; before the
    kubelet has answered there is no count of containers.
    """
    pods = PodMap(node, node, 60.0, lambda: node.moment, None if mode == "no names" else Homes())
    if mode != "no list":
        await pods.ask()
    seen = None if mode == "no processes" else (GpuProcess(8, "C", 100 << 20, 5.0),)
    found = {
        each.name.removeprefix("fairlead_gpu_"): each
        for each in gpu_families(pods.attributed([structs.replace(device(), uuid=CARD, seen=seen)]))
    }
    assert all(
        found[name].values == [None]
        for name in ("foreign_processes", "memory_foreign_bytes", "memory_unattributed_bytes")
    )
    known = [found[name].values != [None] for name in ("containers", "allocated_ratio")]
    assert known == [mode != "no list"] * 2


async def test_a_lost_cards_holder_keeps_its_limit_and_without_one_that_was_known_has_none(
    node: Node, pods: PodMap
) -> None:
    node.held = (held("nvidia.com/gpu", CARD),)
    await pods.ask()
    well, lost = structs.replace(device(), uuid=CARD), structs.replace(lost_device(0), uuid=CARD)

    def limit(card: DeviceSample) -> list[float | int | None]:
        return next(
            list(each.values)
            for each in container_families(pods.attributed([card]))
            if each.name.endswith("limit_bytes")
        )

    assert limit(lost) == [None], "never 0"
    assert limit(well) == limit(lost) == [15360 << 20]


async def test_a_container_counts_once_though_the_checkpoint_names_its_uid_again(
    node: Node, pods: PodMap
) -> None:
    node.held = (held(MEMORY, *IDS), HeldDevices(MEMORY, IDS, "c", pod_uid="u"))
    await pods.ask()
    assert (names(pods), pods.state.containers) == (["p"], 1)


async def test_processes_that_cannot_be_seen_are_reported(node: Node) -> None:
    pods = PodMap(node, node, 60.0, lambda: node.moment)
    await pods.ask()
    pods.attributed([structs.replace(device(), uuid=CARD, seen=())])
    assert dict(pods.state.errors)["no_host_pid"] == 0, "there was nothing to see"
    pods.attributed([structs.replace(device(), uuid=CARD, seen=(GpuProcess(1, "C", 1, None),))])
    assert dict(pods.state.errors)["no_host_pid"] == 1


async def test_a_card_is_shared_by_mps_while_its_programs_go_through_it(node: Node) -> None:
    node.held = (held("nvidia.com/gpu", f"{CARD}::0"),)
    pods = PodMap(node, node, 60.0, lambda: node.moment, Homes())
    await pods.ask()

    def mode(*types: str) -> str:
        seen = tuple(GpuProcess(7 + place, kind, 1 << 20, None) for place, kind in enumerate(types))
        return str(
            pods.attributed([structs.replace(device(), uuid=CARD, seen=seen)])[0]
            .processes[0]
            .allocate_mode
        )

    assert [mode("C"), mode("M", "C"), mode(), mode("C")] == [
        "timeslice",
        "mps",
        "mps",
        "timeslice",
    ], "an idle card keeps its word"


class Strangers:
    """Every process belongs to a pod without any grant."""

    def homes(self, pids: Collection[int]) -> dict[int, ProcessHome]:
        return {pid: ProcessHome("somebody-else") for pid in pids}


async def test_a_process_of_an_unknown_pod_makes_the_agent_ask_the_kubelet_soon_and_once() -> None:
    """At most once a second; the regular read would come only after an hour."""
    node, asked = Node(), asyncio.Event()
    count = 0

    async def list_held() -> tuple[HeldDevices, ...]:
        nonlocal count
        count += 1
        asked.set()
        return node.held

    node.list_held = list_held  # type: ignore[method-assign]
    pods = PodMap(node, node, 7200.0, homes=Strangers(), ask_seconds=3600.0)
    running = asyncio.create_task(pods.run(lambda: None))
    sample = structs.replace(device(), uuid=CARD, seen=(GpuProcess(7, "C", 1 << 20, None),))
    try:
        await asyncio.wait_for(asked.wait(), HANG_SECONDS)
        asked.clear()
        for _ in range(3):
            await asyncio.to_thread(pods.attributed, [sample])
        await asyncio.wait_for(asked.wait(), HANG_SECONDS)
        asked.clear()
        await asyncio.to_thread(pods.attributed, [sample])
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asked.wait(), 2 * RETRY_SECONDS)
        assert count == 2, "it is known by now that no pod has it"
    finally:
        running.cancel()
