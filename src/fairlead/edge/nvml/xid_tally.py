"""Counts XIDs of one card since the exporter's start: number and last time, and the last XID."""

from __future__ import annotations

from fairlead.model.devices.device import XidEvent


class XidTally:
    """Times are epoch seconds, in any order: the kernel's log is read later than events."""

    def __init__(self) -> None:
        self._events: dict[int, XidEvent] = {}
        self._last: dict[int | None, tuple[float, int]] = {}

    def receive(self, xid: int, at: float, gpu_instance: int | None = None) -> None:
        """Counts one XID. `gpu_instance`: its MIG instance, None = the whole card."""
        before = self._events.get(xid)
        self._events[xid] = (
            XidEvent(xid, before.count + 1, max(at, before.last_at))
            if before
            else XidEvent(xid, 1, at)
        )
        if at >= self._last.get(gpu_instance, (at, 0))[0]:
            self._last[gpu_instance] = at, xid

    def last(self, gpu_instance: int | None = None) -> int:
        """The last XID; 0 = none."""
        return self._last.get(gpu_instance, (0.0, 0))[1]

    @property
    def events(self) -> tuple[XidEvent, ...]:
        """The counts, sorted by XID."""
        return tuple(self._events[xid] for xid in sorted(self._events))
