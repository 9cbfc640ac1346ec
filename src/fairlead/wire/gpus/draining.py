"""The sentence about cards that wait for pods of the old mode, for Events and `inspect`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from fairlead.model.inspection import DrainingCards

_MOST_NAMES: Final = 5


def render_draining(cards: DrainingCards) -> str:
    """The sentence; it names at most five pods.

    >>> render_draining(DrainingCards("n", (0,), ("default/app-0",), is_shared=True))
    'GPU 0 draining from exclusive use: held by default/app-0; shared once no such pod is left'
    >>> render_draining(DrainingCards("n", (0, 1), ("a/b", "a/c"), is_shared=False))
    'GPU 0,1 draining from shared use: held by a/b, a/c; exclusive once no such pod is left'
    """
    before, after = ("exclusive", "shared") if cards.is_shared else ("shared", "exclusive")
    held = (
        f"GPU {','.join(map(str, cards.gpus))} draining from {before} use: held by "
        f"{_names(cards.holders)}"
    )
    return f"{held}; {after} once no such pod is left"


def _names(holders: Sequence[str]) -> str:
    more = len(holders) - _MOST_NAMES
    named = ", ".join(holders[:_MOST_NAMES]) or "no pod that is known"
    return f"{named} and {more} more" if more > 0 else named
