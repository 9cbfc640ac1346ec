"""An expected refusal: no room, over quota, not found.

A return value that callers check, no exception.
"""

from __future__ import annotations

from msgspec import Struct


class Refusal(Struct, frozen=True, gc=False, repr_omit_defaults=True):
    """`reason`: a sentence, or the message of the component that refused. `hint`: what to do, as an
    imperative.
    """

    reason: str
    hint: str = ""
