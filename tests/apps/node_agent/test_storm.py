"""Random sequences of events on one node in memory: the ledger places pods, a kubelet allocates ids
at random, the agent answers and is killed.

The oracle follows the kubelet's order and counts what running containers actually have
(docs/spec/gpu-sharing.md#units-and-the-proportional-grant,
docs/spec/gpu-sharing.md#switching-a-node-between-shared-and-exclusive,
docs/spec/gpu-sharing.md#allocation-of-the-right-container): never more units of a card than it has,
never a whole and a shared holder on one card, each container on the card of its own placement.

Note: the kubelet's checkpoint keeps finished pods until the kubelet allocates again, and their ids
are reused at once.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
from pathlib import Path
from typing import NamedTuple

import pytest
from msgspec import structs
from tests.apps.node_agent.node_world import EPOCH, MEMORY, WHOLE, World
from tests.rules.devices.cards import T4_UNITS, uuid

from fairlead.model.actions import BindPod
from fairlead.model.devices.driver import DriverXid
from fairlead.model.devices.granted import DeviceRefusal, GpuIdentity
from fairlead.model.devices.kubelet import CdiDevices, ContainerEdits, HeldDevices
from fairlead.model.pod import Container, Pod, PodPhase
from fairlead.model.refusal import Refusal
from fairlead.rules.devices.ids import token
from fairlead.rules.sharing.ledger import Ledger
from fairlead.wire.gpus.allocation import render_action

STEPS = 150
LONG = [
    pytest.param(seed, marks=pytest.mark.long)
    for seed in range(2, int(os.environ.get("AGENT_STORMS", "20")))
]
Seat = tuple[str, str]
"""Pod uid and container name."""


class Given(NamedTuple):
    resource: str
    ids: tuple[str, ...]
    answer: ContainerEdits | CdiDevices


class Kubelet:
    """The state of the kubelet's device manager, and the units by card that each running container
    has.
    """

    def __init__(self) -> None:
        self.given: dict[Seat, Given] = {}
        self.over: dict[Seat, Given] = {}
        self.pods: dict[str, Pod] = {}
        self.inside: dict[Seat, dict[str, int]] = {}

    def free(self, world: World, resource: str) -> list[str]:
        taken = {
            each
            for given in self.given.values()
            if given.resource == resource
            for each in given.ids
        }
        offered = world.served[resource].lists[-1] if world.served[resource].lists else ()
        return [each.id for each in offered if each.is_healthy and each.id not in taken]

    def report(self, world: World) -> None:
        """Updates both lists; init containers that end appear only in the checkpoint."""
        held: list[HeldDevices] = []
        for (uid, name), given in (*self.given.items(), *self.over.items()):
            ordered = tuple(sorted(given.ids))
            held.append(HeldDevices(given.resource, ordered, name, pod_uid=uid))
            pod = self.pods[uid]
            if (uid, name) in self.given and name in {part.name for part in pod.containers}:
                held.append(HeldDevices(given.resource, ordered, name, pod.namespace, pod.name))
        world.kubelet.held = tuple(held)


class Storm:
    def __init__(self, folder: Path, seed: int) -> None:
        self.chance = random.Random(seed)
        self.folder = folder
        self.identity = GpuIdentity.GUARDED if seed % 2 else GpuIdentity.DEFERRED
        self.kubelet = Kubelet()
        self.ledger = Ledger()
        self.faults: list[str] = []
        self.starting: set[Seat] = set()
        self.started = 0
        self.count = 0
        self.world = self.begin(None)

    def begin(self, before: World | None) -> World:
        """A new process of the agent. The API server outlives the old one."""
        world = World(self.folder)
        world.agent.desk.identity = self.identity
        if before is not None:
            world.api.node, world.api.pods = before.api.node, before.api.pods
            self.kubelet.report(world)
        return world

    def live(self) -> None:
        left = STEPS
        while left:
            steps = min(left, self.chance.randint(15, 60))
            left -= steps
            world = self.world
            world.play(lambda steps=steps: self.episode(steps))  # type: ignore[misc]
            self.world = self.begin(world)
        self.world.play(lambda: self.episode(0))
        assert self.faults == []

    async def episode(self, steps: int) -> None:
        """The life of one process of the agent. It is then killed, perhaps with calls under way."""
        await self.settled()
        calls: set[asyncio.Future[None]] = set()
        for _ in range(steps):
            act = self.chance.choices(
                (self.come, self.start, self.end, self.switch, self.xid), (6, 8, 4, 1, 0.3)
            )[0]
            calls.add(asyncio.ensure_future(act()))
            await asyncio.sleep(self.chance.choice((0.0, 0.01, 0.3, 3.0)))
            self.look()
        if not steps or self.chance.random() < 0.5:
            await asyncio.gather(*calls)
            await self.settled()
            self.compare()
            return
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)

    async def settled(self) -> None:
        await asyncio.sleep(15)
        self.look()

    # --- events -----------------------------------------------------------------------------------

    async def come(self) -> None:
        """A pod is placed and admitted: all its containers are allocated, init first."""
        self.count += 1
        name, world = f"p{self.count}", self.world
        if self.chance.random() < 0.2:
            pod = Pod(
                "default",
                name,
                f"uid-{name}",
                node="n1",
                containers=(Container("app", limits={WHOLE: 1}),),
            )
        else:
            sizes = [self.chance.randint(1, 5) for _ in range(self.chance.choice((1, 1, 1, 2)))]
            parts = tuple(
                Container(f"c{number}", limits={MEMORY: units})
                for number, units in enumerate(sizes)
            )
            init = (
                (Container("init", limits={MEMORY: self.chance.choice((sizes[0], 2))}),)
                if self.chance.random() < 0.3
                else ()
            )
            asked = Pod("default", name, f"uid-{name}", containers=parts, init_containers=init)
            self.ledger.set_node(world.api.node)
            grants = self.ledger.reserve(asked, "n1")
            if isinstance(grants, Refusal):
                return
            printed = render_action(BindPod(asked, "n1", grants, T4_UNITS), EPOCH)
            pod = structs.replace(asked, node="n1", grants=grants, annotations=printed)
        self.kubelet.pods[pod.uid] = pod
        self.ledger.set_pod(pod)
        world.api.put(pod)
        for part in (*pod.init_containers, *pod.containers):
            if not await self.allocate(pod, part):
                self.finish(pod)
                return

    async def allocate(self, pod: Pod, part: Container) -> bool:
        world, ((resource, count),) = self.world, tuple(part.limits.items())
        free = self.kubelet.free(world, resource)
        if resource == MEMORY and part.name != "init" and (pod.uid, "init") in self.kubelet.given:
            # the kubelet reuses the ids of its init container
            free = [*self.kubelet.given[pod.uid, "init"].ids, *free]
            chosen = tuple(dict.fromkeys(free))[:count]
        else:
            chosen = tuple(self.chance.sample(free, count)) if count <= len(free) else ()
        if len(chosen) != count:
            return False
        self.kubelet.given[pod.uid, part.name] = Given(resource, chosen, CdiDevices(()))
        try:
            answer = await world.served[resource].answers.allocate(chosen)
        except asyncio.CancelledError:
            self.finish(pod)
            raise
        if isinstance(answer, DeviceRefusal) or pod.uid not in self.kubelet.pods:
            return False
        self.kubelet.given[pod.uid, part.name] = Given(resource, chosen, answer)
        self.kubelet.over.clear()
        self.kubelet.report(world)
        return True

    async def start(self) -> None:
        """A container starts, for the first time or again. The init containers of a pod start one
        by one before all others.
        """
        ready = [
            seat for seat in self.kubelet.given if self.is_next(seat) and seat not in self.starting
        ]
        if not ready:
            return
        seat = self.chance.choice(ready)
        self.starting.add(seat)  # a kubelet starts a container once at a time
        try:
            await self.start_one(*seat)
        finally:
            self.starting.discard(seat)

    async def start_one(self, uid: str, name: str) -> None:
        seat = uid, name
        given, world = self.kubelet.given[seat], self.world
        if given.resource == MEMORY:
            refusal = await world.memory.answers.start(given.ids)
            if refusal is not None or self.kubelet.given.get(seat) is not given:
                return
        self.kubelet.inside[seat] = self.had(uid, name, given)
        self.started += 1
        if name == "init":
            await asyncio.sleep(self.chance.choice((0.0, 1.0)))
            self.kubelet.inside.pop(seat, None)
            self.kubelet.inside[uid, "init is over"] = {}

    def is_next(self, seat: Seat) -> bool:
        uid, name = seat
        pod, given = self.kubelet.pods[uid], self.kubelet.given
        parts = (*pod.init_containers, *pod.containers)
        all_are_given = all(
            (uid, part.name) in given and given[uid, part.name].answer != CdiDevices(())
            for part in parts
        )
        is_over = (uid, "init is over") in self.kubelet.inside
        return all_are_given and (
            not is_over if name == "init" else is_over or not pod.init_containers
        )

    def had(self, uid: str, name: str, given: Given) -> dict[str, int]:
        """What the container actually has, by card. Records a fault if it differs from the
        placement of its pod.
        """
        answer, pod = given.answer, self.kubelet.pods[uid]
        if isinstance(answer, CdiDevices):
            path = self.world.folders.cdi / f"fairlead.io-gpu_{token(MEMORY, given.ids)}.json"
            edits = json.loads(path.read_bytes())["devices"][0]["containerEdits"]
            seen = dict(each.split("=", 1) for each in edits["env"])["NVIDIA_VISIBLE_DEVICES"]
        else:
            seen = answer.environment["NVIDIA_VISIBLE_DEVICES"]
        if given.resource == WHOLE:
            return {seen: T4_UNITS}
        placed = {grant.uuid: grant.units for grant in pod.grants[name]}
        if set(seen.split(",")) != set(placed):
            self.faults.append(f"{pod.name}/{name} has {seen}, it was placed on {sorted(placed)}")
        limits = (
            self.world.folders.state / "containers" / token(MEMORY, given.ids) / "limits"
        ).read_text()
        for grant in pod.grants[name]:
            if f"gpu {grant.uuid} limit_bytes {(grant.memory_mib or 0) << 20} " not in limits:
                self.faults.append(
                    f"{pod.name}/{name} has other limits than {grant.memory_mib} MiB: {limits}"
                )
        return placed

    async def end(self) -> None:
        if self.kubelet.pods:
            self.finish(self.chance.choice(list(self.kubelet.pods.values())))

    def finish(self, pod: Pod) -> None:
        """The pod's containers have ended: the ids are free; the checkpoint keeps them for a while,
        and the object may remain, too.
        """
        if self.kubelet.pods.get(pod.uid) is None:
            return
        for seat in [each for each in self.kubelet.inside if each[0] == pod.uid]:
            del self.kubelet.inside[seat]
        for seat in [each for each in self.kubelet.given if each[0] == pod.uid]:
            self.kubelet.over[seat] = self.kubelet.given.pop(seat)
        over = structs.replace(self.world.api.pods.get(pod.uid, pod), phase=PodPhase.FAILED)
        self.ledger.remove_pod(pod.uid)
        self.world.api.put(over)
        self.kubelet.report(self.world)
        del self.kubelet.pods[pod.uid]
        self.kubelet.over = {
            seat: given for seat, given in self.kubelet.over.items() if seat[0] in self.kubelet.pods
        }
        self.kubelet.report(self.world)

    async def switch(self) -> None:
        self.world.api.label(cgpu=self.chance.choice(("true", "false")))

    async def xid(self) -> None:
        self.world.driver.seen = [
            DriverXid(self.chance.choice((31, 62)), uuid(self.chance.randint(0, 1)))
        ]

    # --- invariants -------------------------------------------------------------------------------

    def look(self) -> None:
        used: dict[str, int] = {}
        whole: set[str] = set()
        shared: set[str] = set()
        for (uid, name), cards in self.kubelet.inside.items():
            for card, units in cards.items():
                used[card] = used.get(card, 0) + units
                is_whole = (
                    WHOLE
                    in {key for part in self.kubelet.pods[uid].containers for key in part.limits}
                    and name == "app"
                )
                (whole if is_whole else shared).add(card)
        if both := whole & shared:
            self.faults.append(f"{both} are held whole and in parts")
        if over := {card: units for card, units in used.items() if units > T4_UNITS}:
            self.faults.append(f"sold twice: {over}")

    def compare(self) -> None:
        """The grants file contains every running container, and no pod that is over."""
        rows = (
            {
                (row["podUID"], row["container"])
                for row in json.loads(
                    (self.world.folders.state / "grants.json").read_bytes() or b"[]"
                )
            }
            if (self.world.folders.state / "grants.json").exists()
            else set()
        )
        running = {
            seat
            for seat, cards in self.kubelet.inside.items()
            if cards and self.kubelet.given[seat].resource == MEMORY
        }
        if missing := running - rows:
            self.faults.append(f"no row of {missing}")
        if gone := {uid for uid, _ in rows} - set(self.kubelet.pods):
            self.faults.append(f"rows of pods that are over: {gone}")


@pytest.mark.parametrize("seed", [0, 1, *LONG])
def test_every_container_has_its_own_card_whatever_happens(tmp_path: Path, seed: int) -> None:
    storm = Storm(tmp_path, seed)
    storm.live()
    assert storm.started > (10 if seed < 2 else 0), (
        "a storm in which nothing starts proves nothing; where both cards are broken, little does"
    )
