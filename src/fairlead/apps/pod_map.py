"""Maps the cards of a node to containers, from the kubelet's list and the agent's grants file.

If a kubelet does not answer, the last map is valid for `ttl_seconds`; only then series lose the
names of pods. No failure here removes a device's series (docs/spec/telemetry.md#pod-resources-api,
docs/spec/telemetry.md#attribution-rules).
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence, Set
from contextlib import suppress
from typing import Final

from msgspec import structs

from fairlead.errors import OutsideError
from fairlead.model.devices.device import DeviceProcess, DeviceSample, MigInstance
from fairlead.model.devices.kubelet import GivenShare, HeldDevices, RegionCard
from fairlead.model.refusal import Refusal
from fairlead.ports import (
    ClaimableCards,
    GivenFile,
    GuardFiles,
    KubeletHolders,
    PodIdentities,
    ProcessHomes,
)
from fairlead.rules.devices.container_use import container_use, filled_use, sole_holder_use
from fairlead.rules.devices.guard.counted import counted
from fairlead.rules.devices.pod_devices import (
    LocalPods,
    NodeCards,
    device_processes,
    homeless,
    named_homes,
    node_cards,
    unnamed_cards,
    unplaced,
)
from fairlead.rules.metrics.exporter import PodMapState

ASK_SECONDS: Final = 5.0
MOST_ASKED_FOR: Final = 4096
NO_HOST_PID: Final = "no_host_pid"
PLACEMENT: Final = "placement"
"""Reason of an error: the card of a container's shared memory is unknown.

Neither the grants file nor the pod's annotations name it.
"""
RETRY_SECONDS: Final = 1.0
_USED, _PERCENT = "DCGM_FI_DEV_FB_USED_BYTES", "DCGM_FI_DEV_GPU_UTIL"
_PART: Final = "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
_log: Final = logging.getLogger(__name__)


class PodMap:
    """The containers of each card.

    `monotonic` returns seconds. `homes` None: the processes of the node cannot be seen from here.

    `guard`: counters of the memory guard. `is_wanted`: names of pods were asked for by a flag, so
    that it is an error if they are unknown.
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
        identities: PodIdentities | None = None,
        guard: GuardFiles | None = None,
    ) -> None:
        self._guard = guard
        self._unreadable: set[str] = set()
        self._is_wanted = is_wanted
        self._claimable = claimable
        self._identities = identities
        self._by_mps: set[str] = set()
        self._unread: set[str] = set()
        self._asked_for: set[int] = set()
        self._homeless: set[str] = set()
        self._lost: frozenset[str] = frozenset()
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
        self._errors = {"kubelet": 0, "grants": 0, NO_HOST_PID: 0, PLACEMENT: 0}
        self._faults = frozenset[str]()
        self._totals: dict[str, int] = {}

    async def run(self, news: Callable[[], None]) -> None:
        """Ask at intervals, until cancelled. `news`: names came or went."""
        asking = () if self._claimable is None else (self._claimable.run(),)
        await asyncio.gather(self._ask_on(news), *asking)

    async def _ask_on(self, news: Callable[[], None]) -> None:
        self._loop = asyncio.get_running_loop()
        names = self._names_now
        while True:
            self._unknown.clear()
            wait = self._ask_seconds if await self.ask() else RETRY_SECONDS
            before, names = names, self._names_now
            if names != before:
                news()
            await asyncio.sleep(min(wait, RETRY_SECONDS))
            with suppress(TimeoutError):
                await asyncio.wait_for(self._unknown.wait(), max(0.0, wait - RETRY_SECONDS))

    @property
    def _names_now(self) -> tuple[object, ...]:
        """The values that names of series depend on."""
        return self._is_fresh, self._held, self._shares, self._faults

    @property
    def _is_fresh(self) -> bool:
        return self._age is not None and self._age <= self._ttl_seconds

    async def ask(self) -> bool:
        """Ask once. Returns whether both sources answered."""
        given = self._given.read_given()
        if isinstance(given, Refusal):
            self._fail("grants", given.reason)
        else:
            self._shares = given
            self._is_well("grants")
        self._lost = self._unplaced()
        try:
            self._held = await self._kubelet.list_held()
        except OutsideError as failed:
            self._fail("kubelet", failed.log_line)
            return False
        self._is_well("kubelet")
        self._at = self._monotonic()
        return not isinstance(given, Refusal)

    def attributed(self, samples: Sequence[DeviceSample]) -> Sequence[DeviceSample]:
        """The samples with the containers of each card, and what they use of it.

        Reads /proc.
        """
        if not self._is_fresh:
            return [
                structs.replace(sample, knows_holders=False, knows_foreign=False)
                for sample in samples
            ]
        claims = {} if self._claimable is None else self._claimable.latest()
        pods = {} if self._identities is None else self._identities.latest()
        self._look_for_mps(samples)
        cards = node_cards(samples, self._by_mps, self._totals)
        self._totals = {
            uuid: total for uuid, (_, total) in cards.totals.items() if total is not None
        }
        holders = device_processes(
            self._held, self._shares, cards, self._more_resources, claims, pods
        )
        guarded = self._guarded(holders)
        self._homeless.clear()
        unnamed = self._unnamed(cards)
        found = [self._attributed(sample, guarded, pods) for sample in samples]
        found = [
            structs.replace(each, knows_holders=False)
            if unnamed & {each.uuid, *_parts(each)}
            else each
            for each in found
        ]
        return self._doubted(found, self._unplaced() if self._homeless else frozenset())

    def _guarded(
        self, holders: Mapping[str, tuple[DeviceProcess, ...]]
    ) -> Mapping[str, tuple[DeviceProcess, ...]]:
        """With what the memory guard counts in each container that has it."""
        if self._guard is None:
            return holders
        tokens = {each.token for held in holders.values() for each in held if each.token}
        self._unreadable &= tokens
        found = {token: self._counted(self._guard, token) for token in tokens}
        return {
            uuid: tuple(each.with_counts(found.get(each.token, {}).get(uuid)) for each in held)
            for uuid, held in holders.items()
        }

    def _counted(self, guard: GuardFiles, token: str) -> Mapping[str, RegionCard]:
        """By UUID of the card. Logged once for each container whose counters cannot be read."""
        read = guard.read_guard(token)
        if read is None:
            return {}
        found = read if isinstance(read, Refusal) else counted(*read)
        if not isinstance(found, Refusal):
            return found
        if token not in self._unreadable:
            self._unreadable.add(token)
            _log.warning(
                "what the memory guard counts in the container of token %s is not known: %s",
                token,
                found.reason,
            )
        return {}

    def _unnamed(self, cards: NodeCards) -> Set[str]:
        """Cards that the kubelet lists under a resource whose ids are not read; logged once."""
        unnamed = unnamed_cards(self._held, cards, self._more_resources)
        for resource in sorted(set(unnamed.values()) - self._unread):
            self._unread.add(resource)
            _log.warning(
                "the kubelet gives cards of this node as `%s`, a resource whose ids are not "
                "read: their holders are unknown;"
                " name it with --nvidia-resource-names",
                resource,
            )
        return unnamed.keys()

    def _unplaced(self) -> frozenset[str]:
        return unplaced(
            self._held, self._shares, {} if self._identities is None else self._identities.latest()
        )

    def _doubted(
        self, samples: Sequence[DeviceSample], lost: frozenset[str]
    ) -> Sequence[DeviceSample]:
        """While containers are `lost`, no program counts as foreign.

        A program in an unknown pod may belong to such a container.
        """
        if not lost & self._lost:
            self._is_well(PLACEMENT)
        else:  # always, not only after a new list: the grants file is read, too
            self._fail(
                PLACEMENT,
                (
                    f"{min(lost)} has shared memory, and neither the grants file nor its pod names "
                    "the card"
                ),
            )
        if not lost:
            return samples
        return [
            structs.replace(each, knows_holders=False, knows_foreign=False)
            if self._homeless & {each.uuid, *_parts(each)}
            else each
            for each in samples
        ]

    def _look_for_mps(self, samples: Sequence[DeviceSample]) -> None:
        """The programs of a card use MPS, or time slices, until others are seen."""
        entities: list[DeviceSample | MigInstance] = [
            *samples,
            *(each for sample in samples for each in sample.instances),
        ]
        for each in entities:
            if each.seen:
                is_mps = any("M" in process.type for process in each.seen)
                (self._by_mps.add if is_mps else self._by_mps.discard)(each.uuid)

    def _attributed(
        self,
        sample: DeviceSample,
        holders: Mapping[str, tuple[DeviceProcess, ...]],
        pods: LocalPods,
    ) -> DeviceSample:
        shared = {
            each
            for each, count in Counter(each.gpu_instance for each in sample.instances).items()
            if count > 1
        }
        instances = tuple(
            structs.replace(
                each,
                processes=self._use(
                    each, holders.get(each.uuid, ()), pods, each.gpu_instance not in shared
                ),
            )
            if each.uuid
            else each
            for each in sample.instances
        )
        processes = self._use(sample, holders.get(sample.uuid, ()), pods, True)
        knows = self._homes is not None and all(
            each.seen is not None for each in sample.instances or (sample,)
        )
        return structs.replace(
            sample, processes=processes, instances=instances, knows_foreign=knows
        )

    def _use(
        self,
        sample: DeviceSample | MigInstance,
        containers: tuple[DeviceProcess, ...],
        pods: LocalPods,
        is_whole: bool,
    ) -> tuple[DeviceProcess, ...]:
        """`is_whole`: the values are its own, not those of several compute instances together."""
        used, percent = (sample.fields.get(_USED), _percent(sample)) if is_whole else (None, None)
        if sample.seen is None or self._homes is None:
            if sample.seen:
                self._note_no_host_pid()
            return sole_holder_use(containers, used, percent)
        homes = named_homes(self._homes.homes([each.pid for each in sample.seen]), pods)
        if strangers := homeless(homes, containers):
            self._homeless.add(sample.uuid)
            self._ask_for(strangers)
        return filled_use(container_use(containers, sample.seen, homes), used, percent)

    def _note_no_host_pid(self) -> None:
        """Counted and logged once. It is no error of the map: names of pods are known."""
        if not self._errors[NO_HOST_PID]:
            _log.warning(
                "what containers use is not known: processes of the node cannot be seen from here "
                "(hostPID)"
            )
        self._errors[NO_HOST_PID] += 1

    def _ask_for(self, pids: set[int]) -> None:
        """Ask the kubelet soon: at most once a second, once per process of unknown containers."""
        if pids <= self._asked_for:
            return
        self._asked_for = pids if len(self._asked_for) > MOST_ASKED_FOR else self._asked_for | pids
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._unknown.set)

    @property
    def state(self) -> PodMapState:
        containers = {(each.namespace, each.pod, each.container) for each in self._held if each.pod}
        return PodMapState(
            self._age,
            len(containers),
            tuple(sorted(self._errors.items())),
            self._faults,
            self._is_wanted,
        )

    @property
    def _age(self) -> float | None:
        return None if self._at is None else self._monotonic() - self._at

    def _fail(self, reason: str, why: str) -> None:
        """Logged once for each outage."""
        self._errors[reason] += 1
        if reason not in self._faults:
            self._faults |= {reason}
            _log.warning("the holders of cards are unknown: %s", why)

    def _is_well(self, reason: str) -> None:
        if reason in self._faults:
            self._faults -= {reason}
            _log.info("the holders of cards are known again: %s", reason)


def _parts(sample: DeviceSample) -> set[str]:
    return {each.uuid for each in sample.instances}


def _percent(sample: DeviceSample | MigInstance) -> float | None:
    """How busy the card is, or the instance, in percent."""
    if isinstance(sample, DeviceSample):
        return sample.fields.get(_PERCENT)
    part = sample.fields.get(_PART)
    return None if part is None else 100 * part
