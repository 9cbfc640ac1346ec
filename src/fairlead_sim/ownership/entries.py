"""The entries of `metadata.managedFields`: a manager, what it did, and the fields that it owns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from fairlead.wire.kube.time import parse_time, render_time
from fairlead_sim.ownership.field_paths import (
    Fields,
    Paths,
    canonical,
    fields_of,
    has_path,
    paths_of,
)

Entry = dict[str, Any]
APPLY: Final = "Apply"
UPDATE: Final = "Update"
_FIELDS_TYPE: Final = "FieldsV1"
_MOST_UPDATERS: Final = 10
_OLD_UPDATES: Final = "ancient-changes"


class FieldWriter(NamedTuple):
    """Who writes: a manager, by this operation, in this version, through this subresource.

    An applier is the same in every version.
    """

    manager: str
    operation: str
    api_version: str = ""
    subresource: str = ""

    @property
    def mark(self) -> str:
        """The text by which the real server identifies a writer, and orders writers."""
        held = {
            "manager": self.manager,
            "operation": self.operation,
            "apiVersion": self.api_version,
            "subresource": self.subresource,
        }
        return msgspec.json.encode({key: value for key, value in held.items() if value}).decode()

    @property
    def shown(self) -> str:
        """How a conflict names the writer."""
        text = msgspec.json.encode(self.manager).decode()
        if self.subresource:
            text += f" with subresource {msgspec.json.encode(self.subresource).decode()}"
        return f"{text} using {self.api_version}" if self.operation == UPDATE else text


class FieldOwner:
    """What one writer owns, since when; `api_version` is that of its paths.

    The paths of a stored entry are read when they are needed: most writes touch none of them.
    """

    __slots__ = ("_paths", "api_version", "entry", "time")

    def __init__(
        self,
        paths: Paths | None,
        api_version: str,
        time: str | None = None,
        entry: Entry | None = None,
    ) -> None:
        """One of `paths` and `entry` may be missing."""
        self._paths = paths
        self.api_version = api_version
        self.time = time
        self.entry = entry

    @property
    def paths(self) -> Paths:
        if self._paths is None:
            self._paths = paths_of(self._fields)
        return self._paths

    @property
    def _fields(self) -> Fields:
        return (self.entry or {}).get("fieldsV1") or {}

    def common(self, paths: Paths) -> Paths:
        """Those of the paths that are owned."""
        if self._paths is not None:
            return self._paths & paths
        return {path for path in paths if has_path(self._fields, path)}

    def less(self, paths: Paths) -> FieldOwner:
        """The same owner without these paths."""
        if not self.common(paths):
            return self
        return FieldOwner(self.paths - paths, self.api_version, self.time)

    def more(self, paths: Paths, api_version: str, time: str | None) -> FieldOwner:
        """The same owner with these paths, too, which it has since now."""
        if api_version == self.api_version and self.entry and self.common(paths) == paths:
            return FieldOwner(self._paths, api_version, time, self.entry)
        return FieldOwner(self.paths | paths, api_version, time)

    def __bool__(self) -> bool:
        """Whether it owns anything."""
        return bool(self._fields if self._paths is None else self._paths)


FieldOwners = dict[FieldWriter, FieldOwner]


def read_owners(entries: Sequence[Entry]) -> FieldOwners:
    """The owners of stored entries.

    Raises ValueError for entries that the server does not write.
    """
    found: FieldOwners = {}
    for entry in entries:
        operation, api_version = entry.get("operation"), entry.get("apiVersion")
        if operation not in (APPLY, UPDATE):
            raise ValueError("operation must be `Apply` or `Update`")
        if not api_version:
            raise ValueError("apiVersion must not be empty")
        if entry.get("fieldsType") != _FIELDS_TYPE:
            raise ValueError(f"fieldsType must be {_FIELDS_TYPE}")
        writer = FieldWriter(
            entry.get("manager") or "",
            operation,
            api_version if operation == UPDATE else "",
            entry.get("subresource") or "",
        )
        found[writer] = FieldOwner(None, api_version, entry.get("time"), entry)
    return found


def given_owners(entries: Sequence[Any]) -> FieldOwners:
    """The owners of entries that a client sent; raises ValueError for broken ones."""
    if not all(isinstance(entry, Mapping) for entry in entries):
        raise ValueError("an entry is no object")
    given = read_owners([_given_entry(entry) for entry in entries])
    return {writer: owner for writer, owner in given.items() if owner.paths}


def _given_entry(entry: Mapping[str, Any]) -> Entry:
    held = {key: value for key, value in entry.items() if value is not None}
    if "time" in held:
        held["time"] = render_time(parse_time(held["time"]))
    return {**held, "fieldsV1": canonical(held.get("fieldsV1") or {})}


def written(owners: FieldOwners) -> list[Entry]:
    """The entries of owners, in the order of the real server."""
    return sorted((_entry(*each) for each in owners.items()), key=_rank)


def _entry(writer: FieldWriter, owner: FieldOwner) -> Entry:
    if owner.entry is not None and owner.entry.get("time") == owner.time:
        return owner.entry
    fields: Fields = owner.entry["fieldsV1"] if owner.entry is not None else fields_of(owner.paths)
    entry = {
        "manager": writer.manager,
        "operation": writer.operation,
        "apiVersion": owner.api_version,
        "time": owner.time,
        "fieldsType": _FIELDS_TYPE,
        "fieldsV1": fields,
        "subresource": writer.subresource,
    }
    return {key: value for key, value in entry.items() if value not in (None, "")}


def _rank(entry: Entry) -> tuple[str, float, str, str, str]:
    at = entry.get("time")
    return (
        entry["operation"],
        parse_time(at) if at else 0.0,
        entry.get("manager", ""),
        entry["apiVersion"],
        entry.get("subresource", ""),
    )


def without_times(entries: Iterable[Entry]) -> list[Entry]:
    return [{key: value for key, value in entry.items() if key != "time"} for entry in entries]


def cap_updaters(owners: FieldOwners) -> None:
    """Join the oldest of more than ten updaters of one version into a single owner."""
    updaters = sorted(
        (writer for writer in owners if writer.operation == UPDATE),
        key=lambda writer: (owners[writer].time or "", writer.mark),
    )
    excess = len(updaters) - _MOST_UPDATERS
    first: dict[str, FieldWriter] = {}
    for writer in updaters:
        if excess <= 0:
            return
        owner = owners[writer]
        if owner.api_version not in first:
            first[owner.api_version] = writer
            continue
        bucket = FieldWriter(_OLD_UPDATES, UPDATE, owner.api_version)
        joined = owners.get(bucket) or owners.pop(first[owner.api_version])
        owners[bucket] = FieldOwner(owner.paths | joined.paths, owner.api_version, owner.time)
        if writer != bucket:
            del owners[writer]
        excess -= 1
