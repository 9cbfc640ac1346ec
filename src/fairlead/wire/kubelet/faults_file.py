"""The file in which a node's agent keeps the faults of its GPUs across restarts.

A reboot resets every card, so the file names the boot in which the faults were observed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec
from msgspec import Struct

from fairlead.model.devices.driver import CardFault
from fairlead.model.refusal import Refusal


class _File(Struct, gc=False):
    boot: str
    faults: tuple[CardFault, ...]


_decoder: Final = msgspec.json.Decoder(_File)


def render_faults(boot: str, faults: Iterable[CardFault]) -> bytes:
    return msgspec.json.encode(_File(boot, tuple(faults)))


def parse_faults(text: bytes, boot: str) -> tuple[CardFault, ...] | Refusal:
    """The faults, if they are of this boot, else (); a Refusal when the file is malformed.

    >>> text = render_faults("b1", [CardFault("GPU-a", xid=79, is_sticky=True)])
    >>> [fault.reason for fault in parse_faults(text, "b1")], parse_faults(text, "b2")
    (['XID 79'], ())
    """
    try:
        found = _decoder.decode(text)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        return Refusal(f"the kept faults of GPUs cannot be read: {error}")
    return found.faults if found.boot == boot else ()
