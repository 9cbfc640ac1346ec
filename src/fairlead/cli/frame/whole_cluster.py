"""Reads the whole cluster for a file: the snapshot, and the objects to continue from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fairlead.cli.frame.context import ClusterReader
    from fairlead.model.snapshot import ClusterSnapshot
    from fairlead.model.source import Source


def read_whole(reader: ClusterReader) -> tuple[ClusterSnapshot, tuple[dict[str, Any], ...] | None]:
    """All there is, and in the sources of the snapshot what is missing of it, objects included."""
    from msgspec.structs import replace

    snapshot, kept = reader.read_all(), reader.read_objects()
    if kept is None:
        return snapshot, None
    objects_unread = {source.name: source for source in kept.unread}
    return replace(snapshot, sources={**objects_unread, **snapshot.sources}), tuple(kept.objects)


def unread_sources(snapshot: ClusterSnapshot) -> list[Source]:
    """Unread sources by name, each message once: a kind of jobs is read as jobs and as objects."""
    by_message: dict[str, Source] = {}
    for name, source in sorted(snapshot.sources.items()):
        if source.is_unread:
            by_message.setdefault(source.message or name, source)
    return list(by_message.values())
