"""The same sequence of events gives the same placements through the extender and in the simulated
cluster.

The extender is killed and restarted meanwhile; what it reads again must lead to the same cards.
Faults that change the order (lost replies, an API server that is away) are in test_share_storm.py.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from typing import Any

import msgspec
import pytest
from tests.apps.share_fakes import FakeServer, FakeSharingApi
from tests.jumping_loop import JumpingLoop
from tests.sim.small_world import EPOCH, NAMESPACE, container, pod, small_scenario

from fairlead.apps.extender import Extender
from fairlead.model.pod import GrantsByContainer, Pod
from fairlead.model.refusal import Refusal
from fairlead.model.sharing import BindAsked
from fairlead.run.hooks.sharing_hooks import SharedGpus, sharing_hooks
from fairlead.wire.kube.objects import WireNode, WirePod, parse_node, parse_pod
from fairlead.wire.sharing.scheduler_extender import FilterAsked
from fairlead_sim.objects.resources import NODES, PODS
from fairlead_sim.scenario.scenario import NodePool
from fairlead_sim.scheduler.hooks import Hooks
from fairlead_sim.store.cluster import StoredCluster
from fairlead_sim.store.recorder import Recorder
from fairlead_sim.world.world import World

Object = dict[str, Any]
EVENTS = 250
POOLS = (
    NodePool(
        name="v100",
        count=2,
        cpu=32,
        memory="128Gi",
        gpu_model="Tesla V100-SXM2-16GB",
        gpus=4,
        shared=True,
    ),
    NodePool(name="t4", count=2, cpu=16, memory="64Gi", gpu_model="Tesla T4", gpus=1, shared=True),
)


class TwoWorlds:
    """`places`: the number of times that a pod was granted cards."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.places = 0
        made: list[SharedGpus] = []

        def hooks(cluster: StoredCluster, recorder: Recorder) -> Hooks:
            filled = sharing_hooks(cluster, recorder)
            assert isinstance(filled.extender, SharedGpus)
            made.append(filled.extender)
            return filled

        self.cluster = World(small_scenario(*POOLS), seed, EPOCH, hooks=hooks).cluster
        self.simulated = made[0]
        rows = [parse_node(_read(each, WireNode)) for each in self.cluster.list(NODES)]
        self.server = FakeServer(self.rng, {row.name: row for row in rows})
        self._made = 0
        self._extender: tuple[Extender, FakeSharingApi, asyncio.Task[None]] | None = None

    async def run(self) -> None:
        await self._restart()
        try:
            for _ in range(EVENTS):
                await self._event()
                self._compare()
        finally:
            await self._kill()

    async def _event(self) -> None:
        pods = [
            each for each in self.cluster.list(PODS) if each["metadata"]["namespace"] == NAMESPACE
        ]
        waiting = [each for each in pods if not each["spec"].get("nodeName")]
        chance = self.rng.random()
        if chance < 0.04:
            await self._restart()
        elif chance < 0.35 or not pods:
            self._made += 1
            self._mirror(self.cluster.create(self._random_pod(f"p{self._made}")))
        elif chance < 0.75 and waiting:
            await self._place(_row(self.rng.choice(waiting)))
        else:
            gone = self.rng.choice(pods)["metadata"]
            grace = 0 if gone.get("deletionTimestamp") else 30
            self.cluster.delete(PODS, NAMESPACE, gone["name"], grace_seconds=grace)
            left = self.cluster.get(PODS, NAMESPACE, gone["name"])
            self._mirror(left) if left is not None else self.server.remove(gone["uid"])
        await asyncio.sleep(2)  # the watch is late by less

    async def _place(self, asker: Pod) -> None:
        assert self._extender is not None
        extender, names = (
            self._extender[0],
            self.rng.sample(list(self.server.nodes), len(self.server.nodes)),
        )
        obj = self.cluster.get(PODS, NAMESPACE, asker.name)
        assert obj is not None
        asked = FilterAsked(asker, names)
        answer, simulated = await extender.filter(asked), self.simulated.filter(obj, names)
        assert not isinstance(answer, Refusal), answer
        assert (dict(answer.failed), dict(answer.hopeless)) == (
            dict(simulated.failed),
            dict(simulated.hopeless),
        )
        scores = dict(await extender.prioritize(asked))
        assert scores == self.simulated.prioritize(obj, names)
        node = (
            max(answer.passed, key=lambda name: scores[name])
            if answer.passed
            else self.rng.choice(names)
        )
        refused = await extender.bind(BindAsked(asker.namespace, asker.name, asker.uid, node))
        assert refused == self.simulated.bind(obj, node)
        self.places += not refused

    def _compare(self) -> None:
        seen: dict[str, tuple[str, GrantsByContainer]] = {}
        for each in self.cluster.list(PODS):
            if each["metadata"]["namespace"] == NAMESPACE:
                row = _row(each)
                seen[row.name] = (row.node, row.grants)
        assert seen == {row.name: (row.node, row.grants) for row in self.server.pods.values()}, (
            "left: simulated, right: through the extender"
        )
        assert not self.server.faults

    def _mirror(self, obj: Object) -> None:
        self.server.write(_row(obj))

    def _random_pod(self, name: str) -> Object:
        rng = self.rng
        cards = rng.choice((1, 1, 1, 2))
        parts = [container(gpu_memory=rng.choice((1, 2, 4, 6, 9, 14)) * cards)]
        if rng.random() < 0.3:
            parts.append(container(gpu_memory=rng.randint(1, 5) * cards, name="side"))
        init = (
            [container(gpu_memory=rng.randint(1, 10) * cards, name="init")]
            if rng.random() < 0.2
            else []
        )
        obj = pod(name, containers=parts, initContainers=init)
        labels = {"aliyun.com/gpu-count": str(cards)} if cards > 1 else {}
        policy = {"fairlead.io/gpu-placement": "spread"} if rng.random() < 0.3 else {}
        return {**obj, "metadata": {**obj["metadata"], "labels": labels, "annotations": policy}}

    async def _restart(self) -> None:
        await self._kill()
        api = FakeSharingApi(self.server, random.Random(0))
        extender = Extender(
            api, "extender", lease_name="lease", monotonic=asyncio.get_running_loop().time
        )
        self._extender = (extender, api, asyncio.ensure_future(extender.run()))
        while extender.trouble:
            await extender.filter(FilterAsked(Pod("default", "probe"), []))
            await asyncio.sleep(0.5)

    async def _kill(self) -> None:
        running, self._extender = self._extender, None
        if running is not None:
            running[1].kill()
            running[2].cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await running[2]


def _read(obj: Object, form: Any) -> Any:
    return msgspec.json.decode(msgspec.json.encode(obj), type=form)


def _row(obj: Object) -> Pod:
    return parse_pod(_read(obj, WirePod))


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_same_events_give_the_same_places(seed: int) -> None:
    loop = JumpingLoop()

    async def whole() -> TwoWorlds:
        made = TwoWorlds(seed)
        await made.run()
        return made

    try:
        worlds = loop.run_until_complete(whole())
    finally:
        loop.close()
    assert worlds.places > EVENTS // 10, "a storm in which nothing is bound proves nothing"
