"""Whose the cards of a node are, for its exporter: the kubelet's list and the agent's grants file.

A kubelet that does not answer costs nothing for a while: the last map stands for `ttl_seconds`, and only then
series lose the names of pods. No failure here takes a device's series away (telemetry contract 2.1, 2.4).
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from typing import Final

from msgspec import structs

from fairlead.errors import OutsideError
from fairlead.model.devices.device import DeviceProcess, DeviceSample, MigInstance
from fairlead.model.devices.kubelet import GivenShare, HeldDevices
from fairlead.model.refusal import Refusal
from fairlead.ports import ClaimableCards, GivenFile, KubeletHolders, PodIdentities, ProcessHomes
from fairlead.rules.devices.container_use import container_use, sole_holder_use, unknown_use
from fairlead.rules.devices.pod_devices import LocalPods, device_processes, homeless, named_homes, node_cards
from fairlead.rules.metrics.exporter import PodMapState

ASK_SECONDS: Final = 5.0
MOST_ASKED_FOR: Final = 4096
NO_HOST_PID: Final = "no_host_pid"
RETRY_SECONDS: Final = 1.0
_USED, _PERCENT = "DCGM_FI_DEV_FB_USED_BYTES", "DCGM_FI_DEV_GPU_UTIL"
_log: Final = logging.getLogger(__name__)


class PodMap:
    """`monotonic` gives seconds. `homes` None: the processes of the node cannot be seen from here."""

    def __init__(
        self,
        kubelet: KubeletHolders,
        given: GivenFile,
        ttl_seconds: float,
        monotonic: Callable[[], float] = time.monotonic,
        homes: ProcessHomes | None = None,
        ask_seconds: float = ASK_SECONDS,
        more_resources: Collection[str] = (),
        claimable: ClaimableCards | None = None,
        identities: PodIdentities | None = None,
    ) -> None:
        self._claimable = claimable
        self._identities = identities
        self._by_mps: set[str] = set()
        self._asked_for: set[int] = set()
        self._unknown = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._more_resources = more_resources
        self._ask_seconds = ask_seconds
        self._kubelet = kubelet
        self._given = given
        self._ttl_seconds = ttl_seconds
        self._monotonic = monotonic
        self._homes = homes
        self._held: tuple[HeldDevices, ...] = ()
        self._shares: tuple[GivenShare, ...] = ()
        self._at: float | None = None
        self._errors = {"kubelet": 0, "grants": 0, NO_HOST_PID: 0}

    async def run(self) -> None:
        """Ask now and then, until cancelled."""
        asking = () if self._claimable is None else (self._claimable.run(),)
        await asyncio.gather(self._ask_on(), *asking)

    async def _ask_on(self) -> None:
        self._loop = asyncio.get_running_loop()
        while True:
            self._unknown.clear()
            wait = self._ask_seconds if await self.ask() else RETRY_SECONDS
            await asyncio.sleep(min(wait, RETRY_SECONDS))
            with suppress(TimeoutError):
                await asyncio.wait_for(self._unknown.wait(), max(0.0, wait - RETRY_SECONDS))

    async def ask(self) -> bool:
        """Ask once. Whether both have told."""
        given = self._given.read_given()
        if isinstance(given, Refusal):
            self._fail("grants", given.reason)
        else:
            self._shares = given
        try:
            self._held = await self._kubelet.list_held()
        except OutsideError as failed:
            self._fail("kubelet", failed.log_line)
            return False
        self._at = self._monotonic()
        return not isinstance(given, Refusal)

    def attributed(self, samples: Sequence[DeviceSample]) -> Sequence[DeviceSample]:
        """The samples with the containers that have each card, and what they use of it. Reads /proc."""
        if self._age is None or self._age > self._ttl_seconds:
            return samples
        claims = {} if self._claimable is None else self._claimable.latest()
        pods = {} if self._identities is None else self._identities.latest()
        self._look_for_mps(samples)
        cards = node_cards(samples, self._by_mps)
        holders = device_processes(self._held, self._shares, cards, self._more_resources, claims, pods)
        return [self._attributed(sample, holders, pods) for sample in samples]

    def _look_for_mps(self, samples: Sequence[DeviceSample]) -> None:
        """A card's programs go through MPS, or take turns, until others are seen."""
        entities: list[DeviceSample | MigInstance] = [*samples, *(each for sample in samples for each in sample.instances)]
        for each in entities:
            if each.seen:
                is_mps = any("M" in process.type for process in each.seen)
                (self._by_mps.add if is_mps else self._by_mps.discard)(each.uuid)

    def _attributed(self, sample: DeviceSample, holders: Mapping[str, tuple[DeviceProcess, ...]], pods: LocalPods) -> DeviceSample:
        instances = tuple(
            structs.replace(each, processes=self._use(each, holders.get(each.uuid, ()), pods)) if each.uuid else each
            for each in sample.instances
        )
        return structs.replace(sample, processes=self._use(sample, holders.get(sample.uuid, ()), pods), instances=instances)

    def _use(self, sample: DeviceSample | MigInstance, containers: tuple[DeviceProcess, ...], pods: LocalPods) -> tuple[DeviceProcess, ...]:
        if sample.seen is None:
            return unknown_use(containers)
        if self._homes is None:
            if sample.seen:
                self._fail(NO_HOST_PID, "processes of the node cannot be seen from here (hostPID)")
            return sole_holder_use(containers, sample.fields.get(_USED), sample.fields.get(_PERCENT))
        homes = named_homes(self._homes.homes([each.pid for each in sample.seen]), pods)
        self._ask_for(homeless(homes, containers))
        return container_use(containers, sample.seen, homes)

    def _ask_for(self, pids: set[int]) -> None:
        """Ask the kubelet soon, at most once a second, and once for each process that nobody is known to
        have."""
        if pids <= self._asked_for:
            return
        self._asked_for = pids if len(self._asked_for) > MOST_ASKED_FOR else self._asked_for | pids
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._unknown.set)

    @property
    def state(self) -> PodMapState:
        containers = {(each.namespace, each.pod, each.container) for each in self._held if each.pod}
        return PodMapState(self._age, len(containers), tuple(sorted(self._errors.items())))

    @property
    def _age(self) -> float | None:
        return None if self._at is None else self._monotonic() - self._at

    def _fail(self, reason: str, told: str) -> None:
        self._errors[reason] += 1
        if self._errors[reason] == 1:
            _log.warning("whose the cards are is not known: %s", told)
