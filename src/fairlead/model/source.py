"""How well one input of the snapshot was read."""

from __future__ import annotations

from msgspec import Struct

from fairlead.model.moment import Moment


class Source(Struct, frozen=True, gc=False):
    """How well one input was read.

    `state`: ok, syncing, missing (no such resource), forbidden, failing (old data stays) or off. `good_at`:
    the last moment its contents were known to be current, epoch seconds; None = never.
    """

    name: str
    state: str = "ok"
    message: str = ""
    hint: str = ""
    good_at: Moment | None = None

    @property
    def is_unread(self) -> bool:
        """Whether it is there and was not read.

        What a cluster does not have, or nobody wanted, is not missed.
        """
        return self.state in ("forbidden", "failing", "syncing")
