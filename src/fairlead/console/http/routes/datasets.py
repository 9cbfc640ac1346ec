"""Answers about data sets: the list, one of them, what prevents its end."""

from __future__ import annotations

import asyncio
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from fairlead.console.boards.data.dataset_rows import (
    CLAIM,
    DATA_SET,
    NO_FLUID,
    data_set_detail,
    data_sets_sentence,
)
from fairlead.console.boards.notices import warnings_beside
from fairlead.console.http.answers import Refused, json_answer
from fairlead.console.http.data.read_data import DataView, ReadData
from fairlead.console.http.routes.console import Answering, Console, from_api_server
from fairlead.console.http.routes.operations import operations_now
from fairlead.console.http.routes.rows import rows_answer
from fairlead.console.http.subjects import subject_of
from fairlead.console.pages.data.datasets import (
    DataSetBlockers,
    DataSetDetail,
    DataSetList,
    DataSetRow,
)
from fairlead.console.pages.endpoints import Endpoint
from fairlead.console.pages.envelope import Warning, exact_timestamp
from fairlead.console.pages.list_query import parse_list_query
from fairlead.errors import Forbidden, OutsideError
from fairlead.model.jobs.datasets import FoundData
from fairlead.model.people.reach import reach_of
from fairlead.model.source import SourceState

_Envelope = tuple[str, bool, str, list[Warning]]


async def datasets(console: Console, request: Request, endpoint: Endpoint) -> Response:
    query = parse_list_query(request.query_params.multi_items(), endpoint)
    view, envelope = await _seen(console, request)

    def answer() -> Response:
        sentence = data_sets_sentence(view.content)
        return rows_answer(request, endpoint, query, view.rows, sentence, DataSetList, envelope)

    if view.rows.has_found(query) and not query.as_csv:
        return answer()
    # In a thread: there may be ten thousand claims to look through.
    return await asyncio.to_thread(answer)


async def dataset(console: Console, request: Request, endpoint: Endpoint) -> Response:
    detail = await _detail(console, request)
    return json_answer(request, detail)


async def dataset_blockers(console: Console, request: Request, endpoint: Endpoint) -> Response:
    found = await _detail(console, request)
    row = found.row
    if row.kind != DATA_SET:
        raise Refused(
            404,
            f"there is no data set `{row.namespace}/{row.name}`",
            f"`{row.name}` is a claim: name the data set that mounts it",
        )
    envelope = (found.generated_at, found.stale, found.version, found.warnings)
    return json_answer(request, DataSetBlockers(*envelope, found.blockers))


async def _detail(console: Console, request: Request) -> DataSetDetail:
    view, envelope = await _seen(console, request)
    row = _named(view, request)
    data = read_data(console)
    facts = await data.details(row.namespace, row.name)
    return data_set_detail(facts, row, _own_namespaces(request), envelope, data.mounted())


def read_data(console: Console) -> ReadData:
    return from_api_server(console, console.data, "claims and data sets are not kept")


async def _seen(console: Console, request: Request) -> tuple[DataView, _Envelope]:
    """What the subject may see, and the envelope of its answer."""
    data, namespaces = read_data(console), _own_namespaces(request)
    found = await data.found()
    _check_readable(found)
    at_work = await operations_now(console) if namespaces is None else {}
    view = await data.view(namespaces, at_work)
    reach = reach_of(subject_of(request))
    versions = console.hints.versions if reach is None else console.pictures.picture(reach).versions
    versions.note_data(view.content)
    warnings = warnings_beside(found.sources)
    if not found.has_fluid:
        warnings.append(NO_FLUID)
    version = versions.as_text()["datasets"]
    return view, (exact_timestamp(view.at), data.is_stale, version, warnings)


def _check_readable(found: FoundData) -> None:
    """Raises Forbidden or OutsideError if nothing could be read: the list is not empty then."""
    claims = found.sources.get("persistentvolumeclaims")
    if claims is None or not claims.has_failed or found.data_sets:
        return
    hint = (
        "the console's account needs the right `list` of `persistentvolumeclaims` in all namespaces"
    )
    if claims.state == SourceState.FORBIDDEN:
        raise Forbidden("kubernetes", claims.message, hint)
    raise OutsideError("kubernetes", claims.message, claims.hint)


def _named(view: DataView, request: Request) -> DataSetRow:
    """The data set of the path, else the claim. Raises Refused, 404."""
    namespace, name = (request.path_params[key][:253] for key in ("namespace", "name"))
    rows = {row.kind: row for row in view.content if (row.namespace, row.name) == (namespace, name)}
    found = rows.get(DATA_SET) or rows.get(CLAIM)
    if found is None:
        raise Refused(
            404,
            f"there is no data set and no claim `{name}` in namespace `{namespace}`",
            "look at the list of data sets",
        )
    return found


def _own_namespaces(request: Request) -> frozenset[str] | None:
    """The namespaces that the subject may see; None = all."""
    subject = subject_of(request)
    return None if subject.is_admin else subject.namespaces


ANSWERS: Final[dict[str, Answering]] = {
    "datasets": datasets,
    "dataset": dataset,
    "dataset_blockers": dataset_blockers,
}
"""By the name of their endpoint."""
