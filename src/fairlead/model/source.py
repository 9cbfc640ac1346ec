"""How well one input of the snapshot was read."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from fairlead.model.moment import Moment


class SourceState(StrEnum):
    """`MISSING`: no such resource. `FAILING`: what was read before stays. `OFF`: nobody wanted it."""

    OK = "ok"
    SYNCING = "syncing"
    MISSING = "missing"
    FORBIDDEN = "forbidden"
    FAILING = "failing"
    OFF = "off"

    @classmethod
    def _missing_(cls, value: object) -> SourceState:
        """A word that nobody knows is no promise that the source was read."""
        return cls.FAILING


class Source(Struct, frozen=True, gc=False):
    """How well one input was read.

    `good_at`: the last moment its contents were known to be current, epoch seconds; None = never.
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
        """Whether it is there and was not read.

        What a cluster does not have, or nobody wanted, is not missed.
        """
        return self.has_failed or self.state == SourceState.SYNCING
