"""Files that a user names on the command line, `-` for stdin."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from fairlead.errors import UserError

if TYPE_CHECKING:
    from fairlead.cli.frame.context import Machine


def read_input(machine: Machine, name: str, what: str, hint: str = "") -> bytes:
    """The bytes of the file, or of stdin for `-`. `what`: the kind of file, for the message.

    Raises UserError if it cannot be read.
    """
    try:
        return sys.stdin.buffer.read() if name == "-" else machine.read(name)
    except OSError as error:
        reason = error.strerror or error
        raise UserError(f"{what} `{name}` cannot be read: {reason}", hint) from error
