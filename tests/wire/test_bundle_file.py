"""The archive of `fairlead doctor --bundle`: whole, the same for the same values, and refused with
a sentence when it is damaged.
"""

from __future__ import annotations

import io
import zipfile

import pytest

from fairlead.errors import UserError
from fairlead.model.event import Event
from fairlead.model.node import Node
from fairlead.model.snapshot import ClusterSnapshot
from fairlead.wire.files.bundle_file import (
    SNAPSHOT,
    begins_as_bundle,
    bundled_snapshot,
    parse_bundle,
    render_bundle,
)
from fairlead.wire.files.snapshot_file import SavedSnapshot

SAVED = SavedSnapshot(ClusterSnapshot(nodes=(Node("n1"),)), 1_900_000_000.0, "a cluster", "0.1.0")
FILES = {"doctor.json": b"{}", SNAPSHOT: bundled_snapshot(SAVED), "logs/a/b/c.log": b"line\n"}
BUNDLE = render_bundle(FILES)


def test_the_snapshot_comes_back() -> None:
    assert begins_as_bundle(BUNDLE)
    assert parse_bundle(BUNDLE, "b.zip") == SAVED


def test_other_programs_read_the_archive() -> None:
    with zipfile.ZipFile(io.BytesIO(BUNDLE)) as archive:
        assert archive.testzip() is None
        assert archive.namelist() == ["README.txt", *FILES]
        assert archive.read("logs/a/b/c.log") == b"line\n"


def test_equal_values_give_equal_bytes() -> None:
    assert render_bundle(FILES) == BUNDLE


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (BUNDLE[: len(BUNDLE) // 2], "bundle `b.zip` is damaged"),
        (BUNDLE[:30], "bundle `b.zip` is damaged"),
        (BUNDLE.replace(FILES[SNAPSHOT][20:40], b"x" * 20), "bundle `b.zip` is damaged"),
        (render_bundle({"other": b""}), "`b.zip` is no bundle"),
        (render_bundle({"doctor.json": b"{}"}), "has no snapshot"),
        (render_bundle({"doctor.json": b"{}", SNAPSHOT: b"x"}), "`b.zip` is not a snapshot"),
    ],
    ids=["half", "begin", "changed", "foreign", "without", "no-snapshot"],
)
def test_a_damaged_bundle_is_refused(data: bytes, words: str) -> None:
    with pytest.raises(UserError) as refused:
        parse_bundle(data, "b.zip")
    assert words in refused.value.what
    assert refused.value.hint


def test_messages_have_no_secrets() -> None:
    event = Event(
        "Pod", "a", "b", message="pull failed: https://ann:planted@registry.example/x denied"
    )
    saved = SavedSnapshot(ClusterSnapshot(events=(event,)))
    (shown,) = parse_bundle(
        render_bundle({"doctor.json": b"{}", SNAPSHOT: bundled_snapshot(saved)}), "b"
    ).snapshot.events
    assert shown.message == "pull failed: https://<redacted>@registry.example/x denied"
