"""Snapshot files: the same value is read back, and a file that is no snapshot causes an error with
the actual value.
"""

from __future__ import annotations

import gzip
import json

import msgspec
import pytest
from tests.cli.api_objects import node, pod, reading, snapshot_of, topology_map

from fairlead.errors import UserError
from fairlead.model.jobs.job import Job, Role
from fairlead.model.node_choice import Expression
from fairlead.model.quota.rows import Budget, Namespace, Workload
from fairlead.model.quota.tree import QuotaNode, QuotaTree
from fairlead.model.snapshot import ClusterSnapshot
from fairlead.model.source import Source
from fairlead.wire.files import snapshot_file
from fairlead.wire.files.snapshot_file import SavedSnapshot, parse_snapshot, render_snapshot
from fairlead.wire.kube.objects import WireNode, WirePod, parse_node, parse_pod


def whole() -> ClusterSnapshot:
    """A snapshot with a value in every field."""
    grant = {"scheduler.framework.gpushare.allocation": '{"0":{"1":4}}'}
    snapshot = snapshot_of(
        [node("gpu-1", "10.0.0.1", {"aliyun.com/gpu-mem": "30", "aliyun.com/gpu-count": "2"})],
        [pod("p", "gpu-1", {"aliyun.com/gpu-mem": "4"}, annotations=grant)],
        {"gpu-1": topology_map({"0": "Healthy"}, [["N-A"]], [[738.42]])},
        [reading("gpu-1", 0, 15.0, 2.5, 12.0, [("default", "p")])],
        {"nodes": Source("nodes", "failing", "gone", "look", 12.5)},
    )
    quota = QuotaNode(
        "root",
        "root",
        children=(QuotaNode("root.a", "root.a", "root", {"cpu": 1500}, namespaces=("a",)),),
    )
    jobs = (
        Job(
            "mpijob",
            "MPIJob",
            "kubeflow.org/v2beta1",
            "a",
            "j",
            roles=(Role("worker", 2, {"nvidia.com/gpu": 1}),),
        ),
    )
    return msgspec.structs.replace(
        snapshot,
        quota=quota,
        quota_tree=QuotaTree("elasticquotatree", "kube-system", quota, "ut", 3),
        workloads=(
            Workload(
                "Job",
                "batch/v1",
                "a",
                "j",
                "uj",
                can_suspend=True,
                pods=2,
                request={"cpu": 1000},
                suspended_for="b/p",
            ),
        ),
        budgets=(
            Budget("a", "every", "u1", (), 1),
            Budget("a", "none", "u2", None),
            Budget("a", "some", "u3", (Expression("app", "In", ("web",)),), 2),
        ),
        namespaces=(
            Namespace("a", "ua", {"fairlead.io/quota": "enforced"}, {"fairlead.io/leaf": "root.a"}),
        ),
        jobs=jobs,
        taken_at=1767600000.0,
        version=7,
    )


def test_a_saved_snapshot_comes_back_equal() -> None:
    saved = SavedSnapshot(whole(), 1767600000.0, "the tests", "0.1.0")
    data = render_snapshot(saved)
    assert parse_snapshot(data, "s") == saved
    assert data == render_snapshot(saved)


def test_the_header_stands_in_front_for_other_tools() -> None:
    document = json.loads(
        gzip.decompress(render_snapshot(SavedSnapshot(whole(), 5.0, "the tests", "0.1.0")))
    )
    assert {key: document[key] for key in ("format", "version", "savedAt", "cluster")} == {
        "format": "fairlead.io/snapshot",
        "version": 2,
        "savedAt": 5.0,
        "cluster": "the tests",
    }


def test_a_file_of_version_1_is_read_and_has_no_objects() -> None:
    saved = parse_snapshot(
        packed(format="fairlead.io/snapshot", version=1, snapshot={"taken_at": 5.0}), "s"
    )
    assert (saved.version, saved.objects, saved.snapshot.taken_at) == (1, None, 5.0)


def test_objects_come_back_as_they_were() -> None:
    objects = ({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}},)
    assert (
        parse_snapshot(render_snapshot(SavedSnapshot(whole(), objects=objects)), "s").objects
        == objects
    )


def packed(**header: object) -> bytes:
    return gzip.compress(json.dumps(header).encode())


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (b"", "`s` is not a snapshot: it is empty"),
        (
            b"apiVersion: v1",
            "`s` is not a snapshot: it begins with `61 70 69 56`, a snapshot is a gzip file",
        ),
        (gzip.compress(b"hello"), "`s` is not a snapshot: JSON is malformed"),
        (
            packed(kind="Pod"),
            "`s` is not a snapshot: its format is `None`, not `fairlead.io/snapshot`",
        ),
        (
            packed(format="fairlead.io/snapshot", version=3),
            "`s` has snapshot version 3, which is newer than this program's 2",
        ),
        (
            packed(format="fairlead.io/snapshot", version=0),
            "`s` has snapshot version 0, which is older than this program's 2",
        ),
        (
            packed(format="fairlead.io/snapshot", version=1, snapshot={"nodes": 3}),
            "snapshot `s` is damaged: ",
        ),
        (packed(format="fairlead.io/snapshot", version=1), "snapshot `s` is damaged: "),
        (
            packed(format="fairlead.io/snapshot", version=1, snapshot={}, savedAt=1e300),
            "snapshot `s` is damaged: Expected `float` <= ",
        ),
        (
            packed(format="fairlead.io/snapshot", version=1, snapshot={"taken_at": 1e300}),
            "snapshot `s` is damaged: Expected `float` <= ",
        ),
        (render_snapshot(SavedSnapshot(ClusterSnapshot()))[:-20], "snapshot `s` is cut off after "),
        (
            render_snapshot(SavedSnapshot(ClusterSnapshot()))[:-8] + bytes(8),
            "snapshot `s` is damaged: ",
        ),
    ],
    ids=[
        "empty",
        "yaml",
        "no JSON",
        "no format",
        "newer",
        "older",
        "wrong type",
        "no snapshot",
        "saved after the year 9999",
        "taken after the year 9999",
        "cut off",
        "wrong checksum",
    ],
)
def test_what_is_no_snapshot_is_reported(data: bytes, what: str) -> None:
    with pytest.raises(UserError) as refusal:
        parse_snapshot(data, "s")
    assert refusal.value.what.startswith(what), refusal.value.what
    assert refusal.value.hint


def test_what_unpacks_without_end_is_damaged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot_file, "BYTES_MAX", 1000)
    with pytest.raises(UserError, match=r"`s`.* 1000 bytes"):
        parse_snapshot(gzip.compress(bytes(100_000)), "s")


@pytest.mark.parametrize("moment", [-62_135_596_800.0, 0.0, 253_402_300_799.0])
def test_every_time_that_a_calendar_shows_comes_back(moment: float) -> None:
    saved = SavedSnapshot(ClusterSnapshot(taken_at=moment), moment)
    assert parse_snapshot(render_snapshot(saved), "s") == saved


def test_unknown_words_are_read_as_the_api_server_and_the_exporters_are() -> None:
    """Older files may contain any words in annotations and labels; one unknown word does not make a
    file unreadable.
    """
    document = json.loads(gzip.decompress(render_snapshot(SavedSnapshot(whole(), 5.0))))
    snapshot = document["snapshot"]
    malformed = {"index": 0, "uuid": "GPU-0", "health": "Sick", "mode": "fractional"}
    snapshot["nodes"][0]["gpus"] = [malformed]
    snapshot["pods"][0] |= {"phase": "Evicted", "statuses": [{"name": "main", "state": "paused"}]}
    snapshot["gpus"][0]["holders"][0]["mode"] = "vgpu"
    snapshot["sources"]["nodes"]["state"] = "stuck"
    read = parse_snapshot(packed(**document), "s").snapshot
    annotated = parse_node(
        msgspec.convert(
            {
                "metadata": {
                    "name": "n",
                    "annotations": {"fairlead.io/gpus": json.dumps([malformed])},
                }
            },
            WireNode,
        )
    )
    assert (read.nodes[0].gpus[0].health, read.nodes[0].gpus[0].mode) == (
        annotated.gpus[0].health,
        annotated.gpus[0].mode,
    )
    assert (
        read.pods[0].phase
        == parse_pod(
            msgspec.convert({"metadata": {"name": "p"}, "status": {"phase": "Evicted"}}, WirePod)
        ).phase
    )
    assert (read.pods[0].statuses[0].state, read.pods[0].statuses[0].has_begun) == ("", False)
    assert read.gpus[0].holders[0].mode == "share"
    assert not read.was_read("nodes")
    assert read.sources["nodes"].is_unread
