"""Whose the cards of a node are, for its exporter: the kubelet's list and the agent's grants file.

A kubelet that does not answer costs nothing for a while: the last map stands for `ttl_seconds`, and only then
series lose the names of pods. No failure here takes a device's series away (telemetry contract 2.1, 2.4).
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final

from msgspec import structs

from fairlead.errors import OutsideError
from fairlead.model.devices.device import DeviceProcess, DeviceSample, MigInstance
from fairlead.model.devices.kubelet import GivenShare, HeldDevices
from fairlead.model.refusal import Refusal
from fairlead.ports import ClaimableCards, GivenFile, KubeletHolders, ProcessHomes
from fairlead.rules.devices.container_use import container_use, filled_use, sole_holder_use
from fairlead.rules.devices.pod_devices import device_processes
from fairlead.rules.metrics.exporter import PodMapState

ASK_SECONDS: Final = 5.0
RETRY_SECONDS: Final = 1.0
_TOTAL, _USED, _PERCENT = "DCGM_FI_DEV_FB_TOTAL_BYTES", "DCGM_FI_DEV_FB_USED_BYTES", "DCGM_FI_DEV_GPU_UTIL"
_PART: Final = "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
_log: Final = logging.getLogger(__name__)


class PodMap:
    """`monotonic` gives seconds. `homes` None: the processes of the node cannot be seen from here.

    `is_wanted`: somebody asked for names of pods, so that it is a fault when nobody tells them.
    """

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
        is_wanted: bool = True,
    ) -> None:
        self._is_wanted = is_wanted
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
        self._faults = frozenset[str]()
        self._totals: dict[str, int] = {}

    async def run(self, news: Callable[[], None]) -> None:
        """Ask now and then, until cancelled. `news`: names came or went."""
        asking = () if self._claimable is None else (self._claimable.run(),)
        await asyncio.gather(self._ask_on(news), *asking)

    async def _ask_on(self, news: Callable[[], None]) -> None:
        told = self._told
        while True:
            is_good = await self.ask()
            before, told = told, self._told
            if told != before:
                news()
            await asyncio.sleep(self._ask_seconds if is_good else RETRY_SECONDS)

    @property
    def _told(self) -> tuple[object, ...]:
        """What names of series depend on."""
        return self._is_fresh, self._held, self._shares, self._faults

    @property
    def _is_fresh(self) -> bool:
        return self._age is not None and self._age <= self._ttl_seconds

    async def ask(self) -> bool:
        """Ask once. Whether both have told."""
        given = self._given.read_given()
        if isinstance(given, Refusal):
            self._fail("grants", given.reason)
        else:
            self._shares = given
            self._is_well("grants")
        try:
            self._held = await self._kubelet.list_held()
        except OutsideError as failed:
            self._fail("kubelet", failed.log_line)
            return False
        self._is_well("kubelet")
        self._at = self._monotonic()
        return not isinstance(given, Refusal)

    def attributed(self, samples: Sequence[DeviceSample]) -> Sequence[DeviceSample]:
        """The samples with the containers that have each card, and what they use of it. Reads /proc."""
        if not self._is_fresh:
            return [structs.replace(sample, knows_holders=False, knows_foreign=False) for sample in samples]
        totals = {sample.uuid: (sample.index, self._total(sample)) for sample in samples if sample.uuid}
        totals |= {each.uuid: (-1, self._total(each)) for sample in samples for each in sample.instances if each.uuid}
        self._totals = {uuid: total for uuid, (_, total) in totals.items() if total is not None}
        claims = {} if self._claimable is None else self._claimable.latest()
        holders = device_processes(self._held, self._shares, totals, self._more_resources, claims)
        return [self._attributed(sample, holders) for sample in samples]

    def _total(self, entity: DeviceSample | MigInstance) -> int | None:
        """All its memory in bytes: as it says, else as it said last."""
        told = entity.fields.get(_TOTAL)
        return self._totals.get(entity.uuid) if told is None else int(told)

    def _attributed(self, sample: DeviceSample, holders: Mapping[str, tuple[DeviceProcess, ...]]) -> DeviceSample:
        shared = {each for each, count in Counter(each.gpu_instance for each in sample.instances).items() if count > 1}
        instances = tuple(
            structs.replace(each, processes=self._use(each, holders.get(each.uuid, ()), each.gpu_instance not in shared))
            if each.uuid
            else each
            for each in sample.instances
        )
        processes = self._use(sample, holders.get(sample.uuid, ()), True)
        knows = self._homes is not None and all(each.seen is not None for each in sample.instances or (sample,))
        return structs.replace(sample, processes=processes, instances=instances, knows_foreign=knows)

    def _use(self, sample: DeviceSample | MigInstance, containers: tuple[DeviceProcess, ...], is_whole: bool) -> tuple[DeviceProcess, ...]:
        """`is_whole`: what is told of it is its own, and not that of several compute instances together."""
        used, percent = (sample.fields.get(_USED), _percent(sample)) if is_whole else (None, None)
        if sample.seen is None or self._homes is None:
            return sole_holder_use(containers, used, percent)
        return filled_use(container_use(containers, sample.seen, self._homes.homes([each.pid for each in sample.seen])), used, percent)

    @property
    def state(self) -> PodMapState:
        containers = {(each.namespace, each.pod, each.container) for each in self._held if each.pod}
        return PodMapState(self._age, len(containers), tuple(sorted(self._errors.items())), self._faults, self._is_wanted)

    @property
    def _age(self) -> float | None:
        return None if self._at is None else self._monotonic() - self._at

    def _fail(self, reason: str, told: str) -> None:
        """In the log, once for each outage."""
        self._errors[reason] += 1
        if reason not in self._faults:
            self._faults |= {reason}
            _log.warning("whose the cards are is not known: %s", told)

    def _is_well(self, reason: str) -> None:
        if reason in self._faults:
            self._faults -= {reason}
            _log.info("whose the cards are is known again: %s", reason)


def _percent(sample: DeviceSample | MigInstance) -> float | None:
    """How busy the card is, or the instance, in percent."""
    if isinstance(sample, DeviceSample):
        return sample.fields.get(_PERCENT)
    part = sample.fields.get(_PART)
    return None if part is None else 100 * part
