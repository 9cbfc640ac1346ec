"""Patterns of a CustomResourceDefinition, with RE2's dialect and speed, as in Kubernetes.

RE2 needs time linear in the text. Python's `re` tries alternatives one by one: `^(a+)+$` takes
seconds for thirty letters, and any client that may write a definition could stop the server.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final, Protocol, cast

import re2

_QUIET: Final = re2.Options()
_QUIET.log_errors = False
_WORDS: Final = {
    "missing )": "missing closing )",
    "missing ]": "missing closing ]",
    "no argument for repetition operator": "missing argument to repetition operator",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid repetition size": "invalid repeat count",
    "pattern too large - compile failed": "expression too large",
}
"""The C++ library's messages, and Go's for the same fault."""


class Pattern(Protocol):
    """What is used of a compiled pattern."""

    def search(self, text: str) -> object | None: ...


def fault_of(pattern: str) -> str:
    """What is wrong with the pattern, in Go's words; "" when nothing is.

    >>> fault_of("^[a-z]+$"), fault_of("a(b")
    ('', 'missing closing ): `a(b`')
    """
    try:
        _compiled(pattern)
    except re2.error as error:
        detail = (
            error.args[0].decode("utf-8", "replace")
            if isinstance(error.args[0], bytes)
            else str(error)
        )
        what, colon, where = detail.partition(": ")
        return f"{_WORDS.get(what, what)}{colon}" + (f"`{where}`" if colon else "")
    return ""


def fits(pattern: str, text: str) -> bool:
    """Whether the pattern is found in the text; one that is none fits everything.

    >>> fits("^(a+)+$", "a" * 10_000 + "!"), fits("b", "abc")
    (False, True)
    """
    try:
        return _compiled(pattern).search(text) is not None
    except re2.error:
        return True


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> Pattern:
    return cast("Pattern", re2.compile(pattern, _QUIET))
