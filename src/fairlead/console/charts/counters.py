"""The console's own metrics, on their own registry: several apps may share one process."""

from __future__ import annotations

from typing import Final

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)
from starlette.types import Scope

_BUCKETS: Final = (0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.5, 1.0, 2.5, 10.0)


class ConsoleCounters:
    """`fairlead_console_*` and the process's own numbers."""

    def __init__(self) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        self._requests = Counter(
            "fairlead_console_requests",
            "Requests answered.",
            ("route", "status"),
            registry=self._registry,
        )
        self._seconds = Histogram(
            "fairlead_console_request_seconds",
            "Time to answer a request.",
            ("route",),
            buckets=_BUCKETS,
            registry=self._registry,
        )
        self._board_states = Counter(
            "fairlead_console_pictures", "Pictures of the cluster made.", registry=self._registry
        )
        self._picture_seconds = Gauge(
            "fairlead_console_picture_seconds",
            "Time the last picture took.",
            registry=self._registry,
        )
        self._streams = Gauge(
            "fairlead_console_change_streams",
            "Open streams of change hints.",
            registry=self._registry,
        )
        self._lines = Gauge(
            "fairlead_console_ring_lines",
            "Lines of the built-in series.",
            registry=self._registry,
        )
        self._ready = Gauge(
            "fairlead_console_ready",
            "1 when every source has been read once.",
            registry=self._registry,
        )

    def note_request(self, scope: Scope, status: int, seconds: float) -> None:
        """Streams are counted when they end, and not timed: their length is no latency."""
        route = route_of(scope)
        self._requests.labels(route, str(status or 499)).inc()
        if not route.endswith("/changes"):
            self._seconds.labels(route).observe(seconds)

    def note_board_state(self, seconds: float) -> None:
        self._board_states.inc()
        self._picture_seconds.set(seconds)

    def page(self, streams: int, lines: int, is_ready: bool) -> bytes:
        self._streams.set(streams)
        self._lines.set(lines)
        self._ready.set(int(is_ready))
        return generate_latest(self._registry)


def route_of(scope: Scope) -> str:
    """The route's pattern, never the path: paths are strangers' text without end."""
    route = scope.get("route")
    return str(getattr(route, "path", "")) or "other"
