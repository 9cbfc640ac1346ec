"""A Kubernetes event, as much of it as pages show."""

from __future__ import annotations

from msgspec import Struct

from fairlead.model.moment import Moment


class Event(Struct, frozen=True, gc=False):
    """`type` is Normal or Warning; `at` the last time it was seen, epoch seconds.

    `version` its resource version, 0 = unknown.
    """

    namespace: str
    name: str
    uid: str = ""
    type: str = "Normal"
    reason: str = ""
    message: str = ""
    object_kind: str = ""
    object_namespace: str = ""
    object_name: str = ""
    object_uid: str = ""
    count: int = 1
    at: Moment | None = None
    version: int = 0

    @property
    def about_namespace(self) -> str:
        """Of what it is about; its own where nothing else is said."""
        return self.object_namespace or self.namespace

    @property
    def order(self) -> tuple[float, int, str]:
        """Sorts events as they happened: by time, which the API tells in seconds.

        Within one by what was written first, then by name.
        """
        return self.at or 0.0, self.version, self.name
