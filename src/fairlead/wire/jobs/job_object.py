"""Fields that job objects of every controller share: metadata, and for many kinds conditions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from fairlead.model.jobs.job import Job, Role
from fairlead.model.node import Condition
from fairlead.model.pod import controller_of
from fairlead.wire.kube.objects import WireMeta, epoch, kept_annotations, parse_labels, parse_owners


class WireObject(Protocol):
    """An item of a list.

    Items of a list have no `apiVersion`, so the caller passes the version that it asked for.
    """

    metadata: WireMeta
    api_version: str | None


def make_job(
    wire: WireObject,
    type_: str,
    kind: str,
    api_version: str,
    *,
    roles: tuple[Role, ...],
    started_at: float | None,
    finished_at: float | None,
    labels: Mapping[str, str] | None = None,
    conditions: tuple[Condition, ...] = (),
    word: str = "",
    lead: tuple[str, str] | None = None,
    suspended: bool = False,
    priority_class: str = "",
    least: int | None = None,
    late: tuple[Role, ...] = (),
    can_suspend: bool = True,
) -> Job:
    """The job, with its metadata. `labels`: used instead of the object's labels when given."""
    meta = wire.metadata
    return Job(
        type=type_,
        kind=kind,
        api_version=wire.api_version or api_version,
        namespace=meta.namespace or "",
        name=meta.name or "",
        uid=meta.uid or "",
        labels=parse_labels(meta.labels) if labels is None else labels,
        annotations=kept_annotations(meta.annotations),
        roles=roles,
        conditions=conditions,
        word=word,
        lead=lead,
        suspended=suspended,
        priority_class=priority_class,
        created_at=epoch(meta.creation_timestamp),
        started_at=started_at,
        finished_at=finished_at,
        deleted_at=epoch(meta.deletion_timestamp),
        least=least,
        late=late,
        owner=controller_of(parse_owners(meta.owner_references)),
        can_suspend=can_suspend,
    )


def ended_at(conditions: Iterable[Condition]) -> float | None:
    """Epoch seconds when the first Failed or Succeeded condition became true; None = never."""
    return min(
        (
            each.at
            for each in conditions
            if each.type in ("Failed", "Succeeded")
            and each.status == "True"
            and each.at is not None
        ),
        default=None,
    )
