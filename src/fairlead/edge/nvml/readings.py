"""Reads one card, a group of fields at a time.

Specification: docs/spec/telemetry.md#dcgm-fields-from-nvml,
docs/spec/telemetry.md#profiling-fields, docs/spec/telemetry.md#xid-errors,
docs/spec/telemetry.md#mig-instances, docs/spec/telemetry.md#processes,
docs/spec/telemetry.md#sampling-and-fault-isolation.

Each call may block for any time, so each card has its own thread.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Final

from fairlead.edge.nvml.absences import Absences, Failures
from fairlead.edge.nvml.card_calls import (
    FAST_CALLS,
    SLOW_CALLS,
    STATIC_CALLS,
    TEXT_CALLS,
    CardCall,
    call_values,
    is_needed,
)
from fairlead.edge.nvml.cards import ShownCard
from fairlead.edge.nvml.field_values import read_fields
from fairlead.edge.nvml.gpm import Gpm
from fairlead.edge.nvml.instances import Instances
from fairlead.edge.nvml.memory import MemoryForm
from fairlead.edge.nvml.peers import PEERS, read_peers
from fairlead.edge.nvml.processes import Processes
from fairlead.model.devices.readings import GroupReading
from fairlead.wire.devices.nvml_values import (
    BANDWIDTHS,
    FAST_FIELDS,
    LINK_COUNT,
    LINK_STATES,
    SLOW_FIELDS,
    WANTED_FIELDS,
    bandwidths,
)

_TOTAL: Final = "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL"
_MEMORY: Final = "nvmlDeviceGetMemoryInfo"


class CardReader:
    """One card with a handle from NVML; used by one thread, while NVML is open.

    `wanted`: the DCGM fields that are printed; slow (PCIe throughput), numerous (single NVLinks,
    profiling) and seldom needed fields are read only if they are among these. It may be replaced
    between two turns. `monotonic` returns seconds, `now` epoch seconds. Every reading raises
    NVMLError when the card is lost or the driver is gone; any other failure is in the reading, and
    costs only the values of the failed call.
    """

    def __init__(
        self,
        card: ShownCard,
        monotonic: Callable[[], float] = time.monotonic,
        wanted: frozenset[str] = frozenset(),
        now: Callable[[], float] = time.time,
    ) -> None:
        self.wanted = wanted
        self._card = card
        self._monotonic = monotonic
        self._absences = Absences(card.uuid, monotonic)
        self._memory = MemoryForm(card.handle)
        self._gpm = Gpm(card, self._absences, monotonic)
        self._processes = Processes(card.handle, self._absences, now)
        self._instances = Instances(card, self._absences, monotonic, now)
        self._links: dict[str, int | float] = {}
        self._links_at = 0.0
        self._link_states = LINK_STATES[:0]

    def fast(self) -> GroupReading:
        """Values of the fast group.

        Utilization, memory, temperature, power, clocks, energy, throughput, profiling, processes.
        """
        failures = Failures(self._absences)
        wanted = self.wanted
        fields = self._field_values(wanted, failures)
        self._ask(FAST_CALLS, fields, wanted, failures)
        if not self._absences.has(_MEMORY):
            with failures.caught("device", _MEMORY):
                fields |= self._memory.read()
        fields |= self._gpm.read(wanted, failures)
        if self._instances.is_divided(failures):
            return GroupReading(
                fields, {}, failures.by_collector(), None, self._instances.fast(wanted, failures)
            )
        processes = self._processes.read(failures)
        return GroupReading(fields, {}, failures.by_collector(), processes)

    def slow(self) -> GroupReading:
        """ECC, remapped rows, retired pages, violations, NVLinks and their errors, replays,
        BAR1, limits, recovery, peers; for the NVLinks that `static` has found.
        """
        failures = Failures(self._absences)
        wanted = [row for row in WANTED_FIELDS if row.field in self.wanted]
        fields = read_fields(
            self._card.handle, (*SLOW_FIELDS, *self._link_states, *wanted), self._absences, failures
        )
        self._ask(SLOW_CALLS, fields, self.wanted, failures)
        instances = self._instances.slow(failures)
        peers = read_peers(self._card, self._absences, failures) if PEERS in self.wanted else {}
        return GroupReading(fields, {}, failures.by_collector(), None, instances, peers)

    def static(self) -> GroupReading:
        """Values that only driver, firmware or division change: texts, minor number, MIG mode."""
        failures = Failures(self._absences)
        fields = read_fields(self._card.handle, (LINK_COUNT,), self._absences, failures)
        self._link_states = LINK_STATES[: int(fields.get(LINK_COUNT.field, 0))]
        self._ask(STATIC_CALLS, fields, self.wanted, failures)
        texts: dict[str, str] = {}
        for call in TEXT_CALLS:
            if not self._absences.has(call.name):
                with failures.caught("device", call.name):
                    if text := call.ask(self._card.handle):
                        texts[call.field] = text
        return GroupReading(fields, texts, failures.by_collector())

    def forget(self) -> None:
        """Lists the MIG instances and all absent features again, because the division changed."""
        self._instances.forget()
        self._absences.clear()

    def close(self) -> None:
        """Frees what NVML holds for this reader.

        NVML must still be open, without a call under way.
        """
        self._instances.forget()
        self._gpm.close()

    def _ask(
        self,
        calls: Sequence[CardCall],
        fields: dict[str, int | float],
        wanted: frozenset[str],
        failures: Failures,
    ) -> None:
        for call in calls:
            if is_needed(call, fields, wanted) and not self._absences.has(call.name):
                with failures.caught("device", call.name):
                    fields |= call_values(call, self._card.handle)

    def _field_values(self, wanted: frozenset[str], failures: Failures) -> dict[str, int | float]:
        """Field values with bandwidths from the counters of this and the last turn; counters of
        single links are dropped.
        """
        names = [name for name in BANDWIDTHS if name == _TOTAL or name in wanted]
        single = list(
            dict.fromkeys(
                row for name in names for row in BANDWIDTHS[name] if row not in FAST_FIELDS
            )
        )
        fields = read_fields(self._card.handle, (*FAST_FIELDS, *single), self._absences, failures)
        at = self._monotonic()
        links = {
            row.field: fields[row.field]
            for name in names
            for row in BANDWIDTHS[name]
            if row.field in fields
        }
        found = bandwidths(self._links, links, at - self._links_at, names)
        self._links, self._links_at = links, at
        for row in single:
            fields.pop(row.field, None)
        return fields | found
