"""The counters CSV: bad rows cost only themselves, and say why; the built-in file has none."""

from __future__ import annotations

from importlib.resources import files

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.model.devices.counter import Counter
from fairlead.wire.metrics.counters_csv import TYPES, parse_counters, render_counters
from fairlead.wire.metrics.dcgm_fields import FIELDS, is_double

HELP = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=30).map(str.strip)
COUNTERS = st.lists(
    st.builds(
        lambda name, type_, help_: Counter(name, name, type_, help_, is_double(name)),
        st.sampled_from(sorted(FIELDS - {"DCGM_FI_DEV_CLOCK_THROTTLE_REASONS"})),
        st.sampled_from(TYPES),
        HELP,
    ),
    unique_by=lambda counter: counter.name,
    max_size=6,
)


@given(COUNTERS)
def test_what_is_rendered_is_parsed_back(counters: list[Counter]) -> None:
    assert parse_counters(render_counters(counters)).counters == tuple(counters)
    assert parse_counters(render_counters(counters)).rejected == ()


def test_the_built_in_counters_are_all_understood_and_are_the_contracts() -> None:
    found = parse_counters(files("fairlead.wire.metrics").joinpath("default-counters.csv").read_text())
    assert found.rejected == ()
    names = [counter.name.removeprefix("DCGM_FI_DEV_") for counter in found.counters]
    assert names[:5] == ["SM_CLOCK", "MEM_CLOCK", "MEMORY_TEMP", "GPU_TEMP", "POWER_USAGE"]
    assert len(names) == 26
    by_name = {counter.name: counter for counter in found.counters}
    assert by_name["DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL"].type == "gauge", "a rate is a gauge"
    assert by_name["DCGM_FI_DRIVER_VERSION"].is_label


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("DCGM_FI_DEV_GPU_UTIL, gauge", "2 fields instead of 3"),
        ("DCGM_FI_DEV_GPU_UTIL, gauge, one, two", "4 fields instead of 3 (a help text with a comma needs quotes)"),
        ("DCGM_FI_DEV_COFFEE, gauge, Cups.", "`DCGM_FI_DEV_COFFEE` is no field of DCGM"),
        ("DCGM_EXP_P2P_STATUS, gauge, Links.", "`DCGM_EXP_P2P_STATUS` is not available yet"),
        ("DCGM_FI_DEV_GPU_UTIL, guage, Percent.", "`guage` is none of gauge, counter, histogram, summary, label"),
        (" # indented, comment, no", "`# indented` is no field of DCGM"),
        ('DCGM_FI_DEV_GPU_UTIL, gauge, "open', "not CSV"),
        ("DCGM_FI_DEV_FB_USED, gauge, again", "stands in an earlier row"),
    ],
)
def test_a_bad_row_is_skipped_and_says_why(row: str, reason: str) -> None:
    text = f"DCGM_FI_DEV_FB_USED, gauge, Used.\n\n# a comment, with, commas, yes\n{row}\nDCGM_FI_DEV_FB_FREE, gauge, Free.\n"
    found = parse_counters(text)
    assert [counter.name for counter in found.counters] == ["DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_FB_FREE"]
    assert found.rejected[0].line == 4
    assert reason in found.rejected[0].reason


def test_other_generations_print_their_own_name() -> None:
    found = parse_counters("dcgm_gpu_utilization, gauge, Old.\nDCGM_FI_DEV_GPU_UTIL_RATIO, gauge, New.\n")
    assert [(counter.name, counter.field) for counter in found.counters] == [
        ("dcgm_gpu_utilization", "DCGM_FI_DEV_GPU_UTIL"),
        ("DCGM_FI_DEV_GPU_UTIL_RATIO", "DCGM_FI_DEV_GPU_UTIL"),
    ]
