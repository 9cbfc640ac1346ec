"""The grants file has the contract's keys (3.4), and one that is damaged is no list of grants."""

from __future__ import annotations

import json

import pytest

from fairlead.model.devices.gpu import Grant
from fairlead.model.devices.kept_grants import KeptGrant
from fairlead.model.refusal import Refusal
from fairlead.wire.kubelet.grants_file import parse_grants_file, render_grants_file

ENTRY = {
    "podUID": "u-1",
    "namespace": "ml",
    "pod": "binpack-0",
    "container": "app",
    "uuid": "GPU-1",
    "index": 2,
    "units": 4,
    "mib": 4308,
    "core": 30,
    "token": "0123456789abcdef",
}
KEPT = KeptGrant("u-1", "ml", "binpack-0", "app", Grant("GPU-1", 2, 4, 4308, 30), "0123456789abcdef")


def test_both_ways() -> None:
    assert json.loads(render_grants_file([KEPT])) == [ENTRY]
    assert parse_grants_file(json.dumps([ENTRY, {**ENTRY, "later": 1}]).encode()) == (KEPT, KEPT)
    assert render_grants_file([]) == b"[]"
    assert parse_grants_file(b"[]") == ()


@pytest.mark.parametrize("text", [b"", b"{}", b"null", b"\xff", b"[" * 100_000, json.dumps([ENTRY]).encode()[:-1]])
def test_what_is_no_list_is_refused(text: bytes) -> None:
    assert isinstance(parse_grants_file(text), Refusal)


@pytest.mark.parametrize("key", ENTRY)
def test_an_entry_without_one_of_its_keys_is_refused(key: str) -> None:
    left = {name: value for name, value in ENTRY.items() if name != key}
    refused = parse_grants_file(json.dumps([ENTRY, left]).encode())
    assert isinstance(refused, Refusal)
    assert key in refused.reason


@pytest.mark.parametrize(("key", "wrong"), [("units", -1), ("mib", -1), ("index", "0"), ("uuid", ""), ("container", None)])
def test_a_value_that_cannot_be_is_refused(key: str, wrong: object) -> None:
    assert isinstance(parse_grants_file(json.dumps([{**ENTRY, key: wrong}]).encode()), Refusal)
