"""What the parts of a node agent share: its machine, its files, its sources, its Events."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from typing import Any, Final, TypeVar

from msgspec import Struct
from prometheus_client import CollectorRegistry, Counter

from fairlead.errors import OutsideError
from fairlead.model.actions import PatchObject, RecordObjectEvent, Result
from fairlead.model.devices.granted import DeviceRefusal, GpuIdentity
from fairlead.model.devices.kubelet import ContainerEdits, GivenShare
from fairlead.model.metric import MetricName
from fairlead.model.pod import Pod
from fairlead.model.repeat_filter import RepeatFilter
from fairlead.model.resources import MemoryUnit
from fairlead.ports import AgentFiles, CardDriver, KubeletHolders, NodeApi
from fairlead.rules.control.messages import SentMessages
from fairlead.rules.devices.container_edits import PRELOAD, NodeFiles
from fairlead.rules.devices.machine import NodeMachine, Prepared, refusal_event
from fairlead.rules.devices.watchdog import OverGrantPolicy

ALLOCATIONS: Final = MetricName(
    "fairlead_gpushare_allocate_total",
    "counter",
    ("node_name", "result"),
    "Containers that were given devices, by result: ok, refused, failed.",
)
NAMES: Final = (ALLOCATIONS,)
SAME_REFUSAL_SECONDS: Final = 300.0
"""The shortest time between two Events about the same refusal of a pod.

The kubelet asks again every few seconds.
"""
SHARED_MEMORY: Final = "/dev/shm"
"""The node's shared memory, through which programs and their MPS daemon communicate."""
DRIVER_SECONDS: Final = 30.0
"""A call of the driver that takes longer hangs: one stuck card can block all calls for ever."""
_WAITING_EVENTS: Final = 500
DRIVER: Final = "driver"
_LOOK_AT_DRIVER: Final = (
    "look at the kernel's log of the node; a GPU that hangs needs a reset, or the node a reboot"
)
Answer = TypeVar("Answer")
_log: Final = logging.getLogger(__name__)


class NodeAgentSettings(Struct, frozen=True):
    """`node`: its name. `has_device_nodes` False: the cards are simulated.

    `test_image`: the image of the container in `namespace` that tests whether the runtime supports
    CDI; "" = there is no test, and the mode is guarded. `over_grant`: what is done about a
    container that uses more than its grant. `mps_folder`: it contains, by UUID, the pipe
    directories of MPS daemons.
    """

    node: str
    unit: MemoryUnit
    namespace: str
    test_image: str = ""
    ignored_xids: frozenset[int] = frozenset()
    over_grant: OverGrantPolicy = OverGrantPolicy.REPORT
    mps_folder: str = ""
    has_device_nodes: bool = True


class Desk:
    """`identity`: how containers are identified, None = not known yet. `now` returns epoch seconds,
    `monotonic` seconds of a clock that is never set.
    """

    def __init__(
        self,
        api: NodeApi,
        files: AgentFiles,
        kubelet: KubeletHolders,
        driver: CardDriver,
        chosen: NodeAgentSettings,
        now: Callable[[], float],
        monotonic: Callable[[], float],
    ) -> None:
        self.node = chosen.node
        self.machine = NodeMachine(chosen.unit, chosen.ignored_xids)
        self.files = files
        self.now = now
        self.monotonic = monotonic
        self._has_guard = False
        self.identity: GpuIdentity | None = None if chosen.test_image else GpuIdentity.GUARDED
        self.changed = asyncio.Event()
        self.has_writes = asyncio.Event()
        self.events: deque[RecordObjectEvent] = deque(maxlen=_WAITING_EVENTS)
        self.registry = CollectorRegistry()
        self._allocations = Counter(
            "fairlead_gpushare_allocate",
            ALLOCATIONS.help,
            ALLOCATIONS.labels,
            registry=self.registry,
        )
        for result in ("ok", "refused", "failed"):
            self._allocations.labels(self.node, result)
        self._api = api
        self._kubelet = kubelet
        self._driver = driver
        self._mps_turn = asyncio.Lock()
        self._mps_trouble = RepeatFilter()
        self._chosen = chosen
        self._news = asyncio.Condition()
        self._driver_turn = asyncio.Lock()
        self._driver_call: asyncio.Future[Any] | None = None
        self._driver_trouble = ""
        self._guard_trouble = RepeatFilter()
        self._refusals: SentMessages[tuple[str, str]] = SentMessages(SAME_REFUSAL_SECONDS)

    def count(self, result: str) -> None:
        """Count a request of a container for devices; `result` as in `ALLOCATIONS`."""
        self._allocations.labels(self.node, result).inc()

    def mark_changed(self) -> None:
        """Something has changed: the next look is due soon."""
        self.changed.set()

    async def wait_for_news(self, seconds: float) -> None:
        """Wait until the next look has ended, at most for `seconds`."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds), self._news:
                await self._news.wait()

    async def ask_kubelet(self) -> None:
        """Read holders from the kubelet. Raises OutsideError if it does not answer."""
        self.machine.kubelet_reports(await self._kubelet.list_held())

    async def ask_driver(self, call: Callable[..., Answer], *words: object) -> Answer:
        """Make one call of the driver, which may take long; there is one at a time.

        Raises OutsideError, also when the call hangs. Until that call returns, each further call
        raises at once: it would hang, too, and block a thread.
        """
        async with self._driver_turn:
            if self.is_driver_stuck:
                raise OutsideError(DRIVER, self._driver_trouble, _LOOK_AT_DRIVER)
            asked = asyncio.ensure_future(asyncio.to_thread(call, *words))
            self._driver_call = asked
            await asyncio.wait((asked,), timeout=DRIVER_SECONDS)
            if asked.done():
                return asked.result()
            about = f" since it was asked for GPU {words[0]}" if words else ""
            self._driver_trouble = f"the driver has not answered for {DRIVER_SECONDS:.0f} s{about}"
            asked.add_done_callback(_came_back)
            raise OutsideError(DRIVER, self._driver_trouble, _LOOK_AT_DRIVER)

    async def bound_mps(self, more: Sequence[GivenShare] = ()) -> str:
        """Have the daemons of MPS allow what their containers were granted, and `more`, if MPS
        isolates this node's containers. Why they do not; "" = they do.

        Raises OutsideError, as `ask_driver`. A limit is computed in its turn, so that an older one
        is not set later.
        """
        async with self._mps_turn:
            limits = self.machine.mps_limits(self.now(), more)
            fault = await self.ask_driver(partial(self._driver.bound_mps, limits))
            self.machine.mps_reports(fault)
        if self._mps_trouble.is_news(fault):
            _log.warning("MPS does not limit containers: %s", fault)
        return fault

    @property
    def is_driver_stuck(self) -> bool:
        """Whether a call of the driver has not returned yet."""
        return self._driver_call is not None and not self._driver_call.done()

    def install_guard(self) -> None:
        """Put the memory guard on the node, or report why containers cannot have it."""
        failed = self.files.install_guard(PRELOAD)
        fault = failed.reason if failed else ""
        self._has_guard = not fault
        self.machine.guard_shows(fault)
        if self._guard_trouble.is_news(fault):
            _log.warning("containers get no memory guard: %s", fault)

    def node_files(self, token: str) -> NodeFiles:
        chosen = self._chosen
        return NodeFiles(
            self.files.limits_path(token),
            self.files.region_path(token),
            self.files.guard_path() if self._has_guard else "",
            self.files.preload_path() if self._has_guard else "",
            mps_pipes={uuid: f"{chosen.mps_folder}/{uuid}" for uuid in self.machine.uuids}
            if chosen.mps_folder
            else {},
            mps_shared_memory=SHARED_MEMORY,
            has_device_nodes=chosen.has_device_nodes,
        )

    def whole(self, ids: Collection[str]) -> ContainerEdits | DeviceRefusal:
        return self.machine.whole(ids, self.now(), has_device_nodes=self._chosen.has_device_nodes)

    def keep(self, prepared: Prepared) -> None:
        """Record in the grants file that the files of a container are written."""
        self.machine.started(prepared)
        self.files.write_given(self.machine.rows)

    async def mark(self, patch: PatchObject) -> None:
        outcome = await self._api.apply(patch)
        if outcome.result in (Result.REFUSED, Result.UNKNOWN):
            _log.warning(
                "pod %s/%s is not marked yet: %s",
                patch.target.namespace,
                patch.target.name,
                outcome.reason,
            )

    def report_refusal(self, pod: Pod | None, refusal: DeviceRefusal) -> None:
        """Log a refusal, and record it as an Event of the pod if the pod is known."""
        _log.warning("%s: %s", pod.key if pod else "a container", refusal.reason)
        if pod is None:
            return
        key, now = (pod.uid, refusal.reason), self.now()
        self._refusals.forget(now)
        if self._refusals.may_send(key, now):
            self._refusals.sent(key, now)
            self.queue_events((refusal_event(pod, refusal),))

    def queue_events(self, events: Iterable[RecordObjectEvent]) -> None:
        """Queue Events, which are written as soon as the API server answers."""
        before = len(self.events)
        self.events.extend(events)
        if len(self.events) > before:
            self.has_writes.set()

    async def looked(self) -> None:
        """A look has ended: wake the tasks in `wait_for_news`."""
        async with self._news:
            self._news.notify_all()


def _came_back(asked: asyncio.Future[Any]) -> None:
    """Log that a hanging call has returned; its result is not used."""
    failure = None if asked.cancelled() else asked.exception()
    _log.warning("the driver has come back%s", f": {failure}" if failure else "")
