"""Random sequences of events for the scheduler extender: pods of every shape come and go while
replies are lost, processes die and the API server is away.

Everything follows from the seed, on a clock that jumps. `python -m tests.apps.share_storm SEED
[PODS]` repeats one run and prints its events. The fake server itself checks the invariants of every
instant (`FakeServer.faults`); the rest is checked at the end.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import sys
from collections.abc import Callable
from typing import Any

import msgspec
from tests.apps.share_fakes import ASSIGNED, FakeServer, FakeSharingApi, annotated
from tests.jumping_loop import JumpingLoop
from tests.rules.sharing import node

from fairlead.apps.extender import Extender
from fairlead.model.pod import Container, Pod
from fairlead.model.refusal import Refusal
from fairlead.model.resources import GPU_CORE, GPU_COUNT, GPU_MEMORY
from fairlead.model.sharing import BindAsked
from fairlead.rules.holding.need import gpu_need
from fairlead.rules.sharing.ledger import Ledger
from fairlead.rules.sharing.why import why_no_room
from fairlead.wire.sharing.scheduler_extender import FilterAsked

CARDS = ((15, 15, 15, 15), (14,), (14, 14), (15, 8), (15,) * 8, (10, 10))
GUARDED = (0, 2)
"""Numbers of the guarded nodes: their agents answer the kubelet before they know which pod asks."""
ExtenderMaker = Callable[..., Extender]


class Storm:
    """One run. `say` receives a line for every event."""

    def __init__(
        self,
        seed: int,
        pods: int,
        make: ExtenderMaker = Extender,
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.rng = random.Random(seed)
        self.server = FakeServer(
            self.rng,
            {
                f"n{i}": msgspec.structs.replace(
                    node(
                        f"n{i}",
                        units,
                        core=i % 2 == 0,
                        **({"fairlead.io/gpu-identity": "guarded"} if i in GUARDED else {}),
                    ),
                    uid=f"n{i}",
                )
                for i, units in enumerate(CARDS)
            },
        )
        self._left = pods
        self._made = 0
        self._damaged: set[str] = set()
        self._make = make
        self._say = say
        self._extenders: list[tuple[Extender, FakeSharingApi, asyncio.Task[None]] | None] = [
            None,
            None,
        ]
        self._leader = 0
        self._calm = False
        self._loop = asyncio.get_running_loop()

    async def run(self) -> None:
        for place in (0, 1):
            self._start(place)
        work = [
            asyncio.ensure_future(loop)
            for loop in (self._people(), self._kubelets(), self._accidents())
        ]
        # binding runs beside scheduling, as in the real scheduler
        schedulers = [asyncio.ensure_future(self._scheduler()) for _ in range(3)]
        try:
            await work[0]
            self._calm = True
            await asyncio.sleep(60)
            await self._until_settled()
        finally:
            for task in (*work, *schedulers):
                task.cancel()
            await asyncio.gather(*work, *schedulers, return_exceptions=True)
            for place in (0, 1):
                await self._kill(place)
        for task in (*work, *schedulers):
            if not task.cancelled() and task.exception() is not None:
                raise task.exception()  # type: ignore[misc]

    # --- participants -----------------------------------------------------------------------------

    async def _people(self) -> None:
        while self._left:
            self._left -= 1
            self.server.write(self._random_pod())
            if self.rng.random() < 0.5:
                await asyncio.sleep(self.rng.expovariate(4))

    async def _kubelets(self) -> None:
        """Pods run, end, or are deleted with a grace period."""
        while True:
            await asyncio.sleep(0.1)
            for pod in list(self.server.pods.values()):
                chance = self.rng.random()
                if pod.deleted_at is not None:
                    if chance < 0.05:
                        self.server.remove(pod.uid)
                elif chance < (0.0 if self._calm else 0.02 if pod.node else 0.002):
                    self._say(f"delete {pod.name}")
                    self.server.write(msgspec.structs.replace(pod, deleted_at=self._loop.time()))
                elif pod.node and not pod.is_finished and chance < 0.05 and not self._calm:
                    self.server.write(msgspec.structs.replace(pod, phase="Succeeded"))
                elif pod.is_finished and chance < 0.05:
                    self.server.remove(pod.uid)
                elif (
                    pod.is_holding
                    and pod.grants
                    and chance > 0.97
                    and self.server.is_guarded(pod.node)
                ):
                    self.server.write(annotated(pod, ASSIGNED))

    async def _accidents(self) -> None:
        while not self._calm:
            await asyncio.sleep(self.rng.expovariate(0.6))
            chance = self.rng.random()
            if chance < 0.4:
                place = self.rng.randrange(2)
                self._say(f"kill extender {place}")
                await self._kill(place)
                if self.rng.random() < 0.7:
                    await asyncio.sleep(self.rng.uniform(0, 2))
                self._start(place)
            elif chance < 0.6:
                self._leader = 1 - self._leader
                self._say(f"scheduler {self._leader} leads")
            elif chance < 0.75:
                self.server.down_until = self._loop.time() + self.rng.uniform(0, 8)
                self._say(f"API server away until {self.server.down_until:.1f}")
            elif chance < 0.9:
                await self._damage()

    async def _damage(self) -> None:
        """Damages grants; half of the time both extenders have just restarted and do not know the
        old grants.
        """
        if self.rng.random() < 0.5:
            self._say("kill both extenders")
            for place in (0, 1):
                await self._kill(place)
                self._start(place)
        bound = [
            pod
            for pod in self.server.pods.values()
            if pod.is_holding and pod.grants and pod.deleted_at is None
        ]
        for pod in self.rng.sample(bound, min(4, len(bound))):
            self._say(f"damage the grant of {pod.name}")
            self.server.damage(pod)
            self._damaged.add(pod.uid)

    async def _scheduler(self) -> None:
        """Like kube-scheduler: filter, take one of the best nodes, bind; every failure is tried
        again.
        """
        while True:
            await asyncio.sleep(self.rng.uniform(0, 0.05))
            waiting = [
                pod for pod in self.server.pods.values() if not pod.node and pod.deleted_at is None
            ]
            running = self._extenders[self._leader]
            if not waiting or running is None:
                await asyncio.sleep(0.1)
                continue
            await self._place(
                running[0], self.rng.choice(waiting[:20] if self.rng.random() < 0.5 else waiting)
            )

    async def _place(self, extender: Extender, pod: Pod) -> None:
        asked = FilterAsked(pod, self.rng.sample(list(self.server.nodes), len(self.server.nodes)))
        answer = await extender.filter(asked)
        if isinstance(answer, Refusal) or not answer.passed:
            return
        scores = dict(await extender.prioritize(asked))
        best = max(answer.passed, key=lambda name: scores[name])
        bind = BindAsked(pod.namespace, pod.name, pod.uid, best)
        tries = 2 if self.rng.random() < 0.05 else 1
        answers = await asyncio.gather(*(extender.bind(bind) for _ in range(tries)))
        self._say(f"bind {pod.name} to {best}: {answers}")
        if "" in answers:
            now = self.server.pods.get(pod.uid)
            if now is not None and now.node != best:
                self.server.faults.append(f"{pod.name} was bound to {best} and is on {now.node!r}")

    async def _until_settled(self) -> None:
        extender = next(each[0] for each in (self._extenders[self._leader],) if each is not None)
        async with asyncio.timeout(120):
            while (
                extender.trouble or extender.machine.bindings.doubts or extender.ledger.reserved()
            ):
                await extender.filter(FilterAsked(Pod("default", "probe"), []))
                await asyncio.sleep(0.5)
        assert not self.server.faults, self.server.faults[:3]
        self.check_end(extender)

    # --- the end ----------------------------------------------------------------------------------

    def check_end(self, extender: Extender) -> None:
        truth = Ledger()
        for each in self.server.nodes.values():
            truth.set_node(each)
        for pod in self.server.pods.values():
            truth.set_pod(pod)
        assert _used(extender.ledger) == _used(truth), "the ledger is what the API server has"
        for uid, times in self.server.bindings.items():
            assert times == 1, f"{uid} was bound {times} times"
        for pod in self.server.pods.values():
            if pod.is_holding and gpu_need(pod).units:
                wanted = {
                    part.name: part.limits[GPU_MEMORY]
                    for part in (*pod.containers, *pod.init_containers)
                    if GPU_MEMORY in part.limits
                }
                got = {
                    name: sum(grant.units for grant in given) for name, given in pod.grants.items()
                }
                if got or not (self._was_foreign(pod) or pod.uid in self._damaged):
                    assert got == wanted, f"{pod.name} holds {got} and asked for {wanted}"
            if not pod.node and pod.deleted_at is None:
                assert why_no_room(truth, pod), f"{pod.name} waits, and there is room"

    @staticmethod
    def _was_foreign(pod: Pod) -> bool:
        return pod.scheduler == "somebody"

    # --- inside -----------------------------------------------------------------------------------

    def _random_pod(self) -> Pod:
        self._made += 1
        rng, name = self.rng, f"p{self._made}"
        units, cards = rng.choice((1, 2, 3, 4, 4, 6, 8, 11, 14)), 1
        labels, init = {}, ()
        parts = [units]
        shape = rng.random()
        if shape < 0.15:
            cards = rng.choice((2, 3))
            labels, parts = {GPU_COUNT: str(cards)}, [units * cards]
        elif shape < 0.35:
            parts = [rng.randint(1, 6), rng.randint(1, 6)]
        elif shape < 0.6:
            init = tuple(
                _container(
                    f"init{number}",
                    rng.randint(0, 8),
                    rng.choice((0, 0, 30, 60)),
                    restartable=rng.random() < 0.5,
                )
                for number in range(rng.randint(1, 4))
            )
        foreign = "n" + str(rng.randrange(len(CARDS))) if shape > 0.95 else ""
        annotations = (
            {"fairlead.io/gpu-split": "per-container"}
            if len(parts) > 1 and rng.random() < 0.5
            else {}
        )
        containers = tuple(
            _container(f"c{number}", each, rng.choice((0, 0, 0, 0, 10, 40)) if cards == 1 else 0)
            for number, each in enumerate(parts)
        )
        scheduler = "somebody" if foreign else "fairlead-scheduler"
        return Pod(
            "default",
            name,
            f"uid-{name}",
            labels,
            annotations,
            node=foreign,
            scheduler=scheduler,
            containers=containers,
            init_containers=init,
        )

    def _start(self, place: int) -> None:
        api = FakeSharingApi(self.server, random.Random(self.rng.random()), trouble=1.0)
        extender = self._make(
            api, f"extender-{place}", lease_name="lease", monotonic=self._loop.time
        )
        self._extenders[place] = (extender, api, asyncio.ensure_future(extender.run()))

    async def _kill(self, place: int) -> None:
        running, self._extenders[place] = self._extenders[place], None
        if running is None:
            return
        _, api, task = running
        api.kill()
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


def _container(name: str, units: int, core: int = 0, *, restartable: bool = False) -> Container:
    limits = {
        **({GPU_MEMORY: units} if units else {}),
        **({GPU_CORE: core} if units and core else {}),
    }
    return Container(name, requests=limits, limits=limits, restartable=restartable)


def _used(ledger: Ledger) -> dict[str, list[int]]:
    return {name: [card.used for card in account.cards] for name, account in ledger.nodes.items()}


def live(
    seed: int,
    pods: int,
    make: ExtenderMaker = Extender,
    say: Callable[[str], None] = lambda _: None,
) -> Any:
    """Runs one storm; returns the server as it is at the end. Raises AssertionError with the seed
    and the command that repeats it.
    """
    loop = JumpingLoop()

    async def whole() -> FakeServer:
        storm = Storm(seed, pods, make, lambda text: say(f"{loop.moment:8.3f} {text}"))
        await storm.run()
        return storm.server

    try:
        return loop.run_until_complete(whole())
    except Exception as error:
        raise AssertionError(
            f"storm {seed}: {error!r}; again: python -m tests.apps.share_storm {seed} {pods}"
        ) from error
    finally:
        loop.close()


if __name__ == "__main__":
    ended = live(int(sys.argv[1]), int((sys.argv[2:] or ["1000"])[0]), say=print)
    print(f"{len(ended.bindings)} bound, {len(ended.pods)} left, nothing amiss")
