"""`fairlead dataset show` (docs/spec/datasets.md#one-data-set)."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from fairlead.cli.data.named import named_data_set
from fairlead.cli.data.waiting import data_of
from fairlead.cli.frame.context import Context
from fairlead.errors import UserError

if TYPE_CHECKING:
    from fairlead.model.jobs.datasets import CacheState, DataMount, DataRuntime, SecretOption
    from fairlead.model.moment import Moment
    from fairlead.rules.data.details import DataSetDetails

NAME = "dataset show"
HELP = """Show a data set of Fluid: its sources, its runtime, its cache, why it is not ready, which
jobs and pods mount it, its preheats, and what prevents its end.

Values of Secrets are never read. Options whose names look like keys are hidden."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="of the data set, in the chosen namespace")
    parser.add_argument(
        "--output", "-o", metavar="FORMAT", default="", help="table (default), json or yaml"
    )


def run(args: argparse.Namespace, context: Context) -> int:
    if args.output not in ("", "table", "json", "yaml"):
        what = f"output format `{args.output}` is not known"
        raise UserError(what, "`-o table` (the default), `-o json` or `-o yaml`")
    namespace = context.world.namespace()
    data = data_of(context)
    facts = data.details(namespace, args.name)
    named_data_set(facts.found, namespace, args.name)
    from msgspec import structs

    from fairlead.rules.data.details import data_set_details

    details = data_set_details(facts, namespace, args.name)
    assert details is not None  # it was found above
    details = structs.replace(details, users=tuple(data.with_owners(details.users)))
    if details.unread:
        context.messages.warn(f"not read: {', '.join(details.unread)}")
    if args.output in ("json", "yaml"):
        from fairlead.cli.frame.documents import printed_document

        context.stdout.write(printed_document(args.output, details_document(details)))
    else:
        context.stdout.write(details_text(details))
    return 0


def details_text(details: DataSetDetails) -> str:
    """Lines `Key: value`, then a table for each list that is not empty."""
    from fairlead.wire.text.tabwriter import render_rows

    parts = [render_rows(_lines(details))]
    parts += [render_rows(rows) for rows in _tables(details) if len(rows) > 1]
    return "\n".join(parts)


def _lines(details: DataSetDetails) -> Iterator[tuple[str, str]]:
    row, data_set = details.row, details.data_set
    yield "Name:", data_set.name
    yield "Namespace:", data_set.namespace
    yield "Status:", f"{row.status} ({row.phase})"
    if row.message:
        yield "Message:", row.message
    if data_set.accelerates:
        yield "Accelerates:", f"claim {data_set.accelerates}"
    yield from (("Source:", line) for line in _sources(details))
    for runtime in details.runtimes:
        yield "Runtime:", f"{runtime.kind}, {runtime.ready} of {runtime.wanted} workers ready"
        yield from _parts(runtime)
    if not details.runtimes:
        yield "Runtime:", "none"
    yield from _cache(data_set.cache, data_set.size)
    if data_set.files is not None:
        yield "Files:", str(data_set.files)
    if data_set.finalizers:
        yield "Finalizers:", ", ".join(data_set.finalizers)
    yield from (("Used by:", line) for line in _users(details) or ["no pod"])
    if details.blockers:
        yield "Cannot end:", "; ".join(details.blockers)


def _users(details: DataSetDetails) -> list[str]:
    """A line for each job with its pods, and for each pod that a person made."""
    from fairlead.rules.data.mounted import POD, by_owner

    lines = []
    for user, mine in by_owner(details.users):
        pods = ", ".join(f"{each.name} on {each.node}" if each.node else each.name for each in mine)
        lines.append(pods if user.kind == POD else f"{user.title}: {pods}")
    return lines


def _sources(details: DataSetDetails) -> Iterator[str]:
    data_set = details.data_set
    for mount in data_set.mounts:
        path = mount.path or f"/{mount.name}"
        yield f"{mount.point} at {path}{', read-only' if mount.is_read_only else ''}"
        yield from _options(mount.options, mount.secrets)
    yield from _options(data_set.shared_options, data_set.shared_secrets)


def _options(options: Iterable[tuple[str, str]], secrets: Iterable[SecretOption]) -> Iterator[str]:
    yield from (f"  {name}={value}" for name, value in options)
    for each in secrets:
        yield f"  {each.option} from Secret {each.secret}, key {each.key}"


def _parts(runtime: DataRuntime) -> Iterator[tuple[str, str]]:
    for part in runtime.parts:
        if part.phase:
            words = f"{part.phase}: {part.reason}" if part.reason else part.phase
            yield f"  {part.name}:", words


def _cache(cache: CacheState, size: int | None) -> Iterator[tuple[str, str]]:
    from fairlead.cli.data.dataset_list import size_text

    known = "" if size is None else f" of {size_text(size)}"
    percent = "" if cache.percent is None else f" ({cache.percent:g}%)"
    if cache.cached is not None:
        yield "Cached:", f"{size_text(cache.cached)}{known}{percent}"
    elif size is not None:
        yield "Size:", size_text(size)
    if cache.capacity is not None:
        yield "Capacity:", size_text(cache.capacity)
    ratios = {
        "all": cache.hit_percent,
        "same node": cache.local_percent,
        "other nodes": cache.remote_percent,
    }
    texts = [f"{name} {value:g}%" for name, value in ratios.items() if value is not None]
    if texts:
        yield "Hits:", ", ".join(texts)


def _tables(details: DataSetDetails) -> Iterator[list[Sequence[str]]]:
    now = details.taken_at
    yield [
        ("CONDITION", "STATUS", "AGE", "REASON", "MESSAGE"),
        *(
            (each.type, each.status, _age(each.at, now), each.reason, each.message)
            for each in details.data_set.conditions
        ),
    ]
    yield [
        ("PREHEAT", "PHASE", "AGE", "DURATION", "SCHEDULE", "PATHS", "MESSAGE"),
        *(
            (
                each.name,
                each.phase or "Pending",
                _age(each.created_at, now),
                each.duration,
                each.schedule,
                ",".join(each.paths),
                each.message,
            )
            for each in details.loads
        ),
    ]
    yield [
        ("WARNING", "AGE", "OBJECT", "MESSAGE"),
        *(
            (
                each.reason,
                _age(each.at, now),
                f"{each.object_kind} {each.object_name}",
                each.message,
            )
            for each in details.warnings
        ),
    ]


def _age(at: Moment | None, now: Moment) -> str:
    from fairlead.cli.frame.text import short_duration

    return "<unknown>" if at is None else short_duration(now - at)


def details_document(details: DataSetDetails) -> dict[str, Any]:
    """The row of `fairlead dataset list`, and all else that is shown."""
    from fairlead.cli.data.dataset_list import row_document

    data_set = details.data_set
    cache = data_set.cache
    return {
        **row_document(details.row),
        "accelerates": data_set.accelerates,
        "mounts": [_mount_document(each) for each in data_set.mounts],
        "sharedOptions": dict(data_set.shared_options),
        "sharedSecrets": [_secret_document(each) for each in data_set.shared_secrets],
        "runtimes": [_runtime_document(each) for each in details.runtimes],
        "cachedBytes": cache.cached,
        "capacityBytes": cache.capacity,
        "hitPercent": cache.hit_percent,
        "localHitPercent": cache.local_percent,
        "remoteHitPercent": cache.remote_percent,
        "conditions": [
            {
                "type": each.type,
                "status": each.status,
                "reason": each.reason,
                "message": each.message,
                "at": each.at,
            }
            for each in data_set.conditions
        ],
        "finalizers": list(data_set.finalizers),
        "preheats": [
            {
                "name": each.name,
                "phase": each.phase or "Pending",
                "paths": list(each.paths),
                "schedule": each.schedule,
                "createdAt": each.created_at,
                "duration": each.duration,
                "message": each.message,
                "operation": each.operation,
            }
            for each in details.loads
        ],
        "usedBy": [
            {
                "pod": each.name,
                "node": each.node,
                "ownerKind": each.owner.kind if each.owner else "",
                "owner": each.owner.name if each.owner else "",
            }
            for each in details.users
        ],
        "blockers": list(details.blockers),
        "warnings": [
            {
                "reason": each.reason,
                "message": each.message,
                "object": f"{each.object_kind} {each.object_name}",
                "count": each.count,
                "at": each.at,
            }
            for each in details.warnings
        ],
        "unread": list(details.unread),
    }


def _mount_document(mount: DataMount) -> dict[str, Any]:
    return {
        "mountPoint": mount.point,
        "name": mount.name,
        "path": mount.path or f"/{mount.name}",
        "readOnly": mount.is_read_only,
        "options": dict(mount.options),
        "secrets": [_secret_document(each) for each in mount.secrets],
    }


def _secret_document(option: SecretOption) -> dict[str, str]:
    return {"option": option.option, "secret": option.secret, "key": option.key}


def _runtime_document(runtime: DataRuntime) -> dict[str, Any]:
    return {
        "kind": runtime.kind,
        "workersReady": runtime.ready,
        "workersWanted": runtime.wanted,
        "parts": [
            {"name": each.name, "phase": each.phase, "reason": each.reason}
            for each in runtime.parts
        ],
    }
