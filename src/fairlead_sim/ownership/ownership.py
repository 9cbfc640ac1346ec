"""What a write does to the owners of an object's fields, and what an apply does to the object.

A write of any kind takes the fields that it changes from their owners. An apply owns all that it
names, is refused where that would change what others own, and withdraws what it no longer names. An
object without entries is not tracked until its first apply; everything in it is then
`before-first-apply`'s.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from fairlead_sim.ownership.comparison import (
    Comparison,
    compare,
    field_paths,
    named_paths,
)
from fairlead_sim.ownership.entries import (
    UPDATE,
    Entry,
    FieldOwner,
    FieldOwners,
    FieldWriter,
    cap_updaters,
    given_owners,
    read_owners,
    without_times,
    written,
)
from fairlead_sim.ownership.field_paths import Path, Paths, below, fields_of, in_order, shown_path
from fairlead_sim.ownership.field_types import FieldType
from fairlead_sim.ownership.merging import merged, without
from fairlead_sim.schema.resource import ResourceKind
from fairlead_sim.schema.status import ApiStatus

Object = dict[str, Any]
_BEFORE: Final = "before-first-apply"
_WITHOUT_OWNER: Final = (
    "name",
    "namespace",
    "creationTimestamp",
    "selfLink",
    "uid",
    "clusterName",
    "generation",
    "managedFields",
    "resourceVersion",
)
"""Metadata that has no owner."""
_STRIPPED: Final = frozenset(
    (
        ("f:apiVersion",),
        ("f:kind",),
        ("f:metadata",),
        *(("f:metadata", f"f:{name}") for name in _WITHOUT_OWNER),
    )
)


_STATUS: Final[Path] = ("f:status",)
_SPEC: Final[Path] = ("f:spec",)
_METADATA: Final[Path] = ("f:metadata",)
_IGNORED: Final[Mapping[tuple[str, str], tuple[Path, ...]]] = {
    ("", "Pod"): (
        ("f:metadata", "f:deletionTimestamp"),
        ("f:metadata", "f:ownerReferences"),
    ),
    ("apps", "Deployment"): (("f:metadata", "f:labels"),),
    ("storage.k8s.io", "VolumeAttachment"): (_METADATA,),
}
"""What the status of a kind cannot change beside the spec."""


def ignored_paths(ref: ResourceKind, subresource: str) -> tuple[Path, ...]:
    """The paths that a write through this door of a kind cannot own."""
    if subresource == "status":
        more = (_METADATA,) if ref.is_custom else _IGNORED.get((ref.group, ref.kind), ())
        return (_SPEC, *more)
    return (_STATUS,) if "status" in ref.subresources else ()


class Conflicts(Exception):
    """An apply would change what others own: the fields of each writer."""

    def __init__(self, fields: Mapping[FieldWriter, Paths]) -> None:
        super().__init__("fields with other owners")
        self.fields = fields


@dataclass(frozen=True, slots=True)
class TrackedWrite:
    """A write: of an object of this type, by `writer`, at this time.

    `ignored`: the paths that this door cannot change, so it gives them no owner.
    `api_version`: of the paths. `at` is None for a Scale, whose entries have no time.
    """

    kind: FieldType
    writer: FieldWriter
    api_version: str
    at: str | None
    ignored: tuple[Path, ...] = ()


def updated(write: TrackedWrite, old: Object | None, new: Object) -> list[Entry]:
    """The entries of `new` after a create (`old` is None) or an update, which may bring its own.

    Raises NoStep for an object that its type does not allow.
    """
    given = (new.get("metadata") or {}).get("managedFields")
    stored = ((old or {}).get("metadata") or {}).get("managedFields") or []
    if given is not None and given != stored and not write.writer.subresource:
        owners = _given(given, stored)
    else:
        owners = read_owners(stored)
    if not owners and old is not None:
        return []
    changes = compare(write.kind, _owned_part(old or {}), _owned_part(new)).without(write.ignored)
    if not changes.added and not changes.modified and not changes.removed:
        return written(owners)
    _take(write, owners, changes)
    cap_updaters(owners)
    return written(owners)


def _given(given: Any, stored: list[Entry]) -> FieldOwners:
    """The owners that a request names itself: `[]` and `[{}]` forget all of them."""
    if given in ([], [{}]):
        return {}
    try:
        return given_owners(given) or read_owners(stored)
    except ValueError:
        return read_owners(stored)


def _take(write: TrackedWrite, owners: FieldOwners, changes: Comparison) -> None:
    """Give the changed fields to the writer, who is no applier."""
    taken = changes.added | changes.modified
    _release(owners, taken | changes.removed)
    own = taken - _STRIPPED
    if own:
        held = owners.get(write.writer)
        owners[write.writer] = (
            held.more(own, write.api_version, write.at)
            if held is not None
            else FieldOwner(own, write.api_version, write.at)
        )


def _release(owners: FieldOwners, paths: Paths, but: FieldWriter | None = None) -> None:
    for writer, owner in list(owners.items()):
        left = owner if writer == but else owner.less(paths)
        if left:
            owners[writer] = left
        else:
            del owners[writer]


def _owned_part(obj: Object) -> Object:
    """The object without the metadata that has no owner."""
    metadata = obj.get("metadata")
    if metadata is None:
        return obj
    held = {key: value for key, value in metadata.items() if key not in _WITHOUT_OWNER}
    return {**obj, "metadata": held}


# --- apply ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Applied:
    """What an apply made: the object (None: nothing changed) and its entries."""

    object: Object | None
    entries: list[Entry]


def applied(write: TrackedWrite, live: Object | None, wish: Object, *, force: bool) -> Applied:
    """`live` (None: there is no such object yet) after `wish` was applied to it.

    Raises Conflicts where others own what it would change, NoStep for an object that its type does
    not allow.
    """
    held = _without_entries(live or {"apiVersion": wish["apiVersion"], "kind": wish["kind"]})
    owners = read_owners(((live or {}).get("metadata") or {}).get("managedFields") or [])
    if not owners and live is not None:
        first = replace(
            write, writer=FieldWriter(_BEFORE, UPDATE, write.api_version, write.writer.subresource)
        )
        _take(first, owners, compare(write.kind, {}, _owned_part(live)).without(write.ignored))
    last = owners.get(write.writer)
    own = field_paths(write.kind, wish)
    own.difference_update(set(below(own, write.ignored)))
    owners[write.writer] = FieldOwner(own, write.api_version, last.time if last else None)
    new = merged(write.kind, held, wish)
    if last is not None:
        new = _withdrawn(write.kind, new, owners, last.paths)
    changes = compare(write.kind, held, new).without(write.ignored)
    taken = changes.added | changes.modified
    conflicts = {
        writer: found
        for writer, owner in owners.items()
        if writer != write.writer and (found := owner.common(taken))
    }
    if conflicts and not force:
        raise Conflicts(conflicts)
    _release(owners, taken | changes.removed, write.writer)
    is_same = bool(new == held)
    time = owners[write.writer].time if is_same else write.at or owners[write.writer].time
    owners[write.writer] = FieldOwner(own - _STRIPPED, write.api_version, time)
    _release(owners, set())  # who has nothing left is no owner
    return Applied(None if is_same and live is not None else new, written(owners))


def _without_entries(obj: Object) -> Object:
    metadata = obj.get("metadata") or {}
    if "managedFields" not in metadata:
        return obj
    return {
        **obj,
        "metadata": {key: value for key, value in metadata.items() if key != "managedFields"},
    }


def _withdrawn(kind: FieldType, new: Object, owners: FieldOwners, last: Paths) -> Object:
    """`new` without the fields that the applier owned and names no longer, unless another owner
    has them.
    """
    managed: Paths = set().union(*(owner.paths for owner in owners.values()))
    if last <= managed:
        return new
    everything = named_paths(kind, field_paths(kind, new))
    withdrawn = without(kind, new, fields_of(named_paths(kind, last))) or {}
    left = named_paths(kind, field_paths(kind, withdrawn)) | named_paths(kind, managed)
    withdrawn = without(kind, new, fields_of(everything - left)) or {}
    gone = everything - named_paths(kind, field_paths(kind, withdrawn))
    result = without(kind, new, fields_of(gone & named_paths(kind, last)))
    return result or {}


def same_times(entries: list[Entry], live: Object, new: Object) -> list[Entry]:
    """The entries with which `new` is stored: those of `live` if nothing but times differs."""
    stored = live["metadata"].get("managedFields") or []
    if (
        entries != stored
        and without_times(entries) == without_times(stored)
        and _owned_part(live) == _owned_part(new)
    ):
        return list(stored)
    return entries


def conflict_error(conflicts: Mapping[FieldWriter, Paths]) -> ApiStatus:
    """The 409 of an apply without force."""
    listed = [
        (writer, shown_path(path))
        for writer in sorted(conflicts, key=lambda each: each.mark)
        for path in in_order(conflicts[writer])
    ]
    if len(listed) == 1:
        writer, path = listed[0]
        words = f"1 conflict: conflict with {writer.shown}: {path}"
    else:
        lines, last = [f"{len(listed)} conflicts: "], None
        for writer, path in listed:
            if writer != last:
                lines.append(f"conflicts with {writer.shown}:\n")
                last = writer
            lines.append(f"- {path}\n")
        words = "".join(lines).removesuffix("\n")
    causes = [
        {
            "reason": "FieldManagerConflict",
            "message": f"conflict with {writer.shown}",
            "field": path,
        }
        for writer, path in listed
    ]
    return ApiStatus(409, "Conflict", f"Apply failed with {words}", {"causes": causes})
