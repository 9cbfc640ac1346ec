"""Memory of one card or MIG instance, always read in the same form: two forms make no series."""

from __future__ import annotations

from typing import Any

import pynvml
from pynvml import NVMLError

from fairlead.edge.nvml.cards import WITHOUT_V2
from fairlead.wire.devices.nvml_values import memory_fields


class MemoryForm:
    """The form in use.

    It is the second form, which includes the driver's reserved memory, unless only the first is
    available.
    """

    def __init__(self, handle: Any) -> None:
        self._handle = handle
        self._form = 0

    def read(self) -> dict[str, int | float]:
        """Fields FB_*, in MiB and in bytes. Raises NVMLError."""
        if self._form != 1:
            try:
                memory = pynvml.nvmlDeviceGetMemoryInfo(self._handle, pynvml.nvmlMemory_v2)
                self._form = 2
                return memory_fields(memory.total, memory.free, memory.used, memory.reserved)
            except NVMLError as error:
                if self._form == 2 or error.value not in WITHOUT_V2:
                    raise
        memory = pynvml.nvmlDeviceGetMemoryInfo(self._handle)
        self._form = 1
        return memory_fields(memory.total, memory.free, memory.used, None)
