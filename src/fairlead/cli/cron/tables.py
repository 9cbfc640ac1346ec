"""Crons as a table, as a block and as documents (docs/spec/arena-cli.md#crons).

Moments are those of Kubernetes: RFC 3339, UTC.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from fairlead.model.jobs.cron import Cron, CronRun
from fairlead.model.moment import Moment
from fairlead.wire.kube.time import render_time
from fairlead.wire.text.tabwriter import align, render_rows
from fairlead.wire.text.terminal_text import first_line, join_cells

_LIST: Final = ("NAME", "TYPE", "SCHEDULE", "SUSPEND", "DEADLINE", "CONCURRENCYPOLICY")
_RUNS: Final = ("NAME", "STATUS", "TYPE", "CREATETIME", "FINISHTIME")
_OFFSET: Final = 20


def crons_table(crons: Sequence[Cron], *, has_namespace: bool) -> str:
    rows = [(*("NAMESPACE",) * has_namespace, *_LIST)]
    for cron in crons:
        cells = (
            cron.name,
            cron.kind,
            cron.schedule,
            _truth(cron.is_suspended),
            _time(cron.deadline),
            cron.concurrency,
        )
        rows.append((*(cron.namespace,) * has_namespace, *cells))
    return render_rows(rows)


def cron_block(cron: Cron) -> str:
    facts = {
        "Name": cron.name,
        "Namespace": cron.namespace,
        "Type": cron.kind,
        "Schedule": cron.schedule,
        "Suspend": _truth(cron.is_suspended),
        "ConcurrencyPolicy": cron.concurrency,
        "CreationTimestamp": _time(cron.created_at),
        "LastScheduleTime": _time(cron.scheduled_at),
        "Deadline": _time(cron.deadline),
    }
    lines = [f"{key + ':':<{_OFFSET}}{first_line(value)}" for key, value in facts.items()]
    lines += ["", "History:", "\t".join(_RUNS), "\t".join("-" * len(cell) for cell in _RUNS)]
    lines += [
        join_cells((run.name, run.status, run.kind, _time(run.created_at), _time(run.finished_at)))
        for run in cron.runs
    ]
    return align("\n".join(lines) + "\n")


def cron_document(cron: Cron) -> dict[str, Any]:
    return {
        "uuid": cron.uid,
        "name": cron.name,
        "namespace": cron.namespace,
        "type": cron.kind,
        "schedule": cron.schedule,
        "concurrencyPolicy": cron.concurrency,
        "suspend": cron.is_suspended,
        "deadline": _time(cron.deadline),
        "historyLimit": cron.history_limit,
        "lastScheduleTime": _time(cron.scheduled_at),
        "creationTimestamp": _time(cron.created_at),
        "cronHistory": [_run(cron, run) for run in cron.runs],
    }


def _run(cron: Cron, run: CronRun) -> dict[str, str]:
    return {
        "name": run.name,
        "namespace": cron.namespace,
        "group": run.api_version,
        "kind": run.kind,
        "status": run.status,
        "createTime": _time(run.created_at),
        "finishTime": _time(run.finished_at),
    }


def _time(at: Moment | None) -> str:
    return "" if at is None else render_time(at)


def _truth(value: bool) -> str:
    return "true" if value else "false"
