"""Snapshot files on a disk: which paths can be read, and where a snapshot can be saved."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.cli.api_objects import node, snapshot_of
from tests.cli.command import run_command

from fairlead.edge.files import snapshot_files as snapshot_load
from fairlead.edge.files.snapshot_files import load_snapshot
from fairlead.errors import OutsideError, UserError
from fairlead.model.source import Source

NODES = snapshot_of([node("gpu-1", "10.0.0.1", {"nvidia.com/gpu": "4"})])


def saved(folder: Path) -> Path:
    path = folder / "s"
    run_command(f"snapshot save {path}", NODES, "fairlead")
    return path


def refusal_of(name: str | Path) -> str:
    with pytest.raises(UserError) as refusal:
        load_snapshot(str(name))
    assert refusal.value.hint
    return refusal.value.what


def test_what_was_saved_is_shown(tmp_path: Path) -> None:
    assert (
        "1 (1 exclusive)" in run_command(f"snapshot show {saved(tmp_path)}", NODES, "fairlead").out
    )


@pytest.mark.parametrize("name", ["/dev/zero", "/dev/null"])
def test_a_device_is_not_read(name: str) -> None:
    assert refusal_of(name) == f"`{name}` is not a snapshot: it is no regular file"


def test_a_pipe_without_a_writer_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    assert refusal_of(tmp_path / "fifo") == (
        f"`{tmp_path / 'fifo'}` is not a snapshot: it is no regular file"
    )


def test_a_directory_and_an_absent_file_are_reported(tmp_path: Path) -> None:
    assert refusal_of(tmp_path).endswith("Is a directory")
    assert refusal_of(tmp_path / "absent").endswith("No such file or directory")


def test_a_large_file_of_another_kind_is_reported_by_its_first_bytes(tmp_path: Path) -> None:
    with (tmp_path / "disk.img").open("wb") as file:
        file.truncate(3 << 30)
    assert "it begins with `00 00 00 00`" in refusal_of(tmp_path / "disk.img")


def test_a_gzip_file_that_is_too_large_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = saved(tmp_path)
    monkeypatch.setattr(snapshot_load, "PACKED_BYTES_MAX", 10)
    assert refusal_of(path) == (
        f"`{path}` has {path.stat().st_size} bytes, a snapshot has at most 10"
    )


def test_a_directory_is_no_place_for_a_snapshot(tmp_path: Path) -> None:
    with pytest.raises(UserError) as refusal:
        run_command(f"snapshot save {tmp_path}", NODES, "fairlead")
    assert refusal.value.what == f"snapshot `{tmp_path}` cannot be written: it is a directory"
    assert refusal.value.hint == f"name a file in it, for example `{tmp_path}/cluster.snapshot`"
    assert list(tmp_path.iterdir()) == []


def test_a_pipe_or_device_is_never_replaced_by_a_snapshot(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    with pytest.raises(UserError) as caught:
        run_command(f"snapshot save {fifo}", NODES, "fairlead")
    assert (
        caught.value.what == f"snapshot `{tmp_path}/fifo` cannot be written: it is no regular file"
    )
    assert fifo.is_fifo()


@pytest.mark.parametrize(
    "content",
    [b"my thesis", b"\x1f\x8b\x08 not really", gzip.compress(b'{"kind": "Secret"}')],
)
def test_a_file_that_is_no_snapshot_is_not_replaced_and_costs_no_work(
    content: bytes, tmp_path: Path
) -> None:
    path = tmp_path / "thesis.gz"
    path.write_bytes(content)
    with pytest.raises(UserError) as refusal:
        run_command(f"snapshot save {path}", NODES, "fairlead")
    assert refusal.value.what == (
        f"snapshot `{path}` cannot be written: another file stands there, which is no snapshot"
    )
    assert refusal.value.hint == "name another file, or move this one away"
    assert path.read_bytes() == content and list(tmp_path.iterdir()) == [path]


def test_an_older_snapshot_even_a_damaged_one_and_an_empty_file_are_replaced(
    tmp_path: Path,
) -> None:
    path = saved(tmp_path)
    whole = path.read_bytes()
    for before in (whole, whole[: len(whole) // 2], b""):
        path.write_bytes(before)
        saved(tmp_path)
        assert len(load_snapshot(str(path)).snapshot.nodes) == 1


SOURCES = {
    "nodes": Source("nodes", "forbidden", 'User "ann" cannot list resource "nodes"', "ask"),
    "pods": Source("pods"),
    "mpijobs": Source("mpijobs", "failing", "mpijobs: etcd is away"),
    "mpijobs.kubeflow.org": Source("mpijobs.kubeflow.org", "failing", "mpijobs: etcd is away"),
    "rayjobs": Source("rayjobs", "missing", "this cluster does not serve `rayjobs.ray.io`"),
    "gpu-telemetry": Source("gpu-telemetry", "off", "it was not requested"),
}


def test_what_cannot_be_read_is_named_and_the_old_file_stays(tmp_path: Path) -> None:
    before = saved(tmp_path).read_bytes()
    with pytest.raises(OutsideError) as refusal:
        run_command(
            f"snapshot save {tmp_path / 's'}",
            replace(NODES, nodes=(), sources=SOURCES),
            "fairlead",
        )
    assert refusal.value.what == (
        f"snapshot `{tmp_path / 's'}` is not saved: mpijobs, nodes cannot be read"
    )
    assert "--partial" in refusal.value.hint and refusal.value.exit_code == 2
    assert (tmp_path / "s").read_bytes() == before


def test_a_partial_snapshot_is_made_on_request_and_lists_what_it_lacks(tmp_path: Path) -> None:
    done = run_command(
        f"snapshot save --partial {tmp_path / 's'}", replace(NODES, sources=SOURCES), "fairlead"
    )
    assert done.err.splitlines() == [
        "warning: mpijobs cannot be read: mpijobs: etcd is away",
        'warning: nodes cannot be read: User "ann" cannot list resource "nodes"',
    ]
    assert done.out.startswith("saved 1 nodes") and done.out.endswith(
        " bytes), without mpijobs, nodes\n"
    )
    shown = run_command(f"snapshot show {tmp_path / 's'}", NODES, "fairlead").out
    assert ('forbidden: User "ann" cannot list resource "nodes"') in shown and (
        "failing: mpijobs: etcd is away"
    ) in shown


def test_a_link_to_a_snapshot_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    (tmp_path / "s").symlink_to(tmp_path / "far" / "kept")
    assert saved(tmp_path).is_symlink()
    assert load_snapshot(str(tmp_path / "far" / "kept")).snapshot.nodes
