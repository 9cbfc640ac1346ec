"""Rows with their whole objects, as the usage recorder follows jobs: of a list and of a watch."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fairlead.edge.kube.api_page import WatchEnded
from fairlead.edge.kube.follow.usage_kinds import USAGE_KINDS
from fairlead.wire.usage.manifests import FollowedJob, parse_kept_manifest

(KIND,) = (each for each in USAGE_KINDS if each.name == "mpijobs")


def an_object(name: str, **more: Any) -> dict[str, Any]:
    meta = {"name": name, "namespace": "ml", "uid": f"uid-{name}", "resourceVersion": "7"}
    return {"metadata": meta, "spec": {"note": "a field that no row has"}} | more


def note_of(row: FollowedJob | None) -> object:
    assert row is not None
    kept = parse_kept_manifest(row.manifest()).manifest
    return kept and kept["spec"]["note"]


def test_a_list_has_the_object_of_each_row_and_leaves_malformed_ones_out() -> None:
    reader = KIND.reader(KIND.resource)
    items = [an_object("a"), an_object("b", spec=3), an_object("c")]
    body = json.dumps({"metadata": {"resourceVersion": "9"}, "items": items}).encode()
    page = reader.parse_page(reader.decode_page(body))
    assert list(page.rows) == ["uid-a", "uid-c"]
    assert [row.job.name for row in page.rows.values()] == ["a", "c"]
    assert {note_of(row) for row in page.rows.values()} == {"a field that no row has"}
    assert ([each.key for each in page.malformed], page.resource_version) == (["uid-b"], "9")


def test_a_watch_has_the_object_of_each_change() -> None:
    reader = KIND.reader(KIND.resource)
    bookmark = {"metadata": {"resourceVersion": "12"}}
    events = [
        ("ADDED", an_object("a")),
        ("MODIFIED", an_object("b", spec=3)),
        ("DELETED", an_object("a")),
        ("BOOKMARK", bookmark),
    ]
    lines = b"\n".join(json.dumps({"type": t, "object": o}).encode() for t, o in events)
    added, malformed, deleted, booked = reader.read_changes(lines)
    assert note_of(added.row) == "a field that no row has"
    assert (malformed.row, malformed.malformed is not None) == (None, True)
    assert (deleted.type, deleted.key, deleted.row) == ("DELETED", "uid-a", None)
    assert (booked.type, booked.resource_version) == ("BOOKMARK", "12")
    status = {"kind": "Status", "code": 410, "message": "too old"}
    with pytest.raises(WatchEnded) as caught:
        reader.read_changes(json.dumps({"type": "ERROR", "object": status}).encode())
    assert caught.value.status.message == "too old"
