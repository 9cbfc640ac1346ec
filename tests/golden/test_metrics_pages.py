"""Whole /metrics pages of both exporters for one small set of devices and one small cluster, byte
for byte.

`make golden` rewrites them; read the diff. Values that differ between runs (numbers of the process,
durations) are left out.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.apps.company import company, readings
from tests.apps.fakes import (
    FakeCluster,
    FakeDevices,
    FakeReadings,
    FixedClock,
    device,
    four_cards,
    memory,
    process,
)

from fairlead.apps.cluster_exporter import ClusterExporter, ClusterExporterSettings
from fairlead.apps.gpu_exporter import GpuExporter, GpuExporterSettings
from fairlead.apps.metrics_page import MetricsPage
from fairlead.model.devices.device import DeviceSample, MigInstance
from fairlead.model.devices.page_tally import PageTally
from fairlead.rules.metrics.dcgm import DcgmLabels

FOLDER = Path(__file__).parent / "metrics"
VOLATILE = (
    "process_",
    "fairlead_exporter_collector_duration_seconds",
    "fairlead_exporter_cycle_duration_seconds",
    "fairlead_exporter_page_bytes",
    "fairlead_exporter_render_duration_seconds",
)
ONLY_DCGM = ("dcgm",)


def time_sliced() -> list[DeviceSample]:
    """A card that is offered four times, with two pods that are time-sliced on it."""
    turns = (process("a", "timeslice", 700, 15360, 40), process("b", "timeslice", 0, 15360, 0))
    return [device(0, used=704, util=40, processes=turns)]


XID = "DCGM_FI_DEV_XID_ERRORS"


def divided() -> list[DeviceSample]:
    """A whole card, and a card with two MIG instances, of which one is held."""
    p = "DCGM_FI_PROF_"
    held = process("mig-0", "mig", 4096, 20096, 0)
    one = MigInstance(
        9,
        0,
        "1g.18gb",
        "MIG-a",
        {**memory(USED=4100, TOTAL=20096), f"{p}GR_ENGINE_ACTIVE": 0.5, XID: 94},
        processes=(held,),
    )
    two = MigInstance(
        2,
        0,
        "3g.71gb",
        "MIG-b",
        {**memory(USED=12, TOTAL=71000), f"{p}GR_ENGINE_ACTIVE": 0.0, XID: 0},
    )
    return [device(0, used=500), device(1, used=4112, instances=(one, two), mig_mode="enabled")]


GPU_PAGES: dict[str, tuple[Sequence[DeviceSample], GpuExporterSettings]] = {
    "gpu-exporter": (four_cards(), GpuExporterSettings(node="gpu-1")),
    "gpu-exporter-time-sliced": (time_sliced(), GpuExporterSettings(node="gpu-1")),
    "gpu-exporter-mig": (divided(), GpuExporterSettings(node="gpu-1")),
    "gpu-exporter-mig-repeated": (
        divided(),
        GpuExporterSettings(node="gpu-1", compat=ONLY_DCGM, labels=DcgmLabels(repeats_card=True)),
    ),
    "gpu-exporter-without-devices": ((), GpuExporterSettings(node="gpu-1")),
    "gpu-exporter-custom": (four_cards(), GpuExporterSettings(node="gpu-1", compat=("custom",))),
    "gpu-exporter-old-namespace": (
        four_cards(),
        GpuExporterSettings(
            node="gpu-1",
            compat=ONLY_DCGM,
            labels=DcgmLabels(has_old_names=True, has_blanks_replaced=True),
        ),
    ),
    "gpu-exporter-both-hostnames": (
        four_cards(),
        GpuExporterSettings(
            node="gpu-1", compat=ONLY_DCGM, labels=DcgmLabels(("Hostname", "hostname"))
        ),
    ),
    "gpu-exporter-no-hostname": (
        four_cards(),
        GpuExporterSettings(node="gpu-1", compat=ONLY_DCGM, labels=DcgmLabels(())),
    ),
}


async def gpu_page(samples: Sequence[DeviceSample], chosen: GpuExporterSettings) -> MetricsPage:
    made = GpuExporter(FakeDevices(samples), FixedClock(), chosen)
    await made.refresh()
    return made.page


TALLY = PageTally(3, 1, 1, 4.5, 40, 2, {("http://10.0.0.7:9400/metrics", "blank"): 6}, 1, 8)


async def cluster_page(*, with_readings: bool) -> MetricsPage:
    made = ClusterExporter(
        FakeCluster(company()),
        FakeReadings(readings(), tally=TALLY) if with_readings else FakeReadings(),
        FixedClock(),
        ClusterExporterSettings(node="host-1"),
    )
    await made.refresh()
    return made.page


@pytest.mark.parametrize("name", GPU_PAGES)
def test_a_page_of_the_gpu_exporter_is_the_recorded_one(name: str) -> None:
    held_against_record(name, asyncio.run(gpu_page(*GPU_PAGES[name])))


@pytest.mark.parametrize("with_readings", [True, False], ids=["with readings", "without readings"])
def test_a_page_of_the_cluster_exporter_is_the_recorded_one(with_readings: bool) -> None:
    name = "cluster-exporter" if with_readings else "cluster-exporter-without-readings"
    held_against_record(name, asyncio.run(cluster_page(with_readings=with_readings)))


def held_against_record(name: str, page: MetricsPage) -> None:
    lines = b"".join(page.pieces).decode().splitlines(keepends=True)
    text = "".join(line for line in lines if not is_volatile(line))
    file = FOLDER / f"{name}.prom"
    if os.environ.get("FAIRLEAD_REWRITE_GOLDEN"):
        file.write_text(text, encoding="utf-8")
    assert text == file.read_text(encoding="utf-8"), (
        "`make golden` rewrites the record; read its diff"
    )


def is_volatile(line: str) -> bool:
    return line.removeprefix("# HELP ").removeprefix("# TYPE ").startswith(VOLATILE)
