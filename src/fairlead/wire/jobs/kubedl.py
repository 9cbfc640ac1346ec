"""Crons of KubeDL (`apps.kubedl.io`): the fields that Fairlead reads.

The `apiGroup` of a job in the history contains group and version (`kubeflow.org/v1`).
"""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct

from fairlead.model.jobs.cron import Cron, CronRun
from fairlead.wire.kube.objects import WireMeta, epoch


class WireCronTemplate(Struct, gc=False, rename="camel"):
    api_version: str | None = None
    kind: str | None = None


class WireCronSpec(Struct, gc=False, rename="camel"):
    schedule: str | None = None
    concurrency_policy: str | None = None
    suspend: bool | None = None
    deadline: datetime | None = None
    history_limit: int | None = None
    template: WireCronTemplate | None = None


class WireCronObject(Struct, gc=False, rename="camel"):
    api_group: str | None = None
    kind: str | None = None
    name: str | None = None


class WireCronHistory(Struct, gc=False):
    object: WireCronObject | None = None
    status: str | None = None
    created: datetime | None = None
    finished: datetime | None = None


class WireCronStatus(Struct, gc=False, rename="camel"):
    history: list[WireCronHistory] | None = None
    last_schedule_time: datetime | None = None


class WireCron(Struct, gc=False):
    metadata: WireMeta
    spec: WireCronSpec | None = None
    status: WireCronStatus | None = None


def parse_cron(wire: WireCron) -> Cron:
    meta, spec, status = wire.metadata, wire.spec or WireCronSpec(), wire.status or WireCronStatus()
    return Cron(
        namespace=meta.namespace or "",
        name=meta.name or "",
        uid=meta.uid or "",
        kind=(spec.template and spec.template.kind) or "",
        schedule=spec.schedule or "",
        concurrency=spec.concurrency_policy or "",
        is_suspended=bool(spec.suspend),
        deadline=epoch(spec.deadline),
        history_limit=spec.history_limit or 0,
        created_at=epoch(meta.creation_timestamp),
        scheduled_at=epoch(status.last_schedule_time),
        runs=tuple(_parse_run(each) for each in status.history or ()),
    )


def _parse_run(wire: WireCronHistory) -> CronRun:
    job = wire.object or WireCronObject()
    return CronRun(
        name=job.name or "",
        api_version=job.api_group or "",
        kind=job.kind or "",
        status=wire.status or "",
        created_at=epoch(wire.created),
        finished_at=epoch(wire.finished),
    )
