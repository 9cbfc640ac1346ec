"""The node agent in memory: what it offers, allocates, writes and reports, and what it does when
the kubelet, the driver or the API server is away.
"""

from __future__ import annotations

import asyncio
import os
import platform
import shutil
from pathlib import Path

import pytest
from msgspec import structs
from prometheus_client import generate_latest
from tests.apps.node_agent.node_world import CORE, MEMORY, WHOLE, World, pod, unknown
from tests.rules.devices.cards import t4, uuid
from tests.waiting import until

from fairlead.errors import OutsideError
from fairlead.model.actions import (
    CreateObject,
    DeleteObject,
    Outcome,
    PatchObject,
    RecordObjectEvent,
    Result,
)
from fairlead.model.devices.driver import (
    CgroupLimit,
    DriverXid,
    IsolationMeans,
    MpsLimit,
    ProcessHome,
    ProcessMemory,
)
from fairlead.model.devices.granted import DeviceRefusal, GpuIdentity
from fairlead.model.devices.kubelet import CdiDevices, ContainerEdits, Region, RegionCard
from fairlead.model.pod import ContainerStatus, Pod, PodPhase
from fairlead.model.refusal import Refusal
from fairlead.rules.devices.ids import token
from fairlead.wire.kubelet.limits_file import parse_limits
from fairlead.wire.kubelet.region_file import parse_region

IDS = [f"{uuid(0)}-_-{number}" for number in range(4)]
NAME = token(MEMORY, IDS)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def ids(world: World, card: int, count: int = 4) -> list[str]:
    return [each.id for each in world.memory.lists[-1] if each.id.startswith(uuid(card))][:count]


def test_nothing_is_offered_before_all_is_known(world: World) -> None:
    async def story() -> None:
        world.kubelet.failure = "the kubelet is away"
        await asyncio.sleep(20)
        assert not world.memory.lists
        assert world.agent.unready == "the node is not known yet"
        world.api.is_following.set()
        await asyncio.sleep(20)
        assert world.agent.unready == (
            "the kubelet has not reported yet which containers hold devices"
        )
        assert not world.memory.lists and not world.api.actions
        world.kubelet.failure = ""
        await until(lambda: world.memory.counts == (28, 28))
        assert world.agent.unready == ""

    world.play(story, follows=False)


def test_a_label_changes_the_lists_and_the_node_shows_it(world: World) -> None:
    async def story() -> None:
        await until(lambda: world.memory.counts == (28, 28))
        await until(lambda: world.api.node.capacity.get("aliyun.com/gpu-count") == 2)
        assert [card.mode.value for card in world.api.node.gpus] == ["shared", "shared"]
        assert world.api.node.labels["aliyun.accelerator/nvidia_count"] == "2"
        assert world.api.node.annotations["fairlead.io/gpu-identity"] == "guarded"
        (condition,) = world.api.node.conditions
        assert (condition.type, condition.status) == ("GPUShareReady", "True")
        began = world.loop.time()
        world.api.label(cgpu="false")
        await until(lambda: (world.memory.counts, world.served[WHOLE].counts) == ((0, 0), (2, 2)))
        assert world.loop.time() - began < 5
        await until(lambda: world.api.node.capacity["aliyun.com/gpu-count"] == 0)
        assert world.api.node.conditions == ()
        assert world.served[CORE].counts == (0, 0)

    world.play(story)


def test_a_fatal_xid_takes_all_ids_of_one_card_at_once_and_its_users_are_reported(
    world: World,
) -> None:
    world.api.pods = {"uid-p": pod("p"), "uid-q": pod("q", card=1)}

    async def story() -> None:
        await until(lambda: world.memory.counts == (28, 28))
        for name, card in (("p", 0), ("q", 1)):
            chosen = ids(world, card)
            world.hold(chosen, name)
            assert await world.memory.answers.start(chosen) is None
        world.driver.seen = [DriverXid(31, uuid(0))]
        await asyncio.sleep(15)
        assert world.memory.counts == (28, 28), "a fault of the program"
        before = len(world.memory.lists)
        world.driver.seen = [DriverXid(79, uuid(0))]
        await until(lambda: world.memory.counts == (28, 14))
        assert len(world.memory.lists) == before + 1
        assert {
            each.id.startswith(uuid(0)) for each in world.memory.lists[-1] if not each.is_healthy
        } == {True}
        await until(lambda: len(world.api.events()) >= 2)
        assert world.api.events() == [("Node", "n1", "GPUUnhealthy"), ("Pod", "p", "GPUUnhealthy")]
        await until(lambda: [card.reason for card in world.api.node.gpus] == ["XID 79", ""])
        await asyncio.sleep(1500)
        assert world.memory.counts == (28, 14), "it needs a reset"

    world.play(story)


async def one_falls_ill(world: World, xid: int) -> None:
    await until(lambda: world.memory.counts == (28, 28))
    world.driver.seen = [DriverXid(xid, uuid(1))]
    await until(lambda: world.memory.counts == (28, 14))


def test_a_card_recovers_after_ten_minutes_and_the_next_process_knows(
    world: World, tmp_path: Path
) -> None:
    async def story() -> None:
        await one_falls_ill(world, 62)
        await asyncio.sleep(590)
        assert world.memory.counts == (28, 14)

    world.play(story)
    after = World(tmp_path)

    async def goes_on() -> None:
        await until(lambda: after.memory.lists)
        assert after.memory.counts == (28, 14), "what the process before knew"
        await until(lambda: after.memory.counts == (28, 28), seconds=900)

    after.play(goes_on)


def test_a_card_that_was_reset_while_the_agent_was_stopped_is_offered_again(
    world: World, tmp_path: Path
) -> None:
    async def story() -> None:
        world.driver.energy = 5_000_000
        await one_falls_ill(world, 79)
        await asyncio.sleep(900)
        assert world.memory.counts == (28, 14)

    world.play(story)
    for energy, offered in ((5_000_001, 14), (40_000, 28)):
        after = World(tmp_path)
        after.driver.energy = energy

        async def goes_on(after: World = after, offered: int = offered) -> None:
            await until(lambda: after.memory.counts == (28, offered))
            await asyncio.sleep(900)
            assert after.memory.counts == (28, offered)

        after.play(goes_on)


def test_cards_without_a_counter_lost_while_the_agent_was_stopped_are_offered_when_they_answer(
    world: World, tmp_path: Path
) -> None:
    """No card of the node is healthy, so no other change causes the state to be written."""

    async def story() -> None:
        await until(lambda: world.memory.counts == (28, 28))
        world.driver.seen = [DriverXid(79, uuid(index)) for index in (0, 1)]
        await until(lambda: world.memory.counts == (28, 0))
        world.driver.ill = {uuid(index): "GPU is lost" for index in (0, 1)}
        await asyncio.sleep(45)

    world.play(story)
    after = World(tmp_path)

    async def goes_on() -> None:
        await until(lambda: after.memory.counts == (28, 28))

    after.play(goes_on)


def test_a_driver_that_was_taken_out_has_reset_its_cards_and_an_xid_that_comes_at_once_counts(
    world: World,
) -> None:
    async def story() -> None:
        world.driver.energy = 5_000_000
        await until(lambda: world.memory.counts == (28, 28))
        world.driver.seen = [DriverXid(79, uuid(0)), DriverXid(79, uuid(1))]
        await until(lambda: world.memory.counts == (28, 0))
        world.driver.failure = "the driver is not loaded"
        await asyncio.sleep(5)
        world.driver.energy, world.driver.failure = 40_000, ""
        world.driver.seen = [DriverXid(79, uuid(1))]
        await until(lambda: world.memory.counts == (28, 14))
        await asyncio.sleep(900)
        assert world.memory.counts == (28, 14), "the new XID came after the reset"

    world.play(story)


def test_an_operator_takes_a_card_out_and_gives_it_back(world: World) -> None:
    async def story() -> None:
        await until(lambda: world.memory.counts == (28, 28))
        world.api.take_out(1)
        await until(lambda: world.memory.counts == (28, 14))
        world.api.take_out()
        await until(lambda: world.memory.counts == (28, 28))

    world.play(story)


def test_a_driver_that_goes_and_comes_back(world: World) -> None:
    async def story() -> None:
        await until(lambda: world.memory.counts == (28, 28))
        world.driver.failure = "the driver is not loaded"
        await until(lambda: world.memory.counts == (28, 0))
        await until(lambda: world.api.events() == [("Node", "n1", "GPUUnhealthy")] * 2)
        world.driver.failure = ""
        await until(lambda: world.memory.counts == (28, 28), seconds=900)

    world.play(story)


def test_a_driver_that_hangs(world: World) -> None:
    """The driver gets no further call until the hanging one returns; until then no card is
    allocated.
    """

    async def story() -> None:
        await until(lambda: world.memory.counts == (28, 28))
        world.driver.hangs = True
        began = world.loop.time()
        await until(lambda: world.memory.counts == (28, 0), seconds=60)
        assert 29 < world.loop.time() - began < 40
        await until(lambda: world.api.events() == [("Node", "n1", "GPUUnhealthy")] * 2)
        assert [card.reason for card in world.api.node.gpus] == [
            "probe failed: the driver has not answered for 30 s"
        ] * 2
        await asyncio.sleep(300)
        (call,) = world.threads.hanging
        assert len(world.api.events()) == 2
        world.driver.hangs = False
        call.set_result([])
        await until(lambda: world.memory.counts == (28, 28), seconds=60)

    world.play(story)


def test_a_driver_that_hangs_when_a_card_is_asked_how_it_is(world: World) -> None:
    async def story() -> None:
        await until(lambda: world.memory.counts == (28, 28))
        world.driver.wedged = uuid(1)
        await until(lambda: world.memory.counts == (28, 0), seconds=90)
        (reason,) = {card.reason for card in world.api.node.gpus}
        assert reason == (
            "probe failed: the driver has not answered for 30 s since it was asked for GPU "
            f"{uuid(1)}"
        )

    world.play(story)


def test_two_cards_with_one_uuid_are_not_shared_out(tmp_path: Path) -> None:
    world = World(tmp_path, [t4(0), structs.replace(t4(1), uuid=uuid(0))])

    async def story() -> None:
        await until(lambda: world.api.node.conditions)
        (condition,) = world.api.node.conditions
        assert (condition.status, condition.reason) == ("False", "UnusableGPUs")
        assert world.memory.counts == (0, 0)

    world.play(story)


def test_what_a_container_gets_and_what_is_written_of_it(world: World) -> None:
    world.api.pods = {"uid-p": pod("p")}

    async def story() -> None:
        await until(lambda: world.memory.counts == (28, 28))
        world.agent.desk.identity = GpuIdentity.DEFERRED
        chosen = ids(world, 1)  # of a card other than the granted one
        name = token(MEMORY, chosen)
        assert await world.memory.answers.allocate(chosen) == CdiDevices(
            (f"fairlead.io/gpu=alloc-{name}",)
        )
        world.hold(chosen, "p")
        assert await world.memory.answers.start(chosen) is None
        text = (world.folders.cdi / f"fairlead.io-gpu_{name}.json").read_text()
        assert f'"NVIDIA_VISIBLE_DEVICES={uuid(0)}"' in text
        limits = parse_limits((world.folders.state / "containers" / name / "limits").read_bytes())
        assert not isinstance(limits, Refusal)
        assert [(each.uuid, each.memory_mib) for each in limits.cards] == [(uuid(0), 4308)]
        answer = world.api.pods["uid-p"].annotations
        assert (
            answer["ALIYUN_COM_GPU_MEM_ASSIGNED"],
            answer["scheduler.framework.gpushare.assigned"],
        ) == ("true", "true")
        at = answer["ALIYUN_COM_GPU_MEM_ASSIGN_TIME"]
        await asyncio.sleep(5)
        assert await world.memory.answers.start(chosen) is None
        assert world.api.pods["uid-p"].annotations["ALIYUN_COM_GPU_MEM_ASSIGN_TIME"] == at, (
            "written once"
        )
        world.api.put(structs.replace(world.api.pods["uid-p"], phase=PodPhase.SUCCEEDED))
        await until(lambda: not (world.folders.state / "containers" / name).exists())
        assert not (world.folders.cdi / f"fairlead.io-gpu_{name}.json").exists()

    world.play(story)


def test_a_mark_that_could_not_be_written_is_written_later(world: World) -> None:
    world.api.pods = {"uid-p": pod("p")}
    world.api.refuses = lambda action: (
        unknown() if isinstance(action, PatchObject) and action.target.kind == "Pod" else None
    )

    async def story() -> None:
        await until(lambda: world.memory.counts == (28, 28))
        chosen = ids(world, 0)
        world.hold(chosen, "p")
        assert await world.memory.answers.start(chosen) is None, (
            "the container does not wait for the API server"
        )
        world.api.refuses = lambda action: None
        await until(
            lambda: world.api.pods["uid-p"].annotations["ALIYUN_COM_GPU_MEM_ASSIGNED"] == "true"
        )

    world.play(story)


def test_a_start_waits_for_what_may_be_known_in_a_moment(world: World) -> None:
    async def story() -> None:
        await until(lambda: world.memory.counts == (28, 28))
        chosen = ids(world, 0)
        starting = asyncio.ensure_future(world.memory.answers.start(chosen))
        await asyncio.sleep(1)
        world.hold(chosen, "p")
        await asyncio.sleep(1)
        assert not starting.done()
        world.api.put(pod("p"))
        assert await starting is None

    world.play(story)


def test_a_refused_start_is_reported_once_and_heals(world: World) -> None:
    world.api.pods = {"uid-p": structs.replace(pod("p"), grants={})}

    async def story() -> None:
        await until(lambda: world.memory.counts == (28, 28))
        chosen = ids(world, 0)
        world.hold(chosen, "p")
        for _ in range(3):
            refused = await world.memory.answers.start(chosen)
            assert isinstance(refused, DeviceRefusal)
            assert refused.reason == (
                "pod default/p container app has no GPU placement; it must be scheduled by "
                "fairlead-scheduler"
            )
        await asyncio.sleep(1)
        assert world.api.events() == [("Pod", "p", "GPUShareAllocateFailed")]
        world.api.put(pod("p"))
        assert await world.memory.answers.start(chosen) is None

    world.play(story)


def test_a_disk_that_takes_nothing_is_reported_to_kubelet_and_owner(world: World) -> None:
    world.api.pods = {"uid-p": pod("p")}

    async def story() -> None:
        await until(lambda: world.memory.counts == (28, 28))
        chosen = ids(world, 0)
        world.hold(chosen, "p")
        world.folders.run.write_text("a file in the place of a directory", encoding="utf-8")
        with pytest.raises(OutsideError) as failed:
            await world.memory.answers.start(chosen)
        assert failed.value.system == "disk" and f"`{world.folders.run}/" in failed.value.what
        await until(lambda: world.api.events() == [("Pod", "p", "GPUShareAllocateFailed")])
        world.folders.run.unlink()
        assert await world.memory.answers.start(chosen) is None

    world.play(story)


def test_guarded_an_answer_is_kept_and_held_against_the_start(world: World) -> None:
    world.api.pods = {"uid-p": pod("p")}

    async def story() -> None:
        await until(lambda: world.memory.counts == (28, 28))
        chosen = ids(world, 1)
        answer = await world.memory.answers.allocate(chosen)
        assert isinstance(answer, ContainerEdits)
        assert answer.environment["NVIDIA_VISIBLE_DEVICES"] == uuid(0)
        name = token(MEMORY, chosen)
        limits = world.folders.state / "containers" / name / "limits"
        assert " limit_bytes 0 " in limits.read_text(), "nothing before it is known who it is"
        world.hold(chosen, "p")
        assert await world.memory.answers.start(chosen) is None
        assert f" limit_bytes {4308 << 20} " in limits.read_text()
        assert not world.folders.cdi.exists(), "no CDI file where the runtime reads none"
        other = pod("p", card=1)
        world.api.put(other)
        refused = await world.memory.answers.start(chosen)
        assert isinstance(refused, DeviceRefusal) and refused.is_final
        assert "the kubelet was given 4308 MiB of GPU" in refused.reason

    world.play(story)


def test_guarded_no_start_is_answered_while_answers_differ(world: World) -> None:
    world.api.pods = {"uid-p": pod("p", card=0), "uid-q": pod("q", card=1)}

    async def story() -> None:
        await until(lambda: world.memory.counts == (28, 28))
        chosen = ids(world, 0)
        asking = asyncio.ensure_future(world.memory.answers.allocate(chosen))
        await asyncio.sleep(4)
        assert not asking.done()
        world.api.put(structs.replace(world.api.pods["uid-q"], phase=PodPhase.FAILED))
        answer = await asking
        assert isinstance(answer, ContainerEdits)
        assert answer.environment["NVIDIA_VISIBLE_DEVICES"] == uuid(0)

    world.play(story)


def test_an_agent_that_comes_back_does_not_take_its_own_cards_for_anothers(world: World) -> None:
    """The node still shows what the previous process served."""
    world.api.node = structs.replace(
        world.api.node, labels={"cgpu": "false"}, allocatable={WHOLE: 2}
    )

    async def story() -> None:
        await until(lambda: world.served[WHOLE].lists)
        assert world.served[WHOLE].counts == (2, 2)

    world.play(story)


def test_the_node_shows_what_the_kubelet_got_earlier(world: World) -> None:
    """The kubelet updates the node every ten seconds. The agent writes the node once; it does not
    overwrite what the kubelet writes later.
    """
    world.api.node = structs.replace(world.api.node, capacity={WHOLE: 2}, allocatable={WHOLE: 2})

    def shown(name: str) -> tuple[int, int]:
        return world.api.node.capacity.get(name, 0), world.api.node.allocatable.get(name, 0)

    async def story() -> None:
        await until(lambda: world.memory.counts == (28, 28))
        await until(lambda: (shown(MEMORY), shown(WHOLE)) == ((28, 28), (0, 0)), seconds=1)
        world.api.label(cgpu="false")
        await until(lambda: (shown(MEMORY), shown(WHOLE)) == ((0, 0), (2, 2)), seconds=1)
        world.api.show(
            structs.replace(world.api.node, allocatable={**world.api.node.allocatable, WHOLE: 1})
        )
        await asyncio.sleep(60)
        assert shown(WHOLE) == (2, 1)

    world.play(story)


def test_what_no_kubelet_got_is_not_written_to_the_node(world: World) -> None:
    async def story() -> None:
        for served in world.served.values():
            served.is_away = True
        await until(lambda: world.memory.counts == (28, 28))
        await asyncio.sleep(60)
        assert MEMORY not in world.api.node.capacity
        for served in world.served.values():
            served.is_away = False
        world.agent.desk.mark_changed()
        await until(lambda: world.api.node.capacity.get(MEMORY) == 28, seconds=1)

    world.play(story)


def test_another_plugin_that_serves_more_cards_is_seen_in_the_end(world: World) -> None:
    async def story() -> None:
        await until(lambda: world.memory.counts == (28, 28))
        await asyncio.sleep(1)  # the node shows what the agent sent to the kubelet
        world.api.show(
            structs.replace(world.api.node, allocatable={**world.api.node.allocatable, WHOLE: 2})
        )
        await asyncio.sleep(30)
        assert world.memory.counts == (28, 28), "what a node reports lags behind"
        await until(lambda: world.memory.counts == (0, 0), seconds=60)
        await until(
            lambda: (
                [(each.status, each.reason) for each in world.api.node.conditions]
                == [("False", "ForeignDevicePlugin")]
            )
        )

    world.play(story)


def test_mps_where_it_is_asked_for_and_runs(world: World) -> None:
    world.api.pods = {"uid-p": pod("p")}
    world.api.node = structs.replace(world.api.node, labels={"ack.node.gpu.schedule": "mps"})
    world.driver.can = IsolationMeans(has_mps=True)

    async def story() -> None:
        await until(lambda: world.memory.counts == (28, 28))
        answer = await world.memory.answers.allocate(ids(world, 1))
        assert isinstance(answer, ContainerEdits)
        assert answer.environment["CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"] == "0=4308M"
        assert {(each.host_path, each.container_path) for each in answer.mounts} >= {
            (f"/mps/{uuid(0)}", "/run/fairlead/mps"),
            ("/dev/shm", "/dev/shm"),
        }
        await until(lambda: world.api.node.labels.get("fairlead.io/gpu-isolation") == "mps")

    world.play(story)


@pytest.mark.parametrize("identity", GpuIdentity)
def test_mps_limits_a_container_before_it_starts(world: World, identity: GpuIdentity) -> None:
    world.agent.desk.identity = identity
    world.api.pods = {"uid-p": pod("p")}
    world.api.node = structs.replace(world.api.node, labels={"ack.node.gpu.schedule": "mps"})
    world.driver.can = IsolationMeans(has_mps=True, has_guard=True)
    limits = world.folders.state / "containers" / NAME / "limits"
    free, held = (
        (MpsLimit(uuid(0)), MpsLimit(uuid(1))),
        (MpsLimit(uuid(0), 4308), MpsLimit(uuid(1))),
    )

    async def story() -> None:
        await until(lambda: world.memory.counts == (28, 28))
        assert set(world.driver.bound) == {free}
        await world.memory.answers.allocate(IDS)
        world.hold(IDS, "p")
        assert await world.memory.answers.start(IDS) is None
        assert world.driver.bound[-1] == held
        assert b"\nview\n" in limits.read_bytes()
        assert (world.folders.run / NAME / "region").read_bytes(), "what the guard counts"
        await asyncio.sleep(61)
        assert set(world.driver.bound[-2:]) == {held}, "a daemon that was restarted has none"

    world.play(story)


def test_mps_that_does_not_limit_is_not_in_force(world: World) -> None:
    """The container that would start gets an error, and the node no longer names MPS."""
    world.agent.desk.identity = GpuIdentity.GUARDED
    world.api.pods = {"uid-p": pod("p")}
    world.api.node = structs.replace(world.api.node, labels={"ack.node.gpu.schedule": "mps"})
    world.driver.can = IsolationMeans(has_mps=True)

    def isolation() -> str | None:
        return world.api.node.labels.get("fairlead.io/gpu-isolation")

    async def story() -> None:
        await until(lambda: isolation() == "mps")
        await world.memory.answers.allocate(IDS)
        world.hold(IDS, "p")
        world.driver.unbound = "not permitted"
        refused = await world.memory.answers.start(IDS)
        assert refused is not None
        assert refused.reason == "MPS does not limit the container: not permitted"
        await until(lambda: isolation() == "guard", seconds=40)
        world.driver.unbound = ""
        await until(lambda: isolation() == "mps", seconds=40)

    world.play(story)


@pytest.mark.parametrize("identity", GpuIdentity)
def test_each_start_with_the_guard_makes_a_new_region(world: World, identity: GpuIdentity) -> None:
    world.agent.desk.identity = identity
    world.api.pods = {"uid-p": pod("p")}
    path = world.folders.run / NAME / "region"

    async def start() -> bytes:
        assert await world.memory.answers.start(IDS) is None
        return path.read_bytes()

    async def story() -> None:
        await until(lambda: world.memory.counts == (28, 28))
        await world.memory.answers.allocate(IDS)
        world.hold(IDS, "p")
        first = parse_region(await start())
        with path.open("r+b") as mounted:
            mounted.write(b"the old processes' own")
            await asyncio.sleep(1)
            second = parse_region(await start())
            assert os.fstat(mounted.fileno()).st_ino != path.stat().st_ino
            mounted.seek(0)
            assert mounted.read(22) == b"the old processes' own"
        for found in (first, second):
            assert isinstance(found, Region)
            assert set(found.cards) == {RegionCard()} and found.slots == ()
        assert isinstance(first, Region) and isinstance(second, Region)
        assert 0 < first.generation < second.generation
        world.api.label(**{"cgpu.disable.isolation": "true"})
        await until(lambda: world.api.node.labels["fairlead.io/gpu-isolation"] == "none")
        kept_mounts = identity is GpuIdentity.GUARDED
        assert isinstance(parse_region(await start()), Region) == kept_mounts

    world.play(story)


def test_containers_get_the_guard_of_the_agents_machine(world: World) -> None:
    """Specification: docs/spec/gpu-sharing.md#what-the-container-gets."""
    world.api.pods = {"uid-p": pod("p")}
    kept = world.folders.state / "guard"
    library = "/usr/lib/fairlead/libfairlead-guard.so"

    async def story() -> None:
        await until(lambda: world.memory.counts == (28, 28))
        answer = await world.memory.answers.allocate(IDS)
        assert isinstance(answer, ContainerEdits)
        assert "CGPU_DISABLE" not in answer.environment
        assert {
            (each.host_path, each.container_path, each.is_read_only) for each in answer.mounts
        } >= {
            (str(kept / "libfairlead-guard.so"), library, True),
            (str(kept / "ld.so.preload"), "/etc/ld.so.preload", True),
        }
        assert (kept / "ld.so.preload").read_text() == f"{library}\n"
        assert (kept / "libfairlead-guard.so").read_bytes() == b"the library"
        await until(lambda: world.api.node.labels.get("fairlead.io/gpu-isolation") == "guard")
        page = generate_latest(world.agent.desk.registry).decode()
        assert (
            'fairlead_gpushare_isolation_info{compute="soft",memory="cooperative",'
            'node_name="n1",provider="guard"} 1.0'
        ) in page
        assert world.api.events() == []

    world.play(story)


def test_a_node_without_the_guard_reports_the_reason_until_it_has_it(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """Specification: docs/spec/gpu-sharing.md#isolation-providers."""
    shutil.rmtree(world.guards)
    why = f"this installation has no memory guard for {platform.machine()}"

    async def story() -> None:
        await until(lambda: world.memory.counts == (28, 28))
        answer = await world.memory.answers.allocate(IDS)
        assert isinstance(answer, ContainerEdits)
        assert answer.environment["CGPU_DISABLE"] == "true"
        assert {each.container_path for each in answer.mounts}.isdisjoint({"/etc/ld.so.preload"})
        await until(lambda: world.api.node.labels.get("fairlead.io/gpu-isolation") == "none")
        await asyncio.sleep(100)
        (event,) = [each for each in world.api.actions if isinstance(each, RecordObjectEvent)]
        assert (event.target.kind, event.target.name) == ("Node", "n1")
        assert (event.reason, event.message) == (
            "GPUGuardUnavailable",
            f"nothing limits the containers on shared GPUs: {why}",
        )
        assert caplog.text.count(f"containers get no memory guard: {why}") == 1
        world.ship_guard(b"the library")
        await until(lambda: world.api.node.labels["fairlead.io/gpu-isolation"] == "guard")

    world.api.pods = {"uid-p": pod("p")}
    world.play(story)


def test_isolation_that_is_turned_off_needs_no_guard(world: World) -> None:
    shutil.rmtree(world.guards)
    world.api.label(**{"cgpu.disable.isolation": "true"})

    async def story() -> None:
        await until(lambda: world.api.node.labels.get("fairlead.io/gpu-isolation") == "none")
        await asyncio.sleep(100)
        assert world.api.events() == []

    world.play(story)


@pytest.mark.parametrize("identity", GpuIdentity)
def test_without_the_guard_the_region_is_empty(world: World, identity: GpuIdentity) -> None:
    shutil.rmtree(world.guards)
    world.agent.desk.identity = identity
    world.api.pods = {"uid-p": pod("p")}

    async def story() -> None:
        await until(lambda: world.memory.counts == (28, 28))
        await world.memory.answers.allocate(IDS)
        world.hold(IDS, "p")
        assert await world.memory.answers.start(IDS) is None
        assert (world.folders.run / NAME / "region").read_bytes() == b""

    world.play(story)


def test_foreign_ids_are_refused_for_good(world: World) -> None:
    async def story() -> None:
        await until(lambda: world.memory.counts == (28, 28))
        refused = await world.memory.answers.allocate(["GPU-elsewhere-_-0"])
        assert isinstance(refused, DeviceRefusal) and refused.is_final
        whole = await world.served[WHOLE].answers.allocate([uuid(0)])
        assert isinstance(whole, DeviceRefusal) and whole.reason == f"GPU {uuid(0)} is shared"

    world.play(story)


def test_a_whole_card_that_was_just_given_is_held(world: World) -> None:
    async def story() -> None:
        world.api.label(cgpu="false")
        await until(lambda: world.served[WHOLE].counts == (2, 2))
        given = await world.served[WHOLE].answers.allocate([uuid(1)])
        assert isinstance(given, ContainerEdits) and given.environment == {
            "NVIDIA_VISIBLE_DEVICES": uuid(1)
        }
        world.api.label(cgpu="true")
        await until(lambda: (world.memory.counts, world.served[WHOLE].counts) == ((14, 14), (1, 0)))
        world.hold([uuid(1)], "w", resource=WHOLE)
        world.api.put(Pod("default", "w", "uid-w", node="n1"))
        await asyncio.sleep(30)
        assert world.memory.counts == (14, 14)
        world.kubelet.held = ()
        began = world.loop.time()
        await until(lambda: (world.memory.counts, world.served[WHOLE].counts) == ((28, 28), (0, 0)))
        assert world.loop.time() - began <= 10

    world.play(story)


def test_what_the_api_server_refuses_is_tried_again(world: World) -> None:
    forbidden = Outcome(Result.REFUSED, 'nodes "n1" is forbidden')
    world.api.refuses = lambda action: forbidden if isinstance(action, PatchObject) else None

    async def story() -> None:
        await until(lambda: world.memory.counts == (28, 28))
        await asyncio.sleep(60)
        tried = len([each for each in world.api.actions if isinstance(each, PatchObject)])
        assert 4 <= tried <= 20
        world.api.refuses = lambda action: None
        await until(lambda: len(world.api.node.gpus) == 2)

    world.play(story)


def test_a_pod_that_uses_more_than_its_grant_is_reported(world: World) -> None:
    world.api.pods = {"uid-p": pod("p")}

    async def story() -> None:
        await until(lambda: world.memory.counts == (28, 28))
        chosen = ids(world, 0)
        world.hold(chosen, "p")
        assert await world.memory.answers.start(chosen) is None
        world.tenants.by_pid = {7: ProcessHome("uid-p", token(MEMORY, chosen))}
        world.driver.used = [ProcessMemory(7, uuid(0), 6000.0)]
        await until(lambda: world.api.events() == [("Pod", "p", "GPUMemoryOverGrant")])
        page = generate_latest(world.agent.desk.registry).decode()
        (over,) = [
            line
            for line in page.splitlines()
            if line.startswith("fairlead_gpushare_over_grant_bytes{")
        ]
        assert 'node_name="n1"' in over and 'pod_name="p"' in over
        assert 'fairlead_gpushare_allocate_total{node_name="n1",result="ok"} 1.0' in page

    world.play(story)


def test_a_container_that_the_driver_does_not_limit_is_reported_once(world: World) -> None:
    """The provider is `cgroup`, but no hook of NVIDIA's toolkit has set the limit."""
    world.api.pods = {"uid-p": pod("p")}
    world.driver.can = IsolationMeans(driver=615, cuda=(13, 4), has_cgroup_v2=True)

    async def story() -> None:
        await until(lambda: world.memory.counts == (28, 28))
        chosen = ids(world, 0)
        world.hold(chosen, "p")
        assert await world.memory.answers.start(chosen) is None
        world.driver.limits["/limited"] = CgroupLimit(4308 << 20)
        home = ProcessHome("uid-p", token(MEMORY, chosen), cgroup="/limited")
        world.tenants.by_pid = {7: home}
        world.driver.used = [ProcessMemory(7, uuid(0), 3000.0)]
        await until(lambda: world.driver.asked_limits.count((uuid(0), "/limited")) > 2)
        assert world.api.events() == []
        world.tenants.by_pid = {7: structs.replace(home, cgroup="/unlimited")}
        await until(lambda: world.driver.asked_limits.count((uuid(0), "/unlimited")) > 2)
        assert world.api.events() == [("Pod", "p", "GPULimitMissing")]
        world.driver.limits["/unlimited"] = CgroupLimit(5000 << 20)
        await until(lambda: len(world.api.events()) == 2)
        (first, second) = [
            each.message for each in world.api.actions if isinstance(each, RecordObjectEvent)
        ]
        assert first == (
            f"the driver does not limit container app on GPU {uuid(0)}, its grant is 4308 MiB: "
            "NVIDIA's container toolkit 1.20.1 or later sets the limit when a container starts"
        )
        assert second == (
            f"the driver allows container app 5000 MiB of GPU {uuid(0)}, its grant is 4308 MiB"
        )

    world.play(story)


def test_limits_by_cgroup_are_read_with_that_provider_only(world: World) -> None:
    world.api.pods = {"uid-p": pod("p")}

    async def story() -> None:
        await until(lambda: world.memory.counts == (28, 28))
        chosen = ids(world, 0)
        world.hold(chosen, "p")
        assert await world.memory.answers.start(chosen) is None
        world.tenants.by_pid = {7: ProcessHome("uid-p", token(MEMORY, chosen), cgroup="/c")}
        world.driver.used = [ProcessMemory(7, uuid(0), 6000.0)]
        await until(lambda: world.api.events() == [("Pod", "p", "GPUMemoryOverGrant")])
        assert world.driver.asked_limits == []

    world.play(story)


OVER = (ContainerStatus("test", exit_code=0),)
NO_PROGRAM = (ContainerStatus("test", exit_code=128, reason="StartError"),)
TEST_POD = Pod("fairlead-system", "fairlead-cdi-test-n1", "uid-t")


@pytest.mark.parametrize(
    ("found", "identity"),
    [
        (structs.replace(TEST_POD, phase=PodPhase.SUCCEEDED, statuses=OVER), "deferred"),
        (
            structs.replace(
                TEST_POD, phase=PodPhase.FAILED, statuses=(ContainerStatus("test", exit_code=1),)
            ),
            "guarded",
        ),
        (
            structs.replace(TEST_POD, phase=PodPhase.FAILED, reason="UnexpectedAdmissionError"),
            "guarded",
        ),
        (
            structs.replace(TEST_POD, phase=PodPhase.FAILED, statuses=NO_PROGRAM),
            "guarded",
        ),
        (TEST_POD, "guarded"),
    ],
    ids=[
        "it-does",
        "it-does-not",
        "the-pod-is-refused",
        "the-image-lacks-the-program",
        "the-pod-never-ends",
    ],
)
def test_what_the_runtime_can_do_is_found_out(tmp_path: Path, found: Pod, identity: str) -> None:
    world = World(tmp_path, test_image="any")
    world.api.test_pods = [TEST_POD, found]

    async def story() -> None:
        await until(lambda: world.served[WHOLE].lists)
        await asyncio.sleep(0.2)
        assert not world.memory.is_watched, "nothing is shared before"
        await until(
            lambda: world.api.node.annotations.get("fairlead.io/gpu-identity") == identity,
            seconds=200,
        )
        await until(lambda: world.memory.is_watched)
        assert world.api.made(CreateObject) == 1 and world.api.made(DeleteObject) >= 1
        assert not world.served["fairlead.io/cdi-test"].is_watched

    world.play(story)
    again = World(tmp_path, test_image="any")
    again.api.test_pods = [TEST_POD, found]

    async def knows() -> None:
        await until(
            lambda: again.api.node.annotations.get("fairlead.io/gpu-identity") == identity,
            seconds=200,
        )
        is_known = found.statuses not in ((), NO_PROGRAM)
        assert again.api.made(CreateObject) == (0 if is_known else 1)

    again.play(knows)


def test_guarded_an_answer_stands_until_the_kubelet_has_written_down_whose_it_is(
    world: World,
) -> None:
    """A look at a time when the kubelet does not list the ids yet removes no files."""
    world.api.pods = {"uid-p": pod("p")}

    async def story() -> None:
        await until(lambda: world.memory.counts == (28, 28))
        chosen = ids(world, 1)
        assert isinstance(await world.memory.answers.allocate(chosen), ContainerEdits)
        answered = world.folders.state / "containers" / token(MEMORY, chosen) / "answered"
        world.api.label(team="mine")  # a change that causes a look
        await asyncio.sleep(1)
        assert answered.exists()
        await until(lambda: not answered.exists(), seconds=60)

    world.play(story)


def test_a_runtime_that_could_not_be_tested_is_tested_again(tmp_path: Path) -> None:
    world = World(tmp_path, test_image="any")
    world.api.test_pods = [TEST_POD]

    async def story() -> None:
        await until(
            lambda: world.api.node.annotations.get("fairlead.io/gpu-identity") == "guarded",
            seconds=200,
        )
        world.api.test_pods = [structs.replace(TEST_POD, phase=PodPhase.SUCCEEDED, statuses=OVER)]
        await asyncio.sleep(500)
        assert world.api.node.annotations["fairlead.io/gpu-identity"] == "guarded"
        await until(
            lambda: world.api.node.annotations["fairlead.io/gpu-identity"] == "deferred",
            seconds=300,
        )

    world.play(story)
