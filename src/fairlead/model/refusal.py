"""An expected "no": no room, over quota, not found. A value the reader must look at, not an exception."""

from __future__ import annotations

from msgspec import Struct


class Refusal(Struct, frozen=True, gc=False):
    """`reason`: a sentence, or the words of who refused."""

    reason: str
