"""The cluster exporter: every family is exact, a scrape causes no API request, and values are
absent when their source is missing.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import shutil
import subprocess
import threading
import time
from collections.abc import AsyncIterator, Iterator
from itertools import pairwise

import aiohttp
import pytest
from msgspec import structs
from prometheus_client.parser import text_string_to_metric_families
from tests.apps.company import GIB, company, readings
from tests.apps.fakes import EPOCH, FakeCluster, FakeReadings, FixedClock
from tests.waiting import HANG_SECONDS, until

from fairlead.apps import cluster_exporter
from fairlead.apps.cluster_exporter import COMPATIBILITIES, ClusterExporter, ClusterExporterSettings
from fairlead.apps.metrics_page import MetricsPage, make_page, parse_compat
from fairlead.apps.server import bind_socket
from fairlead.errors import UserError
from fairlead.model.devices.gpu import GpuReading
from fairlead.model.devices.page_tally import PageTally
from fairlead.model.metric import Sample
from fairlead.model.node import Condition
from fairlead.model.pod import Container
from fairlead.model.snapshot import ClusterSnapshot
from fairlead.model.source import Source
from fairlead.rules.metrics import arena as arena_metrics
from fairlead.rules.metrics import cluster as cluster_metrics
from fairlead.wire.metrics.prom_text import parse_page

CHOSEN = ClusterExporterSettings(node="host-1")
MIB = 1 << 20


async def page_text(
    snapshot: ClusterSnapshot,
    gpus: tuple[GpuReading, ...] = (),
    chosen: ClusterExporterSettings = CHOSEN,
) -> str:
    made = ClusterExporter(FakeCluster(snapshot), FakeReadings(gpus), FixedClock(), chosen)
    await made.refresh()
    return b"".join(made.page.pieces).decode()


@pytest.fixture
async def page() -> list[Sample]:
    return parse_page(await page_text(company(), readings())).samples


def named(samples: list[Sample], name: str, **labels: str) -> list[Sample]:
    return [each for each in samples if each.name == name and labels.items() <= each.labels.items()]


def value(samples: list[Sample], name: str, **labels: str) -> float:
    found = named(samples, name, **labels)
    assert len(found) == 1, f"{name}{labels}: {len(found)} series"
    return found[0].value


async def test_every_family_of_the_contract_is_there(page: list[Sample]) -> None:
    expected = {metric.name for metric in (*arena_metrics.NAMES, *cluster_metrics.NAMES)}
    expected -= {
        cluster_metrics.QUOTA_SMALLEST.name,
        "fairlead_gpu_pod_completion_time",
    }  # nothing waits for quota, no pod with a GPU has ended
    assert expected == {
        each.name
        for each in page
        if each.name.startswith(("arena_", "fairlead_")) and "_exporter_" not in each.name
    }
    assert len(arena_metrics.NAMES) == 18


async def test_the_page_is_valid_without_a_series_twice() -> None:
    text = await page_text(company(), readings())
    families = list(text_string_to_metric_families(text))
    assert len({family.name for family in families}) == len(families)
    series = [(each.name, tuple(sorted(each.labels.items()))) for each in parse_page(text).samples]
    assert len(set(series)) == len(series)


async def test_sums_of_the_cluster(page: list[Sample]) -> None:
    assert value(page, "arena_total_gpus_of_cluster") == 8
    assert value(page, "arena_allocated_gpus_of_cluster") == 2.5, (
        "bert 1, crash 1, two apps 4 of 15 units each"
    )
    assert value(page, "arena_unhealthy_gpus_of_cluster") == 2
    assert value(page, "fairlead_cluster_gpu_nodes") == 3
    assert value(page, "fairlead_cluster_gpu_nodes_allocated") == 3
    assert value(page, "fairlead_cluster_gpu_nodes_unhealthy") == 1
    assert value(page, "arena_used_gpu_memory_of_cluster") == (12100 + 3 + 6396 + 4) * MIB
    assert value(page, "fairlead_cluster_gpu_utilization_ratio") == pytest.approx(
        (0.9 + 0 + 0.5 + 0) / 4
    )


async def test_the_four_metrics_of_a_node_carry_equal_labels(page: list[Sample]) -> None:
    families = [
        f"arena_{name}_of_node"
        for name in ("used_gpus", "gpu_utilization", "allocated_gpu_memory", "used_gpu_memory")
    ]
    labels = [[each.labels for each in named(page, family)] for family in families]
    assert labels[0] == labels[1] == labels[2] == labels[3]
    assert labels[0] == [
        _node("gpu-1", "10.0.0.1", "worker", "Ready", "exclusive", 2, 2 * 15360 * MIB),
        _node("gpu-2", "10.0.0.2", "<none>", "Unknown", "exclusive", 4, -1),
        _node("gpu-s", "10.0.0.3", "<none>", "Ready", "share", 2, 2 * 16130 * MIB),
    ]


def _node(
    name: str, ip: str, role: str, status: str, mode: str, gpus: int, memory: int
) -> dict[str, str]:
    return {
        "node_name": name,
        "node_ip": ip,
        "node_role": role,
        "node_status": status,
        "gpu_mode": mode,
        "total_gpus": str(gpus),
        "total_gpu_mem": str(memory),
    }


async def test_values_of_nodes_and_minus_one_where_unknown(page: list[Sample]) -> None:
    assert {
        each.labels["node_name"]: each.value for each in named(page, "arena_used_gpus_of_node")
    } == {
        "gpu-1": 1,
        "gpu-2": 1,
        "gpu-s": 0.5,
    }
    assert {
        each.labels["node_name"]: each.value
        for each in named(page, "arena_gpu_utilization_of_node")
    } == {
        "gpu-1": 45,
        "gpu-2": -1,
        "gpu-s": 25,
    }
    assert value(page, "arena_allocated_gpu_memory_of_node", node_name="gpu-s") == 2 * 4301 * MIB
    assert value(page, "arena_allocated_gpu_memory_of_node", node_name="gpu-2") == -1
    assert not named(page, "fairlead_node_gpu_utilization_ratio", node_name="gpu-2"), (
        "natively, unknown is absent"
    )
    assert value(page, "fairlead_node_schedulable", node_name="gpu-1") == 0
    assert value(page, "fairlead_node_ready", node_name="gpu-1") == 1
    assert value(page, "fairlead_node_gpus_unhealthy", node_name="gpu-s") == 1
    assert named(page, "fairlead_node_info", node_name="gpu-1")[0].labels["gpu_model"] == "Tesla T4"


async def test_jobs_in_two_spellings(page: list[Sample]) -> None:
    arena = {
        each.labels["job_name"]: each.labels["job_status"]
        for each in named(page, "arena_duration_of_training_job")
    }
    assert arena == {
        "bert": "RUNNING",
        "done": "SUCCEEDED",
        "failed": "FAILED",
        "sleeps": "PENDING",
        "waits": "PENDING",
    }
    native = {
        each.labels["job_name"]: each.labels["status"]
        for each in named(page, "fairlead_job_status")
    }
    assert native == {
        "bert": "running",
        "done": "succeeded",
        "failed": "failed",
        "sleeps": "suspended",
        "waits": "pending",
    }
    counts = {each.labels["status"]: each.value for each in named(page, "fairlead_jobs")}
    assert counts == {
        "queuing": 0,
        "pending": 1,
        "running": 1,
        "succeeded": 1,
        "failed": 1,
        "suspended": 1,
    }
    assert value(page, "arena_duration_of_training_job", job_name="done") == 790
    assert value(page, "arena_duration_of_training_job", job_name="bert") == 890
    assert value(page, "fairlead_job_queue_wait_seconds", job_name="bert") == 40
    assert value(page, "fairlead_job_queue_wait_seconds", job_name="waits") == 900
    assert value(page, "fairlead_job_gpus_requested", job_name="sleeps") == 1
    assert value(page, "fairlead_job_gpus_allocated", job_name="waits") == 0


async def test_what_a_job_uses_and_what_each_of_its_pods_does(page: list[Sample]) -> None:
    assert value(page, "arena_gpu_utilization_of_training_job", job_name="bert") == 90
    assert value(page, "arena_allocated_gpu_memory_of_training_job", job_name="bert") == 15360 * MIB
    assert value(page, "arena_used_gpu_memory_of_training_job", job_name="bert") == 12000 * MIB
    worker = {
        "job_name": "bert",
        "instance_name": "bert-worker-0",
        "instance_status": "Running",
        "request_gpus": "1",
    }
    used = named(page, "arena_used_gpu_memory_of_training_job_instance", **worker)[0]
    allocated = named(page, "arena_allocated_gpu_memory_of_training_job_instance", **worker)[0]
    assert used.labels == allocated.labels, "they are divided by each other"
    info = named(page, "fairlead_job_instance_info", instance_name="bert-worker-0")[0].labels
    assert (info["role"], info["node_name"], info["instance_status"]) == (
        "worker",
        "gpu-1",
        "Running",
    )
    assert (
        value(
            page, "arena_used_gpu_memory_of_training_job_instance", instance_name="bert-launcher-x"
        )
        == 0
    ), "it holds no GPU"
    assert not named(
        page, "arena_allocated_gpu_memory_of_training_job_instance", instance_name="bert-launcher-x"
    ), "nothing to divide by"
    assert not named(
        page, "arena_gpu_utilization_of_training_job_instance", instance_name="bert-launcher-x"
    )
    assert value(page, "arena_allocated_gpu_memory_of_training_job", job_name="sleeps") == 0
    assert value(page, "arena_gpu_utilization_of_training_job", job_name="sleeps") == -1


async def test_an_instance_without_a_measurement_is_absent_and_its_job_is_minus_one() -> None:
    page = parse_page(await page_text(company())).samples
    assert not named(
        page, "arena_used_gpu_memory_of_training_job_instance", instance_name="bert-worker-0"
    )
    assert (
        value(
            page,
            "arena_allocated_gpu_memory_of_training_job_instance",
            instance_name="bert-worker-0",
        )
        == 15360 * MIB
    )
    assert value(page, "arena_used_gpu_memory_of_training_job", job_name="bert") == -1


async def test_pods_with_gpus_show_why_they_do_not_run(page: list[Sample]) -> None:
    crash = named(page, "fairlead_gpu_pod_info", pod_name="crash")[0].labels
    assert (crash["phase"], crash["reason"], crash["gpu_mode"]) == (
        "Running",
        "CrashLoopBackOff",
        "exclusive",
    )
    assert value(page, "fairlead_gpu_pod_restarts_total", pod_name="crash") == 7
    assert named(page, "fairlead_gpu_pod_info", pod_name="app-1")[0].labels["gpu_mode"] == "share"
    assert not named(page, "fairlead_gpu_pod_info", pod_name="bert-launcher-x")


async def test_quota_in_labels_for_the_reference_and_in_values_for_us(page: list[Sample]) -> None:
    gpu = named(
        page,
        "arena_elastic_resource_quota_tree",
        user_group="root.vision",
        resource_name="nvidia.com/gpu",
    )[0].labels
    assert (gpu["path"], gpu["namespaces"], gpu["max"], gpu["min"], gpu["used"]) == (
        "root",
        "vision",
        "4",
        "2",
        "3",
    ), "admitted is used, bound or not"
    cpu = named(
        page, "arena_elastic_resource_quota_tree", user_group="root.vision", resource_name="cpu"
    )[0].labels
    assert (cpu["max"], cpu["min"], cpu["used"]) == ("N/A", "0.5", "4.5")
    assert value(page, "fairlead_quota_used", quota="root", resource="nvidia.com/gpu") == 3
    assert value(page, "fairlead_quota_borrowed", quota="root.vision", resource="cpu") == 4
    assert value(page, "fairlead_quota_guaranteed", quota="root.vision", resource="cpu") == 0.5
    assert value(page, "fairlead_quota_max", quota="root.rest", resource="memory") == 64 * GIB
    assert value(page, "fairlead_quota_max", quota="root.vision", resource="cpu") == math.inf, (
        "no max: unlimited"
    )
    assert {
        each.labels["parent"] for each in named(page, "fairlead_quota_min", quota="root.vision")
    } == {"root"}
    assert (
        value(page, "fairlead_quota_namespace_used", namespace_name="notebooks", resource="memory")
        == 4 * GIB
    )
    assert (
        value(page, "fairlead_quota_namespace_used", namespace_name="empty", resource="memory") == 0
    )


async def test_waiting_pods_by_reason_and_what_is_claimed() -> None:
    spec = {
        "node": "",
        "gates": ("fairlead.io/quota",),
        "labels": {"arena.kubeflow.org/console-user": "bob"},
    }
    printed = Condition("fairlead.io/QuotaAdmitted", "False", "WaitingForEvictions", at=EPOCH)
    first, *rest = (
        pod for pod in company().pods if pod.namespace == "vision" and pod.requests.get("cpu")
    )
    waiting = (
        structs.replace(first, conditions=(printed,), **spec),
        *(structs.replace(pod, **spec) for pod in rest),
    )
    others = [pod for pod in company().pods if pod not in (first, *rest)]
    page = parse_page(await page_text(structs.replace(company(), pods=(*others, *waiting)))).samples
    asked = {pod.name: pod.requests["cpu"] / 1000 for pod in (first, *rest)}
    assert (
        value(page, "fairlead_quota_claimed", quota="root.vision", resource="cpu")
        == asked[first.name]
    )
    assert value(page, "fairlead_quota_pending", quota="root.vision", resource="cpu") == sum(
        asked.values()
    )
    assert value(page, "fairlead_quota_request", quota="root.vision", resource="cpu") == sum(
        asked.values()
    )
    assert (
        value(
            page, "fairlead_quota_waiting_pods", quota="root.vision", reason="WaitingForEvictions"
        )
        == 1
    )
    assert (
        value(page, "fairlead_quota_waiting_pods", quota="root.vision", reason="Unjudged")
        == len(rest)
        > 0
    )
    assert value(page, "fairlead_quota_waiting_pods", quota="root.vision", reason="NeverFits") == 0
    assert not named(page, "fairlead_quota_waiting_pods", quota="root"), (
        "of leaves, so that they add up"
    )


async def test_a_pod_that_lacks_gpus_waits_for_gpus_alone() -> None:
    """Vision uses 3 of at most 4 GPUs. The pod also requests cores and memory, of which there are
    enough.
    """
    asks = {"cpu": 1000, "memory": 1 << 30, "nvidia.com/gpu": 2}
    first = next(pod for pod in company().pods if pod.namespace == "vision")
    spec = {
        "containers": (Container("c", requests=asks, limits=asks),),
        "init_containers": (),
        "gates": ("fairlead.io/quota",),
    }
    waiting = structs.replace(
        first,
        name="waits",
        uid="waits",
        node="",
        phase="Pending",
        conditions=(),
        statuses=(),
        **spec,
    )
    samples = parse_page(
        await page_text(structs.replace(company(), pods=(*company().pods, waiting)))
    ).samples
    reported = {
        each.labels["resource"]: each.value
        for each in named(samples, "fairlead_quota_waiting_for", quota="root.vision")
    }
    assert {name for name, units in reported.items() if units} == {"nvidia.com/gpu"} < set(reported)
    assert [
        (each.labels["path"], each.labels["resource"], each.value)
        for each in named(samples, "fairlead_quota_pending_smallest")
    ] == [("root.vision", "nvidia.com/gpu", 2)]
    assert {each.labels["leaf"] for each in named(samples, "fairlead_quota_waiting_for")} == {
        "true"
    }
    assert {
        each.labels["leaf"] for each in named(samples, "fairlead_quota_used", quota="root")
    } == {"false"}


async def test_use_per_user_adds_up_to_the_leafs(page: list[Sample]) -> None:
    users = named(page, "fairlead_quota_user_used", quota="root.vision", resource="cpu")
    assert {each.labels["user"] for each in users} == {"-"}
    assert sum(each.value for each in users) == value(
        page, "fairlead_quota_used", quota="root.vision", resource="cpu"
    )


async def test_without_readings_use_is_absent_and_counts_are_not() -> None:
    page = parse_page(await page_text(company())).samples
    assert value(page, "arena_total_gpus_of_cluster") == 8
    assert not named(page, "arena_used_gpu_memory_of_cluster")
    assert not named(page, "fairlead_cluster_gpu_utilization_ratio")
    assert {each.value for each in named(page, "arena_gpu_utilization_of_node")} == {-1}
    assert value(page, "arena_unhealthy_gpus_of_cluster") == 2, (
        "1 withheld of gpu-2, 15 of 30 units of gpu-s"
    )


@pytest.mark.parametrize("state", ["forbidden", "syncing", "failing"])
async def test_pods_that_could_not_be_read_are_not_zero_allocated(state: str) -> None:
    blind = structs.replace(
        company(), pods=(), sources={"nodes": Source("nodes"), "pods": Source("pods", state)}
    )
    page = parse_page(await page_text(blind, readings())).samples
    assert value(page, "arena_total_gpus_of_cluster") == 8
    for name in (
        "arena_allocated_gpus_of_cluster",
        "arena_allocated_gpu_memory_of_cluster",
        "fairlead_cluster_gpus_allocated",
        "fairlead_quota_used",
    ):
        assert not named(page, name)
    assert not named(page, "fairlead_node_gpus_allocated")
    assert {each.value for each in named(page, "arena_used_gpus_of_node")} == {-1}


async def test_a_source_that_fails_keeps_its_numbers_and_reports_its_age() -> None:
    old = structs.replace(
        company(),
        sources={
            "nodes": Source("nodes"),
            "pods": Source("pods", "failing", "refused", good_at=EPOCH - 77),
        },
    )
    page = parse_page(await page_text(old)).samples
    assert value(page, "arena_allocated_gpus_of_cluster") == 2.5
    assert value(page, "fairlead_exporter_source_up", source="pods") == 0
    assert value(page, "fairlead_exporter_source_age_seconds", source="pods") == 77


async def test_before_the_first_read_there_are_self_metrics_only() -> None:
    cluster = FakeCluster(company(), is_ready=False)
    made = ClusterExporter(cluster, FakeReadings(), FixedClock(), CHOSEN)
    await made.refresh()
    page = parse_page(b"".join(made.page.pieces).decode()).samples
    assert value(page, "fairlead_exporter_synced") == 0
    assert not [
        each
        for each in page
        if each.name.startswith(("arena_", "fairlead_cluster_", "fairlead_node_"))
    ]


async def test_only_the_newest_jobs_have_series_but_all_are_counted() -> None:
    page = parse_page(
        await page_text(company(), chosen=ClusterExporterSettings(max_jobs=1))
    ).samples
    assert [each.labels["job_name"] for each in named(page, "fairlead_job_duration_seconds")] == [
        "sleeps"
    ]
    assert sum(each.value for each in named(page, "fairlead_jobs")) == 5


async def test_the_reference_families_can_be_left_out() -> None:
    page = parse_page(
        await page_text(
            company(), chosen=ClusterExporterSettings(compat=parse_compat("none", COMPATIBILITIES))
        )
    ).samples
    assert not [each for each in page if each.name.startswith("arena_")]
    with pytest.raises(UserError, match="`dcgm`"):
        parse_compat("dcgm", COMPATIBILITIES)


async def test_names_from_outside_are_escaped() -> None:
    malformed = company()
    node = structs.replace(malformed.nodes[1], name='<img onerror="x">\\\n', labels={})
    page = parse_page(await page_text(structs.replace(malformed, nodes=(node,)))).samples
    assert named(page, "fairlead_node_gpus")[0].labels["node_name"] == node.name


@contextlib.asynccontextmanager
async def serving(cluster: FakeCluster, gpus: FakeReadings | None = None) -> AsyncIterator[str]:
    sock = bind_socket("127.0.0.1", 0)
    port = sock.getsockname()[1]
    exporter = ClusterExporter(cluster, gpus or FakeReadings(), FixedClock(), CHOSEN)
    task = asyncio.create_task(exporter.service(sock).run())
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def test_scrapes_ask_the_cluster_nothing_and_changes_appear_soon() -> None:
    cluster = FakeCluster(company())
    async with serving(cluster) as url, aiohttp.ClientSession() as session:

        async def total() -> float | None:
            samples = parse_page(await (await session.get(f"{url}/metrics")).text()).samples
            found = named(samples, "arena_total_gpus_of_cluster")
            return found[0].value if found else None

        async def shows(gpus: float) -> bool:
            return await total() == gpus

        await until(lambda: shows(8))
        taken, began = cluster.snapshots_taken, time.monotonic()
        for _ in range(20):
            await total()
        assert (
            cluster.snapshots_taken
            <= taken + 1 + (time.monotonic() - began) // cluster_exporter.LONGEST_PAUSE_SECONDS
        )
        cluster.show(structs.replace(company(), nodes=company().nodes[:2]))
        await until(lambda: shows(2))


async def test_new_readings_appear_soon_although_the_cluster_rests(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nothing else causes a new page: the cluster does not change, and the longest pause is a
    minute.
    """
    monkeypatch.setattr(cluster_exporter, "SHORTEST_PAUSE_SECONDS", 0.05)
    monkeypatch.setattr(cluster_exporter, "LONGEST_PAUSE_SECONDS", 60 / 0.05)
    gpus = FakeReadings(())
    async with serving(FakeCluster(company()), gpus) as url, aiohttp.ClientSession() as session:

        async def shows_use() -> bool:
            return (
                "arena_used_gpu_memory_of_cluster"
                in await (await session.get(f"{url}/metrics")).text()
            )

        assert not await shows_use()
        gpus.readings = readings()
        await until(shows_use)


async def test_a_page_that_takes_long_is_made_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_exporter, "SHORTEST_PAUSE_SECONDS", 0.001)
    busy = FakeReadings(())
    monkeypatch.setattr(busy, "latest", lambda: [object()])  # something is new at every look
    made = ClusterExporter(FakeCluster(company()), busy, FixedClock(), CHOSEN)
    began: list[float] = []

    async def refresh() -> None:
        began.append(time.monotonic())
        await asyncio.sleep(0.05)

    monkeypatch.setattr(made, "refresh", refresh)
    loop = asyncio.create_task(made.run())

    async def was_made_thrice() -> bool:
        return len(began) >= 3

    await until(was_made_thrice)
    loop.cancel()
    assert (
        min(later - earlier for earlier, later in pairwise(began))
        >= 0.05 * (1 + cluster_exporter.LEISURE) * 0.99
    )


def test_a_page_that_took_very_long_does_not_make_the_exporter_seem_stuck() -> None:
    pauses = [cluster_exporter.shortest_pause(each) for each in (0.1, 2.0, 29.0)]
    assert pauses == [1.0, 8.0, 30.0]
    assert 29.0 + pauses[-1] < cluster_exporter.STUCK_AFTER_SECONDS


async def test_it_is_ready_only_when_the_cluster_was_read() -> None:
    waiting = {"nodes": Source("nodes"), "pods": Source("pods", "syncing", "the first list runs")}
    cluster = FakeCluster(ClusterSnapshot(sources=waiting), is_ready=False)
    async with serving(cluster) as url, aiohttp.ClientSession() as session:
        assert (await session.get(f"{url}/healthz")).status == 200
        response = await session.get(f"{url}/readyz")
        assert response.status == 503
        assert "pods: syncing the first list runs" in await response.text()
        cluster.is_ready = True
        cluster.show(company())

        async def is_ready() -> bool:
            return (await session.get(f"{url}/readyz")).status == 200

        await until(is_ready)


async def test_a_cluster_that_is_read_is_not_ready_before_its_first_page(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    may_be_made = threading.Event()

    def late(pieces: Iterator[bytes]) -> MetricsPage:
        may_be_made.wait(HANG_SECONDS)
        return make_page(pieces)

    monkeypatch.setattr(cluster_exporter, "make_page", late)
    async with serving(FakeCluster(company())) as url, aiohttp.ClientSession() as session:
        try:
            response = await session.get(f"{url}/readyz")
            assert (response.status, await response.text()) == (
                503,
                "the first page is being made\n",
            )
        finally:
            may_be_made.set()

        async def is_ready() -> bool:
            return (await session.get(f"{url}/readyz")).status == 200

        await until(is_ready)


async def test_a_page_that_cannot_be_made_leaves_the_last_one(
    caplog: pytest.LogCaptureFixture,
) -> None:
    cluster = FakeCluster(company())
    async with serving(cluster) as url, aiohttp.ClientSession() as session:

        async def shows_the_cluster() -> bool:
            return (
                "arena_total_gpus_of_cluster 8"
                in await (await session.get(f"{url}/metrics")).text()
            )

        async def has_complained() -> bool:
            return "could not be made" in caplog.text

        await until(shows_the_cluster)
        broken = structs.replace(company().jobs[0], type="no-such-kind")
        cluster.show(structs.replace(company(), jobs=(broken,)))
        await until(has_complained)
        assert await shows_the_cluster()


@pytest.mark.skipif(
    shutil.which("promtool") is None,
    reason="promtool is not installed: apt-get install prometheus",
)
def test_promtool_finds_nothing_in_native_families() -> None:
    text = asyncio.run(page_text(company(), readings()))
    native = "".join(
        line
        for line in text.splitlines(True)
        if line.startswith(("fairlead_", "# HELP fairlead_", "# TYPE fairlead_"))
    )
    checked = subprocess.run(
        ["promtool", "check", "metrics"], input=native, capture_output=True, text=True, check=False
    )
    assert (checked.returncode, checked.stdout + checked.stderr) == (0, "")


async def test_a_kind_that_appears_later_does_not_empty_the_page() -> None:
    cluster = FakeCluster(company())
    made = ClusterExporter(cluster, FakeReadings(), FixedClock(), CHOSEN)
    await made.refresh()
    cluster.is_ready = False
    await made.refresh()
    assert b"arena_total_gpus_of_cluster 8" in b"".join(made.page.pieces)


async def test_of_two_refreshes_the_later_one_makes_the_page(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The first began before the cluster was read, and its page takes long."""
    is_making, may_be_made = threading.Event(), threading.Event()

    def slow_at_first(pieces: Iterator[bytes]) -> MetricsPage:
        page = make_page(pieces)
        if not is_making.is_set():
            is_making.set()
            may_be_made.wait(HANG_SECONDS)
        return page

    monkeypatch.setattr(cluster_exporter, "make_page", slow_at_first)
    cluster = FakeCluster(is_ready=False)
    made = ClusterExporter(cluster, FakeReadings(), FixedClock(), CHOSEN)
    try:
        first = asyncio.ensure_future(made.refresh())
        await until(is_making.is_set)
        cluster.is_ready = True
        cluster.show(company())
        second = asyncio.ensure_future(made.refresh())
        await asyncio.sleep(0)
        if cluster.snapshots_taken == 2:
            await second  # it does not wait for the first
    finally:
        may_be_made.set()
    await asyncio.gather(first, second)
    assert b"arena_total_gpus_of_cluster 8" in b"".join(made.page.pieces)
    assert made.probes.unready() == ""


async def test_absurd_amounts_cost_neither_memory_nor_the_page() -> None:
    huge = 10**400 + 1
    everything = {
        "cpu": huge,
        "memory": huge,
        "nvidia.com/gpu": huge,
        "aliyun.com/gpu-mem": huge,
        "aliyun.com/gpu-count": huge,
    }
    whole = {
        name: amount for name, amount in everything.items() if name.startswith(("cpu", "nvidia"))
    }
    plain = company()
    nodes = (
        structs.replace(plain.nodes[1], name="absurd", capacity=whole),
        structs.replace(
            plain.nodes[1], name="absurd-shared", capacity=everything, card_memory_mib=None
        ),
    )
    greedy = structs.replace(
        plain.pods[-1], containers=(Container("c", requests=everything, limits=everything),)
    )
    bound = structs.replace(greedy, name="zz-bound", node="absurd", phase="Running")
    bad = structs.replace(
        plain, nodes=(*plain.nodes, *nodes), pods=(*plain.pods[:-1], greedy, bound)
    )
    page = parse_page(await page_text(bad, readings())).samples
    assert value(page, "arena_used_gpus_of_node", node_name="gpu-s") == 0.5, (
        "the others are as they were"
    )
    assert value(page, "fairlead_node_gpus", node_name="absurd") == 2**53


async def test_a_quota_tree_with_a_name_twice_gives_no_series_twice() -> None:
    plain = company()
    assert plain.quota is not None
    doubled = structs.replace(
        plain.quota, children=(*plain.quota.children, plain.quota.children[0])
    )
    series = [
        (each.name, tuple(sorted(each.labels.items())))
        for each in parse_page(await page_text(structs.replace(plain, quota=doubled))).samples
    ]
    assert len(set(series)) == len(series)


async def test_how_the_pages_of_exporters_are_read_is_on_the_page_and_nothing_where_none_is() -> (
    None
):
    url = "http://10.0.0.7:9400/metrics"
    tally = PageTally(
        read=190,
        failing=10,
        oldest_seconds=4.5,
        reads=380,
        failures=20,
        bad_lines={(url, "blank"): 6},
        twice=1,
        duplicates=8,
    )
    made = ClusterExporter(
        FakeCluster(company()),
        FakeReadings(readings(), tally=tally),
        FixedClock(),
        ClusterExporterSettings(node="h"),
    )
    await made.refresh()
    page = parse_page(b"".join(made.page.pieces).decode()).samples
    found = {
        (each.name.removeprefix("fairlead_exporter_"), *each.labels.values()): each.value
        for each in page
        if "_exporter_gpu" in each.name
    }
    assert found == {
        ("gpu_pages", "h", "read"): 190,
        ("gpu_pages", "h", "failing"): 10,
        ("gpu_pages", "h", "waiting"): 0,
        ("gpu_page_reads_total", "h", "read"): 380,
        ("gpu_page_reads_total", "h", "failed"): 20,
        ("gpu_oldest_page_age_seconds", "h"): 4.5,
        ("gpu_bad_lines_total", "h", url, "blank"): 6,
        ("gpus_told_twice", "h"): 1,
        ("gpu_duplicate_readings_total", "h"): 8,
    }
    assert "_exporter_gpu" not in await page_text(company(), readings())
