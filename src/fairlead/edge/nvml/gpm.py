"""Profiling of one card, or of one GPU instance, with GPM: the activity between two samples.

GPM exists since Hopper; a card without it costs one question in ten minutes. Only `close` frees the
two samples, while NVML is open; a session that ends unexpectedly may leak them, a few kilobytes.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

import pynvml
from pynvml import NVMLError

from fairlead.edge.nvml.absences import Absences, Failures
from fairlead.edge.nvml.cards import ShownCard
from fairlead.wire.devices.gpm_values import GPM_METRICS, gpm_value
from fairlead.wire.devices.nvml_values import SUCCESS

COLLECTOR: Final = "gpm"
APART_SECONDS: Final = 0.1
"""Least time between two samples, in seconds; an earlier call returns the last values."""
_SUPPORT: Final = "nvmlGpmQueryDeviceSupport"


class Gpm:
    """Used by one thread. `gpu_instance`: of a divided card, None = the whole card."""

    def __init__(
        self,
        card: ShownCard,
        absences: Absences,
        monotonic: Callable[[], float],
        gpu_instance: int | None = None,
    ) -> None:
        self._card = card
        self._absences = absences
        self._monotonic = monotonic
        self._gpu_instance = gpu_instance
        self._samples: list[Any] = []
        self._is_supported = False
        self._taken_at: float | None = None
        self._last: Mapping[str, int | float] = {}
        self._sampling = (
            "nvmlGpmSampleGet" if gpu_instance is None else f"nvmlGpmMigSampleGet({gpu_instance})"
        )
        self._question = pynvml.c_nvmlGpmMetricsGet_t()

    def read(self, wanted: Collection[str], failures: Failures) -> Mapping[str, int | float]:
        """The wanted fields that GPM has; none at first, because GPM needs two samples.

        Raises NVMLError when the card is lost or the driver is gone.
        """
        names = frozenset(name for name in wanted if name in GPM_METRICS)
        if not names:
            self._taken_at, self._last = None, {}
            return {}
        if self._taken_at is not None and self._monotonic() - self._taken_at < APART_SECONDS:
            return {name: value for name, value in self._last.items() if name in names}
        self._last = {}
        with failures.caught(COLLECTOR, _SUPPORT):
            if not self._has_gpm():
                return {}
        with failures.caught(COLLECTOR, self._sampling):
            if self._is_supported and not self._absences.has(self._sampling) and self._take():
                self._last = self._between(sorted(names, key=GPM_METRICS.__getitem__), failures)
        return self._last

    def close(self) -> None:
        """Frees the samples. NVML must still be open."""
        while self._samples:
            with contextlib.suppress(NVMLError):  # NVML has ended
                pynvml.nvmlGpmSampleFree(self._samples.pop())
        self._taken_at, self._last = None, {}

    def _has_gpm(self) -> bool:
        if self._absences.has(_SUPPORT):
            return False
        if not self._is_supported:
            self._is_supported = bool(
                pynvml.nvmlGpmQueryDeviceSupport(self._card.handle).isSupportedDevice
            )
            if not self._is_supported:
                self._absences.keep(_SUPPORT)
        return self._is_supported

    def _take(self) -> bool:
        """Takes the newer sample again; whether there is an older one to compare it with."""
        while len(self._samples) < 2:
            self._samples.append(pynvml.nvmlGpmSampleAlloc())
        self._samples.reverse()
        has_older, self._taken_at = self._taken_at is not None, None
        if self._gpu_instance is None:
            pynvml.nvmlGpmSampleGet(self._card.handle, self._samples[1])
        else:
            pynvml.nvmlGpmMigSampleGet(self._card.handle, self._gpu_instance, self._samples[1])
        self._taken_at = self._monotonic()
        return has_older

    def _between(self, names: Collection[str], failures: Failures) -> dict[str, int | float]:
        asked = [name for name in names if not self._absences.has((name, self._gpu_instance))]
        if not asked:
            return {}
        question = self._question
        question.version = pynvml.NVML_GPM_METRICS_GET_VERSION
        question.numMetrics = len(asked)
        question.sample1, question.sample2 = self._samples
        for metric, name in zip(question.metrics, asked, strict=False):
            metric.metricId = GPM_METRICS[name]
        pynvml.nvmlGpmMetricsGet(question)
        found: dict[str, int | float] = {}
        for metric, name in zip(question.metrics, asked, strict=False):
            if metric.nvmlReturn != SUCCESS:
                why = self._absences.judge((name, self._gpu_instance), NVMLError(metric.nvmlReturn))
                failures.add(COLLECTOR, name, why)
            elif (value := gpm_value(name, metric.value)) is not None:
                found[name] = value
        return found
