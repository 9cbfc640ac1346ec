"""One card of this node: its last values, and its turns, each in the card's own thread.

A turn that does not return keeps the thread; until it returns, the card is not asked again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Final, Protocol

from msgspec import Struct, structs
from pynvml import NVMLError

from fairlead.edge.nvml.call_thread import CallThread
from fairlead.edge.nvml.cards import ShownCard
from fairlead.edge.nvml.library import is_down, words
from fairlead.edge.nvml.xid_tally import XidTally
from fairlead.model.devices.device import CollectorRun, DeviceSample, FieldGroup, MigInstance
from fairlead.model.devices.driver import is_reset
from fairlead.model.devices.gpu import GpuSlot
from fairlead.model.devices.readings import GpuProcess, GroupReading, InstanceReading

DEVICE: Final = "device"
COLLECTORS: Final = (DEVICE, "fieldvalues", "gpm", "processes")
"""Collectors that each card has from the start: an alert on an absent series could not fire."""
TIMEOUT: Final = "timeout"
_STATIC_SECONDS: Final = 86_400.0
_XID_FIELD: Final = "DCGM_FI_DEV_XID_ERRORS"
_DRIVER, _SERIAL, _VBIOS = (
    "DCGM_FI_DRIVER_VERSION",
    "DCGM_FI_DEV_SERIAL",
    "DCGM_FI_DEV_VBIOS_VERSION",
)
_ENERGY: Final = "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"
"""A counter since the driver took the card: only a reset lowers it."""
_MIG_MODE: Final = "DCGM_FI_DEV_MIG_MODE"
_NEVER: Final = float("-inf")
_log: Final = logging.getLogger(__name__)


class CardAsker(Protocol):
    """Reads one card, group by group; every call may take for ever.

    `wanted`: DCGM fields that are printed. Methods raise NVMLError when the card is lost or the
    driver is gone; any other failure is in the reading.
    """

    wanted: frozenset[str]

    def fast(self) -> GroupReading: ...

    def slow(self) -> GroupReading: ...

    def static(self) -> GroupReading: ...

    def forget(self) -> None:
        """Lists the MIG instances again, because the card's division changed."""
        ...

    def close(self) -> None:
        """Frees what NVML holds for the reader; NVML must still be open."""
        ...


class NvmlBeat(Struct, frozen=True):
    """Seconds between readings of fast and slow groups, and after which a call counts as stuck."""

    interval: float = 5.0
    slow_interval: float = 60.0
    call_timeout: float = 10.0


class CardAtIndex(Struct, frozen=True):
    """A card that the driver lists. `shown` None: it cannot be read, for the reason `why`.

    `is_down`: it is lost, or waits for a reset.
    """

    index: int
    shown: ShownCard | None = None
    slot: GpuSlot | None = None
    pci_bus_id: str = ""
    why: str = ""
    is_down: bool = False


class CardTurn(Struct, frozen=True):
    """The readings of one turn; None: the group was not due."""

    asker: CardAsker
    fast: GroupReading
    slow: GroupReading | None
    static: GroupReading | None
    seconds: float


class KnownCard:
    """`session`: the NVML session of its handle; -1 = everything must be read again.

    `monotonic` and `wall` return seconds.
    """

    def __init__(
        self,
        uuid: str,
        make_asker: Callable[[ShownCard], CardAsker],
        beat: NvmlBeat,
        monotonic: Callable[[], float],
        wall: Callable[[], float],
    ) -> None:
        self._make_asker = make_asker
        self._beat = beat
        self._monotonic = monotonic
        self._wall = wall
        self._shown_at = monotonic()
        self.thread = CallThread(f"gpu-{uuid}", monotonic)
        self.seen = CardAtIndex(-1)
        self.session = -1
        self._asker: CardAsker | None = None
        self._fast = FieldGroup({}, _NEVER, beat.interval)
        self._slow = FieldGroup({}, _NEVER, beat.slow_interval)
        self._static = FieldGroup({}, _NEVER, _STATIC_SECONDS)
        self._texts: Mapping[str, str] = {}
        self._processes: tuple[GpuProcess, ...] | None = None
        self._is_lost = False
        self._is_late_counted = False
        self._is_divided_anew = False
        self._instances: tuple[MigInstance, ...] = ()
        self._slow_of_instances: Mapping[str, Mapping[str, int | float]] = {}
        self._peers: Mapping[int, int] = {}
        self._runs = {name: CollectorRun(name) for name in COLLECTORS}
        self.xids = XidTally()
        self._awaits_reset = False
        self._reset_at: float | None = None

    def show(self, seen: CardAtIndex, session: int) -> None:
        if session != self.session:
            self._asker = None
        self.seen, self.session = seen, session

    def hide(self, *, is_down: bool = False) -> None:
        """The driver has the card but cannot list it. `is_down`: only a reset brings it back."""
        self._is_lost, self.session = True, -1
        self._awaits_reset |= is_down
        self.seen = structs.replace(self.seen, shown=None)

    def was_reset(self) -> None:
        """Forgets earlier values that do not apply after a reset."""
        self._awaits_reset, self._reset_at = False, self._wall()

    def release(self) -> None:
        """Frees what NVML holds for the card, while NVML is open and no call is under way."""
        asker, self._asker = self._asker, None
        if asker is not None:
            asker.close()

    @property
    def is_stuck(self) -> bool:
        return self.thread.busy_seconds > self._beat.call_timeout

    # --- a turn ---------------------------------------------------------------------------------

    def begin(self, wanted: frozenset[str]) -> asyncio.Future[CardTurn] | None:
        """Begins a turn; None while a call has not returned, or there is nothing to read."""
        shown, asker = self.seen.shown, self._asker
        if shown is None or self.thread.busy_seconds:
            return None
        is_anew, self._is_divided_anew = self._is_divided_anew, False
        is_slow_due = (
            asker is None
            or is_anew
            or self._monotonic() - self._slow.read_at >= self._beat.slow_interval
        )
        return self.thread.call(
            lambda: self._ask(shown, asker, wanted, is_slow_due=is_slow_due, is_anew=is_anew)
        )

    def _ask(
        self,
        shown: ShownCard,
        asker: CardAsker | None,
        wanted: frozenset[str],
        *,
        is_slow_due: bool,
        is_anew: bool,
    ) -> CardTurn:
        began = self._monotonic()
        asked = asker or self._make_asker(shown)
        asked.wanted = wanted
        if asker and is_anew:
            asked.forget()
        static = None if asker and not is_anew else asked.static()
        slow = asked.slow() if is_slow_due else None
        return CardTurn(asked, asked.fast(), slow, static, self._monotonic() - began)

    def keep(self, turn: CardTurn) -> None:
        now = self._monotonic()
        before, after = self._fast.fields.get(_ENERGY), turn.fast.fields.get(_ENERGY)
        if is_reset(before, after, was_away=self._awaits_reset):
            self.was_reset()
        self._awaits_reset = False
        self._asker, self._is_lost, self._is_late_counted = turn.asker, False, False
        self._fast = structs.replace(self._fast, fields=turn.fast.fields, read_at=now)
        self._processes = turn.fast.processes
        slower = (
            {each.uuid: each.fields for each in turn.slow.instances}
            if turn.slow is not None
            else self._slow_of_instances
        )
        self._slow_of_instances = slower
        self._instances = tuple(
            _instance(each, slower.get(each.uuid, {})) for each in turn.fast.instances
        )
        if turn.slow is not None:
            self._slow = structs.replace(self._slow, fields=turn.slow.fields, read_at=now)
            self._peers = turn.slow.peers
        if turn.static is not None:
            self._static = structs.replace(self._static, fields=turn.static.fields, read_at=now)
            self._texts = turn.static.texts
        failures: dict[str, str] = {}
        for reading in (turn.static, turn.slow, turn.fast):
            failures |= reading.failures if reading else {}
        for collector in {*self._runs, *failures}:
            self._count(
                collector,
                failures.get(collector, ""),
                turn.seconds if collector == DEVICE else None,
            )

    def fail(self, failure: BaseException) -> None:
        """Notes that the card answers nothing.

        An error of Fairlead is logged with its trace, once.
        """
        self._is_late_counted = False
        if isinstance(failure, NVMLError):
            self._is_lost = is_down(failure)
            self._awaits_reset |= self._is_lost
            self._count(DEVICE, words(failure))
            return
        kind = type(failure).__name__
        if not self._runs.get(DEVICE, CollectorRun(DEVICE)).errors.get(kind.lower()):
            _log.error(
                "GPU %s cannot be asked: a fault of Fairlead", self.seen.index, exc_info=failure
            )
        self._count(DEVICE, kind)

    def look_at_watch(self) -> None:
        """Counts a call that does not return as one failure."""
        if self.is_stuck and not self._is_late_counted:
            self._is_late_counted = True
            self._count(DEVICE, TIMEOUT)

    def _count(self, collector: str, error: str, seconds: float | None = None) -> None:
        run = structs.replace(
            self._runs.get(collector, CollectorRun(collector)),
            gpu=str(self.seen.index),
            is_good=not error,
            seconds=seconds,
        )
        if error:
            kind = error.lower().replace(" ", "_")
            run = structs.replace(run, errors={**run.errors, kind: run.errors.get(kind, 0) + 1})
        else:
            run = structs.replace(run, succeeded_at=self._monotonic())
        self._runs[collector] = run

    def divide(self) -> None:
        """Notes that its MIG instances changed."""
        self._is_divided_anew = True

    # --- results --------------------------------------------------------------------------------

    def sample(self, node: str, cuda_version: str, *, is_driver_up: bool) -> DeviceSample | None:
        """The sample; None = only the existence of the card is known."""
        slot, is_known = self.seen.slot, self._fast.read_at != _NEVER
        if slot is None:
            return None
        throttled = (
            None if self._is_lost else self._fast.fields.get("DCGM_FI_DEV_CLOCKS_EVENT_REASONS")
        )
        return DeviceSample(
            node=node,
            index=self.seen.index,
            minor=slot.minor,
            uuid=slot.uuid,
            pci_bus_id=self.seen.pci_bus_id,
            model=slot.model,
            driver_version=self._texts.get(_DRIVER, ""),
            healthy=None,
            fields={}
            if self._is_lost or not is_known
            else {_XID_FIELD: self.xids.last(), **self._fast.fields},
            power_limit_watts=None
            if self._is_lost
            else self._slow.fields.get("DCGM_FI_DEV_ENFORCED_POWER_LIMIT"),
            serial=self._texts.get(_SERIAL, ""),
            cuda_version=cuda_version,
            vbios_version=self._texts.get(_VBIOS, ""),
            throttle_reasons=None if throttled is None else int(throttled),
            xids=self.xids.events,
            up=is_known and is_driver_up and not (self.is_stuck or self._is_lost),
            sampled_at=self._fast.read_at if is_known else self._shown_at,
            slower=(self._static, self._slow),
            texts=self._texts,
            seen=None if self._is_lost else self._processes,
            instances=()
            if self._is_lost
            else tuple(self._with_xid(each) for each in self._instances),
            mig_mode=_mig_mode(self._static.fields.get(_MIG_MODE)),
            peers={} if self._is_lost else self._peers,
            collectors=tuple(
                structs.replace(self._runs[name], gpu=str(self.seen.index))
                for name in sorted(self._runs)
            ),
            reset_at=self._reset_at,
        )

    def _with_xid(self, instance: MigInstance) -> MigInstance:
        return structs.replace(
            instance, fields={**instance.fields, _XID_FIELD: self.xids.last(instance.gpu_instance)}
        )


def _instance(reading: InstanceReading, slower: Mapping[str, int | float]) -> MigInstance:
    ids = (reading.gpu_instance, reading.compute_instance, reading.profile, reading.uuid)
    return MigInstance(*ids, fields={**slower, **reading.fields}, seen=reading.processes)


def _mig_mode(mode: float | None) -> str:
    """The mode's word; a card that cannot be divided has no mode."""
    return "enabled" if mode else "disabled"
