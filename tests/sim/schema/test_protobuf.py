"""Request bodies in protobuf: what Go clients send is read like their JSON; broken bytes are a 400
and nothing else.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead_sim.schema.protobuf import parse_protobuf
from fairlead_sim.schema.status import ApiStatus

# `kubectl create namespace foo`, as kubectl 1.36 sends it.
NAMESPACE = bytes.fromhex(
    (
        "6b3873000a0f0a0276311209 4e616d657370616365121b0a130a03666f6f1200 "
        "1a0022002a00320038004200 12001a020a001a002200"
    ).replace(" ", "")
)


def field(number: int, value: bytes | int) -> bytes:
    """One field of a message: a number as a varint, bytes with their length."""
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value % (1 << 64))
    return _varint(number << 3 | 2) + _varint(len(value)) + value


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def body(api_version: str, kind: str, raw: bytes) -> bytes:
    return (
        b"k8s\x00"
        + field(1, field(1, api_version.encode()) + field(2, kind.encode()))
        + field(2, raw)
    )


def test_what_kubectl_sends_for_a_namespace() -> None:
    assert parse_protobuf(NAMESPACE) == {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": "foo"},
    }


def test_pointers_keep_their_zeros_and_plain_fields_do_not() -> None:
    spec = field(1, 0) + field(5, 0)  # replicas is a pointer, minReadySeconds is not
    parsed = parse_protobuf(body("apps/v1", "Deployment", field(2, spec)))
    assert parsed["spec"] == {"replicas": 0}


def test_lists_maps_bytes_quantities_times_and_inlined_fields() -> None:
    limit = field(1, b"nvidia.com/gpu") + field(2, field(1, b"4"))
    container = field(1, b"main") + field(2, b"train:1") + field(8, field(1, limit))
    probe = field(
        1, field(2, field(1, b"/healthz") + field(2, field(1, 0) + field(2, 8080)))
    ) + field(2, -5)
    container += field(10, probe)
    volume = field(1, b"data") + field(2, field(1, field(1, b"/srv")))
    spec = field(1, volume) + field(2, container)
    metadata = (
        field(1, b"a")
        + field(8, field(1, 1_767_600_000))
        + field(11, field(1, b"app") + field(2, b"x"))
    )
    parsed = parse_protobuf(body("v1", "Pod", field(1, metadata) + field(2, spec)))
    assert parsed["metadata"] == {
        "name": "a",
        "creationTimestamp": "2026-01-05T08:00:00Z",
        "labels": {"app": "x"},
    }
    assert parsed["spec"]["volumes"] == [{"name": "data", "hostPath": {"path": "/srv"}}]
    (held,) = parsed["spec"]["containers"]
    assert held["resources"] == {"limits": {"nvidia.com/gpu": "4"}}
    assert held["livenessProbe"] == {
        "httpGet": {"path": "/healthz", "port": 8080},
        "initialDelaySeconds": -5,
    }
    secret = parse_protobuf(body("v1", "Secret", field(2, field(1, b"k") + field(2, b"\x00\xff"))))
    assert secret["data"] == {"k": "AP8="}


def test_an_empty_body_of_a_pointer_stays() -> None:
    volume = field(1, b"scratch") + field(2, field(2, b""))
    assert parse_protobuf(body("v1", "Pod", field(2, field(1, volume))))["spec"]["volumes"] == [
        {"name": "scratch", "emptyDir": {}}
    ]


def test_delete_options_come_under_any_version() -> None:
    parsed = parse_protobuf(body("apps/v1", "DeleteOptions", field(1, 0)))
    assert parsed["gracePeriodSeconds"] == 0


def test_a_kind_that_is_not_known_is_refused_with_advice() -> None:
    with pytest.raises(ApiStatus, match="send JSON"):
        parse_protobuf(body("v1", "Dragon", b""))


@pytest.mark.parametrize(
    "broken", [b"", b"{}", NAMESPACE[:-3], NAMESPACE[:20], b"k8s\x00\xff\xff\xff"]
)
def test_broken_bytes_are_a_bad_request(broken: bytes) -> None:
    with pytest.raises(ApiStatus) as caught:
        parse_protobuf(broken)
    assert caught.value.code == 400


@given(st.binary(max_size=200), st.sampled_from(["Pod", "Deployment", "Event", "DeleteOptions"]))
def test_no_bytes_do_worse_than_a_bad_request(raw: bytes, kind: str) -> None:
    version = "apps/v1" if kind == "Deployment" else "v1"
    try:
        parse_protobuf(body(version, kind, raw))
    except ApiStatus as refused:
        assert refused.code == 400
