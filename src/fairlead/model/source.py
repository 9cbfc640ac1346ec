"""How well one input of the snapshot was read."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from fairlead.model.moment import Moment


class SourceState(StrEnum):
    """`MISSING`: no such resource. `FAILING`: earlier contents stay. `OFF`: not asked for."""

    OK = "ok"
    SYNCING = "syncing"
    MISSING = "missing"
    FORBIDDEN = "forbidden"
    FAILING = "failing"
    OFF = "off"

    @classmethod
    def _missing_(cls, value: object) -> SourceState:
        """The state for an unknown word, which does not promise that the source was read."""
        return cls.FAILING


class Source(Struct, frozen=True, gc=False):
    """How well one input was read.

    `good_at`: the last time at which its contents were current, epoch seconds; None = never.
    `is_optional`: no page or metric is incomplete without it.
    """

    name: str
    state: SourceState = SourceState.OK
    message: str = ""
    hint: str = ""
    good_at: Moment | None = None
    is_optional: bool = False

    @property
    def is_ok(self) -> bool:
        return self.state == SourceState.OK

    @property
    def is_missing(self) -> bool:
        return self.state == SourceState.MISSING

    @property
    def is_forbidden(self) -> bool:
        return self.state == SourceState.FORBIDDEN

    @property
    def has_failed(self) -> bool:
        return self.is_forbidden or self.state == SourceState.FAILING

    @property
    def is_unread(self) -> bool:
        """Whether the source exists and was not read.

        A resource that the cluster does not have, or that is not asked for, does not count.
        """
        return self.has_failed or self.state == SourceState.SYNCING
