"""Texts of the cluster, made harmless for the terminal that shows them, as kubectl does.

An annotation, an event or a condition may hold anything, escape sequences too, which move the cursor, hide
lines or set the window's title. kubectl makes two letters harmless (`terminalEscaper`, cli-runtime's
`printers/terminal.go`), and so do we. Documents (JSON, YAML) never get here with such letters: their own
rules escape them before.
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
    """The cells of a line of a table, with tabs between them.

    >>> join_cells(["a", "one\\ntwo", "b"])
    'a\\tone...\\tb'
    """
    return "\t".join(map(first_line, cells))


def first_line(text: str) -> str:
    """What a cell of a table shows: a text of several lines is cut after its first, as by kubectl.

    >>> first_line("whole\\x1b"), first_line("one\\rtwo")
    ('whole^[', 'one...')
    """
    end = _LINE_END.search(text)
    return escape_terminal(text if end is None else f"{text[: end.start()]}...")
