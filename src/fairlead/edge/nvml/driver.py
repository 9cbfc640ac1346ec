"""The port `CardDriver` with NVML: the driver of this node's NVIDIA GPUs.

A driver that goes away is looked for at every call, and nothing of the former session is kept. A
card without a handle is left out; one that has a handle, but cannot be read, keeps its last values.
While a card is unhealthy, NVML is initialised again now and then, because it does not notice by
itself that a card was reset. An added card is listed by the next process. NVML keeps the devices of
the cards open: stop the agent before `nvidia-smi --gpu-reset`.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Final

import pynvml
from pynvml import NVMLError

from fairlead.edge.nvml import mps
from fairlead.edge.nvml.cards import (
    ShownCard,
    ask,
    hard_limit,
    has_mig,
    shown_card,
    slot,
    used_mib_by_pid,
)
from fairlead.edge.nvml.library import (
    LIBRARY,
    close_library,
    failure,
    is_down,
    is_gone,
    open_library,
    value_or,
    words,
)
from fairlead.edge.nvml.xid_events import XidEvents
from fairlead.model.devices.driver import (
    CardAnswer,
    CgroupLimit,
    DriverXid,
    IsolationMeans,
    MpsLimit,
    ProcessMemory,
)
from fairlead.model.devices.gpu import GpuSlot

REOPEN_SECONDS: Final = 300.0
"""Seconds between initialisations of NVML while a card is unhealthy.

XIDs at that moment are lost.
"""
CGROUPS: Final = Path("/sys/fs/cgroup")
_log: Final = logging.getLogger(__name__)


class NvmlDriver:
    """See `ports.CardDriver`. One per process. `close` ends its thread and the library.

    `library`: a name for the loader, or a path. `monotonic` returns seconds.
    """

    def __init__(
        self,
        library: str = LIBRARY,
        cgroups: Path = CGROUPS,
        places: mps.MpsPlaces = mps.PLACES,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._library = library
        self._cgroups = cgroups
        self._places = places
        self._monotonic = monotonic
        self._turn = Lock()
        self._is_open = False
        self._opened_at = 0.0
        self._is_any_unhealthy = False
        self._events = XidEvents()
        self._slots: dict[tuple[int, str], GpuSlot] = {}
        self._has_mig: dict[str, bool] = {}
        self._reported: dict[str, str] = {}

    def cards(self) -> Sequence[GpuSlot]:
        with self._asking():
            self._report("events", "")
            slots = [self._slot(card) for card in self._look(is_retry=True)]
            return [each for each in slots if each is not None]

    def xids(self) -> Sequence[DriverXid]:
        """XIDs since the last call; earlier ones stay when the driver goes away."""
        seen = self._events.drain()
        if seen:
            return seen
        with self._asking():
            if self._events.failure is not None:
                if is_gone(self._events.failure):
                    raise self._events.failure
                self._report(
                    "events", f"waiting for XIDs begins anew: {words(self._events.failure)}"
                )
                self._look()
            return self._events.drain()

    def probe(self, uuid: str) -> CardAnswer:
        with self._asking():
            answers: list[CardAnswer] = []
            for card in self._look():
                if card.uuid != uuid:
                    continue
                try:
                    answers.append(ask(card))
                except NVMLError as error:
                    self._raise_if_gone(error)
                    self._is_any_unhealthy = True
                    return CardAnswer(words(error), is_down=is_down(error))
            return answers[0] if answers else CardAnswer("the driver does not show this GPU")

    def processes(self) -> Sequence[ProcessMemory]:
        """The processes whose memory NVML reports.

        Others (on some virtual cards) cannot be watched.
        """
        with self._asking():
            cards = self._look()
            failed: list[NVMLError] = []
            found: list[ProcessMemory] = []
            for card in cards:
                try:
                    used = used_mib_by_pid(card)
                except NVMLError as error:
                    self._raise_if_gone(error)
                    if not is_down(error):
                        failed.append(error)
                        self._report(
                            f"processes {card.uuid}",
                            f"processes of GPU {card.uuid} are not known: {words(error)}",
                        )
                    continue
                unknown = sum(mib is None for mib in used.values())
                self._report(
                    f"memory {card.uuid}",
                    f"NVML does not report the memory of processes of GPU {card.uuid}"
                    if unknown
                    else "",
                )
                found += [
                    ProcessMemory(pid, card.uuid, mib)
                    for pid, mib in sorted(used.items())
                    if mib is not None
                ]
            if failed and len(failed) == len(cards):
                raise failed[0]
            return found

    def means(self) -> IsolationMeans:
        with self._asking():
            cards = self._look()
            cuda = value_or(pynvml.nvmlSystemGetCudaDriverVersion_v2, 0)
            return IsolationMeans(
                driver=_major(value_or(pynvml.nvmlSystemGetDriverVersion, "")),
                cuda=(cuda // 1000, cuda % 1000 // 10),
                has_cgroup_v2=(self._cgroups / "cgroup.controllers").exists(),
                has_mig=bool(cards) and all(self._is_divided(card) for card in cards),
                has_mps=bool(cards)
                and all(mps.has_daemon(card.uuid, self._places) for card in cards),
            )

    def cgroup_limit(self, uuid: str, cgroup: str) -> CgroupLimit:
        path = f"{self._cgroups}{cgroup}"
        with self._asking():
            for card in self._look():
                if card.uuid == uuid:
                    try:
                        return CgroupLimit(hard_limit(card, path))
                    except NVMLError as error:
                        self._raise_if_gone(error)
                        return CgroupLimit(fault=f"the driver answers for {path}: {words(error)}")
        return CgroupLimit(fault="the driver does not show this GPU")

    def bound_mps(self, limits: Sequence[MpsLimit]) -> str:
        """The first fault of a card; the others are bound nevertheless."""
        wanted = {limit.uuid: limit for limit in limits}
        with self._asking():
            faults = [
                mps.bound(card, wanted[card.uuid], self._places)
                if card.uuid in wanted
                else mps.release(card, self._places)
                for card in self._look()
            ]
        return next(filter(None, faults), "")

    def close(self) -> None:
        """Ends the session; a later call would begin a new one."""
        with self._turn:
            self._end()

    # --- one session ----------------------------------------------------------------------------

    @contextmanager
    def _asking(self) -> Iterator[None]:
        """Opens NVML. Its errors become OutsideError; the session ends when there is no driver."""
        with self._turn:
            if (
                self._is_open
                and self._is_any_unhealthy
                and self._monotonic() - self._opened_at >= REOPEN_SECONDS
            ):
                self._end()
            try:
                if not self._is_open:
                    self._begin()
                yield
            except NVMLError as error:
                if is_gone(error) and self._is_open:
                    self._end()
                raise failure(error) from error

    def _begin(self) -> None:
        open_library(self._library)
        self._is_open, self._is_any_unhealthy, self._opened_at = True, False, self._monotonic()
        self._look()

    def _end(self) -> None:
        if self._is_open:
            self._events.end()
            close_library()
            self._is_open = False

    def _look(self, *, is_retry: bool = False) -> list[ShownCard]:
        """All cards with a handle now; XIDs of these are received."""
        shown: list[ShownCard] = []
        for index in range(pynvml.nvmlDeviceGetCount()):
            try:
                shown.append(shown_card(index))
                self._report(f"card {index}", "")
            except NVMLError as error:
                self._raise_if_gone(error)
                self._is_any_unhealthy = True
                self._report(f"card {index}", f"GPU {index} is left out: {words(error)}")
        self._events.watch(shown, is_retry=is_retry)
        return shown

    def _slot(self, card: ShownCard) -> GpuSlot | None:
        try:
            known = self._slots[card.index, card.uuid] = slot(card)
            self._report(f"slot {card.uuid}", "")
        except NVMLError as error:
            self._raise_if_gone(error)
            self._is_any_unhealthy = True
            self._report(f"slot {card.uuid}", f"GPU {card.uuid} cannot be read: {words(error)}")
            return self._slots.get((card.index, card.uuid))
        return known

    def _is_divided(self, card: ShownCard) -> bool:
        try:
            self._has_mig[card.uuid] = has_mig(card)
        except NVMLError as error:
            self._raise_if_gone(error)
            self._report(
                f"mig {card.uuid}",
                f"whether GPU {card.uuid} is divided is not known: {words(error)}",
            )
        return self._has_mig.get(card.uuid, False)

    def _raise_if_gone(self, error: NVMLError) -> None:
        if is_gone(error):
            raise error

    def _report(self, subject: str, what: str) -> None:
        """Logs a fault once until it changes; "" = the fault has ended."""
        if what and self._reported.get(subject) != what:
            _log.warning("%s", what)
        self._reported[subject] = what


def _major(version: str) -> int:
    """
    >>> _major("615.71.05"), _major("beta")
    (615, 0)
    """
    match = re.match(r"\d{1,9}", version)
    return int(match[0]) if match else 0
