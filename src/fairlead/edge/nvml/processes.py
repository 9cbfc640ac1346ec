"""The processes on a card or MIG instance: their memory, and share of its multiprocessors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec
import pynvml
from pynvml import NVMLError

from fairlead.edge.nvml.absences import Absences, Failures
from fairlead.edge.nvml.cards import running, whole_list
from fairlead.model.devices.readings import EngineTime, GpuProcess

COLLECTOR: Final = "processes"
_LIST: Final = "nvmlDeviceGetComputeRunningProcesses"
_SHARES: Final = "nvmlDeviceGetProcessUtilization"
_FIRST_MICROSECONDS: Final = 1_000_000
"""How far back the first call reads, in microseconds; 0 would return values of any age."""


_Share = tuple[float | None, EngineTime]
"""The share of the multiprocessors in percent, and of the other engines."""
_IDLE: Final[_Share] = (0.0, EngineTime(0.0, 0.0, 0.0))


class Processes:
    """The processes of one card, used by one thread.

    `now` returns epoch seconds, as the driver's stamps. `has_shares`: no MIG instance.
    """

    def __init__(
        self, handle: Any, absences: Absences, now: Callable[[], float], *, has_shares: bool = True
    ) -> None:
        self._handle = handle
        self._absences = absences
        self._now = now
        self._has_shares = has_shares
        self._seen_until = 0

    def read(self, failures: Failures) -> tuple[GpuProcess, ...] | None:
        """Processes by pid; None = unknown.

        Raises NVMLError when the card is lost or the driver is gone.
        """
        seen: list[GpuProcess] | None = None
        if not self._absences.has(_LIST):
            with failures.caught(COLLECTOR, _LIST):
                seen = running(self._handle)
                if seen is None:
                    self._absences.keep(_LIST)
        if seen is None:
            return None
        shares = self._shares(failures) if seen and self._has_shares else None
        if shares is None:
            return tuple(seen)
        return tuple(_with_share(each, shares.get(each.pid, _IDLE)) for each in seen)

    def _shares(self, failures: Failures) -> dict[int, _Share] | None:
        """Shares by pid since the last call, {} = no process was active; None = unknown."""
        if self._absences.has(_SHARES):
            return None
        now = int(self._now() * 1e6)
        if not 0 < self._seen_until <= now:  # the first time, and after the clock was set back
            self._seen_until = max(1, now - _FIRST_MICROSECONDS)
        samples: Any = None
        with failures.caught(COLLECTOR, _SHARES):
            try:
                samples = whole_list(
                    lambda: pynvml.nvmlDeviceGetProcessUtilization(self._handle, self._seen_until)
                )
            except NVMLError as error:
                if error.value not in (pynvml.NVML_SUCCESS, pynvml.NVML_ERROR_NOT_FOUND):
                    raise
                samples = ()
        if samples is None:
            return None
        newest: dict[int, Any] = {}
        for sample in samples:
            if sample.pid not in newest or sample.timeStamp >= newest[sample.pid].timeStamp:
                newest[sample.pid] = sample
        self._seen_until = max([self._seen_until, *(sample.timeStamp for sample in samples)])
        return {pid: _share(sample) for pid, sample in newest.items()}


def _share(sample: Any) -> _Share:
    percents = (sample.smUtil, sample.memUtil, sample.encUtil, sample.decUtil)
    multiprocessors, *others = (float(percent) if percent <= 100 else None for percent in percents)
    return multiprocessors, EngineTime(*others)


def _with_share(process: GpuProcess, share: _Share) -> GpuProcess:
    return msgspec.structs.replace(process, sm_percent=share[0], engines=share[1])
