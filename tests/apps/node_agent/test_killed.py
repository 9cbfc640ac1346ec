"""The agent is killed at each step of an answer. The tests check what the next process finds, and
what the container gets in the end.

Note: a kill happens between two files; it is simulated by a rename that does not take place.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from tests.apps.node_agent.node_world import MEMORY, World, pod
from tests.rules.devices.cards import uuid
from tests.waiting import until

from fairlead.model.devices.granted import GpuIdentity
from fairlead.model.devices.kubelet import ContainerEdits
from fairlead.rules.devices.ids import token

IDS = [f"{uuid(1)}-_-{number}" for number in range(4)]
"""Ids of a card other than the granted one."""
NAME = token(MEMORY, IDS)
STEPS = 5
"""Files that a start writes (region, limits, CDI, grants), plus one for a start that is
not killed.
"""


class Killed(BaseException):
    """Stands for SIGKILL: no code catches it."""


@pytest.fixture
def kill_at(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Each rename decreases the first number; below zero the rename raises Killed."""
    left = [10**9]
    replace = Path.replace

    def renamed(path: Path, target: Path) -> Path:
        left[0] -= 1
        if left[0] < 0:
            raise Killed
        return replace(path, target)

    monkeypatch.setattr(Path, "replace", renamed)
    return left


def agrees(world: World) -> None:
    """Asserts that the annotation, the grants file and the container's files agree.

    See docs/spec/gpu-sharing.md#allocation-of-the-right-container,
    docs/spec/gpu-sharing.md#what-the-container-gets.
    """
    (row,) = json.loads((world.folders.state / "grants.json").read_bytes())
    assert (
        row["podUID"],
        row["container"],
        row["uuid"],
        row["units"],
        row["mib"],
        row["token"],
    ) == (
        "uid-p",
        "app",
        uuid(0),
        4,
        4308,
        NAME,
    )
    limits = (world.folders.state / "containers" / NAME / "limits").read_text()
    assert f"gpu {uuid(0)} limit_bytes {4308 << 20} core_percent 0 context_bytes 0\n" in limits
    region = (world.folders.run / NAME / "region").read_bytes()
    assert (len(region), region[:8], region[16:].count(0)) == (290816, b"LFGR\x01\0\0\0", 290800)
    assert world.api.pods["uid-p"].annotations["ALIYUN_COM_GPU_MEM_ASSIGNED"] == "true"


def begun(folder: Path, identity: GpuIdentity) -> World:
    """A new process of the agent; the pod and the kubelet outlive the old one."""
    world = World(folder)
    world.agent.desk.identity = identity
    world.api.pods = {"uid-p": pod("p")}
    return world


@pytest.mark.parametrize("step", range(STEPS))
def test_killed_in_a_deferred_start(tmp_path: Path, kill_at: list[int], step: int) -> None:
    first = begun(tmp_path, GpuIdentity.DEFERRED)

    async def dies() -> None:
        await until(lambda: first.memory.counts == (28, 28))
        await first.memory.answers.allocate(IDS)
        first.hold(IDS, "p")
        await asyncio.sleep(1)
        kill_at[0] = step
        await first.memory.answers.start(IDS)
        assert step == STEPS - 1, "it should have been killed"

    if step < STEPS - 1:
        with pytest.raises(Killed):
            first.play(dies)
    else:
        first.play(dies)
    kill_at[0] = 10**9
    after = begun(tmp_path, GpuIdentity.DEFERRED)
    after.hold(IDS, "p")

    async def asked_again() -> None:
        await until(lambda: after.memory.counts == (28, 28))
        assert await after.memory.answers.start(IDS) is None
        agrees(after)
        edits = json.loads((after.folders.cdi / f"fairlead.io-gpu_{NAME}.json").read_bytes())[
            "devices"
        ][0]["containerEdits"]
        assert f"NVIDIA_VISIBLE_DEVICES={uuid(0)}" in edits["env"]
        await asyncio.sleep(30)
        agrees(after)

    after.play(asked_again)


@pytest.mark.parametrize("step", range(STEPS - 1))
def test_killed_in_a_guarded_start(tmp_path: Path, kill_at: list[int], step: int) -> None:
    """The kubelet got its answer from the first process; the next process knows it."""
    first = begun(tmp_path, GpuIdentity.GUARDED)

    async def dies() -> None:
        await until(lambda: first.memory.counts == (28, 28))
        assert isinstance(await first.memory.answers.allocate(IDS), ContainerEdits)
        first.hold(IDS, "p")
        await asyncio.sleep(1)
        kill_at[0] = step
        await first.memory.answers.start(IDS)
        assert step == STEPS - 2, "it should have been killed"

    if step < STEPS - 2:
        with pytest.raises(Killed):
            first.play(dies)
    else:
        first.play(dies)
    kill_at[0] = 10**9
    after = begun(tmp_path, GpuIdentity.GUARDED)
    after.hold(IDS, "p")

    async def asked_again() -> None:
        await until(lambda: after.memory.counts == (28, 28))
        assert await after.memory.answers.start(IDS) is None
        agrees(after)
        assert not after.folders.cdi.exists()

    after.play(asked_again)


@pytest.mark.parametrize("step", range(3))
def test_killed_in_a_guarded_allocation_the_ids_are_anybodys(
    tmp_path: Path, kill_at: list[int], step: int
) -> None:
    """The kubelet ends that pod and gives its ids to the next one; leftovers of the first pod do
    not disturb it.
    """
    first = begun(tmp_path, GpuIdentity.GUARDED)

    async def dies() -> None:
        await until(lambda: first.memory.counts == (28, 28))
        await asyncio.sleep(1)
        kill_at[0] = step
        await first.memory.answers.allocate(IDS)

    with pytest.raises(Killed):
        first.play(dies)
    kill_at[0] = 10**9
    after = begun(tmp_path, GpuIdentity.GUARDED)

    async def another() -> None:
        await until(lambda: after.memory.counts == (28, 28))
        assert isinstance(await after.memory.answers.allocate(IDS), ContainerEdits)
        after.hold(IDS, "p")
        assert await after.memory.answers.start(IDS) is None
        agrees(after)

    after.play(another)
