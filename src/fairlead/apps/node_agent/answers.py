"""The answers to the kubelet for each resource (`ports.DeviceAnswers`).

For shared memory there are two modes. *Deferred*: the answer is a name, and when the container
starts a file with that name is written. *Guarded*: the answer is all that the container gets, if
all candidates get the same; its limits are written when it starts. If an answer may become known in
a moment, the agent waits for it: a kubelet that is refused an allocation fails the pod, and one
that is refused a start tries again only after many seconds.
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
"""`ALLOCATE_PATIENCE_SECONDS`: longer than the five seconds in which the extender makes containers
of one size agree.

See docs/spec/gpu-sharing.md#allocation-of-the-right-container.
"""
ASK_SECONDS: Final = 0.3
"""`ASK_SECONDS`: shortest time between two questions to the kubelet for one container."""
JUST_ANSWERED_SECONDS: Final = 5.0
MARK_SECONDS: Final = 1.0
"""`MARK_SECONDS`: time for which a start waits for the API server.

If that is too short, the mark is written later.
"""


class WholeAnswers:
    """`nvidia.com/gpu`: ids are cards."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def registered(self) -> None:
        self._desk.mark_changed()

    def preferred(
        self, available: Sequence[str], must_include: Collection[str], size: int
    ) -> Sequence[str]:
        return preferred(available, must_include, size)

    async def allocate(self, ids: Sequence[str]) -> ContainerEdits | CdiDevices | DeviceRefusal:
        found = self._desk.whole(ids)
        self._desk.mark_changed()
        return self._counted(found)

    async def start(self, ids: Sequence[str]) -> DeviceRefusal | None:
        return None

    def _counted(self, found: ContainerEdits | DeviceRefusal) -> ContainerEdits | DeviceRefusal:
        is_refused = isinstance(found, DeviceRefusal)
        self._desk.count("refused" if is_refused else "ok")
        if isinstance(found, DeviceRefusal):
            self._desk.report_refusal(None, found)
        return found


class CoreAnswers(WholeAnswers):
    """`aliyun.com/gpu-core.percentage`: its effect is part of the answer for memory."""

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
        """Tokens answered now or a moment ago: the kubelet may
        not have recorded their owners yet.
        """
        now = self._desk.monotonic()
        self._answered = {
            name: at for name, at in self._answered.items() if now - at < JUST_ANSWERED_SECONDS
        }
        return frozenset((*self._busy, *self._answered))

    async def allocate(self, ids: Sequence[str]) -> ContainerEdits | CdiDevices | DeviceRefusal:
        desk, name = self._desk, token(GPU_MEMORY, ids)
        if refusal := desk.machine.foreign(ids):
            return self._refused(refusal)
        async with self._alone(name):
            desk.files.remove(name)  # of an ended container that had the same ids
            if desk.identity is GpuIdentity.DEFERRED:
                return CdiDevices((device_name(name),))
            found = await self._patiently(
                ALLOCATE_PATIENCE_SECONDS,
                lambda: desk.machine.answer_now(ids, desk.now(), desk.node_files(name)),
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
                    lambda: desk.machine.start(ids, desk.now(), desk.node_files(name), answered),
                )
                if isinstance(found, DeviceRefusal):
                    return self._refused(found, ids)
                if found.limits.is_view_only and (fault := await desk.bound_mps(found.shares)):
                    refusal = DeviceRefusal(
                        RefusalCode.UNAVAILABLE, f"MPS does not limit the container: {fault}"
                    )
                    return self._refused(refusal, ids)
                desk.files.write_container(
                    name, found.limits, None if answered else found.edits, found.region
                )
                desk.keep(found)
            except OutsideError as failed:
                desk.count("failed")
                desk.report_refusal(
                    desk.machine.owner_of(ids), DeviceRefusal(RefusalCode.UNAVAILABLE, failed.what)
                )
                raise
        desk.count("ok")
        if found.assigned is not None:
            await self._within(MARK_SECONDS, desk.mark(found.assigned))
        desk.mark_changed()
        return None

    def _refused(self, refusal: DeviceRefusal, ids: Collection[str] = ()) -> DeviceRefusal:
        self._desk.count("refused")
        self._desk.report_refusal(self._desk.machine.owner_of(ids) if ids else None, refusal)
        return refusal

    async def _patiently(
        self, seconds: float, ask: Callable[[], Prepared | DeviceRefusal]
    ) -> Prepared | DeviceRefusal:
        """While the answer is a refusal, ask again after each change, for at most this time."""
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
        """Work that takes longer continues in the background."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await asyncio.shield(work)

    @asynccontextmanager
    async def _alone(self, name: str) -> AsyncIterator[None]:
        """Runs one call at a time for each token.

        A kubelet that gave up asks again while the first call still runs.
        """
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
