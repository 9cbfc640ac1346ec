"""When a token ends: its time, and the object without which it does not work."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from fairlead.model.moment import Moment

BOUND_KINDS: Final = ("secrets", "serviceaccounts")


class BoundObject(Struct, frozen=True):
    """An object of the users namespace. `plural`: one of `BOUND_KINDS`; `uid`: another object of
    the same name is not it.
    """

    plural: str
    name: str
    uid: str

    @property
    def text(self) -> str:
        """
        >>> BoundObject("secrets", "bob-1", "u-1").text
        'secrets/bob-1/u-1'
        """
        return f"{self.plural}/{self.name}/{self.uid}"


class TokenBounds(Struct, frozen=True):
    """`expires_at`: None = not known. `bound`: None = none that could be looked at."""

    expires_at: Moment | None = None
    bound: BoundObject | None = None


NO_BOUNDS: Final = TokenBounds()


def bound_object(text: str) -> BoundObject | None:
    """The object of a text of `BoundObject`; None for every other text.

    >>> bound_object("secrets/bob-1/u-1")
    BoundObject(plural='secrets', name='bob-1', uid='u-1')
    >>> bound_object("") is None and bound_object("pods/a/b") is None
    True
    """
    parts = text.split("/")
    if len(parts) != 3 or parts[0] not in BOUND_KINDS or not all(parts):
        return None
    return BoundObject(*parts)
