"""Messages that users read: which was sent when, and when it may be sent again.

The reason of a message is computed at every look, and the kubelet or a pod's owner may cause the
same refusal every few seconds. An Event or a condition for each would bury the others and use up
the limit of requests. So a decider asks `may_send` before it sends a message, and records each one
with `sent`.

The key is what makes two messages the same: the uid of a pod where its sentence may change, or the
uid and the reason.

Invariant: a message whose time has passed may be sent again, also while it is still kept. `forget`
only limits the memory.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TypeVar

Key = TypeVar("Key", bound=Hashable)


class SentMessages(dict[Key, float]):
    """By key the time at which the message was sent last, the oldest first.

    `seconds`: the shortest time between two messages of one key. Times are seconds of one clock,
    which may be set back.

    >>> messages = SentMessages[str](60.0)
    >>> messages.may_send("pod", 100.0), messages.sent("pod", 100.0), messages.free_at("pod")
    (True, None, 160.0)
    >>> messages.may_send("pod", 159.0), messages.may_send("pod", 160.0)
    (False, True)
    """

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self._seconds = seconds

    def may_send(self, key: Key, now: float) -> bool:
        """Whether a message of this key may be sent; also if the clock was set back since."""
        return key not in self or not 0 <= now - self[key] < self._seconds

    def free_at(self, key: Key) -> float:
        """When a message of this key may be sent; -inf = none was sent lately."""
        return self[key] + self._seconds if key in self else float("-inf")

    def sent(self, key: Key, now: float) -> None:
        self.pop(key, None)  # it becomes the newest
        self[key] = now

    def forget(self, now: float) -> None:
        """Forget messages whose time has passed."""
        while self and self.may_send(oldest := next(iter(self)), now):
            del self[oldest]
