"""Damaged files of a node: the readers read exactly what a file contains, or refuse it, and the
result can be used.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fairlead.model.devices.driver import CardAnswer, CardFault
from fairlead.model.devices.gpu import Grant
from fairlead.model.devices.kubelet import (
    CardLimit,
    ContainerLimits,
    GivenShare,
    Region,
    RegionCard,
    RegionSlot,
)
from fairlead.model.refusal import Refusal
from fairlead.rules.devices.card_health import CardHealths
from fairlead.rules.devices.ids import token
from fairlead.wire.kubelet.checkpoint import parse_checkpoint
from fairlead.wire.kubelet.faults_file import parse_faults, render_faults
from fairlead.wire.kubelet.grants_file import parse_given, render_given
from fairlead.wire.kubelet.limits_file import parse_limits, render_limits
from fairlead.wire.kubelet.region_file import BYTES, parse_region, render_region

ENTRY = {
    "PodUID": "u",
    "ContainerName": "c",
    "ResourceName": "nvidia.com/gpu",
    "DeviceIDs": {"-1": ["GPU-a", "GPU-b"]},
}
CHECKPOINT = json.dumps(
    {"Data": {"PodDeviceEntries": [ENTRY], "RegisteredDevices": {}}, "Checksum": 1}
).encode()
GRANTS = render_given(
    [GivenShare("ns", "p", "u", "c", Grant("GPU-a", 0, 4, 4308, 30), "0123456789abcdef")]
)
FAULTS = render_faults("boot", [CardFault("GPU-a", 79, True, 12.5, 1e9, "GPU is lost", True)])
LIMITS = render_limits(
    ContainerLimits((CardLimit("GPU-a", 4308, 30, 500), CardLimit("GPU-b", 1)), "/run/region")
)
REGION = render_region(
    Region(1, (RegionCard(5, 6, 7, 8),), (RegionSlot(3, 9 | 4 << 32, 4, 5, tuple(range(32))),))
)
WORD = st.sampled_from([0, 1, 1023, 1024, 1 << 31, 1 << 63, (1 << 64) - 1])


@st.composite
def damaged(draw: st.DrawFn, text: bytes) -> bytes:
    """The text with a few places removed, doubled or overwritten."""
    for _ in range(draw(st.integers(1, 3))):
        at, length = draw(st.integers(0, len(text))), draw(st.integers(0, 8))
        middle = draw(
            st.sampled_from(
                [
                    b"",
                    b"null",
                    b"-1",
                    b"1e999",
                    b'"\\ud800"',
                    b"\xff",
                    b"\n",
                    b"0",
                    b"99999999999999999999",
                    b"{}",
                ]
            )
        )
        text = (
            text[:at]
            + draw(st.sampled_from([middle, text[at : at + length] * 2]))
            + text[at + length :]
        )
    return text


def use_checkpoint(text: bytes) -> None:
    read = parse_checkpoint(text)
    for each in () if isinstance(read, Refusal) else read:
        assert token(each.resource, each.ids) == token(each.resource, reversed(each.ids))


def use_grants(text: bytes) -> None:
    read = parse_given(text)
    if not isinstance(read, Refusal):
        again = parse_given(render_given(read))
        assert not isinstance(again, Refusal)
        assert sorted(map(repr, again)) == sorted(map(repr, read))


def use_faults(text: bytes) -> None:
    read = parse_faults(text, "boot")
    if not isinstance(read, Refusal):
        healths = CardHealths(read)
        for moment in (0.0, 1e9, 2e9):
            for fault in read:
                healths.probed(fault.uuid, CardAnswer(energy_mj=7), moment)
        assert parse_faults(render_faults("boot", healths.kept()), "boot") == healths.kept()


def use_limits(text: bytes) -> None:
    """Nothing is guessed: what is read equals the text, byte for byte."""
    read = parse_limits(text)
    if not isinstance(read, Refusal):
        assert sorted(render_limits(read).split(b"\n")) == sorted(text.split(b"\n"))


def use_region(text: bytes) -> None:
    """Whatever it contains, the words are read as they are."""
    read = parse_region(text)
    if not isinstance(read, Refusal):
        assert (len(read.cards), len({slot.number for slot in read.slots})) == (32, len(read.slots))
        assert parse_region(render_region(read)) == read


FILES = [
    (use_checkpoint, CHECKPOINT),
    (use_grants, GRANTS),
    (use_faults, FAULTS),
    (use_limits, LIMITS),
    (use_region, REGION),
]


@pytest.mark.parametrize(("use", "text"), FILES)
@settings(deadline=None, max_examples=150)
@given(data=st.data())
def test_a_damaged_file_is_read_or_refused(
    use: Callable[[bytes], None], text: bytes, data: st.DataObject
) -> None:
    use(data.draw(damaged(text)))


@pytest.mark.parametrize("use", [use for use, _ in FILES])
@settings(deadline=None, max_examples=50)
@given(text=st.binary())
@example(text=b"")
@example(text=b"[" * 100_000)
@example(text=b'{"a":' * 100_000)
def test_any_bytes_are_read_or_refused(use: Callable[[bytes], None], text: bytes) -> None:
    use(text)


@pytest.mark.parametrize(
    ("parse", "text"),
    [
        (parse_checkpoint, CHECKPOINT),
        (parse_given, GRANTS),
        (lambda text: parse_faults(text, "boot"), FAULTS),
        (parse_limits, LIMITS),
    ],
)
def test_half_a_file_is_refused(parse: Callable[[bytes], object], text: bytes) -> None:
    assert not isinstance(parse(text), Refusal)
    assert all(isinstance(parse(text[:length]), Refusal) for length in range(len(text)))


@settings(deadline=None, max_examples=50)
@given(words=st.lists(st.tuples(st.integers(0, BYTES // 8 - 1), WORD), max_size=40))
def test_a_region_that_a_program_wrote_into_is_read_or_refused(
    words: list[tuple[int, int]],
) -> None:
    data = bytearray(REGION)
    for at, word in words:
        data[8 * at : 8 * at + 8] = word.to_bytes(8, sys.byteorder)
    use_region(bytes(data))
    assert isinstance(parse_region(bytes(data)), Refusal) == (data[:8] != REGION[:8])


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "has 0 bytes, a region has 290816"),
        (REGION[:-1], "has 290815 bytes"),
        (bytes(BYTES), "begins with 0x00000000, not with 0x5247464c"),
        (REGION[3::-1] + REGION[4:], "begins with 0x4c464752"),
        (REGION[:4] + (2).to_bytes(4, sys.byteorder) + REGION[8:], "version 2, this Fairlead"),
    ],
)
def test_a_region_of_another_layout_is_refused(data: bytes, words: str) -> None:
    read = parse_region(data)
    assert isinstance(read, Refusal)
    assert words in read.reason


def test_a_longer_file_is_a_region() -> None:
    assert parse_region(REGION + b"more") == parse_region(REGION)
