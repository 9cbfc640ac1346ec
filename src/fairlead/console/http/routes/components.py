"""Answers about components: the list, one of them, and the check of a database."""

from __future__ import annotations

import asyncio
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from fairlead.console.boards.data.component_rows import (
    component_detail,
    component_objects,
    component_row_set,
    components_sentence,
)
from fairlead.console.http.answers import json_answer
from fairlead.console.http.data.operation_desk import is_seen
from fairlead.console.http.data.read_components import ReadComponents
from fairlead.console.http.routes.console import (
    Answering,
    Console,
    csrf_token,
    from_api_server,
)
from fairlead.console.http.routes.operations import operation_desk
from fairlead.console.http.routes.rows import rows_answer
from fairlead.console.http.subjects import subject_of
from fairlead.console.http.writes import own_body
from fairlead.console.http.writing.frame import invalid, not_there
from fairlead.console.http.writing.store_password import store_settings
from fairlead.console.pages.data.components import ComponentList, StoreChecked, StoreOrder
from fairlead.console.pages.endpoints import Endpoint
from fairlead.console.pages.envelope import Warning, exact_timestamp
from fairlead.console.pages.list_query import parse_list_query
from fairlead.console.pages.writing.preview import decoded
from fairlead.errors import OutsideError
from fairlead.model.installed.component_facts import ComponentFacts
from fairlead.model.installed.facts import Unread
from fairlead.model.operations.component import ComponentRow
from fairlead.model.operations.operation import Operation
from fairlead.rules.components.state import component_rows, is_installed, with_operations

_Envelope = tuple[str, bool, str, list[Warning]]


async def components(console: Console, request: Request, endpoint: Endpoint) -> Response:
    query = parse_list_query(request.query_params.multi_items(), endpoint)
    facts, _, warnings = await _seen(console)
    rows = component_row_set(facts, read_components(console).charts)
    sentence = components_sentence([entry.row for entry in rows.entries])
    envelope = _envelope(console, warnings)
    return rows_answer(request, endpoint, query, rows, sentence, ComponentList, envelope)


async def component(console: Console, request: Request, endpoint: Endpoint) -> Response:
    id = request.path_params["id"][:100]
    facts, operations, warnings = await _seen(console)
    row = next((each for each in component_rows(facts) if each.id == id), None)
    if row is None:
        raise not_there("component", id, "look at the list of components")
    subject = subject_of(request)
    by = subject.user or subject.name
    seen = [each for each in operations if is_seen(each, by)]
    links = await _links(console, row, facts) if is_installed(row) else ()
    charts = read_components(console).charts
    detail = component_detail(row, facts, seen, _envelope(console, warnings), links, charts)
    return json_answer(request, detail)


async def _links(console: Console, row: ComponentRow, facts: ComponentFacts) -> tuple[str, ...]:
    """None if they cannot be read: they are only a way to a page."""
    questions = read_components(console).questions()
    try:
        found = await asyncio.to_thread(questions.links, row, component_objects(row, facts))
    except OutsideError:
        return ()
    return () if isinstance(found, Unread) else found


async def store_check(console: Console, request: Request, endpoint: Endpoint) -> Response:
    """The password is used for one connection, and kept nowhere."""
    body = await own_body(request, csrf_token(console, request))
    order = decoded(body, StoreOrder)
    if isinstance(order, list):
        raise invalid(order)
    stores = from_api_server(console, console.world.stores, "no database can be checked")
    found = await stores.look(order.url.strip(), order.password)
    settings = store_settings(order.url.strip()) if found.is_good else []
    return json_answer(request, StoreChecked(found.is_good, found.sentence, found.hint, settings))


def read_components(console: Console) -> ReadComponents:
    return from_api_server(console, console.components, "components are not kept")


async def _seen(
    console: Console,
) -> tuple[ComponentFacts, tuple[Operation, ...], list[Warning]]:
    facts = await read_components(console).facts()
    warnings = _warnings(facts)
    try:
        operations = await operation_desk(console).list()
    except OutsideError as error:
        warnings.append(_unread("operations", error.what, error.hint))
        return facts, (), warnings
    return with_operations(facts, operations), operations, warnings


def _warnings(facts: ComponentFacts) -> list[Warning]:
    parts = {
        "workloads": facts.workloads,
        "installation": facts.installation,
        "inventories": facts.inventories,
        "helm": facts.releases,
    }
    hint = "give the console's account the right to read it"
    found = [
        _unread(name, each.why, hint) for name, each in parts.items() if isinstance(each, Unread)
    ]
    if not facts.has_helm:
        found.append(
            Warning(
                code="no-helm",
                source="helm",
                message="there is no program `helm`: releases of Helm are not seen, and charts "
                "cannot be deployed from here",
                hint="install Helm 3.14 or later, or 4, where the console runs",
                values={"source": "helm"},
            )
        )
    return found


def _unread(source: str, why: str, hint: str) -> Warning:
    return Warning(
        code="unread", source=source, message=why, hint=hint, values={"source": source, "why": why}
    )


def _envelope(console: Console, warnings: list[Warning]) -> _Envelope:
    versions = console.hints.versions
    versions.note_operations(operation_desk(console).last)
    version = versions.as_text()["operations"]
    return exact_timestamp(console.world.clock.now()), False, version, warnings


ANSWERS: Final[dict[str, Answering]] = {
    "components": components,
    "component": component,
    "store_check": store_check,
}
"""By the name of their endpoint."""
