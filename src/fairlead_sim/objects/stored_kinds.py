"""The kinds that the simulated cluster only stores, read from `stored_kinds.toml`.

Users and charts create them, so they are stored, listed, watched, checked and defaulted as by the
real server.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from fairlead_sim.schema.resource import ResourceKind


class StoredKind(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The entry of a kind in the file, which describes the fields.

    `is_view`: stored as the kind of this name that comes before it.
    """

    kind: str
    plural: str
    group: str = ""
    version: str = "v1"
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: tuple[str, ...] = ()
    namespaced: bool = True
    is_view: bool = False
    has_generation: bool = True
    note: str = ""
    status: str = "{}"
    columns: dict[str, str] = {}
    defaults: dict[str, Any] = {}
    required: dict[str, str] = {}
    values: dict[str, tuple[str, ...]] = {}


def _read() -> dict[ResourceKind, StoredKind]:
    table = msgspec.toml.decode(
        Path(__file__).with_suffix(".toml").read_bytes(), type=dict[str, tuple[StoredKind, ...]]
    )["kinds"]
    kinds: dict[ResourceKind, StoredKind] = {}
    for one in table:
        stored_as = next(ref for ref in kinds if ref.kind == one.kind) if one.is_view else None
        names = (
            one.group,
            one.version,
            one.kind,
            one.plural,
            one.kind.lower(),
            one.short_names,
            one.namespaced,
        )
        shared = {
            key: getattr(one, key)
            for key in ("categories", "subresources", "note", "has_generation")
        }
        kinds[ResourceKind(*names, stored_as=stored_as, **shared)] = one
    return kinds


STORED: Mapping[ResourceKind, StoredKind] = _read()


def stored_kind(plural: str) -> ResourceKind:
    return next(ref for ref in STORED if ref.plural == plural)
