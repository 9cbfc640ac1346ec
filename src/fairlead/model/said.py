"""What was said last of one thing, so that a log has it once until it changes."""

from __future__ import annotations


class Said:
    """`what`: a trouble, "" = none.

    >>> said = Said()
    >>> [said.is_news(what) for what in ("it is away", "it is away", "", "it is away", "it is broken")]
    [True, False, False, True, True]
    """

    def __init__(self) -> None:
        self.what = ""

    def is_news(self, what: str) -> bool:
        """Whether it is to be said, which it is from now on. "" never is, and makes the next one news."""
        is_news = what not in ("", self.what)
        self.what = what
        return is_news
