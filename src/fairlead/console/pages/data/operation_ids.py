"""Ids of operations (docs/spec/operations.md#record)."""

from __future__ import annotations

import secrets
import string
from typing import Final

_LETTERS: Final = string.ascii_lowercase + string.digits
_ID_LETTERS: Final = 12


def new_id() -> str:
    """Letters and digits, made at random."""
    return "".join(secrets.choice(_LETTERS) for _ in range(_ID_LETTERS))


def is_id(text: str) -> bool:
    """
    >>> is_id("abc123def456"), is_id("../secrets"), is_id("")
    (True, False, False)
    """
    return 0 < len(text) <= 40 and text.isascii() and text.isalnum() and text == text.lower()
