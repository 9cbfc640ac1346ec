"""A password from a file, so that it is in no command line."""

from __future__ import annotations

from pathlib import Path

from fairlead.errors import UserError


def read_password(name: str) -> str:
    """The file's text without the line end, which editors add.

    Raises UserError for a file that cannot be read.
    """
    try:
        text = Path(name).expanduser().read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = (error.strerror if isinstance(error, OSError) else "") or "it is not UTF-8"
        raise UserError(
            f"the password file `{name}` cannot be read: {reason}", "name a readable file"
        ) from error
    return text.removesuffix("\n").removesuffix("\r")
