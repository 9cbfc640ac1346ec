"""A Kubernetes Event, with the fields that pages show."""

from __future__ import annotations

from msgspec import Struct

from fairlead.model.moment import Moment


class Event(Struct, frozen=True, gc=False):
    """`type` is Normal or Warning; `at`: the last time that it occurred, epoch seconds.

    `version`: its resource version, 0 = unknown.
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
        """The namespace of its object; the Event's own if the object has none."""
        return self.object_namespace or self.namespace

    @property
    def order(self) -> tuple[float, int, str]:
        """A key that sorts events as they happened: by time, which the API has in seconds.

        Within a second the resource version decides, then the name.
        """
        return self.at or 0.0, self.version, self.name
