"""The grants file of a node: which container has how much of which card.

Specification: docs/spec/gpu-sharing.md#what-the-container-gets.

The node's agent writes it, and after a restart finds in it grants that annotations may have lost;
the GPU exporter reads it to attribute memory to containers.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Final

import msgspec
from msgspec import Meta, Struct

from fairlead.model.devices.gpu import Grant
from fairlead.model.devices.kubelet import GivenShare
from fairlead.model.refusal import Refusal

Name = Annotated[str, Meta(min_length=1)]
Count = Annotated[int, Meta(ge=0)]


class _Row(Struct, gc=False, rename="camel"):
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


_decoder: Final = msgspec.json.Decoder(list[_Row])


def render_given(shares: Iterable[GivenShare]) -> bytes:
    """The text of the file, sorted by namespace, pod, container and card."""
    rows = [_row(each) for each in shares]
    rows.sort(
        key=lambda row: (row.namespace, row.pod, row.container, row.index, row.pod_uid, row.uuid)
    )
    return msgspec.json.encode(rows)


def parse_given(text: bytes) -> tuple[GivenShare, ...] | Refusal:
    """The rows of the file, or a Refusal with the reason."""
    try:
        rows = _decoder.decode(text)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        return Refusal(f"the grants file cannot be read: {error}")
    return tuple(
        GivenShare(
            namespace=row.namespace,
            pod=row.pod,
            pod_uid=row.pod_uid,
            container=row.container,
            grant=Grant(row.uuid, row.index, row.units, row.mib, row.core),
            token=row.token,
        )
        for row in rows
    )


def _row(given: GivenShare) -> _Row:
    grant = given.grant
    return _Row(
        pod_uid=given.pod_uid,
        namespace=given.namespace,
        pod=given.pod,
        container=given.container,
        uuid=grant.uuid,
        index=grant.index,
        units=grant.units,
        mib=grant.memory_mib,
        core=grant.core_percent,
        token=given.token,
    )
