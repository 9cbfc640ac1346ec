"""Of several cluster exporters exactly one prints the cluster's metrics, so no sum counts a GPU
twice. On a clock of the test's own.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import pytest
from tests.apps.company import company, readings
from tests.apps.fakes import FakeCluster, FakeReadings, FixedClock
from tests.apps.leases import Clock, OneLease
from tests.waiting import until

from fairlead.apps import cluster_exporter
from fairlead.apps.cluster_exporter import ClusterExporter, ClusterExporterSettings
from fairlead.apps.leader import BACKGROUND_LEASE_TIMES, Leader
from fairlead.wire.metrics.prom_text import parse_page

OF_THE_CLUSTER = (
    "arena_",
    "fairlead_cluster_",
    "fairlead_node_",
    "fairlead_job",
    "fairlead_gpu_pod",
    "fairlead_quota_",
)


class Replica:
    """One exporter, advanced by hand: `turn` reads the Lease, `refresh` makes pages."""

    def __init__(self, lease: OneLease, clock: Callable[[], float], name: str) -> None:
        self.cluster = FakeCluster(company())
        self.leader = Leader(lease, name, monotonic=clock, times=BACKGROUND_LEASE_TIMES)
        chosen = ClusterExporterSettings(node=f"host-of-{name}")
        self.exporter = ClusterExporter(
            self.cluster, FakeReadings(readings()), FixedClock(), chosen, self.leader
        )

    async def step(self) -> None:
        await self.leader.turn()
        await self.exporter.refresh()

    @property
    def page(self) -> dict[str, float]:
        """Every metric name of the current page, with the sum of its series."""
        samples = parse_page(b"".join(self.exporter.page.pieces).decode()).samples
        return {
            each.name: sum(other.value for other in samples if other.name == each.name)
            for each in samples
        }

    @property
    def prints_the_cluster(self) -> bool:
        found = [name for name in self.page if name.startswith(OF_THE_CLUSTER)]
        assert not found or self.page["fairlead_exporter_leader"] == 1
        return bool(found)


@pytest.fixture
def pair() -> tuple[OneLease, Clock, Replica, Replica]:
    lease, clock = OneLease(), Clock()
    return lease, clock, Replica(lease, clock, "first"), Replica(lease, clock, "second")


async def test_a_standby_prints_itself_alone_and_is_ready(
    pair: tuple[OneLease, Clock, Replica, Replica],
) -> None:
    """docs/spec/telemetry.md#cluster-exporter. A rolling update waits until the new replica is
    ready, although it cannot have the Lease yet.
    """
    _, _, first, second = pair
    await first.step()
    await second.step()
    assert (first.prints_the_cluster, second.prints_the_cluster) == (True, False)
    assert (first.page["fairlead_exporter_leader"], second.page["fairlead_exporter_leader"]) == (
        1,
        0,
    )
    for name in ("build_info", "synced", "source_up", "scrapes_total"):
        assert f"fairlead_exporter_{name}" in second.page
    assert "process_start_time_seconds" in second.page
    assert second.exporter.probes.unready() == ""


async def test_it_is_not_ready_while_no_process_leads(
    pair: tuple[OneLease, Clock, Replica, Replica],
) -> None:
    lease, _, first, _ = pair
    lease.away = True
    await first.step()
    assert not first.prints_the_cluster
    assert first.exporter.probes.unready() == "connection refused"


async def test_a_leader_that_cannot_renew_stops_before_another_may_begin(
    pair: tuple[OneLease, Clock, Replica, Replica],
) -> None:
    """Checked every tenth of a second, with only a scrape in between, because the exporter's loop
    may hang.
    """
    lease, clock, first, second = pair
    await first.step()
    await second.step()
    began, last_printed, next_printed = clock.now, 0.0, 0.0
    while not next_printed:
        clock.now += 0.1
        await second.step()
        assert not (first.prints_the_cluster and second.prints_the_cluster)
        last_printed = clock.now if first.prints_the_cluster else last_printed
        next_printed = clock.now if second.prints_the_cluster else 0.0
        assert clock.now < began + 60
    assert last_printed - began == pytest.approx(BACKGROUND_LEASE_TIMES.safe, abs=0.2)
    assert next_printed - began <= BACKGROUND_LEASE_TIMES.length + BACKGROUND_LEASE_TIMES.renew
    assert first.page["fairlead_exporter_leader"] == 0, (
        "its page shows it although it was not made anew"
    )
    assert lease.record is not None and lease.record.holder == "second"


async def test_a_released_lease_is_taken_at_once(
    pair: tuple[OneLease, Clock, Replica, Replica],
) -> None:
    _, _, first, second = pair
    await first.step()
    await first.leader.release()
    assert not first.prints_the_cluster
    await second.step()
    assert second.prints_the_cluster


async def test_a_lease_that_comes_back_brings_no_old_page(
    pair: tuple[OneLease, Clock, Replica, Replica],
) -> None:
    lease, clock, first, _ = pair
    await first.step()
    lease.away = True
    clock.now += BACKGROUND_LEASE_TIMES.safe + 1
    await first.step()
    lease.away = False
    await first.leader.turn()
    assert first.leader.is_held
    assert not first.prints_the_cluster, "its last page with the cluster is of before"
    await first.exporter.refresh()
    assert first.prints_the_cluster


async def test_without_a_lease_it_prints_always() -> None:
    alone = ClusterExporter(
        FakeCluster(company()), FakeReadings(), FixedClock(), ClusterExporterSettings(node="host-1")
    )
    await alone.refresh()
    page = b"".join(alone.page.pieces).decode()
    assert 'fairlead_exporter_leader{node_name="host-1"} 1' in page
    assert "fairlead_cluster_gpus 8" in page


async def test_a_lease_that_is_given_back_brings_a_page_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In real time, as in a rolling update: the page does not wait for the usual refresh."""
    monkeypatch.setattr(cluster_exporter, "SHORTEST_PAUSE_SECONDS", 600.0)
    assert BACKGROUND_LEASE_TIMES.look <= 0.5, "the aim is a second, with the page"
    lease = OneLease()
    first, second = (Replica(lease, time.monotonic, name) for name in ("first", "second"))
    await first.step()
    running = asyncio.ensure_future(second.exporter.run())
    try:
        await until(lambda: second.leader.holder == "first")
        await first.leader.release()
        await until(lambda: second.prints_the_cluster)
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
