"""Who tells what happened? Events, as components of a cluster record them.

Equal events of one object are counted in one Event object, as client-go does; an event is forgotten an hour after it was last seen.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from fairlead.sim.chance import digest
from fairlead.sim.cluster import Cluster
from fairlead.sim.resources import EVENTS
from fairlead.sim.timers import Timers
from fairlead.wire.kube_status import ApiStatus
from fairlead.wire.kube_time import parse_time, render_time

Object = dict[str, Any]

EVENT_TTL_SECONDS = 3600.0


class Recorder:
    def __init__(self, cluster: Cluster, timers: Timers) -> None:
        self._cluster = cluster
        self._timers = timers
        self._last_seen: dict[tuple[str, str], float] = {}

    def take_over(self) -> None:
        """Forget the events of an earlier life, too, an hour after they were last seen."""
        for event in self._cluster.scan(EVENTS):
            metadata = event["metadata"]
            key = (metadata["namespace"], metadata["name"])
            self._last_seen[key] = parse_time(event.get("lastTimestamp") or metadata["creationTimestamp"])
            self._timers.at(self._last_seen[key] + EVENT_TTL_SECONDS, partial(self._forget, key))

    def normal(self, about: Object, reason: str, message: str, component: str, host: str = "") -> None:
        self._record(about, "Normal", reason, message, component, host)

    def warning(self, about: Object, reason: str, message: str, component: str, host: str = "") -> None:
        self._record(about, "Warning", reason, message, component, host)

    def _record(self, about: Object, kind: str, reason: str, message: str, component: str, host: str) -> None:
        metadata = about["metadata"]
        namespace = metadata.get("namespace", "default")
        name = f"{metadata['name'][:200]}.{digest(0, metadata['uid'], reason, message, component).hex()[:16]}"
        key = (namespace, name)
        now = self._timers.clock.now()
        is_known = key in self._last_seen
        self._last_seen[key] = now
        if is_known and self._cluster.mutate(EVENTS, namespace, name, lambda event: _counted(event, now)) is not None:
            return
        try:
            self._cluster.create(_event(about, namespace, name, kind, reason, message, component, host, now), is_trusted=True)
        except ApiStatus:  # its namespace is going or gone: nobody will read it
            self._last_seen.pop(key)
            return
        if not is_known:
            self._timers.after(EVENT_TTL_SECONDS, lambda: self._forget(key))

    def _forget(self, key: tuple[str, str]) -> None:
        """Delete the event, or look again later if it was seen meanwhile."""
        if key not in self._last_seen:
            return
        until = self._last_seen[key] + EVENT_TTL_SECONDS
        if until > self._timers.clock.now():
            self._timers.at(until, lambda: self._forget(key))
            return
        del self._last_seen[key]
        if self._cluster.get(EVENTS, *key) is not None:
            self._cluster.delete(EVENTS, *key)


def _counted(event: Object, now: float) -> Object:
    return {**event, "count": event.get("count", 1) + 1, "lastTimestamp": render_time(now)}


def _event(about: Object, namespace: str, name: str, kind: str, reason: str, message: str, component: str, host: str, now: float) -> Object:
    metadata = about["metadata"]
    reference = {"apiVersion": about["apiVersion"], "kind": about["kind"], "name": metadata["name"], "uid": metadata["uid"]}
    if "namespace" in metadata:
        reference["namespace"] = metadata["namespace"]
    time = render_time(now)
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": namespace},
        "involvedObject": {**reference, "resourceVersion": metadata.get("resourceVersion", "")},
        "type": kind,
        "reason": reason,
        "message": message,
        "source": {"component": component, "host": host} if host else {"component": component},
        "reportingComponent": component,
        "reportingInstance": host,
        "firstTimestamp": time,
        "lastTimestamp": time,
        "eventTime": None,
        "count": 1,
    }
