"""What the kubelet is answered for each resource (`ports.DeviceAnswers`).

For shared memory there are two ways. *Deferred*: at once a name, and when the container starts a file under
that name. *Guarded*: at once all that the container gets, if everyone who may be asking gets the same; what
its limits are is written when it starts. What may be known in a moment is waited for, because a kubelet that
is refused an allocation ends the pod, and one that is refused a start asks again only after many seconds.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from typing import Final

from fairlead.apps.node_agent.desk import Desk
from fairlead.errors import OutsideError
from fairlead.model.devices.granted import DeviceRefusal, GpuIdentity, RefusalCode
from fairlead.model.devices.kubelet import CdiDevices, ContainerEdits
from fairlead.model.resources import GPU_MEMORY
from fairlead.rules.devices.ids import preferred, token
from fairlead.rules.devices.machine import Prepared
from fairlead.wire.kubelet.cdi import device_name

START_PATIENCE_SECONDS: Final = 5.0
ALLOCATE_PATIENCE_SECONDS: Final = 8.0
"""The extender lets at most five seconds pass until containers of one size agree.

See docs/spec/gpu-sharing.md#allocation-of-the-right-container.
"""
ASK_SECONDS: Final = 0.3
"""The kubelet is asked no more often than this for one container."""
JUST_ANSWERED_SECONDS: Final = 5.0
MARK_SECONDS: Final = 1.0
"""So long a start waits for the API server; the mark is written later, too."""


class WholeAnswers:
    """`nvidia.com/gpu`: ids are cards."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def registered(self) -> None:
        self._desk.hear()

    def preferred(self, available: Sequence[str], must_include: Collection[str], size: int) -> Sequence[str]:
        return preferred(available, must_include, size)

    async def allocate(self, ids: Sequence[str]) -> ContainerEdits | CdiDevices | DeviceRefusal:
        found = self._desk.whole(ids)
        self._desk.hear()
        return self._counted(found)

    async def start(self, ids: Sequence[str]) -> DeviceRefusal | None:
        return None

    def _counted(self, found: ContainerEdits | DeviceRefusal) -> ContainerEdits | DeviceRefusal:
        is_refused = isinstance(found, DeviceRefusal)
        self._desk.count("refused" if is_refused else "ok")
        if isinstance(found, DeviceRefusal):
            self._desk.tell_refused(None, found)
        return found


class CoreAnswers(WholeAnswers):
    """`aliyun.com/gpu-core.percentage`: all that follows from it is given with the memory."""

    async def allocate(self, ids: Sequence[str]) -> ContainerEdits | CdiDevices | DeviceRefusal:
        return ContainerEdits()


class SharedAnswers(WholeAnswers):
    """`aliyun.com/gpu-mem`."""

    def __init__(self, desk: Desk) -> None:
        super().__init__(desk)
        self._busy: Counter[str] = Counter()
        self._locks: dict[str, asyncio.Lock] = {}
        self._answered: dict[str, float] = {}

    def in_hand(self) -> frozenset[str]:
        """Tokens that are answered now or were a moment ago: the kubelet may not have noted their owners."""
        now = self._desk.monotonic()
        self._answered = {name: at for name, at in self._answered.items() if now - at < JUST_ANSWERED_SECONDS}
        return frozenset((*self._busy, *self._answered))

    async def allocate(self, ids: Sequence[str]) -> ContainerEdits | CdiDevices | DeviceRefusal:
        desk, name = self._desk, token(GPU_MEMORY, ids)
        if refusal := desk.machine.foreign(ids):
            return self._refused(refusal)
        async with self._alone(name):
            desk.files.remove(name)  # of a container that had the same ids before and is over
            if desk.identity is GpuIdentity.DEFERRED:
                return CdiDevices((device_name(name),))
            found = await self._patiently(
                ALLOCATE_PATIENCE_SECONDS, lambda: desk.machine.answer_now(ids, desk.now(), desk.node_files(name))
            )
            if isinstance(found, DeviceRefusal):
                return self._refused(found)
            desk.files.write_answer(name, found.limits)
            return found.edits

    async def start(self, ids: Sequence[str]) -> DeviceRefusal | None:
        desk, name = self._desk, token(GPU_MEMORY, ids)
        async with self._alone(name):
            try:
                answered = desk.files.read_answer(name)
                found = await self._patiently(
                    START_PATIENCE_SECONDS,
                    lambda: desk.machine.start(ids, desk.now(), desk.node_files(name), answered.cards if answered else None),
                )
                if isinstance(found, DeviceRefusal):
                    return self._refused(found, ids)
                desk.files.write_container(name, found.limits, None if answered else found.edits)
                desk.keep(found)
            except OutsideError as failed:
                desk.count("failed")
                desk.tell_refused(desk.machine.owner_of(ids), DeviceRefusal(RefusalCode.UNAVAILABLE, failed.what))
                raise
        desk.count("ok")
        if found.assigned is not None:
            await self._within(MARK_SECONDS, desk.mark(found.assigned))
        desk.hear()
        return None

    def _refused(self, refusal: DeviceRefusal, ids: Collection[str] = ()) -> DeviceRefusal:
        self._desk.count("refused")
        self._desk.tell_refused(self._desk.machine.owner_of(ids) if ids else None, refusal)
        return refusal

    async def _patiently(self, seconds: float, ask: Callable[[], Prepared | DeviceRefusal]) -> Prepared | DeviceRefusal:
        """What is refused now is asked for again, for so long, as more is heard."""
        until = self._desk.monotonic() + seconds
        while True:
            if not self._desk.machine.missing:
                await self._desk.ask_kubelet()
                found = ask()
            else:
                found = DeviceRefusal(RefusalCode.UNAVAILABLE, self._desk.machine.missing)
            if isinstance(found, Prepared) or found.is_final or self._desk.monotonic() >= until:
                return found
            began = self._desk.monotonic()
            await self._desk.wait_for_news(until - began)
            await asyncio.sleep(max(0.0, ASK_SECONDS - (self._desk.monotonic() - began)))

    async def _within(self, seconds: float, work: Awaitable[None]) -> None:
        """What takes longer goes on beside us."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await asyncio.shield(work)

    @asynccontextmanager
    async def _alone(self, name: str) -> AsyncIterator[None]:
        """One at a time for each token: a kubelet that waits no longer asks again beside what it began."""
        self._busy[name] += 1
        lock = self._locks.setdefault(name, asyncio.Lock())
        try:
            async with lock:
                yield
        finally:
            self._answered[name] = self._desk.monotonic()
            self._busy[name] -= 1
            if not self._busy[name]:
                del self._busy[name], self._locks[name]
