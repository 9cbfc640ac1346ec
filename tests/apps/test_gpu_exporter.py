"""The GPU exporter: one page per sample, always status 200, a fault removes only the values that
failed, and the invariants that dashboards rely on.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gzip
import math
import os
import re
import shutil
import subprocess
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path

import aiohttp
import pytest
from msgspec import structs
from prometheus_client.parser import text_string_to_metric_families
from tests.apps.fakes import (
    EPOCH,
    FakeDevices,
    FixedClock,
    device,
    four_cards,
    lost_device,
    memory,
    process,
)
from tests.asgi import ask
from tests.waiting import HANG_SECONDS, until

from fairlead.apps.configuration import counters_file
from fairlead.apps.gpu_exporter import (
    COMPATIBILITIES,
    GpuExporter,
    GpuExporterSettings,
    hostname_labels,
    printed_devices,
    sampling_seconds,
)
from fairlead.apps.metrics_page import parse_compat
from fairlead.apps.owner_names import OwnerNames
from fairlead.apps.server import bind_socket
from fairlead.cli.frame.parser import make_parser
from fairlead.cli.servers import gpu_exporter
from fairlead.errors import UserError
from fairlead.model.devices.counter import CounterSet
from fairlead.model.devices.device import (
    CollectorRun,
    DeviceSample,
    DeviceSnapshot,
    FieldGroup,
    MigInstance,
    XidEvent,
)
from fairlead.model.devices.plausible_values import sound_values
from fairlead.model.devices.readings import GpuProcess
from fairlead.model.metric import Sample
from fairlead.rules.devices.shown import shown
from fairlead.rules.metrics.dcgm import DcgmLabels
from fairlead.rules.metrics.exporter import PodMapState
from fairlead.run.node_exporter import settings_of
from fairlead.wire.metrics.counters_csv import parse_counters
from fairlead.wire.metrics.dcgm_fields import FIELDS
from fairlead.wire.metrics.gpu_readings import NATIVE_METRICS
from fairlead.wire.metrics.prom_text import parse_page

DEFAULTS = GpuExporterSettings(node="gpu-1")


def exporter(
    samples: Sequence[DeviceSample] = (), chosen: GpuExporterSettings = DEFAULTS
) -> GpuExporter:
    return GpuExporter(FakeDevices(samples), FixedClock(), chosen)


async def page_text(samples: Sequence[DeviceSample], chosen: GpuExporterSettings = DEFAULTS) -> str:
    made = exporter(samples, chosen)
    await made.refresh()
    return b"".join(made.page.pieces).decode()


async def samples_of(
    samples: Sequence[DeviceSample], chosen: GpuExporterSettings = DEFAULTS
) -> list[Sample]:
    return parse_page(await page_text(samples, chosen)).samples


def named(samples: list[Sample], name: str, **labels: str) -> list[Sample]:
    return [each for each in samples if each.name == name and labels.items() <= each.labels.items()]


async def test_the_page_is_valid_without_a_series_twice() -> None:
    text = await page_text(
        four_cards(), GpuExporterSettings(node="gpu-1", compat=("dcgm", "legacy", "custom"))
    )
    families = list(text_string_to_metric_families(text))
    assert len({family.name for family in families}) == len(families), (
        "HELP and TYPE once per family"
    )
    series = [(each.name, tuple(sorted(each.labels.items()))) for each in parse_page(text).samples]
    assert len(set(series)) == len(series)


async def test_a_page_of_chosen_families_has_no_others_and_the_same_lines() -> None:
    held = [device(processes=(process("a", "share", 0, 4308, 0),))]
    chosen = frozenset(NATIVE_METRICS)
    whole = await samples_of(held, DEFAULTS)
    lean = await samples_of(held, structs.replace(DEFAULTS, compat=(), only=chosen))
    own = [each for each in lean if not each.name.startswith(("fairlead_exporter_", "process_"))]
    assert own == [each for each in whole if each.name in chosen]
    assert {each.name for each in own} > {
        "fairlead_gpu_info",
        "fairlead_gpu_utilization_ratio",
        "fairlead_container_gpu_memory_used_bytes",
    }


async def test_labels_stand_in_dcgms_order_with_ints_and_six_decimals() -> None:
    text = await page_text(four_cards())
    head = (
        'gpu="0",UUID="GPU-gpu-1-0",pci_bus_id="00000000:07:00.0",device="nvidia0",'
        'modelName="Tesla T4",Hostname="gpu-1"'
    )
    rest = 'DCGM_FI_DRIVER_VERSION="570.172.08",container="main",namespace="research",pod="train-0"'
    assert f"DCGM_FI_DEV_GPU_UTIL{{{head},{rest}}} 90\n" in text
    assert f"DCGM_FI_DEV_POWER_USAGE{{{head},{rest}}} 66.125000\n" in text
    xid = (
        'DCGM_FI_DRIVER_VERSION="570.172.08",container="main",err_code="0",err_msg="No '
        'Error",namespace="research",pod="train-0"'
    )
    assert f"DCGM_FI_DEV_XID_ERRORS{{{head},{xid}}} 0\n" in text


async def test_a_whole_value_of_a_double_is_printed_as_one() -> None:
    """Whatever Python type the source used: one family has one format."""
    resting = device(2)
    resting = structs.replace(resting, fields={**resting.fields, "DCGM_FI_DEV_POWER_USAGE": 0})
    text = await page_text([device(1), resting])
    watts = [
        line.rpartition(" ")[2]
        for line in text.splitlines()
        if line.startswith("DCGM_FI_DEV_POWER_USAGE{")
    ]
    assert watts == ["66.125000", "0.000000"]


async def test_families_stand_in_the_counters_order() -> None:
    names = list(
        dict.fromkeys(
            each.name for each in await samples_of(four_cards()) if each.name.startswith("DCGM_")
        )
    )
    assert names[:3] == ["DCGM_FI_DEV_SM_CLOCK", "DCGM_FI_DEV_MEM_CLOCK", "DCGM_FI_DEV_GPU_TEMP"]
    assert (
        names.index("DCGM_FI_DEV_FB_FREE")
        < names.index("DCGM_FI_DEV_FB_USED")
        < names.index("DCGM_FI_DEV_FB_RESERVED")
    )


@pytest.mark.parametrize(
    ("labels", "expected", "absent"),
    [
        (DcgmLabels(()), set(), {"Hostname", "hostname"}),
        (DcgmLabels(("hostname",)), {"hostname"}, {"Hostname"}),
        (DcgmLabels(("Hostname", "hostname")), {"Hostname", "hostname"}, set()),
        (
            DcgmLabels(has_old_names=True),
            {"uuid", "container_name", "pod_namespace", "pod_name"},
            {"UUID", "pod", "namespace"},
        ),
        (DcgmLabels(), {"pod"}, {"pod_uid"}),
        (DcgmLabels(has_pod_uids=True), {"pod", "pod_uid"}, set()),
        (DcgmLabels(has_pods=False, has_pod_uids=True), {"UUID"}, {"pod", "pod_uid"}),
        (DcgmLabels(has_pods=False), {"UUID"}, {"pod", "namespace", "container"}),
    ],
)
async def test_labels_are_spelt_as_asked(
    labels: DcgmLabels, expected: set[str], absent: set[str]
) -> None:
    found = named(
        await samples_of(four_cards(), GpuExporterSettings(node="gpu-1", labels=labels)),
        "DCGM_FI_DEV_GPU_UTIL",
        gpu="0",
    )[0].labels
    assert expected <= set(found)
    assert not absent & set(found)


@pytest.mark.parametrize(
    ("devices", "shown"),
    [
        ("f", "0123"),
        ("", "0123"),
        ("g", "0123"),
        ("g:0,2-3", "023"),
        ("g:1+i", "1"),
        ("g+i", "0123"),
        ("i", ""),
        ("g:7", ""),
    ],
)
async def test_only_the_devices_that_were_asked_for_are_printed(devices: str, shown: str) -> None:
    found = await samples_of(four_cards(), GpuExporterSettings(devices=printed_devices(devices)))
    assert "".join(sorted(each.labels["gpu"] for each in named(found, "fairlead_gpu_up"))) == shown
    assert {each.labels["gpu"] for each in found if "gpu" in each.labels} - {""} == set(shown)


@pytest.mark.parametrize(
    ("devices", "cards", "instances"),
    [
        ("f", "0123", "1.2 1.9 3.1"),
        ("g:0,1", "01", "1.2 1.9"),
        ("i", "13", "1.2 1.9 3.1"),
        ("i:0,2", "13", "1.2 3.1"),
        ("i:1", "1", "1.9"),
        ("i:3", "", ""),
        ("g+i", "0123", "1.2 1.9 3.1"),
        ("g:0+i:2", "03", "3.1"),
        ("g:1+i:0", "1", "1.2"),
    ],
)
async def test_mig_instances_are_chosen_for_themselves(
    devices: str, cards: str, instances: str
) -> None:
    """MIG instances are counted over all cards by index and id, as in DCGM."""

    def divided(index: int, *ids: int) -> DeviceSample:
        return device(
            index,
            instances=tuple(
                MigInstance(each, 0, "1g.18gb", f"MIG-{each}", memory(TOTAL=1, USED=1))
                for each in ids
            ),
        )

    found = await samples_of(
        [device(0), divided(1, 9, 2), device(2), divided(3, 1)],
        GpuExporterSettings(devices=printed_devices(devices)),
    )
    assert (
        "".join(sorted({each.labels["gpu"] for each in named(found, "fairlead_gpu_up")})) == cards
    )
    for family, label in (
        ("fairlead_gpu_memory_used_bytes", "mig_gi_id"),
        ("DCGM_FI_DEV_FB_USED", "GPU_I_ID"),
    ):
        parts = [each.labels for each in named(found, family) if each.labels.get(label)]
        assert " ".join(sorted(f"{each['gpu']}.{each[label]}" for each in parts)) == instances


async def test_blanks_in_model_names_become_dashes_when_asked() -> None:
    chosen = GpuExporterSettings(node="gpu-1", labels=DcgmLabels(has_blanks_replaced=True))
    found = await samples_of([device()], chosen)
    assert named(found, "DCGM_FI_DEV_GPU_UTIL")[0].labels["modelName"] == "Tesla-T4"
    assert named(found, "fairlead_gpu_up")[0].labels["model"] == "Tesla T4"


async def test_a_shared_device_names_no_pod_and_its_containers_are_beside() -> None:
    found = await samples_of(four_cards())
    assert not {"pod", "namespace", "container"} & set(
        named(found, "DCGM_FI_DEV_FB_USED", gpu="1")[0].labels
    )
    used = named(found, "fairlead_container_gpu_memory_used_bytes", gpu="1")
    assert {each.labels["pod_name"]: each.value for each in used} == {
        "app-1": 3193 * 2**20,
        "app-2": 3193 * 2**20,
    }
    limits = named(found, "fairlead_container_gpu_memory_limit_bytes", gpu="1")
    assert {each.value for each in limits} == {4308 * 2**20}


async def test_a_card_with_one_sharer_is_still_nobodys() -> None:
    found = await samples_of([device(processes=(process("alone", "share", 100, 4308, 5),))])
    assert "pod" not in named(found, "DCGM_FI_DEV_FB_USED")[0].labels
    modes = {
        each.labels["allocate_mode"]: each.labels["pod_name"]
        for each in named(found, "nvidia_gpu_duty_cycle")
    }
    assert modes == {"none": "", "share": "alone"}


async def test_two_containers_of_one_pod_share_its_name_but_no_container() -> None:
    both = (process("p", "exclusive", 1, 9, 1, "a"), process("p", "exclusive", 1, 9, 1, "b"))
    found = await samples_of([device(processes=both)])
    labels = named(found, "DCGM_FI_DEV_FB_USED")[0].labels
    assert (labels["pod"], labels["namespace"]) == ("p", "research")
    assert "container" not in labels
    assert [each.labels["allocate_mode"] for each in named(found, "nvidia_gpu_duty_cycle")] == [
        "none"
    ]


async def test_legacy_series_count_each_device_once_and_sum_its_shares() -> None:
    found = await samples_of(four_cards())
    devices = [
        each
        for each in named(found, "nvidia_gpu_memory_used_bytes")
        if each.labels["allocate_mode"] != "share"
    ]
    assert sorted(each.labels["minor_number"] for each in devices) == ["0", "1", "2"]
    assert {each.labels["minor_number"]: each.labels["allocate_mode"] for each in devices} == {
        "0": "exclusive",
        "1": "none",
        "2": "none",
    }
    shares = named(found, "nvidia_gpu_memory_used_bytes", allocate_mode="share")
    assert sum(each.value for each in shares) == 2 * 3193 * 2**20
    assert {each.value for each in named(found, "nvidia_gpu_memory_total_bytes")} == {15360 * 2**20}
    assert named(found, "nvidia_gpu_num_devices")[0].value == 4
    assert 'uuid="GPU-gpu-1-0"} 6.291456e+09\n' in await page_text(four_cards())


async def test_containers_never_use_more_than_their_device() -> None:
    found = await samples_of(four_cards())
    for index in "012":
        used = sum(
            each.value
            for each in named(found, "fairlead_container_gpu_memory_used_bytes", gpu=index)
        )
        assert used <= named(found, "fairlead_gpu_memory_used_bytes", gpu=index)[0].value


async def test_a_lost_card_is_down_and_has_no_values_while_others_go_on() -> None:
    found = await samples_of([device(0), lost_device(1)])
    assert {each.labels["gpu"]: each.value for each in named(found, "fairlead_gpu_up")} == {
        "0": 1,
        "1": 0,
    }
    assert {each.labels["gpu"]: each.value for each in named(found, "fairlead_gpu_healthy")} == {
        "0": 1,
        "1": 0,
    }
    assert [each.labels["gpu"] for each in named(found, "fairlead_gpu_utilization_ratio")] == ["0"]
    assert [each.labels["gpu"] for each in named(found, "DCGM_FI_DEV_GPU_UTIL")] == ["0"]
    assert named(found, "fairlead_gpu_xid_errors_total", gpu="1", xid="79")[0].value == 1
    assert named(found, "fairlead_gpu_xid_errors_total", gpu="0", xid="79")[0].value == 0, (
        "counters exist before anything happens"
    )


async def test_base_units() -> None:
    found = await samples_of([device(util=42, used=1024)])
    values = {
        each.name.removeprefix("fairlead_gpu_"): each.value
        for each in found
        if each.name.startswith("fairlead_gpu_")
    }
    assert values["utilization_ratio"] == 0.42
    assert values["memory_used_bytes"] == 1 << 30
    assert values["energy_joules_total"] == 123456.789
    assert values["throttle_seconds_total"] == 2.5
    assert named(found, "fairlead_gpu_clock_hertz", clock="sm")[0].value == 1_590_000_000
    assert {
        each.labels["reason"] for each in named(found, "fairlead_gpu_throttled") if each.value
    } == {"power_cap"}


async def test_a_card_that_stops_answering_keeps_its_values_until_stale_and_then_its_name() -> None:
    """`up` 0, the age and the collectors stay, so that alerts on them can fire."""
    failed = (
        CollectorRun(
            "device", "0", is_good=False, seconds=10.0, succeeded_at=EPOCH, errors={"timeout": 2}
        ),
    )
    devices = FakeDevices([device(0, sampled_at=EPOCH), device(1, sampled_at=EPOCH)])
    made = GpuExporter(
        devices, FixedClock(), GpuExporterSettings(node="gpu-1", interval_seconds=0.1)
    )

    async def after(seconds: float) -> list[Sample]:
        cards = (
            device(0, sampled_at=EPOCH, collectors=failed),
            device(1, sampled_at=EPOCH + seconds),
        )
        devices.change(at=EPOCH + seconds, devices=cards)
        await made.refresh()
        return parse_page(b"".join(made.page.pieces).decode()).samples

    kept = await after(15)
    assert [each.value for each in named(kept, "fairlead_gpu_up")] == [1, 1]
    assert [each.value for each in named(kept, "DCGM_FI_DEV_GPU_UTIL")] == [42, 42]
    stale = await after(15.5)
    assert {each.labels["gpu"]: each.value for each in named(stale, "fairlead_gpu_up")} == {
        "0": 0,
        "1": 1,
    }
    assert [
        each.labels["gpu"]
        for each in stale
        if each.name in ("DCGM_FI_DEV_GPU_UTIL", "fairlead_gpu_power_watts")
    ] == ["1", "1"]
    assert {
        each.labels["gpu"]: each.value
        for each in named(stale, "fairlead_exporter_sample_age_seconds")
    } == {"0": 15.5, "1": 0}
    assert named(stale, "fairlead_exporter_collector_success", gpu="0")[0].value == 0
    assert (
        named(stale, "fairlead_exporter_collector_errors_total", gpu="0", error="timeout")[0].value
        == 2
    )
    assert named(stale, "fairlead_exporter_nvml_up")[0].value == 1, "a card is not the driver"


async def test_a_card_that_hangs_is_down_at_once_and_keeps_its_values_until_they_are_stale() -> (
    None
):
    devices = FakeDevices()
    made = GpuExporter(devices, FixedClock(), DEFAULTS)
    for age, values in ((5, [42]), (16, [])):
        devices.change(devices=(device(up=False, sampled_at=EPOCH - age),), stuck_calls=1)
        await made.refresh()
        found = parse_page(b"".join(made.page.pieces).decode()).samples
        assert [each.value for each in named(found, "DCGM_FI_DEV_GPU_UTIL")] == values
        assert (
            named(found, "fairlead_gpu_up")[0].value,
            named(found, "fairlead_exporter_stuck_calls")[0].value,
        ) == (0, 1)


async def test_rows_of_type_label_print_texts_of_the_card(tmp_path: Path) -> None:
    path = tmp_path / "counters.csv"
    names = (
        "DRIVER_VERSION",
        "NVML_VERSION",
        "DEV_BRAND",
        "DEV_SERIAL",
        "DEV_VBIOS_VERSION",
        "DEV_OEM_INFOROM_VER",
        "DEV_ECC_INFOROM_VER",
    )
    names += ("DEV_POWER_INFOROM_VER", "DEV_INFOROM_IMAGE_VER")
    rows = [f"DCGM_FI_{name}, label, A text." for name in names]
    path.write_text("\n".join(["DCGM_FI_DEV_GPU_UTIL, gauge, Use.", *rows]))
    texts = {
        "DCGM_FI_NVML_VERSION": "12.570",
        "DCGM_FI_DEV_BRAND": "NVIDIA",
        "DCGM_FI_DEV_OEM_INFOROM_VER": "1.1",
    }
    texts |= {
        "DCGM_FI_DEV_INFOROM_IMAGE_VER": "G500.0200.00.04",
        "DCGM_FI_DEV_POWER_INFOROM_VER": "N/A",
    }
    found = await samples_of(
        [device(texts=texts)],
        GpuExporterSettings(node="gpu-1", collectors=str(path), compat=("dcgm",)),
    )
    labels = named(found, "DCGM_FI_DEV_GPU_UTIL")[0].labels
    assert {name: labels.get(f"DCGM_FI_{name}") for name in names} == {
        "DRIVER_VERSION": "570.172.08",
        "NVML_VERSION": "12.570",
        "DEV_BRAND": "NVIDIA",
        "DEV_SERIAL": "132000000000",
        "DEV_VBIOS_VERSION": "90.04.38.00.03",
        "DEV_OEM_INFOROM_VER": "1.1",
        "DEV_ECC_INFOROM_VER": None,
        "DEV_POWER_INFOROM_VER": "N/A",
        "DEV_INFOROM_IMAGE_VER": "G500.0200.00.04",
    }


async def test_what_dcgm_exporter_makes_itself_is_made_from_snapshot_to_snapshot(
    tmp_path: Path,
) -> None:
    path = tmp_path / "counters.csv"
    path.write_text(
        "\n".join(
            f"DCGM_EXP_{name}, gauge, Made."
            for name in ("XID_ERRORS_COUNT", "CLOCK_EVENTS_COUNT", "GPU_HEALTH_STATUS")
        )
    )
    clock, chosen = (
        FixedClock(),
        GpuExporterSettings(
            node="gpu-1", collectors=str(path), compat=("dcgm",), xid_window_ms=60_000
        ),
    )
    devices = FakeDevices()
    made = GpuExporter(devices, clock, chosen)

    async def after(seconds: float, **card: object) -> dict[tuple[str, str], float]:
        clock.at = EPOCH + seconds
        devices.change(at=clock.at, devices=(device(sampled_at=clock.at, **card),))
        await made.refresh()
        found = [
            each
            for each in parse_page(b"".join(made.page.pieces).decode()).samples
            if each.name.startswith("DCGM_EXP_")
        ]
        assert all(
            each.labels["gpu"] == "0" and each.labels["modelName"] == "Tesla T4" for each in found
        )
        what = ("xid", "clock_event", "health_watch")
        return {
            (
                each.name[9:],
                next((each.labels[name] for name in what if name in each.labels), ""),
            ): each.value
            for each in found
        }

    first = await after(0, throttle_reasons=0x4 | 0x40)
    assert first == {
        ("XID_ERRORS_COUNT", ""): 0,
        ("CLOCK_EVENTS_COUNT", "power_cap"): 1,
        ("CLOCK_EVENTS_COUNT", "hw_thermal"): 1,
        ("GPU_HEALTH_STATUS", "PCIE"): 0,
        ("GPU_HEALTH_STATUS", "MEM"): 0,
        ("GPU_HEALTH_STATUS", "ALL"): 0,
    }
    hit = {"xids": (XidEvent(63, 2, EPOCH + 5),)}
    second = await after(5, throttle_reasons=0x4, **hit)
    assert (
        second["XID_ERRORS_COUNT", "63"],
        second["CLOCK_EVENTS_COUNT", "power_cap"],
        second["GPU_HEALTH_STATUS", "ALL"],
    ) == (2, 2, 10)
    assert (await after(64, **hit))["XID_ERRORS_COUNT", "63"] == 2
    gone = await after(66, **hit)
    assert gone["XID_ERRORS_COUNT", ""] == 0 and ("XID_ERRORS_COUNT", "63") not in gone


async def test_a_driver_that_is_gone_is_reported_and_the_page_stays() -> None:
    devices = FakeDevices()
    made = GpuExporter(devices, FixedClock(), DEFAULTS)
    await made.refresh()
    devices.change(is_driver_up=False, driver_error="there is no NVIDIA driver")
    await made.refresh()
    bare = parse_page(b"".join(made.page.pieces).decode()).samples
    assert named(bare, "fairlead_exporter_nvml_up", node_name="gpu-1")[0].value == 0
    assert not [
        each for each in bare if each.name.startswith(("fairlead_gpu_", "DCGM_", "nvidia_"))
    ]


async def test_what_is_read_less_often_stays_for_its_own_period() -> None:
    slow = FieldGroup({"DCGM_FI_DEV_PCIE_REPLAY_COUNTER": 7}, EPOCH, 60.0)
    devices = FakeDevices()
    made = GpuExporter(devices, FixedClock(), DEFAULTS)
    for seconds, replays in ((0, [7]), (180, [7]), (181, [])):
        card = device(
            fields={"DCGM_FI_DEV_GPU_UTIL": 1}, sampled_at=EPOCH + seconds, slower=(slow,)
        )
        devices.change(at=EPOCH + seconds, devices=(card,))
        await made.refresh()
        found = parse_page(b"".join(made.page.pieces).decode()).samples
        assert [each.value for each in named(found, "fairlead_gpu_pcie_replays_total")] == replays
        assert named(found, "DCGM_FI_DEV_GPU_UTIL")


ABSURD = {
    "GPU_TEMP": (math.nan, "not_finite"),
    "POWER_USAGE": (-5.0, "negative"),
    "GPU_UTIL": (1700, "too_large"),
    "ECC_DBE_VOL_TOTAL": (2147483632, "blank"),
    "TOTAL_ENERGY_CONSUMPTION": (0x7FFFFFFFFFFFFFF0, "blank"),
    "SM_CLOCK": (2147483634, "blank"),
}


async def test_a_value_that_no_card_can_have_is_left_out_counted_and_named_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    bad = {f"DCGM_FI_DEV_{name}": value for name, (value, _) in ABSURD.items()}
    devices = FakeDevices(
        [device(fields={"DCGM_FI_DEV_MEM_COPY_UTIL": 5, **bad}, power_limit_watts=2147483632.0)]
    )
    made = GpuExporter(devices, FixedClock(), DEFAULTS)
    for times in (1, 2):
        devices.change()
        for _ in range(2):
            await made.refresh()
        found = parse_page(b"".join(made.page.pieces).decode()).samples
        of_card = {each.name for each in found if each.name.startswith("DCGM_") and each.value != 0}
        assert of_card == {"DCGM_FI_DEV_MEM_COPY_UTIL"}
        gone = (
            "power_watts",
            "power_limit_watts",
            "utilization_ratio",
            "clock_hertz",
            "temperature_celsius",
            "energy_joules_total",
        )
        assert not [each for each in found if each.name.removeprefix("fairlead_gpu_") in gone]
        errors = named(
            found, "fairlead_exporter_collector_errors_total", gpu="0", collector="values"
        )
        assert {each.labels["error"]: each.value for each in errors} == {
            "not_finite": times,
            "negative": times,
            "too_large": times,
            "blank": 3 * times,
        }, "once for each snapshot, however many pages are made of it"
    assert len(caplog.records) == len(ABSURD)
    assert (
        "GPU 0 of gpu-1: DCGM_FI_DEV_GPU_UTIL is 1700, which is no value (too_large)"
    ) in caplog.messages


async def test_a_mig_instance_and_a_process_pass_the_same_gate() -> None:
    part = {
        "DCGM_FI_PROF_GR_ENGINE_ACTIVE": 17.0,
        "DCGM_FI_DEV_FB_USED": 2147483632,
        **memory(TOTAL=1000, USED=1002),
    }
    seen = (GpuProcess(1, "C", 1 << 62, 170.0), GpuProcess(2, "C", 5, 5.0))
    card = device(instances=(MigInstance(1, 0, "1g.18gb", "MIG-a", part, seen),))
    seen = shown(DeviceSnapshot(1, EPOCH, (card,)), 15.0, EPOCH)
    (instance,) = seen.samples[0].instances
    assert instance.fields == memory(TOTAL=1000)
    assert instance.seen == (GpuProcess(1, "C", None, None), GpuProcess(2, "C", 5, 5.0))
    assert (
        sorted((each.gpu, each.why.value) for each in seen.refused)
        == [("0", "over_total")] * 2 + [("0", "too_large")] * 3
    )


def test_every_field_of_a_card_has_its_bounds() -> None:
    """Blank values of DCGM are dropped for every field."""
    texts = {
        "BRAND",
        "SERIAL",
        "VBIOS_VERSION",
        "OEM_INFOROM_VER",
        "ECC_INFOROM_VER",
        "POWER_INFOROM_VER",
        "INFOROM_IMAGE_VER",
    }
    texts |= {"NAME", "UUID", "PCI_BUSID"}
    numbers = {field for field in FIELDS if field.startswith(("DCGM_FI_DEV_", "DCGM_FI_PROF_"))} - {
        f"DCGM_FI_DEV_{name}" for name in texts
    }
    for field in numbers:
        for value in (-200, math.nan, math.inf, 0x7FFFFFFFFFFFFFF0, 1e300):
            assert sound_values({field: value})[0] == {}, (field, value)
        assert sound_values({field: 0})[0] == sound_values({field: 1})[0] | {field: 0}
    seconds = [field for field in numbers if sound_values({field: 2147483632})[0]]
    assert seconds and all(
        field.endswith(("_VIOLATION", "_CONSUMPTION", "_BYTES", "REASONS", "_NS"))
        or "BANDWIDTH_" in field
        or "THROUGHPUT" in field
        for field in seconds
    )


async def test_the_page_is_there_before_a_device_has_answered_and_new_with_each_snapshot() -> None:
    devices = FakeDevices()
    devices.snapshot = DeviceSnapshot()
    async with serving(devices) as url, aiohttp.ClientSession() as session:

        async def page() -> str:
            return await (await session.get(f"{url}/metrics")).text()

        assert "fairlead_exporter_build_info" in await page() and "DCGM" not in await page()
        devices.change(devices=(device(),))

        async def has_a_card() -> bool:
            return "DCGM_FI_DEV_GPU_UTIL" in await page()

        await until(has_a_card)


async def test_a_page_that_cannot_be_made_leaves_the_last_one_and_is_not_alive_for_ever(
    caplog: pytest.LogCaptureFixture,
) -> None:
    fault = list[Exception]()

    def jobs() -> dict[str, tuple[str, ...]]:
        if fault:
            raise fault[0]
        return {}

    wall, devices = FixedClock(), FakeDevices([device()])
    made = GpuExporter(devices, FixedClock(), DEFAULTS, wall.now, names=OwnerNames(jobs=jobs))
    async with contextlib.AsyncExitStack() as ending:
        ending.callback(asyncio.create_task(made.service(bind_socket("127.0.0.1", 0)).run()).cancel)
        await until(lambda: made.page.pieces)
        fault.append(RuntimeError("a bug"))
        page = made.page
        for number in range(3):
            devices.change()
            await until(lambda many=number + 1: made.faults["RuntimeError"] == many)
        assert made.page is page
        wall.at += 26
        assert await ask(made.app, "GET", "/healthz") == (503, "no sample for 26 s\n")
        (logged,) = [each for each in caplog.records if "because of a bug" in each.getMessage()]
        assert logged.exc_info is not None
        fault.clear()
        devices.change()
        await until(lambda: made.page is not page)
        assert (await ask(made.app, "GET", "/healthz"))[0] == 200
    found = named(
        parse_page(b"".join(made.page.pieces).decode()).samples,
        "fairlead_exporter_collector_errors_total",
        collector="page",
    )
    assert [(each.labels["error"], each.value) for each in found] == [("RuntimeError", 3)]


def test_a_counters_file_that_is_back_is_read_and_one_of_another_size_is_another(
    tmp_path: Path,
) -> None:
    path, away = tmp_path / "counters.csv", tmp_path / "away"
    path.write_text("DCGM_FI_DEV_GPU_UTIL, gauge, Use.\n")
    found = counters_file.CountersFile(str(path))
    path.rename(away)
    found.reload_if_changed()
    assert not found.reload_succeeded
    away.rename(path)
    found.reload_if_changed()
    assert found.reload_succeeded, "it is the same file, and can be read again"
    stamp = path.stat()
    path.write_text("DCGM_FI_DEV_GPU_UTIL, gauge, Use.\nDCGM_FI_DEV_GPU_TEMP, gauge, Heat.\n")
    os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    found.reload_if_changed()
    assert len(found.counters.counters) == 2
    path.write_text("nothing usable\n")
    found.reload_if_changed()
    in_force = found.counters
    found.reload_if_changed()
    assert (found.reload_succeeded, found.counters is in_force) == (False, True)


async def test_the_counters_file_is_read_again_and_a_bad_one_changes_nothing(
    tmp_path: Path,
) -> None:
    path = tmp_path / "counters.csv"
    path.write_text("DCGM_FI_DEV_GPU_UTIL, gauge, Use.\nDCGM_FI_DEV_TEA, gauge, Cups.\n")
    made = exporter([device()], GpuExporterSettings(node="gpu-1", collectors=str(path)))

    async def dcgm() -> set[str]:
        await made.refresh()
        return {
            each.name
            for each in parse_page(b"".join(made.page.pieces).decode()).samples
            if each.name.startswith("DCGM_")
        }

    assert await dcgm() == {"DCGM_FI_DEV_GPU_UTIL"}
    assert (
        named(
            parse_page(b"".join(made.page.pieces).decode()).samples,
            "fairlead_exporter_config_rows_rejected",
        )[0].value
        == 1
    )
    path.write_text("DCGM_FI_DEV_FB_USED, gauge, Memory.\n# longer than before, to be sure\n")
    assert await dcgm() == {"DCGM_FI_DEV_FB_USED"}
    path.write_text("nothing usable\n")
    assert await dcgm() == {"DCGM_FI_DEV_FB_USED"}
    assert (
        named(
            parse_page(b"".join(made.page.pieces).decode()).samples,
            "fairlead_exporter_config_last_reload_success",
        )[0].value
        == 0
    )
    path.unlink()
    assert await dcgm() == {"DCGM_FI_DEV_FB_USED"}


def test_a_file_that_is_being_written_is_read_when_it_stands_still(tmp_path: Path) -> None:
    """A half-written file never counts, neither one that grows before it is read nor one that grows
    meanwhile.
    """
    path = tmp_path / "counters.csv"
    path.write_text("DCGM_FI_DEV_GPU_UTIL, gauge, Use.\n")
    rows = [
        "DCGM_FI_DEV_FB_USED, gauge, Memory.\n",
        "DCGM_FI_DEV_FB_FREE, gauge, Memory.\n",
        "DCGM_FI_DEV_GPU_TEMP, gauge, Heat.\n",
    ]
    waits: list[float] = []

    def grow(seconds: float) -> None:
        waits.append(seconds)
        assert made.is_reloading
        if rows:
            with path.open("a") as file:
                file.write(rows.pop(0))

    made = counters_file.CountersFile(str(path), sleep=grow)
    path.write_text("")
    made.reload_if_changed()
    assert [counter.field[12:] for counter in made.counters.counters] == [
        "FB_USED",
        "FB_FREE",
        "GPU_TEMP",
    ]
    assert waits == [0.2] * 4 and not made.is_reloading and made.reload_succeeded
    rows += ["DCGM_FI_DEV_FB_USED, gauge, Memory.\n"] * 50
    path.write_text("DCGM_FI_DEV_FB_FREE, gauge, Memory.\n")
    made.reload_if_changed()
    assert len(made.counters.counters) == 3, (
        "it grows on: the old ones stay, and it is looked at again"
    )
    rows.clear()
    made.reload_if_changed()
    assert len(made.counters.counters) != 3


def test_a_file_that_changes_while_it_is_read_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "counters.csv"
    path.write_text("DCGM_FI_DEV_GPU_UTIL, gauge, Use.\n")
    made = counters_file.CountersFile(str(path), sleep=lambda _: None)
    later = ["DCGM_FI_DEV_FB_USED, gauge, Memory.\n"]

    def parse(text: str) -> CounterSet:
        if later:
            path.write_text(text + later.pop())
        return parse_counters(text)

    monkeypatch.setattr(counters_file, "parse_counters", parse)
    path.write_text("no row yet\n")
    made.reload_if_changed()
    assert [counter.name for counter in made.counters.counters] == [
        "DCGM_FI_DEV_FB_USED"
    ] and made.reload_succeeded


async def test_a_changed_file_is_news_whenever_pages_are_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counters_file, "LOOK_SECONDS", 0.01)
    path = tmp_path / "counters.csv"
    path.write_text("DCGM_FI_DEV_GPU_UTIL, gauge, Use.\n")
    async with (
        serving(
            FakeDevices([device()]), GpuExporterSettings(node="gpu-1", collectors=str(path))
        ) as url,
        aiohttp.ClientSession() as session,
    ):

        async def page() -> str:
            return await (await session.get(f"{url}/metrics")).text()

        assert "DCGM_FI_DEV_FB_USED" not in await page()
        path.write_text("DCGM_FI_DEV_FB_USED, gauge, Memory.\n")

        async def is_new() -> bool:
            return "DCGM_FI_DEV_FB_USED" in await page()

        await until(is_new)


async def test_a_reload_under_way_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "counters.csv"
    path.write_text("DCGM_FI_DEV_GPU_UTIL, gauge, Use.\n")
    begun, may_end = threading.Event(), threading.Event()

    def hold(_: float) -> None:
        begun.set()
        may_end.wait(HANG_SECONDS)

    devices, counters = FakeDevices([device()]), counters_file.CountersFile(str(path), sleep=hold)
    async with serving(devices, counters=counters) as url, aiohttp.ClientSession() as session:

        async def reported() -> str:
            return (await session.get(f"{url}/health")).headers["X-Reload-In-Progress"]

        assert await reported() == "false"
        path.write_text("DCGM_FI_DEV_FB_USED, gauge, Memory.\n")
        devices.change()
        try:
            await until(begun.is_set)
            assert await reported() == "true"
        finally:
            may_end.set()

        async def is_over() -> bool:
            return await reported() == "false"

        await until(is_over)


async def test_names_of_pods_come_and_go_between_two_samples() -> None:
    """With `-c 30000` a page is made of the same sample again, and its age increases."""

    class Pods:
        name = ""

        def __init__(self) -> None:
            self.news = lambda: None

        async def run(self, news: Callable[[], None]) -> None:
            self.news = news
            await asyncio.Event().wait()

        def attributed(self, samples: Sequence[DeviceSample]) -> Sequence[DeviceSample]:
            held = (process(self.name, "exclusive", 1, 2, 3),) if self.name else ()
            return [structs.replace(sample, processes=held) for sample in samples]

        @property
        def state(self) -> PodMapState:
            return PodMapState()

    pods, wall, devices = Pods(), FixedClock(100.0), FakeDevices([device(sampled_at=EPOCH)])
    made = GpuExporter(devices, FixedClock(), DEFAULTS, wall=wall.now, pods=pods)

    def samples() -> list[Sample]:
        return parse_page(b"".join(made.page.pieces).decode()).samples

    def names() -> set[str]:
        return {
            each.labels["pod"]
            for each in named(samples(), "DCGM_FI_DEV_GPU_UTIL")
            if "pod" in each.labels
        }

    async with serving(devices, made=made):
        await until(lambda: made.page.size)
        for name, found in (("train-7", {"train-7"}), ("", set())):
            pods.name = name
            wall.at += 4.5
            pods.news()
            await until(lambda found=found: names() == found)
        assert [
            each.value for each in named(samples(), "fairlead_exporter_sample_age_seconds")
        ] == [9]


def test_a_byte_order_mark_costs_no_row(tmp_path: Path) -> None:
    path = tmp_path / "counters.csv"
    path.write_text(
        "DCGM_FI_DEV_GPU_UTIL, gauge, Use.\nDCGM_FI_DEV_FB_USED, gauge, Memory.\n",
        encoding="utf-8-sig",
    )
    assert [
        counter.name for counter in counters_file.CountersFile(str(path)).counters.counters
    ] == [
        "DCGM_FI_DEV_GPU_UTIL",
        "DCGM_FI_DEV_FB_USED",
    ]


def test_what_is_no_file_of_rows_is_refused_at_once(tmp_path: Path) -> None:
    pipe, large = tmp_path / "pipe", tmp_path / "large.csv"
    os.mkfifo(pipe)
    with large.open("wb") as file:
        file.truncate(300 << 20)
    for path, why in (
        (pipe, f"`{pipe}` is no regular file"),
        (tmp_path, f"`{tmp_path}` cannot be read: is a directory"),
        (large, f"`{large}` is larger than 16 MiB"),
        (Path("/dev/zero"), "`/dev/zero` is no regular file"),
    ):
        with pytest.raises(UserError) as caught:
            exporter([], GpuExporterSettings(collectors=str(path)))
        assert caught.value.what == f"counters file {why}"


def test_rows_that_are_skipped_are_named_once_five_and_a_count(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "counters.csv"
    path.write_text(
        "DCGM_FI_DEV_GPU_UTIL, gauge, Use.\n"
        + "".join(f"DCGM_FI_DEV_TEA_{n}, gauge, Cups.\n" for n in range(100_000))
    )
    exporter([], GpuExporterSettings(collectors=str(path)))
    (record,) = caplog.records
    assert (
        "100000 rows skipped: line 2 `DCGM_FI_DEV_TEA_0` is no field of DCGM"
    ) in record.message and "line 6" in record.message
    assert "line 7" not in record.message and len(record.message) < 500


@pytest.mark.parametrize("rows", ["DCGM_FI_DEV_TEA, gauge, Cups.\nno, row\n", "# nothing\n", ""])
async def test_a_file_without_a_usable_row_costs_dcgms_metrics_and_no_others(
    tmp_path: Path, rows: str, caplog: pytest.LogCaptureFixture
) -> None:
    """docs/spec/telemetry.md#counters-file: a bad row is skipped and counted; only `--strict-csv`
    refuses to start.
    """
    path = tmp_path / "counters.csv"
    path.write_text(rows)
    made = exporter([device()], GpuExporterSettings(node="gpu-1", collectors=str(path)))
    await made.refresh()
    found = parse_page(b"".join(made.page.pieces).decode()).samples
    assert not [each for each in found if each.name.startswith("DCGM_")] and named(
        found, "fairlead_gpu_up"
    )
    (succeeded,), (rejected,) = (
        named(found, f"fairlead_exporter_config_{name}")
        for name in ("last_reload_success", "rows_rejected")
    )
    assert (succeeded.value, rejected.value) == (0, 2 if "TEA" in rows else 0)
    assert "has no usable row" in caplog.text
    if rows.startswith("DCGM"):
        assert (
            "2 rows skipped: line 1 `DCGM_FI_DEV_TEA` is no field of DCGM; line 2 2 fields"
        ) in caplog.text
        with pytest.raises(UserError, match="`DCGM_FI_DEV_TEA`"):
            exporter([], GpuExporterSettings(collectors=str(path), is_strict_csv=True))
    path.write_text("DCGM_FI_DEV_GPU_UTIL, gauge, Use.\n")
    await made.refresh()
    found = parse_page(b"".join(made.page.pieces).decode()).samples
    assert [each.name for each in found if each.name.startswith("DCGM_")] == [
        "DCGM_FI_DEV_GPU_UTIL"
    ]


async def test_a_reload_that_takes_long_delays_no_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "counters.csv"
    path.write_text("DCGM_FI_DEV_GPU_UTIL, gauge, Use.\n")
    made = exporter([device()], GpuExporterSettings(node="gpu-1", collectors=str(path)))
    await made.refresh()
    begun, may_end, ended_in_time = threading.Event(), threading.Event(), []

    def slow(text: str) -> CounterSet:
        begun.set()
        ended_in_time.append(may_end.wait(HANG_SECONDS))
        return parse_counters(text)

    monkeypatch.setattr(counters_file, "parse_counters", slow)
    path.write_text("DCGM_FI_DEV_FB_USED, gauge, Memory.\n# longer\n")
    reloading = asyncio.create_task(made.refresh())

    async def has_begun() -> bool:
        return begun.is_set()

    await until(has_begun)
    assert (await ask(made.app, "GET", "/metrics"))[0] == 200
    may_end.set()
    await reloading
    assert ended_in_time == [True] and b"DCGM_FI_DEV_FB_USED" in b"".join(made.page.pieces)


def flags(line: str) -> argparse.Namespace:
    """The arguments of `fairlead gpu-exporter` with these flags."""
    args = make_parser(gpu_exporter, "fairlead").parse(line.split())
    gpu_exporter.fill_from_variables(args, {})
    return args


def test_flags_become_the_settings_of_the_same_name() -> None:
    chosen = settings_of(
        flags(
            "-c 500 -o -n -k --kubernetes-enable-pod-uid --mig-device-fields repeat -d g:1 "
            "--stale-after 7s --process-metrics process"
        )
    )
    assert (chosen.interval_seconds, chosen.stale_seconds, chosen.devices) == (
        0.5,
        7.0,
        printed_devices("g:1"),
    )
    assert chosen.labels == DcgmLabels(
        hostnames=(), has_old_names=True, has_pods=True, has_pod_uids=True, repeats_card=True
    )
    assert chosen.has_containers and chosen.has_processes and not chosen.needs_gpus
    assert settings_of(flags("--health-require-gpus --process-metrics off")).needs_gpus


def test_without_a_named_file_dcgm_exporters_own_is_read_where_it_exists(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = tmp_path / "default-counters.csv"
    monkeypatch.setattr(counters_file, "USUAL_FILE", str(usual))
    assert settings_of(flags("")).collectors == ""
    usual.write_text("DCGM_FI_DEV_GPU_UTIL, gauge, Use.\n")
    assert settings_of(flags("")).collectors == str(usual)
    assert settings_of(flags("-f mine.csv")).collectors == "mine.csv"


def test_bad_flags_are_sentences(tmp_path: Path) -> None:
    with pytest.raises(UserError) as caught:
        exporter([], GpuExporterSettings(collectors=str(tmp_path / "none.csv")))
    assert (
        caught.value.what
        == f"counters file `{tmp_path}/none.csv` cannot be read: no such file or directory"
    )
    bad = tmp_path / "bad.csv"
    bad.write_text("DCGM_FI_DEV_GPU_UTIL, gauge, Use.\nDCGM_FI_DEV_TEA, gauge, Cups.\n")
    with pytest.raises(UserError, match="line 2: `DCGM_FI_DEV_TEA`"):
        exporter([], GpuExporterSettings(collectors=str(bad), is_strict_csv=True))
    with pytest.raises(UserError, match=r"\b50\b.*\b100 ms"):
        sampling_seconds(50)
    with pytest.raises(UserError, match="`--hostname-label HOST`"):
        hostname_labels("HOST")
    for bad in ("g:", "g:4-2", "g:a", "x", "g:0,,1", "i+g", "f+g"):
        with pytest.raises(UserError, match=re.escape(f"`--devices {bad}`")):
            printed_devices(bad)
    with pytest.raises(UserError, match="`nvml`"):
        parse_compat("dcgm,nvml", COMPATIBILITIES)


@contextlib.asynccontextmanager
async def serving(
    devices: FakeDevices,
    chosen: GpuExporterSettings = DEFAULTS,
    counters: counters_file.CountersInForce | None = None,
    made: GpuExporter | None = None,
) -> AsyncIterator[str]:
    sock = bind_socket("127.0.0.1", 0)
    port = sock.getsockname()[1]
    made = made or GpuExporter(devices, FixedClock(), chosen, counters=counters)
    task = asyncio.create_task(made.service(sock).run())
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def test_over_http_gzip_and_plain_are_the_same_page_and_no_scrape_touches_a_device() -> None:
    devices = FakeDevices(four_cards())
    async with serving(devices) as url, aiohttp.ClientSession(auto_decompress=False) as session:
        plain = await (
            await session.get(f"{url}/metrics", headers={"Accept-Encoding": "identity"})
        ).read()
        response = await session.get(f"{url}/metrics", headers={"Accept-Encoding": "gzip"})
        zipped = await response.read()
        assert response.headers["Content-Encoding"] == "gzip"
        assert response.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
        assert gzip.decompress(zipped) == plain
        for _ in range(20):
            assert (
                await (
                    await session.get(f"{url}/metrics", headers={"Accept-Encoding": "identity"})
                ).read()
            ) == plain
        assert devices.calls == 1
        assert [
            (await session.get(url + path)).status
            for path in ("/health", "/healthz", "/readyz", "/nope")
        ] == [200, 200, 200, 404]
        assert (await session.get(f"{url}/health")).headers["X-Registry-Available"] == "true"
        assert (await session.head(f"{url}/metrics")).headers["Content-Length"]


async def test_a_scraper_that_never_reads_delays_no_request() -> None:
    many = [structs.replace(device(i), uuid=f"GPU-{i}", node=f"n{i // 8}") for i in range(400)]
    async with serving(FakeDevices(many)) as url, aiohttp.ClientSession() as session:
        port = int(url.rpartition(":")[2])
        deaf = [await asyncio.open_connection("127.0.0.1", port, limit=1) for _ in range(5)]
        for _, writer in deaf:
            writer.write(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
        async with asyncio.timeout(HANG_SECONDS):
            for _ in range(5):
                assert (await session.get(f"{url}/metrics")).status == 200
        for _, writer in deaf:
            writer.close()


@pytest.mark.skipif(
    shutil.which("promtool") is None,
    reason="promtool is not installed: apt-get install prometheus",
)
def test_promtool_finds_nothing_in_native_families_and_never_an_error() -> None:
    text = asyncio.run(page_text(four_cards()))
    native = "".join(
        line
        for line in text.splitlines(True)
        if line.startswith(("fairlead_", "# HELP fairlead_", "# TYPE fairlead_"))
    )
    checked = subprocess.run(
        ["promtool", "check", "metrics"], input=native, capture_output=True, text=True, check=False
    )
    assert (checked.returncode, checked.stdout + checked.stderr) == (0, "")
    whole = subprocess.run(
        ["promtool", "check", "metrics"], input=text, capture_output=True, text=True, check=False
    )
    assert whole.returncode == 3, "DCGM's names are lint findings, never a broken page"


async def test_an_exporter_whose_loop_stands_still_is_not_alive() -> None:
    wall = FixedClock()
    made = GpuExporter(FakeDevices([device()]), FixedClock(), DEFAULTS, wall.now)
    await made.refresh()

    wall.at += 24
    assert await ask(made.app, "GET", "/healthz") == (200, "ok\n")
    wall.at += 2
    assert await ask(made.app, "GET", "/healthz") == (503, "no sample for 26 s\n")
