"""The Protocols of a cluster that `api/server` can serve.

Objects are plain dicts in the API's own shape; whoever gets one must not change it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from fairlead_sim.schema.resource import ResourceKind

Object = dict[str, Any]
Objects = list[Object]  # inside the Protocol `list` is the method
Predicate = Callable[[Object], bool]


class StoreEvent(Protocol):
    """One write as a watcher sees it: `type` is ADDED, MODIFIED or DELETED."""

    @property
    def type(self) -> str: ...

    @property
    def object(self) -> Object: ...


class StoreWatch(Protocol):
    """One reader of the writes of a kind. It holds no queue: who reads too slowly gets 410 from `poll`."""

    def poll(self, limit: int = 500) -> Sequence[StoreEvent]:
        """What happened since the last call; empty when nothing did. Raises ApiStatus 410."""
        ...

    async def wait(self, seconds: float | None = None) -> bool:
        """Whether there is news within `seconds` of real time."""
        ...

    def bookmark_version(self) -> int:
        """The version up to which everything has been polled."""
        ...

    def close(self) -> None: ...


class ObjectStore(Protocol):
    """An API server without HTTP. All refusals are `ApiStatus` exceptions in the words of the real one."""

    @property
    def resource_version(self) -> int: ...

    def kinds(self) -> Sequence[ResourceKind]: ...

    def served_kinds(self) -> Sequence[ResourceKind]:
        """What the API shows: of some kinds several versions, of which one is stored."""
        ...

    def get(self, ref: ResourceKind, namespace: str | None, name: str) -> Object | None: ...

    def list(self, ref: ResourceKind, namespace: str | None = None) -> Objects: ...

    def create(self, obj: Object, user: str = "") -> Object:
        """`user` is who asks: admission looks at it. Here and below."""
        ...

    def update(self, obj: Object, user: str = "") -> Object: ...

    def update_status(self, obj: Object) -> Object: ...

    def delete(
        self,
        ref: ResourceKind,
        namespace: str | None,
        name: str,
        grace_seconds: int | None = None,
        uid: str | None = None,
        propagation: str = "Background",
        resource_version: str | None = None,
    ) -> Object: ...

    def watch(
        self, ref: ResourceKind, namespace: str | None = None, since: int | None = None, matches: Predicate | None = None
    ) -> StoreWatch: ...

    def bind(self, namespace: str, name: str, binding: Object, user: str = "") -> Object: ...

    def evict(self, namespace: str, name: str, options: Object) -> None: ...

    def scale(self, ref: ResourceKind, namespace: str, name: str, wish: Object) -> Object: ...

    def scale_of(self, ref: ResourceKind, obj: Object) -> Object: ...

    def rehearsal(self) -> ObjectStore:
        """The same store, whose writes are checked and answered but change nothing."""
        ...


class PodLogs(Protocol):
    """What containers wrote."""

    def lines(self, namespace: str, pod: str, container: str, previous: bool) -> Sequence[tuple[float, str]] | None:
        """(epoch seconds, line) oldest first; None when there is no such run of the container. It may only
        grow at its end."""
        ...


class NoLogs:
    """A cluster whose containers write nothing."""

    def lines(self, namespace: str, pod: str, container: str, previous: bool) -> Sequence[tuple[float, str]] | None:
        return None if previous else ()
