"""Texts as every engine can keep them."""

from __future__ import annotations


def whole_text(text: str) -> str:
    """The text as each engine can store it: PostgreSQL has no NUL, and none has half a character.

    >>> whole_text("a\\x00b")
    'a␀b'
    """
    if text.isascii() and "\x00" not in text:
        return text  # nearly all are
    return text.replace("\x00", "␀").encode("utf-8", "replace").decode()


def cut_text(text: str, length: int) -> str:
    """At most `length` characters: rows have what a client sent, however long it is.

    >>> cut_text("abcdef", 4), cut_text("abcd", 4)
    ('abc…', 'abcd')
    """
    if len(text) <= length and text.isascii() and "\x00" not in text:
        return text
    whole = whole_text(text)
    return whole if len(whole) <= length else f"{whole[: length - 1]}…"
