"""Damaged files of a node: the readers read exactly what a file contains, or refuse it, and the
result can be used.
"""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fairlead.model.devices.driver import CardAnswer, CardFault
from fairlead.model.devices.gpu import Grant
from fairlead.model.devices.kubelet import CardLimit, ContainerLimits, GivenShare
from fairlead.model.refusal import Refusal
from fairlead.rules.devices.card_health import CardHealths
from fairlead.rules.devices.ids import token
from fairlead.wire.kubelet.checkpoint import parse_checkpoint
from fairlead.wire.kubelet.faults_file import parse_faults, render_faults
from fairlead.wire.kubelet.grants_file import parse_given, render_given
from fairlead.wire.kubelet.limits_file import parse_limits, render_limits

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


FILES = [
    (use_checkpoint, CHECKPOINT),
    (use_grants, GRANTS),
    (use_faults, FAULTS),
    (use_limits, LIMITS),
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
