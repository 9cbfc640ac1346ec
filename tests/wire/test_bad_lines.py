"""The filter for values on exporters' pages: values that no card can have are dropped and counted,
and the other lines are kept.
"""

from __future__ import annotations

from collections import Counter

import pytest

from fairlead.model.devices.gpu import GpuReading
from fairlead.model.devices.plausible_values import BOUNDS, BadLine, bad_value
from fairlead.wire.metrics.gpu_readings import METRICS, RENAMED, CardsOfPage
from fairlead.wire.metrics.prom_text import parse_page

CARD = '{node_name="n1",gpu="0",uuid="GPU-a",model="T4"}'
OTHER = '{gpu="0",UUID="GPU-a",modelName="T4",Hostname="n1"}'
LEGACY = '{uuid="GPU-a",minor_number="0",node_name="n1"}'


def read(text: str) -> tuple[tuple[GpuReading, ...], Counter[BadLine]]:
    page = parse_page(text, METRICS)
    cards = CardsOfPage()
    cards.note(page.samples, page.bad_lines)
    return cards.readings(10.0), cards.bad


def test_every_metric_that_is_read_has_bounds() -> None:
    assert set(BOUNDS) >= {RENAMED.get(name, name) for name in METRICS}


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("text", ["NaN", "+Inf", "-Inf", "1e300", "-200"])
def test_no_metric_takes_what_is_no_value(metric: str, text: str) -> None:
    assert bad_value(metric, float(text)) is not None


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (f"fairlead_gpu_memory_used_bytes{CARD} -5", "negative"),
        (f"fairlead_gpu_utilization_ratio{CARD} 17", "too_large"),
        (f"DCGM_FI_DEV_GPU_UTIL{OTHER} 1700", "too_large"),
        (f"DCGM_FI_DEV_GPU_UTIL{OTHER} -1", "negative"),
        (f"nvidia_gpu_duty_cycle{LEGACY} 100.5", "too_large"),
        (f"DCGM_FI_DEV_FB_USED{OTHER} 2147483632", "blank"),
        (f"DCGM_FI_DEV_FB_USED{OTHER} 2147483634", "blank"),
        (f"DCGM_FI_DEV_FB_FREE{OTHER} 9223372036854775794", "blank"),
        (f"DCGM_FI_DEV_POWER_USAGE{OTHER} 140737488355328.000000", "blank"),
        (f"DCGM_FI_DEV_XID_ERRORS{OTHER} +Inf", "not_finite"),
        (f"fairlead_gpu_temperature_celsius{CARD} NaN", "not_finite"),
        (f"fairlead_gpu_memory_total_bytes{CARD} 1e17", "too_large"),
        (f"fairlead_gpu_power_watts{CARD} 1e6", "too_large"),
        ('fairlead_gpu_up{node_name="n1",gpu="0"} 1', "no_uuid"),
        ('fairlead_container_gpu_memory_used_bytes{node_name="n1",gpu="0",uuid=""} 1', "no_uuid"),
        ('DCGM_FI_DEV_GPU_TEMP{gpu="0",UUID="<<<NULL>>>"} 50', "no_uuid"),
        ('fairlead_gpu_up{node_name="n1",gpu="1",uuid="GPU-a"} 1', "other_card"),
        (f"fairlead_gpu_up{CARD} one", "unreadable"),
        ('fairlead_gpu_up{node_name="n1,gpu="0"} 1', "unreadable"),
        ("fairlead_gpu_up{", "unreadable"),
    ],
)
def test_a_bad_line_is_counted_and_takes_no_other_along(line: str, why: str) -> None:
    found, bad = read(
        f"fairlead_gpu_up{CARD} 1\nfairlead_gpu_memory_total_bytes{CARD} 16106127360\n{line}\n"
    )
    assert found == (GpuReading("n1", 0, "GPU-a", "T4", memory_total_mib=15360, read_at=10.0),)
    assert bad == {why: 1}


def test_a_card_that_our_exporter_could_not_name_is_no_bad_line() -> None:
    lost = '{node_name="n1",gpu="0000:3b:00",uuid="",model="",xid="79"}'
    assert read(
        f'fairlead_gpu_up{{node_name="n1",gpu="1",uuid="",model=""}} '
        f"0\nfairlead_gpu_xid_last_timestamp_seconds{lost} 5\n"
    ) == (
        (),
        Counter(),
    )


def test_a_blank_of_dcgm_is_two_gibibytes_of_memory_elsewhere() -> None:
    assert bad_value("fairlead_gpu_memory_used_bytes", 0x7FFFFFF0) is None


def test_the_ends_of_what_a_card_can_report_are_values() -> None:
    sound = [
        ("fairlead_gpu_utilization_ratio", 1.0),
        ("DCGM_FI_DEV_GPU_UTIL", 0),
        ("nvidia_gpu_duty_cycle", 100),
    ]
    assert [bad_value(*each) for each in sound] == [None, None, None]


def test_more_memory_than_the_card_has_is_not_known() -> None:
    found, bad = read(
        f"fairlead_gpu_memory_total_bytes{CARD} "
        f"1048576000\nfairlead_gpu_memory_used_bytes{CARD} "
        "1321205760\n"
    )
    assert [(each.memory_total_mib, each.memory_used_mib) for each in found] == [(1000, None)]
    assert bad == {"over_total": 1}
