"""The grants file of a node (sharing contract 3.4): every container's cards, as its agent gave them.

The GPU exporter reads it: by device ids alone nobody can tell which card was granted.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Final

import msgspec
from msgspec import Meta, Struct

from fairlead.model.devices.gpu import Grant
from fairlead.model.devices.kept_grants import KeptGrant
from fairlead.model.refusal import Refusal

Count = Annotated[int, Meta(ge=0)]
Name = Annotated[str, Meta(min_length=1)]


class WireKeptGrant(Struct, gc=False):
    pod_uid: Name = msgspec.field(name="podUID")
    namespace: Name
    pod: Name
    container: Name
    uuid: Name
    index: Count
    units: Count
    mib: Count | None
    core: Count
    token: str


_decoder: Final = msgspec.json.Decoder(list[WireKeptGrant])


def render_grants_file(kept: Iterable[KeptGrant]) -> bytes:
    wires = [
        WireKeptGrant(
            each.pod_uid,
            each.namespace,
            each.pod,
            each.container,
            each.grant.uuid,
            each.grant.index,
            each.grant.units,
            each.grant.memory_mib,
            each.grant.core_percent,
            each.token,
        )
        for each in kept
    ]
    return msgspec.json.encode(wires)


def parse_grants_file(text: bytes) -> tuple[KeptGrant, ...] | Refusal:
    """All grants, or why the file cannot be read: a list with gaps would give a card to nobody.

    >>> parse_grants_file(b"[")
    Refusal(reason='the grants file cannot be read: Input data was truncated')
    """
    try:
        wires = _decoder.decode(text)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        return Refusal(f"the grants file cannot be read: {error}")
    return tuple(
        KeptGrant(
            wire.pod_uid,
            wire.namespace,
            wire.pod,
            wire.container,
            Grant(wire.uuid, wire.index, wire.units, wire.mib, wire.core),
            wire.token,
        )
        for wire in wires
    )
