"""Keeps the last message about one thing, so that a log has it once until it changes."""

from __future__ import annotations


class RepeatFilter:
    """`what`: the fault that was reported last, "" = none.

    >>> fault = RepeatFilter()
    >>> looks = ("it is away", "it is away", "", "it is away", "it is broken")
    >>> [fault.is_news(what) for what in looks]
    [True, False, False, True, True]
    """

    def __init__(self) -> None:
        self.what = ""

    def is_news(self, what: str) -> bool:
        """Whether `what` differs from the last fault and must be reported.

        From now on it is the last fault.

        "" means that the fault has ended: it is never news, and the next fault is.
        """
        is_news = what not in ("", self.what)
        self.what = what
        return is_news
