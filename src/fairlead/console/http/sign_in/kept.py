"""Values that are remembered for a second."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Final, Generic, TypeVar

KEPT_SECONDS: Final = 1.0
"""How long a row of the store, the owner of a token, and a right to make users are remembered."""
_KEPT_MAX: Final = 10_000
Value = TypeVar("Value")


class Kept(Generic[Value]):
    """Values by key, each for `KEPT_SECONDS`."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._values: OrderedDict[str, tuple[float, Value]] = OrderedDict()
        self._forgotten = 0

    @property
    def mark(self) -> int:
        """How often values were forgotten. Taken before a value is read, and given to `keep`."""
        return self._forgotten

    def get(self, key: str, more_seconds: float = 0.0) -> Value | None:
        found = self._values.get(key)
        if found is None or self._monotonic() >= found[0] + more_seconds:
            return None
        return found[1]

    def keep(self, key: str, value: Value, mark: int | None = None) -> None:
        """Keep a value. With the `mark` of before it was read: not if any value was forgotten
        since, because this one may be as old as that.
        """
        if mark is not None and mark != self._forgotten:
            return
        self._values[key] = (self._monotonic() + KEPT_SECONDS, value)
        self._values.move_to_end(key)
        while len(self._values) > _KEPT_MAX:
            self._values.popitem(last=False)

    def forget(self, key: str) -> None:
        self._forgotten += 1
        self._values.pop(key, None)

    def clear(self) -> None:
        self._forgotten += 1
        self._values.clear()
