"""The grants file is damaged or lost while containers run: its rows are restored from the
containers' own files.

The expected rows are those of the file before; containers that still run keep theirs.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs
from tests.apps.node_agent.node_world import MEMORY, World, pod
from tests.rules.devices.cards import uuid
from tests.waiting import until

from fairlead.errors import OutsideError
from fairlead.model.devices.gpu import Grant
from fairlead.model.devices.granted import GpuIdentity
from fairlead.model.devices.kubelet import GivenShare
from fairlead.model.pod import Container, Pod
from fairlead.wire.gpus.allocation import render_grants

IDS = [f"{uuid(1)}-_-{number}" for number in range(4)]
OTHERS = [f"{uuid(1)}-_-{number}" for number in range(4, 8)]
BOTH = pytest.mark.parametrize("identity", [GpuIdentity.DEFERRED, GpuIdentity.GUARDED])


def rows(world: World) -> list[dict[str, Any]]:
    return sorted(
        json.loads((world.folders.state / "grants.json").read_bytes()),
        key=lambda row: (row["podUID"], row["index"]),
    )


def begun(folder: Path, identity: GpuIdentity, *pods: Pod) -> World:
    world = World(folder)
    world.agent.desk.identity = identity
    world.api.pods = {each.uid: each for each in pods}
    return world


def started(
    folder: Path, identity: GpuIdentity, by_name: dict[str, Sequence[str]], *pods: Pod
) -> list[dict[str, Any]]:
    """The rows after these containers were started."""
    world = begun(folder, identity, *pods)

    async def start_all() -> None:
        await until(lambda: world.memory.counts == (28, 28))
        for name, ids in by_name.items():
            await world.memory.answers.allocate(ids)
            world.hold(ids, name)
            assert await world.memory.answers.start(ids) is None

    world.play(start_all)
    return rows(world)


def after(
    folder: Path, identity: GpuIdentity, by_name: dict[str, Sequence[str]], *pods: Pod
) -> list[dict[str, Any]]:
    """The rows that the next process writes and keeps."""
    world = begun(folder, identity, *pods)
    for name, ids in by_name.items():
        world.hold(ids, name)

    async def look() -> None:
        await until(lambda: world.memory.counts == (28, 28))
        await asyncio.sleep(30)

    world.play(look)
    return rows(world)


@BOTH
@pytest.mark.parametrize("left", [None, b"garbage", b'[{"podUID": "uid-p"}]'])
def test_rows_come_back(tmp_path: Path, identity: GpuIdentity, left: bytes | None) -> None:
    held = {"p": IDS, "q": OTHERS}
    pods = pod("p"), pod("q", card=0)
    before = started(tmp_path, identity, held, *pods)
    assert [row["podUID"] for row in before] == ["uid-p", "uid-q"]
    path = tmp_path / "state" / "grants.json"
    path.unlink() if left is None else path.write_bytes(left)
    assert after(tmp_path, identity, held, *pods) == before


def test_a_share_of_two_cards(tmp_path: Path) -> None:
    grants = {"app": (Grant(uuid(0), 0, 3, 3231, 10), Grant(uuid(1), 1, 1, 1077, 20))}
    limits = {MEMORY: 4, "aliyun.com/gpu-core.percentage": 30}
    wide = pod(
        "p",
        grants=grants,
        containers=(Container("app", limits=limits),),
        annotations={"fairlead.io/gpu-allocation": render_grants(grants)},
    )
    before = started(tmp_path, GpuIdentity.DEFERRED, {"p": IDS}, wide)
    assert [(row["index"], row["units"], row["mib"], row["core"]) for row in before] == [
        (0, 3, 3231, 10),
        (1, 1, 1077, 20),
    ]
    (tmp_path / "state" / "grants.json").unlink()
    assert after(tmp_path, GpuIdentity.DEFERRED, {"p": IDS}, wide) == before


def test_a_placement_that_was_changed_meanwhile_proves_nothing_about_running_pods(
    tmp_path: Path,
) -> None:
    before = started(tmp_path, GpuIdentity.DEFERRED, {"p": IDS}, pod("p"))
    (tmp_path / "state" / "grants.json").unlink()
    assert after(tmp_path, GpuIdentity.DEFERRED, {"p": IDS}, pod("p", card=1)) == before


def test_of_two_cards_that_the_placement_does_not_name_none_is_guessed(tmp_path: Path) -> None:
    grants = {"app": (Grant(uuid(0), 0, 3, 3231), Grant(uuid(1), 1, 1, 1077))}
    wide = pod("p", grants=grants)
    started(tmp_path, GpuIdentity.DEFERRED, {"p": IDS}, wide)
    (tmp_path / "state" / "grants.json").write_bytes(b"garbage")
    assert after(tmp_path, GpuIdentity.DEFERRED, {"p": IDS}, structs.replace(wide, grants={})) == []


def test_a_pod_that_has_not_started_was_given_nothing(tmp_path: Path) -> None:
    """Guarded: the container's files exist already, but grant nothing."""
    world = begun(tmp_path, GpuIdentity.GUARDED, pod("p"))

    async def allocate() -> None:
        await until(lambda: world.memory.counts == (28, 28))
        await world.memory.answers.allocate(IDS)

    world.play(allocate)
    (tmp_path / "state" / "grants.json").write_bytes(b"garbage")
    assert after(tmp_path, GpuIdentity.GUARDED, {"p": IDS}, pod("p")) == []


def test_files_whose_ids_no_container_holds_have_no_owner(tmp_path: Path) -> None:
    started(tmp_path, GpuIdentity.DEFERRED, {"p": IDS}, pod("p"))
    (tmp_path / "state" / "grants.json").write_bytes(b"garbage")
    assert after(tmp_path, GpuIdentity.DEFERRED, {"p": OTHERS}, pod("p")) == []


def test_the_disk_is_full_at_that_moment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = started(tmp_path, GpuIdentity.DEFERRED, {"p": IDS}, pod("p"))
    (tmp_path / "state" / "grants.json").write_bytes(b"garbage")
    world = begun(tmp_path, GpuIdentity.DEFERRED, pod("p"))
    world.hold(IDS, "p")
    files = world.agent.desk.files
    write, tries = files.write_given, []

    def fails_twice(shares: Sequence[GivenShare]) -> None:
        tries.append(1)
        if len(tries) < 3:
            raise OutsideError("disk", "it is full")
        write(shares)

    monkeypatch.setattr(files, "write_given", fails_twice)
    world.play(lambda: until(lambda: len(tries) == 3))
    assert rows(world) == before
