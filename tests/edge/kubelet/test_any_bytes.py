"""Malformed messages of a kubelet: the reader returns ids that the message contains, or raises
ValueError.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.edge.kubelet.wire_bytes import packed

from fairlead.edge.kubelet.messages import (
    parse_allocate,
    parse_pod_resources,
    parse_preference,
    parse_start,
)
from fairlead.model.devices.kubelet import ClaimedDevice, HeldDevices

DEVICES = packed((1, "nvidia.com/gpu"), (2, "GPU-b"), (2, "GPU-a"))
POD = packed((1, "p"), (2, "ns"), (3, packed((1, "c"), (2, DEVICES))))
ALLOCATE = packed((1, packed((1, "GPU-a"), (1, "GPU-b"))), (1, packed((1, "GPU-c"))))
PREFERENCE = packed((1, packed((1, "GPU-a"), (1, "GPU-b"), (2, "GPU-b"), (3, 1))))
MESSAGES = [
    (parse_pod_resources, packed((1, POD))),
    (parse_allocate, ALLOCATE),
    (parse_preference, PREFERENCE),
    (parse_start, packed((1, "GPU-a"), (1, "GPU-b"))),
]


def reported(parse: Callable[[bytes], object], message: bytes) -> object:
    try:
        return parse(message)
    except ValueError as error:
        assert type(error) is ValueError, "not one of a library's"
        return None


@pytest.mark.parametrize(("parse", "message"), MESSAGES)
@given(at=st.integers(0, 60), with_=st.binary(max_size=3), length=st.integers(0, 3))
@example(at=0, with_=b"\x0a\xff\xff\xff\xff\x0f", length=0)
@example(at=4, with_=b"\xff\xfe", length=2)
def test_damaged_bytes_are_a_message_or_a_value_error(
    parse: Callable[[bytes], object], message: bytes, at: int, with_: bytes, length: int
) -> None:
    reported(parse, message[:at] + with_ + message[at + length :])


@pytest.mark.parametrize(("parse", "message"), MESSAGES)
def test_half_a_message_names_nothing_that_the_whole_message_does_not(
    parse: Callable[[bytes], object], message: bytes
) -> None:
    words = set(repr(parse(message)).split("'")[1::2])
    for length in range(len(message)):
        assert set(repr(reported(parse, message[:length])).split("'")[1::2]) <= words


def test_two_entries_of_one_container_are_one_holder() -> None:
    again = packed(
        (1, "p"),
        (2, "ns"),
        (3, packed((1, "c"), (2, packed((1, "nvidia.com/gpu"), (2, "GPU-a"), (2, "GPU-c"))))),
    )
    assert parse_pod_resources(packed((1, POD), (1, again))) == (
        HeldDevices("nvidia.com/gpu", ("GPU-a", "GPU-b", "GPU-c"), "c", "ns", "p"),
    )


def test_devices_of_a_claim_are_reported_with_it() -> None:
    """Field numbers of docs/spec/telemetry.md#pod-resources-api: dynamic_resources 5; claim 1, its
    namespace 2, resources 4; driver 2, pool 3, device 4.
    """
    devices = [
        packed((2, "gpu.nvidia.com"), (3, "node-1"), (4, name)) for name in ("gpu-0", "gpu-1")
    ]
    claim = packed((1, "claim-x"), (2, "ns"), (4, devices[0]), (4, devices[1]))
    pod = packed((1, "p"), (2, "ns"), (3, packed((1, "c"), (5, claim))))
    assert parse_pod_resources(packed((1, pod))) == tuple(
        HeldDevices(
            "gpu.nvidia.com",
            (f"node-1/{name}",),
            "c",
            "ns",
            "p",
            claimed=ClaimedDevice("claim-x", "ns", "gpu.nvidia.com", "node-1", name),
        )
        for name in ("gpu-0", "gpu-1")
    )


@pytest.mark.parametrize("gap", ["pod", "namespace", "container", "resource"])
def test_a_holder_without_a_name_spoils_the_list(gap: str) -> None:
    """The holder of a card must be known, or the card would be allocated again."""
    name = {
        each: "" if each == gap else each for each in ("pod", "namespace", "container", "resource")
    }
    devices = packed((1, name["resource"]), (2, "GPU-a"))
    pod = packed(
        (1, name["pod"]), (2, name["namespace"]), (3, packed((1, name["container"]), (2, devices)))
    )
    with pytest.raises(ValueError) as caught:
        parse_pod_resources(packed((1, pod)))
    assert str(caught.value) == "a holder of devices has no name"
