"""Answers from the usage ledger: usage, idle GPUs, cost of a job, prices, month reports.

A researcher's contain the own namespaces only.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import Any, Final

from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response

from fairlead.console.boards.usage.day_bars import usage_days
from fairlead.console.boards.usage.idle_rows import idle_table
from fairlead.console.boards.usage.job_cost import job_cost
from fairlead.console.boards.usage.ledger_reads import Table
from fairlead.console.boards.usage.price_rows import price_table
from fairlead.console.boards.usage.report import FORMATS, month_report
from fairlead.console.boards.usage.report_texts import MEDIA_TYPES, render_report
from fairlead.console.boards.usage.usage_rows import usage_table
from fairlead.console.http.answers import bytes_answer, json_answer
from fairlead.console.http.routes.console import Answering, Console, usage_ledger
from fairlead.console.http.routes.rows import rows_answer
from fairlead.console.http.subjects import subject_of
from fairlead.console.pages.endpoints import Endpoint
from fairlead.console.pages.list_query import parse_list_query
from fairlead.console.pages.usage.prices import PriceList
from fairlead.console.pages.usage.tables import IdleList, UsageList
from fairlead.errors import UserError

ANY_TYPE: Final = "any"
"""In the path of a job's cost: of a job of any type."""


def _namespaces(request: Request) -> Collection[str] | None:
    """Those of which the subject sees usage; None = all."""
    subject = subject_of(request)
    return None if subject.is_admin else subject.namespaces


async def usage(console: Console, request: Request, endpoint: Endpoint) -> Response:
    table = await usage_table(
        usage_ledger(console), dict(request.query_params), console.now_ms(), _namespaces(request)
    )
    return await _table_answer(request, endpoint, table, UsageList)


async def usage_of_days(console: Console, request: Request, endpoint: Endpoint) -> Response:
    found = await usage_days(
        usage_ledger(console), dict(request.query_params), console.now_ms(), _namespaces(request)
    )
    return json_answer(request, found)


async def idle(console: Console, request: Request, endpoint: Endpoint) -> Response:
    table = await idle_table(
        usage_ledger(console), dict(request.query_params), console.now_ms(), _namespaces(request)
    )
    return await _table_answer(request, endpoint, table, IdleList)


async def prices(console: Console, request: Request, endpoint: Endpoint) -> Response:
    table = await price_table(usage_ledger(console), console.now_ms())
    if not subject_of(request).is_admin:  # who entered it, and why, is for administrators
        rows = [replace(row, entered_by="", note="") for row in table.rows]
        table = replace(table, rows=rows)
    return await _table_answer(request, endpoint, table, PriceList)


async def _table_answer(
    request: Request, endpoint: Endpoint, table: Table, answer_type: Any
) -> Response:
    """Parameters that are neither words of lists nor filters of the table chose the table."""
    query = parse_list_query(request.query_params.multi_items(), endpoint)
    filters = {name: query.filters[name] for name in table.filters if name in query.filters}
    query = replace(query, filters=filters)
    # In a thread: a table may have a row for each job of a month.
    return await asyncio.to_thread(
        rows_answer,
        request,
        endpoint,
        query,
        table.row_set,
        table.sentence,
        answer_type,
        table.envelope,
        table.more,
    )


async def cost_of_job(console: Console, request: Request, endpoint: Endpoint) -> Response:
    path = request.path_params
    found = await job_cost(
        usage_ledger(console),
        console.now_ms(),
        path["namespace"],
        path["name"],
        "" if path["type"] == ANY_TYPE else path["type"],
        request.query_params.get("uid", ""),
    )
    return json_answer(request, found)


async def report(console: Console, request: Request, endpoint: Endpoint) -> Response:
    form = request.query_params.get("format") or "json"
    if form not in FORMATS:
        raise UserError(f"`format` is `{form[:40]}`", f"give one of {', '.join(FORMATS)}")
    found = await month_report(
        usage_ledger(console),
        request.path_params["month"],
        request.query_params.get("asOf", ""),
        _namespaces(request),
    )
    return bytes_answer(request, render_report(found, form), MEDIA_TYPES[form])


ANSWERS: Final[dict[str, Answering]] = {
    "usage": usage,
    "usage_days": usage_of_days,
    "idle": idle,
    "prices": prices,
    "job_cost": cost_of_job,
    "report": report,
}
"""By the name of their endpoint."""
