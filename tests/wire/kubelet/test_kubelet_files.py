"""Files of a node: the kubelet's checkpoint, CDI, limits, grants. The texts come from the
specification and from a kubelet.
"""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.model.devices.gpu import Grant
from fairlead.model.devices.kubelet import (
    CardLimit,
    ContainerEdits,
    ContainerLimits,
    GivenShare,
    HeldDevices,
    MountedFile,
)
from fairlead.model.refusal import Refusal
from fairlead.wire.kubelet.cdi import cdi_file_name, device_name, render_cdi, token_of_file
from fairlead.wire.kubelet.checkpoint import parse_checkpoint
from fairlead.wire.kubelet.grants_file import parse_given, render_given
from fairlead.wire.kubelet.limits_file import parse_limits, render_limits

TOKEN = "0123456789abcdef"
ENTRY = {
    "PodUID": "3f0c",
    "ContainerName": "main",
    "ResourceName": "aliyun.com/gpu-mem",
    "DeviceIDs": {"-1": ["GPU-a-_-1", "GPU-a-_-0"]},
    "AllocResp": "CgA=",
}
TWO_CARDS = """\
version 1
gpu GPU-a limit_bytes 4509925376 core_percent 0 context_bytes 0
gpu GPU-b limit_bytes 1073741824 core_percent 30 context_bytes 524288000
region /run/fairlead/gpu/region
"""
names = st.text("abcdefghijklmnop-.0123456789", min_size=1, max_size=20)
amounts = st.integers(0, 200_000)


def checkpoint(entries: object) -> bytes:
    return json.dumps(
        {"Data": {"PodDeviceEntries": entries, "RegisteredDevices": {}}, "Checksum": 1_754_389_019}
    ).encode()


def test_the_checkpoint_contains_the_holders_of_ids() -> None:
    other = {
        **ENTRY,
        "ContainerName": "init",
        "DeviceIDs": {"0": ["GPU-b-_-0"], "1": ["GPU-a-_-9"]},
    }
    assert parse_checkpoint(checkpoint([ENTRY, other])) == (
        HeldDevices("aliyun.com/gpu-mem", ("GPU-a-_-0", "GPU-a-_-1"), "main", pod_uid="3f0c"),
        HeldDevices("aliyun.com/gpu-mem", ("GPU-a-_-9", "GPU-b-_-0"), "init", pod_uid="3f0c"),
    )


def test_an_entry_without_ids_costs_no_other_entry_its_ids_and_an_id_counts_once() -> None:
    """Go writes an empty map as null. An id that is listed twice counts once, because a token is
    computed from the ids.
    """
    twice = {**ENTRY, "DeviceIDs": {"0": ["GPU-b-_-0"], "1": ["GPU-b-_-0"]}}
    read = parse_checkpoint(checkpoint([{**ENTRY, "DeviceIDs": None}, twice]))
    assert not isinstance(read, Refusal)
    assert [each.ids for each in read] == [(), ("GPU-b-_-0",)]


@pytest.mark.parametrize(
    "entries", [None, []], ids=["null, as a new kubelet writes it", "an empty list"]
)
def test_a_checkpoint_without_an_owner(entries: object) -> None:
    assert parse_checkpoint(checkpoint(entries)) == ()


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"null",
        b"{}",
        b'{"Data":{"PodDeviceEntries":[{}]}}',
        b'{"Data":{}}',
        b"[" * 100_000,
        checkpoint([None]),
        checkpoint([{**ENTRY, "PodUID": ""}]),
        checkpoint([{**ENTRY, "DeviceIDs": ["GPU-a-_-0"]}]),
        checkpoint([{**ENTRY, "DeviceIDs": {"x": ["GPU-a-_-0"]}}]),
        checkpoint([ENTRY])[:-9],
        b"\xff\xfe",
    ],
)
def test_an_invalid_checkpoint_has_no_owner_and_is_reported(text: bytes) -> None:
    read = parse_checkpoint(text)
    assert isinstance(read, Refusal)
    assert read.reason.startswith("the kubelet's checkpoint of devices cannot be read: ")


def test_a_cdi_file_names_one_device_and_what_it_brings() -> None:
    edits = ContainerEdits(
        {"NVIDIA_VISIBLE_DEVICES": "GPU-a", "EMPTY": ""},
        ("/dev/nvidia3", "/dev/nvidiactl"),
        (
            MountedFile("/var/l", "/etc/fairlead/gpu/limits"),
            MountedFile("/run/r", "/run/fairlead/gpu/region", is_read_only=False),
        ),
    )
    assert json.loads(render_cdi(TOKEN, edits)) == {
        "cdiVersion": "0.5.0",
        "kind": "fairlead.io/gpu",
        "devices": [
            {
                "name": f"alloc-{TOKEN}",
                "containerEdits": {
                    "env": ["NVIDIA_VISIBLE_DEVICES=GPU-a", "EMPTY="],
                    "deviceNodes": [{"path": "/dev/nvidia3"}, {"path": "/dev/nvidiactl"}],
                    "mounts": [
                        {
                            "hostPath": "/var/l",
                            "containerPath": "/etc/fairlead/gpu/limits",
                            "options": ["bind", "nosuid", "nodev", "ro"],
                        },
                        {
                            "hostPath": "/run/r",
                            "containerPath": "/run/fairlead/gpu/region",
                            "options": ["bind", "nosuid", "nodev", "rw"],
                        },
                    ],
                },
            }
        ],
    }
    assert device_name(TOKEN) == f"fairlead.io/gpu=alloc-{TOKEN}"


def test_only_files_of_fairlead_have_a_token() -> None:
    assert token_of_file(cdi_file_name(TOKEN)) == TOKEN
    assert [token_of_file(name) for name in ("nvidia.yaml", "fairlead.io-gpu_x.json.tmp", "")] == [
        "",
        "",
        "",
    ]


def test_the_limits_file_is_the_contracts_text() -> None:
    limits = ContainerLimits(
        (CardLimit("GPU-a", 4301), CardLimit("GPU-b", 1024, 30, 500)), "/run/fairlead/gpu/region"
    )
    assert render_limits(limits) == TWO_CARDS.encode()
    assert parse_limits(TWO_CARDS.encode()) == limits


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is empty"),
        (TWO_CARDS.replace("core_percent 30", "core_percent 101"), "line 3 "),
        (
            TWO_CARDS.replace("version 1", "version 2"),
            "begins with `version 2`, not with `version 1`",
        ),
        (TWO_CARDS.replace("version 1", ""), "begins with ``, not with"),
        (TWO_CARDS.replace("core_percent 30", "core_percent -1"), "line 3 "),
        (TWO_CARDS.replace("GPU-b", "GPU-a"), "line 3 "),
        (TWO_CARDS.replace("1073741824", "1073741825"), "line 3 "),
        (
            TWO_CARDS.replace("region /run", "region run"),
            "line 4 of the limits file is not understood: `region run/fairlead/gpu/region`",
        ),
        (TWO_CARDS + "region /other\n", "line 5 "),
        (TWO_CARDS + "\n", "line 5 "),
        (TWO_CARDS.replace("0\ngpu", "0\u2028gpu"), "line 2 "),
        (TWO_CARDS[: TWO_CARDS.index("region")], "names no region"),
        (TWO_CARDS.replace("4509925376", "٤"), "line 2 "),
        (TWO_CARDS.replace("4509925376", "04509925376"), "line 2 "),
        (TWO_CARDS.replace("core_percent 0", "core_percent 00"), "line 2 "),
    ],
)
def test_a_limits_file_with_other_values_is_refused(text: str, words: str) -> None:
    read = parse_limits(text.encode())
    assert isinstance(read, Refusal)
    assert words in read.reason


def test_half_a_limits_file_is_none() -> None:
    """Half a line about the region could not be recognized as half."""
    assert all(
        isinstance(parse_limits(TWO_CARDS[:length].encode()), Refusal)
        for length in range(len(TWO_CARDS))
    )


def test_a_limits_file_of_garbage_is_refused() -> None:
    assert parse_limits(b"\xff") == Refusal("the limits file is no text")


def test_the_grants_file_has_the_keys_of_the_contract() -> None:
    given = GivenShare("ns", "p", "uid", "c", Grant("GPU-a", 2, 4, 4301, 30), TOKEN)
    (row,) = json.loads(render_given([given]))
    assert row == {
        "podUID": "uid",
        "namespace": "ns",
        "pod": "p",
        "container": "c",
        "uuid": "GPU-a",
        "index": 2,
        "units": 4,
        "mib": 4301,
        "core": 30,
        "token": TOKEN,
    }


@given(
    st.lists(
        st.builds(
            GivenShare,
            names,
            names,
            names,
            names,
            st.builds(Grant, names, st.integers(0, 15), amounts, amounts, st.integers(0, 100)),
            names,
        ),
        max_size=6,
        unique_by=lambda each: (
            each.namespace,
            each.pod,
            each.container,
            each.grant.index,
            each.pod_uid,
            each.grant.uuid,
        ),
    )
)
def test_the_grants_file_is_read_as_it_was_written(shares: list[GivenShare]) -> None:
    read = parse_given(render_given(shares))
    assert not isinstance(read, Refusal)
    assert sorted(map(repr, read)) == sorted(map(repr, shares))
    assert render_given(reversed(shares)) == render_given(shares)


GIVEN = GivenShare("ns", "p", "uid", "c", Grant("GPU-a", 2, 4, 4301, 30), TOKEN)
ROW = json.loads(render_given([GIVEN]))[0]
WRONG = [
    *({**ROW, key: -1} for key in ("index", "units", "mib", "core")),
    *({**ROW, key: ""} for key in ("podUID", "pod", "uuid")),
]
GAPS = [{name: value for name, value in ROW.items() if name != key} for key in ROW]


@pytest.mark.parametrize("row", [*WRONG, *GAPS], ids=json.dumps)
def test_a_row_that_cannot_be_spoils_the_grants_file(row: object) -> None:
    assert isinstance(parse_given(json.dumps([ROW, row]).encode()), Refusal)
    assert parse_given(json.dumps([ROW, {**ROW, "later": 1}]).encode()) == (GIVEN, GIVEN)


@pytest.mark.parametrize(
    "text", [b"", b"{}", b"[{}]", b'[{"podUID": 1}]', b"[", b"[" * 100_000, b"\xff"]
)
def test_a_grants_file_of_garbage_is_reported(text: bytes) -> None:
    read = parse_given(text)
    assert isinstance(read, Refusal)
    assert read.reason.startswith("the grants file cannot be read: ")
