"""The page Audit: filtered, in pages, and whole as CSV or JSON lines."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from fairlead.console.http.answers import JSON, Refused
from fairlead.console.pages.csv_table import render_csv
from fairlead.console.pages.envelope import exact_timestamp, parse_timestamp
from fairlead.console.pages.list_query import SIZE_DEFAULT, SIZE_MAX, parse_whole
from fairlead.console.pages.writing.audit import AuditedObject, AuditEntry, AuditLine, AuditPage
from fairlead.errors import UserError
from fairlead.model.records.audit import AuditFilter, AuditResult, AuditRow, AuditTarget
from fairlead.ports import AuditTrail

ROWS_MAX: Final = 100_000
"""Rows of one file."""
_FORMS: Final = ("json", "csv", "jsonl")
_CSV: Final = "text/csv; charset=utf-8"
_LINES: Final = "application/x-ndjson"


class AuditAnswers:
    """`trail`: None = this console has no store. `now`: milliseconds UTC. `hint`: how users sign in
    where there is none.
    """

    def __init__(self, trail: AuditTrail | None, now: Callable[[], int], hint: str) -> None:
        self._trail = trail
        self._hint = hint
        self._now = now

    async def answer(self, request: Request) -> Response:
        """A page of rows, newest first; as a file all of them, oldest first."""
        trail = self._trail
        if trail is None:
            raise Refused(
                404,
                "this console keeps no audit, because users do not sign in",
                self._hint,
            )
        asked, wanted = request.query_params, _filter(request)
        form = asked.get("format") or "json"
        if form not in _FORMS:
            raise UserError(f"`format` is `{form[:60]}`", f"use one of: {', '.join(_FORMS)}")
        if form != "json":
            return await _file(trail, wanted, form)
        size = parse_whole("size", asked.get("size"), SIZE_DEFAULT, 1, SIZE_MAX)
        before = parse_whole("before", asked.get("before"), 0, 0, 10**12 - 1)
        rows = await trail.audit_page(wanted, size, before)
        body = AuditPage(
            generated_at=exact_timestamp(self._now() / 1000),
            total=await trail.count_audit(wanted),
            size=size,
            before=rows[-1].id if len(rows) == size else 0,
            items=[_entry(each) for each in rows],
        )
        return Response(msgspec.json.encode(body), 200, {"Cache-Control": "no-store"}, JSON)


async def _file(trail: AuditTrail, wanted: AuditFilter, form: str) -> Response:
    total = await trail.count_audit(wanted)
    if total > ROWS_MAX:
        raise UserError(
            f"{total} rows match, and a file has at most {ROWS_MAX}",
            "ask for a shorter time with `since` and `until`",
        )
    headers = {
        "Cache-Control": "no-store",
        "Content-Disposition": f'attachment; filename="audit.{form}"',
    }
    if form == "csv":
        lines = [_line(each) async for each in trail.audit_rows(wanted)]
        return Response(render_csv(lines, AuditLine, ()), 200, headers, _CSV)
    return StreamingResponse(_json_lines(trail, wanted), 200, headers, _LINES)


async def _json_lines(trail: AuditTrail, wanted: AuditFilter) -> AsyncIterator[bytes]:
    part = bytearray()
    async for each in trail.audit_rows(wanted):
        part += msgspec.json.encode(_entry(each)) + b"\n"
        if len(part) > 1 << 16:
            yield bytes(part)
            part.clear()
    yield bytes(part)


def _filter(request: Request) -> AuditFilter:
    asked = request.query_params
    return AuditFilter(
        actors=tuple(filter(None, asked.getlist("actor"))),
        actions=tuple(filter(None, asked.getlist("action"))),
        results=tuple(_result(each) for each in asked.getlist("result") if each),
        target=AuditTarget(
            asked.get("kind", ""), asked.get("namespace", ""), asked.get("name", "")
        ),
        request_id=asked.get("request", ""),
        since=_moment("since", asked.get("since", "")),
        until=_moment("until", asked.get("until", "")),
        text=asked.get("q", "").strip(),
    )


def _result(text: str) -> AuditResult:
    try:
        return AuditResult(text)
    except ValueError:
        known = ", ".join(AuditResult)
        raise UserError(f"`result` is `{text[:60]}`", f"use one of: {known}") from None


def _moment(name: str, text: str) -> int:
    """Milliseconds UTC of a time with its zone; "" = 0."""
    if not text:
        return 0
    if text.isascii() and text.isdigit() and len(text) < 16:
        return int(text)
    try:
        found = parse_timestamp(text)
    except ValueError:
        found = None
    if found is None:
        raise UserError(
            f"`{name}` is `{text[:60]}`",
            "give milliseconds, or a time such as 2026-01-05T08:00:00Z",
        )
    return round(found * 1000)


def _entry(row: AuditRow) -> AuditEntry:
    target = row.target
    return AuditEntry(
        id=row.id,
        at=exact_timestamp(row.at / 1000),
        actor=row.actor,
        role=row.role,
        source_ip=row.source_ip,
        action=row.action,
        target=AuditedObject(target.kind, target.namespace, target.name),
        request_id=row.request_id,
        result=str(row.result),
        code=row.code,
        summary=row.summary,
    )


def _line(row: AuditRow) -> AuditLine:
    target = row.target
    return AuditLine(
        row.id,
        exact_timestamp(row.at / 1000),
        row.actor,
        row.role,
        row.source_ip,
        row.action,
        target.kind,
        target.namespace,
        target.name,
        row.request_id,
        str(row.result),
        row.code,
        row.summary,
    )
