"""Escapes text of the cluster for a terminal, as kubectl does.

An annotation, event or condition may contain escape sequences, which move the cursor, hide lines or
set the window's title. kubectl escapes two characters (`terminalEscaper`, cli-runtime's
`printers/terminal.go`), and Fairlead does the same. JSON and YAML output needs none of this: those
formats escape such characters themselves.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

_LINE_END: Final = re.compile(r"[\f\n\r]")


def escape_terminal(text: str) -> str:
    """The text with escape characters and carriage returns made visible.

    >>> escape_terminal("\\x1b[31mred\\r\\n")
    '^[[31mred\\\\r\\n'
    """
    return text.replace("\x1b", "^[").replace("\r", "\\r")


def join_cells(cells: Iterable[str]) -> str:
    """One line of a table: the cells separated by tabs.

    >>> join_cells(["a", "one\\ntwo", "b"])
    'a\\tone...\\tb'
    """
    return "\t".join(map(first_line, cells))


def first_line(text: str) -> str:
    """The text of a table cell: a text of several lines is cut after its first, as in kubectl.

    >>> first_line("whole\\x1b"), first_line("one\\rtwo")
    ('whole^[', 'one...')
    """
    end = _LINE_END.search(text)
    return escape_terminal(text if end is None else f"{text[: end.start()]}...")
