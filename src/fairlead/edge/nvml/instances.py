"""MIG instances of one card: listed once, kept until the card's division changes.

Specification: docs/spec/telemetry.md#mig-instances.

Listing them with NVML is slow, so both the result and a failure are kept. Fields of the whole card
are with the card only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pynvml
from msgspec import Struct
from pynvml import NVMLError

from fairlead.edge.nvml.absences import Absences, Failures
from fairlead.edge.nvml.card_calls import BAR1_CALL, call_values
from fairlead.edge.nvml.cards import ShownCard, has_mig
from fairlead.edge.nvml.gpm import Gpm
from fairlead.edge.nvml.library import is_down, is_gone, words
from fairlead.edge.nvml.memory import MemoryForm
from fairlead.edge.nvml.processes import Processes
from fairlead.model.devices.readings import GpuProcess, InstanceReading
from fairlead.wire.devices.gpm_values import INSTANCE_METRICS

COLLECTOR: Final = "mig"
BUSY: Final = "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
_MARK: Final = "MIG "
_MEMORY: Final = "nvmlDeviceGetMemoryInfo"


class _Instance(Struct, gc=False):
    gpu_instance: int
    compute_instance: int
    profile: str
    uuid: str
    handle: Any
    memory: MemoryForm
    processes: Processes
    absences: Absences


class Instances:
    """Used by one thread. `absences`: of the card."""

    def __init__(
        self,
        card: ShownCard,
        absences: Absences,
        monotonic: Callable[[], float],
        now: Callable[[], float],
    ) -> None:
        self._card = card
        self._absences = absences
        self._monotonic = monotonic
        self._now = now
        self._found: list[_Instance] | None = None
        self._profiling: dict[int, Gpm] = {}
        self._what_not = self._why_not = ""
        self._is_divided = False

    def forget(self) -> None:
        """Makes the next call list the instances again, after a change of the division.

        NVML must be open.
        """
        for each in self._profiling.values():
            each.close()
        self._profiling, self._found = {}, None

    def is_divided(self, failures: Failures) -> bool:
        """Whether the card is divided, as far as is known.

        Raises NVMLError when card or driver is gone.
        """
        self._look(failures)
        return self._is_divided

    def fast(self, wanted: frozenset[str], failures: Failures) -> tuple[InstanceReading, ...]:
        """Memory, profiling and processes of each instance. Raises as `is_divided`.

        The utilization is always read, because Fairlead's own families have it.
        """
        profiled = (wanted & INSTANCE_METRICS) | {BUSY}
        by_gpu_instance: dict[int, tuple[dict[str, int | float], dict[str, str]]] = {}
        readings: list[InstanceReading] = []
        for each in self._look(failures):
            own = Failures(each.absences)
            fields: dict[str, int | float] = {}
            if not each.absences.has(_MEMORY):
                with own.caught("device", _MEMORY):
                    fields |= each.memory.read()
            if each.gpu_instance not in by_gpu_instance:
                shared = Failures(self._absences)
                by_field = self._gpm(each.gpu_instance).read(profiled, shared)
                by_gpu_instance[each.gpu_instance] = dict(by_field), shared.by_collector()
            profile, failed = by_gpu_instance[each.gpu_instance]
            processes = each.processes.read(own)
            readings.append(
                _reading(each, fields | profile, processes, own.by_collector() | failed)
            )
        return tuple(readings)

    def slow(self, failures: Failures) -> tuple[InstanceReading, ...]:
        """BAR1 memory of each instance. Raises as `is_divided`."""
        readings: list[InstanceReading] = []
        for each in self._look(failures):
            own = Failures(each.absences)
            fields: dict[str, int | float] = {}
            if not each.absences.has(BAR1_CALL.name):
                with own.caught("device", BAR1_CALL.name):
                    fields = call_values(BAR1_CALL, each.handle)
            readings.append(_reading(each, fields, None, own.by_collector()))
        return tuple(readings)

    def _gpm(self, gpu_instance: int) -> Gpm:
        if gpu_instance not in self._profiling:
            self._profiling[gpu_instance] = Gpm(
                self._card, self._absences, self._monotonic, gpu_instance
            )
        return self._profiling[gpu_instance]

    def _look(self, failures: Failures) -> list[_Instance]:
        if self._found is None:
            self._found, self._why_not, self._is_divided = [], "", False
            try:
                self._is_divided = has_mig(self._card)
                for index in range(
                    pynvml.nvmlDeviceGetMaxMigDeviceCount(self._card.handle)
                    if self._is_divided
                    else 0
                ):
                    self._find(index)
            except NVMLError as error:
                self._keep_why(error, "instances are not known")
        failures.add(COLLECTOR, self._what_not, self._why_not)
        return self._found

    def _find(self, index: int) -> None:
        assert self._found is not None
        try:
            handle = pynvml.nvmlDeviceGetMigDeviceHandleByIndex(self._card.handle, index)
        except NVMLError as error:
            if error.value not in (pynvml.NVML_ERROR_NOT_FOUND, pynvml.NVML_ERROR_INVALID_ARGUMENT):
                self._keep_why(error, f"instance {index} is not known")
            return
        try:
            absences = Absences(f"{self._card.uuid} MIG {index}", self._monotonic)
            instance = _Instance(
                pynvml.nvmlDeviceGetGpuInstanceId(handle),
                pynvml.nvmlDeviceGetComputeInstanceId(handle),
                pynvml.nvmlDeviceGetName(handle).rpartition(_MARK)[2],
                pynvml.nvmlDeviceGetUUID(handle),
                handle,
                MemoryForm(handle),
                Processes(handle, absences, self._now, has_shares=False),
                absences,
            )
        except NVMLError as error:
            self._keep_why(error, f"instance {index} is not known")
        else:
            self._found.append(instance)

    def _keep_why(self, error: NVMLError, what: str) -> None:
        if is_gone(error) or is_down(error):
            self._found = None
            raise error
        if not self._why_not:
            self._what_not, self._why_not = what, words(error)


def _reading(
    instance: _Instance,
    fields: dict[str, int | float],
    processes: tuple[GpuProcess, ...] | None,
    failures: dict[str, str],
) -> InstanceReading:
    return InstanceReading(
        instance.gpu_instance,
        instance.compute_instance,
        instance.profile,
        instance.uuid,
        fields,
        processes,
        failures,
    )
