"""NVML's values of one card: name, memory, health, processes. Functions raise NVMLError.

Memory is read in its second form, which includes the driver's reserved memory. Only a driver
without that call (before 510) is asked in the first form: a temporary error must not change the
memory that a card offers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

import pynvml
from msgspec import Struct
from pynvml import NVMLError

from fairlead.edge.nvml.library import is_down, is_gone, is_silent
from fairlead.model.devices.driver import CardAnswer
from fairlead.model.devices.gpu import GpuSlot
from fairlead.model.devices.readings import GpuProcess
from fairlead.wire.devices.nvml_values import RECOVERY_ACTION, field_number, parse_field_values

_MIB: Final = 1 << 20
_MOST_TRIES: Final = 3
_NO_LIMIT: Final = (1 << 64) - 1
"""`NVML_DEVICE_MEMORY_LIMIT_MAX`: a limit that was taken away."""
WITHOUT_V2: Final = frozenset(
    {
        pynvml.NVML_ERROR_FUNCTION_NOT_FOUND,
        pynvml.NVML_ERROR_NOT_SUPPORTED,
        pynvml.NVML_ERROR_ARGUMENT_VERSION_MISMATCH,
    }
)
_LISTS: Final = {
    "C": ("nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses_v2"),
    "G": ("nvmlDeviceGetGraphicsRunningProcesses_v3", "nvmlDeviceGetGraphicsRunningProcesses_v2"),
    "M": (
        "nvmlDeviceGetMPSComputeRunningProcesses_v3",
        "nvmlDeviceGetMPSComputeRunningProcesses_v2",
    ),
}
"""The calls for each type of process, in two generations of one structure.

Every driver has the first type.
"""


class ShownCard(Struct, frozen=True):
    """A card with a handle from NVML; the handle is valid until NVML ends."""

    index: int
    uuid: str
    handle: Any


def shown_card(index: int) -> ShownCard:
    handle = pynvml.nvmlDeviceGetHandleByIndex(index)
    return ShownCard(index, pynvml.nvmlDeviceGetUUID(handle), handle)


def slot(card: ShownCard) -> GpuSlot:
    """The inventory entry without units and health. `minor` -1: a virtual card has none."""
    try:
        minor = pynvml.nvmlDeviceGetMinorNumber(card.handle)
    except NVMLError as error:
        if not is_silent(error):
            raise
        minor = -1
    return GpuSlot(
        card.index, card.uuid, minor, pynvml.nvmlDeviceGetName(card.handle), _memory_mib(card)
    )


def _memory_mib(card: ShownCard) -> int:
    """Memory that containers can get.

    Specification: docs/spec/gpu-sharing.md#units-and-the-proportional-grant.
    """
    try:
        memory = pynvml.nvmlDeviceGetMemoryInfo(card.handle, pynvml.nvmlMemory_v2)
    except NVMLError as error:
        if error.value not in WITHOUT_V2:
            raise
        return int(pynvml.nvmlDeviceGetMemoryInfo(card.handle).total) // _MIB
    return max(0, int(memory.total) - int(memory.reserved)) // _MIB


def ask(card: ShownCard) -> CardAnswer:
    """Calls that reach the card's hardware.

    They raise NVMLError when the card is unhealthy.

    An absent feature (own memory, a sensor) is no fault, nor are unreadable counters.
    """
    for call in (pynvml.nvmlDeviceGetMemoryInfo, _temperature):
        try:
            call(card.handle)
        except NVMLError as error:
            if not is_silent(error):
                raise
    return CardAnswer(
        energy_mj=_counter(pynvml.nvmlDeviceGetTotalEnergyConsumption, card),
        recovery_action=_counter(_recovery_action, card),
    )


def _counter(call: Callable[[Any], int | None], card: ShownCard) -> int | None:
    try:
        return call(card.handle)
    except NVMLError as error:
        if is_down(error) or is_gone(error):
            raise
        return None


def _recovery_action(handle: Any) -> int | None:
    (answered,) = parse_field_values(
        bytes(pynvml.nvmlDeviceGetFieldValues(handle, [RECOVERY_ACTION.id]))
    )
    number = field_number(RECOVERY_ACTION, answered)
    return None if number is None else int(number)


def _temperature(handle: Any) -> None:
    pynvml.nvmlDeviceGetTemperature(handle, pynvml.NVML_TEMPERATURE_GPU)


def has_mig(card: ShownCard) -> bool:
    """Whether the card is divided into MIG instances now."""
    try:
        return bool(pynvml.nvmlDeviceGetMigMode(card.handle)[0] == pynvml.NVML_DEVICE_MIG_ENABLE)
    except NVMLError as error:
        if not is_silent(error):
            raise
        return False


def hard_limit(card: ShownCard, cgroup: str) -> int | None:
    """The bytes that a cgroup may have, None = it has no limit. `cgroup`: its path in sysfs."""
    limits = pynvml.c_nvmlGetMemoryLimits_v1_t(nameSpace=cgroup.encode())
    try:
        pynvml.nvmlDeviceGetMemoryLimits_v1(card.handle, limits)
    except NVMLError as error:
        if error.value == pynvml.NVML_ERROR_NOT_FOUND:
            return None
        raise
    return None if limits.hardLimit == _NO_LIMIT else int(limits.hardLimit)


def used_mib_by_pid(card: ShownCard) -> dict[int, float | None]:
    """Used MiB by process, each listed once for all its types; None = NVML has no value."""
    return {
        process.pid: None if process.memory_bytes is None else process.memory_bytes / _MIB
        for process in running(card.handle) or ()
    }


def running(handle: Any) -> list[GpuProcess] | None:
    """The processes of a card or a MIG instance by pid, each once with all its types.

    None: it lists none of the types.
    """
    listed = {
        letter: _listed(handle, names, is_required=letter == "C")
        for letter, names in _LISTS.items()
    }
    if all(processes is None for processes in listed.values()):
        return None
    found: dict[int, GpuProcess] = {}
    for letter in "MCG":
        for process in listed[letter] or ():
            answered = None if process.usedGpuMemory is None else int(process.usedGpuMemory)
            known = found.get(process.pid)
            letters = letter
            if known is not None:
                letters = known.type if letter in known.type else f"{known.type}+{letter}"
                answered = (
                    known.memory_bytes
                    if answered is None
                    else max(answered, known.memory_bytes or 0)
                )
            found[process.pid] = GpuProcess(process.pid, letters, answered)
    return [found[pid] for pid in sorted(found)]


def _listed(handle: Any, names: Sequence[str], *, is_required: bool) -> Sequence[Any] | None:
    for name in names:
        try:
            return whole_list(partial(getattr(pynvml, name), handle))
        except NVMLError as error:
            if error.value == pynvml.NVML_ERROR_NOT_SUPPORTED:
                return None
            is_older = error.value == pynvml.NVML_ERROR_FUNCTION_NOT_FOUND
            if not is_older or (is_required and name == names[-1]):
                raise
    return None


def whole_list(call: Callable[[], Sequence[Any]]) -> Sequence[Any]:
    """The whole list, also if it grows.

    `pynvml` reads the length first, and entries may be added before it reads the list.
    """
    for _ in range(_MOST_TRIES - 1):
        try:
            return call()
        except NVMLError as error:
            if error.value != pynvml.NVML_ERROR_INSUFFICIENT_SIZE:
                raise
    return call()
