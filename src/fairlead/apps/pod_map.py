"""Whose the cards of a node are, for its exporter: the kubelet's list and the agent's grants file.

A kubelet that does not answer costs nothing for a while: the last map stands for `ttl_seconds`, and only then
series lose the names of pods. No failure here takes a device's series away (telemetry contract 2.1, 2.4).
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final

from msgspec import structs

from fairlead.errors import OutsideError
from fairlead.model.devices.device import DeviceProcess, DeviceSample, MigInstance
from fairlead.model.devices.kubelet import GivenShare, HeldDevices
from fairlead.model.refusal import Refusal
from fairlead.ports import ClaimableCards, GivenFile, KubeletHolders, ProcessHomes
from fairlead.rules.devices.container_use import container_use, sole_holder_use, unknown_use
from fairlead.rules.devices.pod_devices import device_processes
from fairlead.rules.metrics.exporter import PodMapState

ASK_SECONDS: Final = 5.0
RETRY_SECONDS: Final = 1.0
_TOTAL, _USED, _PERCENT = "DCGM_FI_DEV_FB_TOTAL_BYTES", "DCGM_FI_DEV_FB_USED_BYTES", "DCGM_FI_DEV_GPU_UTIL"
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
    ) -> None:
        self._claimable = claimable
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
        self._errors = {"kubelet": 0, "grants": 0}

    async def run(self) -> None:
        """Ask now and then, until cancelled."""
        asking = () if self._claimable is None else (self._claimable.run(),)
        await asyncio.gather(self._ask_on(), *asking)

    async def _ask_on(self) -> None:
        while True:  # noqa: ASYNC110 - the kubelet tells nobody
            await asyncio.sleep(self._ask_seconds if await self.ask() else RETRY_SECONDS)

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
        totals = {sample.uuid: (sample.index, int(sample.fields.get(_TOTAL, 0))) for sample in samples}
        totals |= {each.uuid: (-1, int(each.fields.get(_TOTAL, 0))) for sample in samples for each in sample.instances}
        claims = {} if self._claimable is None else self._claimable.latest()
        holders = device_processes(self._held, self._shares, totals, self._more_resources, claims)
        return [self._attributed(sample, holders) for sample in samples]

    def _attributed(self, sample: DeviceSample, holders: Mapping[str, tuple[DeviceProcess, ...]]) -> DeviceSample:
        instances = tuple(
            structs.replace(each, processes=self._use(each, holders.get(each.uuid, ()))) if each.uuid else each for each in sample.instances
        )
        return structs.replace(sample, processes=self._use(sample, holders.get(sample.uuid, ())), instances=instances)

    def _use(self, sample: DeviceSample | MigInstance, containers: tuple[DeviceProcess, ...]) -> tuple[DeviceProcess, ...]:
        if sample.seen is None:
            return unknown_use(containers)
        if self._homes is None:
            return sole_holder_use(containers, sample.fields.get(_USED), sample.fields.get(_PERCENT))
        return container_use(containers, sample.seen, self._homes.homes([each.pid for each in sample.seen]))

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
