"""Events, as components of a cluster record them.

Equal events of one object are counted in one Event object, as client-go does; an event is forgotten
an hour after it was last seen. Its name ends in the instant at which it was first seen, in
nanoseconds and hexadecimal digits, as client-go's do: the order of the names of an object's events
is the order of happening, and no two events of a world have the same instant.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from typing import Any

from fairlead.wire.kube.time import parse_time, render_time
from fairlead_sim.objects.resources import EVENTS
from fairlead_sim.schema.status import ApiStatus
from fairlead_sim.store.cluster import StoredCluster
from fairlead_sim.time.timers import Timers

Object = dict[str, Any]

EVENT_TTL_SECONDS = 3600.0
_STAMP = re.compile(r"\.([0-9a-f]{15,16})$")

EventKey = tuple[str, str, str, str]
"""What makes two events equal: uid of the object, reason, message, component."""


@dataclass(slots=True)
class _Seen:
    namespace: str
    name: str
    at: float


class Recorder:
    def __init__(self, cluster: StoredCluster, timers: Timers) -> None:
        self._cluster = cluster
        self._timers = timers
        self._seen: dict[EventKey, _Seen] = {}
        self._stamp = 0

    def take_over(self) -> None:
        """Go on with the events of an earlier life: count them on, and forget them an hour after
        they were last seen, too.
        """
        now = self._timers.clock.now()
        for event in self._cluster.scan(EVENTS):
            metadata, about = event["metadata"], event.get("involvedObject") or {}
            component = (
                event.get("reportingComponent")
                or (event.get("source") or {}).get("component")
                or ""
            )
            key = (
                str(about.get("uid", metadata["uid"])),
                str(event.get("reason")),
                str(event.get("message")),
                str(component),
            )
            at = parse_time(event.get("lastTimestamp") or metadata["creationTimestamp"])
            self._seen[key] = _Seen(metadata["namespace"], metadata["name"], at)
            self._timers.at(at + EVENT_TTL_SECONDS, partial(self._forget, key))
            self._stamp = max(self._stamp, _stamp_of(metadata["name"], now))

    def normal(
        self, about: Object, reason: str, message: str, component: str, host: str = ""
    ) -> None:
        self._record(about, "Normal", reason, message, component, host)

    def warning(
        self, about: Object, reason: str, message: str, component: str, host: str = ""
    ) -> None:
        self._record(about, "Warning", reason, message, component, host)

    def _record(
        self, about: Object, kind: str, reason: str, message: str, component: str, host: str
    ) -> None:
        metadata = about["metadata"]
        key = (metadata["uid"], reason, message, component)
        now = self._timers.clock.now()
        seen = self._seen.get(key)
        if seen is not None:
            seen.at = now
            if (
                self._cluster.mutate(
                    EVENTS, seen.namespace, seen.name, lambda event: _counted(event, now)
                )
                is not None
            ):
                return
        namespace, name = (
            metadata.get("namespace", "default"),
            f"{metadata['name'][:200]}.{self._next_stamp(now):x}",
        )
        try:
            self._cluster.create(
                _event(about, namespace, name, kind, reason, message, component, host, now),
                is_trusted=True,
            )
        except ApiStatus:  # its namespace is going or gone: its events are not read
            self._seen.pop(key, None)
            return
        self._seen[key] = _Seen(namespace, name, now)
        if seen is None:
            self._timers.after(EVENT_TTL_SECONDS, lambda: self._forget(key))

    def _next_stamp(self, now: float) -> int:
        """Nanoseconds since 1970, or one more than the last: the clock may stand still."""
        self._stamp = max(self._stamp + 1, int(now * 1e9))
        return self._stamp

    def _forget(self, key: EventKey) -> None:
        """Delete the event, or look again later if it was seen meanwhile."""
        seen = self._seen.get(key)
        if seen is None:
            return
        until = seen.at + EVENT_TTL_SECONDS
        if until > self._timers.clock.now():
            self._timers.at(until, lambda: self._forget(key))
            return
        del self._seen[key]
        if self._cluster.get(EVENTS, seen.namespace, seen.name) is not None:
            self._cluster.delete(EVENTS, seen.namespace, seen.name)


def _stamp_of(name: str, now: float) -> int:
    """The instant in an event's name; 0 where none stands there, or one that has not come yet (a
    name that was drawn).
    """
    found = _STAMP.search(name)
    stamp = int(found[1], 16) if found else 0
    return stamp if stamp <= (now + 1) * 1e9 else 0


def _counted(event: Object, now: float) -> Object:
    return {**event, "count": event.get("count", 1) + 1, "lastTimestamp": render_time(now)}


def _event(
    about: Object,
    namespace: str,
    name: str,
    kind: str,
    reason: str,
    message: str,
    component: str,
    host: str,
    now: float,
) -> Object:
    metadata = about["metadata"]
    reference = {
        "apiVersion": about["apiVersion"],
        "kind": about["kind"],
        "name": metadata["name"],
        "uid": metadata["uid"],
    }
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
