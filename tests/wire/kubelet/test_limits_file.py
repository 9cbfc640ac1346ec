"""The limits file is exactly the contract's text (5.3), and nothing else is taken for one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.model.devices.kept_grants import ContainerLimits, GpuLimit
from fairlead.model.refusal import Refusal
from fairlead.wire.kubelet.limits_file import parse_limits, render_limits

TEXT = """version 1
gpu GPU-6b1c limit_bytes 4509925376 core_percent 0 context_bytes 0
gpu GPU-77aa limit_bytes 1073741824 core_percent 30 context_bytes 524288000
region /run/fairlead/gpu/region
"""
LIMITS = ContainerLimits((GpuLimit("GPU-6b1c", 4509925376), GpuLimit("GPU-77aa", 1073741824, 30, 524288000)), "/run/fairlead/gpu/region")

UUIDS = st.from_regex(r"GPU-[0-9a-f]{1,12}", fullmatch=True)
GPUS = st.builds(GpuLimit, UUIDS, st.integers(0, 2**50), st.integers(0, 100), st.integers(0, 2**40))


def test_both_ways() -> None:
    assert render_limits(LIMITS) == TEXT
    assert parse_limits(TEXT) == LIMITS


@given(st.lists(GPUS, max_size=8, unique_by=lambda gpu: gpu.uuid))
def test_what_is_written_is_read_back(gpus: list[GpuLimit]) -> None:
    limits = ContainerLimits(tuple(gpus), "/run/fairlead/gpu/region")
    assert parse_limits(render_limits(limits)) == limits


def test_half_a_file_is_refused() -> None:
    assert all(isinstance(parse_limits(TEXT[:length]), Refusal) for length in range(len(TEXT)))


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("version 1", "version 01", 1),
        ("limit_bytes 4509925376", "limit_bytes -1", 2),
        ("limit_bytes 4509925376", "limit_bytes 4_509", 2),
        ("limit_bytes 4509925376", "limit_bytes \u0664", 2),
        ("limit_bytes 4509925376", "limit_bytes " + "9" * 19, 2),
        ("core_percent 30", "core_percent 101", 3),
        ("GPU-77aa", "GPU-6b1c", 3),
        ("gpu GPU-77aa", "gpu  GPU-77aa", 3),
        ("context_bytes 524288000", "context_bytes 524288000 more 1", 3),
        ("region /run", "region run", 4),
        ("region /run", "gpu /run", 4),
        ("region", "\nregion", 4),
        ("gpu GPU-77aa", "region /other\ngpu GPU-77aa", 3),
    ],
)
def test_another_word_is_refused_by_its_line(old: str, new: str, line: int) -> None:
    refused = parse_limits(TEXT.replace(old, new))
    assert isinstance(refused, Refusal)
    assert refused.reason.startswith(f"line {line} of the limits file is `")
