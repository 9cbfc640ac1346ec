"""A node in memory for its agent: API server, driver and kubelet are simulated on a clock that
jumps; the files are real.

Note: `World.play` runs the agent until the coroutine that the test passes ends; time passes only
while that coroutine waits.
"""

from __future__ import annotations

import asyncio
import platform
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from msgspec import structs
from tests.jumping_loop import JumpingLoop
from tests.rules.devices.cards import t4, uuid

from fairlead.apps.node_agent.agent import NodeAgent
from fairlead.apps.node_agent.desk import NodeAgentSettings
from fairlead.edge.node.agent_files import GUARD_LIBRARY, NodeAgentFiles, NodeFolders
from fairlead.errors import OutsideError
from fairlead.model.actions import (
    Action,
    CreateObject,
    DeleteObject,
    Outcome,
    PatchObject,
    RecordObjectEvent,
    Result,
)
from fairlead.model.changes import KIND_NODES, KIND_PODS, Observe, changed, listed
from fairlead.model.devices.driver import (
    CardAnswer,
    CgroupLimit,
    DriverXid,
    IsolationMeans,
    MpsLimit,
    ProcessHome,
    ProcessMemory,
)
from fairlead.model.devices.gpu import GpuSlot, Grant
from fairlead.model.devices.kubelet import HeldDevices, OfferedDevice
from fairlead.model.node import Condition, Node
from fairlead.model.pod import Container, Pod
from fairlead.model.resources import MemoryUnit
from fairlead.model.sharing import Withheld
from fairlead.model.snapshot import GPU_WITHHELD
from fairlead.ports import DeviceAnswers
from fairlead.wire.gpus.allocation import render_grants
from fairlead.wire.kube.objects import parse_gpu_slots
from fairlead.wire.kube.time import parse_time

EPOCH = 1_767_600_000.0
MEMORY, CORE, WHOLE = "aliyun.com/gpu-mem", "aliyun.com/gpu-core.percentage", "nvidia.com/gpu"


class Hangs(BaseException):
    """A call that does not return."""


class Inline(ThreadPoolExecutor):
    """Runs calls at once, because threads would need real time. `hanging`: calls that have not
    returned.
    """

    def __init__(self) -> None:
        super().__init__()
        self.hanging: list[Future[Any]] = []

    def submit(self, call: Callable[..., Any], /, *words: Any, **more: Any) -> Future[Any]:
        done: Future[Any] = Future()
        try:
            done.set_result(call(*words, **more))
        except Hangs:
            self.hanging.append(done)
        except BaseException as error:  # noqa: BLE001 - as a thread would hand it over
            done.set_exception(error)
        return done


class FakeApi:
    """An API server that carries out each action unless `refuses` returns another outcome."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.pods: dict[str, Pod] = {}
        self.actions: list[Action] = []
        self.refuses: Callable[[Action], Outcome | None] = lambda action: None
        self.test_pods: list[Pod] = []
        """What reads of the runtime's test pod return, in turn; the last is returned for ever."""
        self._observe: Observe = lambda _: None
        self.is_following = asyncio.Event()

    async def follow(self, observe: Observe) -> None:
        self._observe = observe
        await self.is_following.wait()
        observe(listed(GPU_WITHHELD, {}))
        observe(listed(KIND_PODS, dict(self.pods)))
        observe(listed(KIND_NODES, {self.node.uid: self.node}))
        await asyncio.Event().wait()

    async def apply(self, action: Action) -> Outcome:
        self.actions.append(action)
        if (refused := self.refuses(action)) is not None:
            return refused
        if isinstance(action, PatchObject) and action.target.kind == "Node":
            self.show(_patched(self.node, action.patch))
        elif isinstance(action, PatchObject):
            pod = self.pods[action.target.uid]
            self.put(
                structs.replace(
                    pod, annotations={**pod.annotations, **action.patch["metadata"]["annotations"]}
                )
            )
        return Outcome()

    async def get_pod(self, namespace: str, name: str) -> Pod | None:
        written = [each for each in self.actions if isinstance(each, CreateObject | DeleteObject)]
        if not written or isinstance(written[-1], DeleteObject):
            return None
        return self.test_pods.pop(0) if len(self.test_pods) > 1 else self.test_pods[0]

    def show(self, node: Node) -> None:
        self.node = node
        self._observe(changed(KIND_NODES, node.uid, node))

    def label(self, **labels: str) -> None:
        self.show(structs.replace(self.node, labels={**self.node.labels, **labels}))

    def put(self, pod: Pod) -> None:
        self.pods[pod.uid] = pod
        self._observe(changed(KIND_PODS, pod.uid, pod))

    def take_out(self, *indexes: int) -> None:
        self._observe(changed(GPU_WITHHELD, "map", Withheld(self.node.name, frozenset(indexes))))

    def events(self) -> list[tuple[str, str, str]]:
        """Kind and name of the object of each Event, and its reason."""
        reported = [each for each in self.actions if isinstance(each, RecordObjectEvent)]
        return [(each.target.kind, each.target.name, each.reason) for each in reported]

    def made(self, kind: type[CreateObject] | type[DeleteObject]) -> int:
        return sum(isinstance(each, kind) for each in self.actions)


class FakeDriver:
    def __init__(self, cards: Sequence[GpuSlot]) -> None:
        self.shown = cards
        self.failure = ""
        self.hangs = False
        self.wedged = ""
        """UUID of a card; queries about it hang."""
        self.seen: list[DriverXid] = []
        self.ill: dict[str, str] = {}
        self.energy: int | None = None
        self.used: list[ProcessMemory] = []
        self.can = IsolationMeans()
        self.bound: list[tuple[MpsLimit, ...]] = []
        self.unbound = ""
        self.limits: dict[str, CgroupLimit] = {}
        """By cgroup; others have none."""
        self.asked_limits: list[tuple[str, str]] = []

    def cards(self) -> Sequence[GpuSlot]:
        self._answer()
        return [structs.replace(card, units=0) for card in self.shown]

    def xids(self) -> Sequence[DriverXid]:
        self._answer()
        seen, self.seen = self.seen, []
        return seen

    def probe(self, uuid: str) -> CardAnswer:
        if uuid == self.wedged:
            raise Hangs
        self._answer()
        fault = self.ill.get(uuid, "")
        return CardAnswer(fault, is_down=fault == "GPU is lost", energy_mj=self.energy)

    def processes(self) -> Sequence[ProcessMemory]:
        self._answer()
        return self.used

    def means(self) -> IsolationMeans:
        return self.can

    def cgroup_limit(self, uuid: str, cgroup: str) -> CgroupLimit:
        self.asked_limits.append((uuid, cgroup))
        return self.limits.get(cgroup, CgroupLimit())

    def bound_mps(self, limits: Sequence[MpsLimit]) -> str:
        self.bound.append(tuple(limits))
        return self.unbound

    def _answer(self) -> None:
        if self.hangs:
            raise Hangs
        if self.failure:
            raise OutsideError("driver", self.failure)


class FakeKubelet:
    def __init__(self) -> None:
        self.held: tuple[HeldDevices, ...] = ()
        self.failure = ""

    async def list_held(self) -> tuple[HeldDevices, ...]:
        if self.failure:
            raise OutsideError("kubelet", self.failure)
        return self.held


class FakeHomes:
    def __init__(self) -> None:
        self.by_pid: dict[int, ProcessHome] = {}

    def homes(self, pids: Collection[int]) -> Mapping[int, ProcessHome]:
        return {pid: self.by_pid[pid] for pid in pids if pid in self.by_pid}


class FakeResource:
    """`lists`: the device lists that were offered, in order. `is_away`: no kubelet is connected."""

    def __init__(self, answers: DeviceAnswers) -> None:
        self.answers = answers
        self.lists: list[tuple[OfferedDevice, ...]] = []
        self.is_away = False
        self.trouble = ""
        self._is_served = False

    @property
    def is_watched(self) -> bool:
        return self._is_served and not self.is_away

    def offer(self, devices: Iterable[OfferedDevice]) -> None:
        self.lists.append(tuple(devices))

    async def run(self) -> None:
        self._is_served = True
        try:
            await asyncio.Event().wait()
        finally:
            self._is_served = False

    @property
    def counts(self) -> tuple[int, int]:
        """Capacity and allocatable, as a kubelet computes them from the last list."""
        last = self.lists[-1] if self.lists else ()
        return len(last), sum(each.is_healthy for each in last)


class World:
    """`guards`: the libraries of the memory guard, one per machine, as a wheel has them."""

    def __init__(
        self, folder: Path, cards: Sequence[GpuSlot] = (), *, test_image: str = ""
    ) -> None:
        self.guards = folder / "guards"
        self.ship_guard(b"the library")
        self.loop = JumpingLoop()
        self.threads = Inline()
        self.loop.set_default_executor(self.threads)
        self.folders = NodeFolders(
            folder / "plugins", folder / "cdi", folder / "state", folder / "run"
        )
        self.folders.plugins.mkdir(parents=True, exist_ok=True)
        self.api = FakeApi(Node("n1", uid="node-uid", labels={"cgpu": "true"}))
        self.driver = FakeDriver(cards or [t4(0), t4(1)])
        self.kubelet = FakeKubelet()
        self.served: dict[str, FakeResource] = {}
        self.tenants = FakeHomes()
        self.agent = NodeAgent(
            self.api,
            self.driver,
            NodeAgentFiles(self.folders, self.guards),
            self.kubelet,
            self.tenants,
            self._serve,
            NodeAgentSettings(
                "n1",
                MemoryUnit.GIB,
                "fairlead-system",
                test_image,
                mps_folder="/mps",
                has_device_nodes=False,
            ),
            now=lambda: EPOCH + self.loop.time(),
            monotonic=self.loop.time,
        )

    def _serve(
        self, endpoint: str, resource: str, answers: DeviceAnswers, needs_start: bool
    ) -> FakeResource:
        self.served[resource] = FakeResource(answers)
        return self.served[resource]

    def ship_guard(self, content: bytes) -> None:
        path = self.guards / platform.machine() / GUARD_LIBRARY
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)

    def play(self, story: Callable[[], Awaitable[None]], *, follows: bool = True) -> None:
        """Runs the agent until the story ends."""
        if follows:
            self.api.is_following.set()

        async def both() -> None:
            living = asyncio.ensure_future(self.agent.run())
            reporting = asyncio.ensure_future(story())
            try:
                done, _ = await asyncio.wait(
                    (living, reporting), return_when=asyncio.FIRST_COMPLETED
                )
                for task in done:
                    task.result()
            finally:
                living.cancel()
                reporting.cancel()
                await asyncio.gather(living, reporting, return_exceptions=True)

        asyncio.set_event_loop(self.loop)
        try:
            self.loop.run_until_complete(both())
        finally:
            asyncio.set_event_loop(None)
            self.loop.close()

    @property
    def memory(self) -> FakeResource:
        return self.served[MEMORY]

    def hold(
        self, ids: Sequence[str], pod: str, container: str = "app", resource: str = MEMORY
    ) -> None:
        """Adds the container's ids to both of the kubelet's lists."""
        ordered = tuple(sorted(ids))
        reported = (
            HeldDevices(resource, ordered, container, "default", pod),
            HeldDevices(resource, ordered, container, pod_uid=f"uid-{pod}"),
        )
        self.kubelet.held = (*self.kubelet.held, *reported)


def pod(name: str, units: int = 4, card: int = 0, **more: Any) -> Pod:
    """A pod with one container, placed on a T4."""
    grants = {"app": (Grant(uuid(card), card, units, 15079 * units // 14),)}
    annotations = {
        "fairlead.io/gpu-allocation": render_grants(grants),
        "ALIYUN_COM_GPU_MEM_ASSIGNED": "false",
    }
    made = Pod(
        "default",
        name,
        f"uid-{name}",
        node="n1",
        containers=(Container("app", limits={MEMORY: units}),),
        grants=grants,
        annotations=annotations,
    )
    return structs.replace(made, **more)


def unknown(reason: str = "no answer") -> Outcome:
    return Outcome(Result.UNKNOWN, reason)


def _patched(node: Node, patch: Mapping[str, Any]) -> Node:
    """The node after a patch of the agent, as the API server would return it."""
    meta, status = patch.get("metadata", {}), patch.get("status", {})
    annotations = {**node.annotations, **meta.get("annotations", {})}
    conditions = {each.type: each for each in node.conditions}
    for each in status.get("conditions", ()):
        if each.get("$patch") == "delete":
            conditions.pop(each["type"], None)
        else:
            since = parse_time(each["lastTransitionTime"])
            conditions[each["type"]] = Condition(
                each["type"], each["status"], each["reason"], each["message"], since
            )
    return structs.replace(
        node,
        labels={**node.labels, **meta.get("labels", {})},
        annotations=annotations,
        gpus=parse_gpu_slots(annotations.get("fairlead.io/gpus", "")),
        capacity={
            **node.capacity,
            **{key: int(count) for key, count in status.get("capacity", {}).items()},
        },
        allocatable={
            **node.allocatable,
            **{key: int(count) for key, count in status.get("allocatable", {}).items()},
        },
        conditions=tuple(conditions.values()),
    )
