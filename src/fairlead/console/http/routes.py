"""What the server answers on each address: the API's routes, the page's files, health.

Nothing here decides anything. Every function takes the request with its parameters already checked
for names, asks the board state, and returns a value. Failures are raised; `http/guard` turns them
into the error envelope.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, cast

import msgspec
from msgspec import structs
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route, Router

from fairlead import __version__
from fairlead.console.boards.board_state import BoardState
from fairlead.console.boards.change_hints import ChangeHints
from fairlead.console.boards.health import health_rows, health_sentence
from fairlead.console.boards.holders import GROUPINGS, holder_groups, holders_sentence
from fairlead.console.boards.job_files import instance_logs
from fairlead.console.boards.notices import warnings_beside
from fairlead.console.boards.rows import RowSet, matching, page_of
from fairlead.console.boards.search import SHOWN, SHOWN_MAX, query_text
from fairlead.console.boards.serving.rows import serving_sentence
from fairlead.console.charts.answer import chart_answer, heatmap
from fairlead.console.charts.charts import history_lines, prometheus_lines
from fairlead.console.charts.history import History
from fairlead.console.charts.queries import CHART_NAMES, CHART_QUERIES, HEATMAP
from fairlead.console.charts.request import parse_chart_request, parse_heatmap_filters
from fairlead.console.http.answers import Refused, bytes_answer, json_answer, packed_answer
from fairlead.console.http.board_states import BoardStates
from fairlead.console.http.health_answers import HealthAnswers
from fairlead.console.http.job_event_answers import EventAnswers
from fairlead.console.http.log_streams import LogStreams
from fairlead.console.http.serving_answers import ServingAnswers
from fairlead.console.http.subjects import EveryClientIsAdmin, Subjects, check_right, subject_of
from fairlead.console.http.web_files import page_build, web_answer
from fairlead.console.http.writes import own_body
from fairlead.console.pages.clock import carry_out, clock_face, clock_moved, parse_order
from fairlead.console.pages.csv_table import render_csv
from fairlead.console.pages.endpoints import BASE, ENDPOINTS, Endpoint
from fairlead.console.pages.envelope import Envelope, Sentence, Warning, exact_timestamp
from fairlead.console.pages.gpus import GpuList
from fairlead.console.pages.health import HealthPage
from fairlead.console.pages.holders import HolderGroupList, HolderList
from fairlead.console.pages.jobs import (
    InstanceList,
    JobDetail,
    JobEvents,
    JobList,
    JobManifest,
    JobWhy,
)
from fairlead.console.pages.list_query import ListQuery, check_known, parse_list_query, parse_whole
from fairlead.console.pages.nodes import NodeList
from fairlead.console.pages.openapi import openapi_document
from fairlead.console.pages.quota import QuotaUsage, QuotaWaitingList
from fairlead.console.pages.quota_tree import parse_what_if
from fairlead.console.pages.serving.jobs import ServingList
from fairlead.console.pages.session import ClusterName, Features, Me, Person
from fairlead.errors import UserError
from fairlead.model.actions import Manifest
from fairlead.model.jobs.instances import JobInstances
from fairlead.ports import JobFiles, Ports, Timekeeper
from fairlead.wire.files.manifest_yaml import render_manifests
from fairlead.wire.files.shown_manifest import shown_manifest

_CSV: Final = "text/csv; charset=utf-8"
_READS: Final = ("GET", "HEAD")
_METHODS: Final = (*_READS, "POST", "PUT", "PATCH", "DELETE", "OPTIONS")


class Console(msgspec.Struct):
    """What the routes speak from."""

    world: Ports
    board_states: BoardStates
    history: History
    hints: ChangeHints
    speed: Callable[[], float]
    csrf: str
    logs: LogStreams
    events: EventAnswers
    servings: ServingAnswers
    health: HealthAnswers
    subjects: Subjects = msgspec.field(default_factory=EveryClientIsAdmin)
    base_path: str = "/"


Answer = Callable[[Request], Awaitable[Response]]
Answering = Callable[[Console, Request, Endpoint], Awaitable[Response]]


def console_routes(console: Console, extra: Mapping[str, Answer] | None = None) -> Router:
    """The application: `extra` paths first (health, metrics), then the API, then the page."""
    routes = [_route(path, answer) for path, answer in (extra or {}).items()]
    writes = {
        endpoint.path: _answering(console, endpoint)
        for endpoint in ENDPOINTS
        if endpoint.method == "POST"
    }
    reads = [endpoint for endpoint in ENDPOINTS if endpoint.method == "GET"]
    routes += [
        _route(BASE + endpoint.path, _answering(console, endpoint), writes.pop(endpoint.path, None))
        for endpoint in reads
    ]
    routes += [_route(BASE + path, None, write) for path, write in writes.items()]
    routes += [
        _route("/api", _no_route),
        _route("/api/{path:path}", _no_route),
        _route("/{path:path}", _page(console)),
    ]
    return Router(routes=routes, redirect_slashes=False)


def _route(path: str, answer: Answer | None, write: Answer | None = None) -> Route:
    """A route that reads if it can, and on POST writes if it can.

    Other methods are refused here, in our envelope, not by the framework.
    """

    async def answer_known(request: Request) -> Response:
        if answer is not None and request.method in _READS:
            return await answer(request)
        if write is not None and request.method == "POST":
            return await write(request)
        allowed = (
            *(_READS if answer is not None else ()),
            *(("POST",) if write is not None else ()),
        )
        hint = f"use {' or '.join(method for method in allowed if method != 'HEAD')}"
        raise Refused(
            405,
            f"`{request.url.path[:200]}` does not answer to {request.method}",
            hint,
            {"Allow": ", ".join(allowed)},
        )

    return Route(path, answer_known, methods=_METHODS)


def _answering(console: Console, endpoint: Endpoint) -> Answer:
    answer = ANSWERS[endpoint.name]

    async def answer_request(request: Request) -> Response:
        await check_right(console.subjects, request, endpoint.right)
        check_known(request.query_params.multi_items(), endpoint)
        return await answer(console, request, endpoint)

    return answer_request


def _page(console: Console) -> Answer:
    async def answer_page(request: Request) -> Response:
        return web_answer(request, request.path_params["path"], console.base_path)

    return answer_page


async def _no_route(request: Request) -> Response:
    known = ", ".join(dict.fromkeys(f"`{BASE}{endpoint.path}`" for endpoint in ENDPOINTS))
    raise Refused(404, f"there is no route `{request.url.path[:200]}`", f"routes: {known}")


async def me(console: Console, request: Request, endpoint: Endpoint) -> Response:
    world, subject = console.world, subject_of(request)
    body = Me(
        user=Person(name=subject.name, role=subject.role),
        csrf=console.csrf,
        cluster=ClusterName(
            name=world.name,
            world="simulated" if world.is_simulated else "kubernetes",
            version=str(world.cluster.version),
        ),
        clock=clock_face(world, console.speed()),
        features=Features(
            prometheus=world.series is not None,
            clock=world.timekeeper is not None,
            history_seconds=None if world.series is not None else console.history.seconds,
        ),
        version=__version__,
        build=page_build(),
    )
    return json_answer(request, body)


async def clock(console: Console, request: Request, endpoint: Endpoint) -> Response:
    _timekeeper(console)
    return json_answer(request, clock_face(console.world, console.speed()))


async def move_clock(console: Console, request: Request, endpoint: Endpoint) -> Response:
    keeper = _timekeeper(console)
    order = parse_order(await own_body(request, console.csrf))
    return json_answer(request, clock_moved(console.world, carry_out(order, keeper)))


def _timekeeper(console: Console) -> Timekeeper:
    if console.world.timekeeper is None:
        raise Refused(
            404,
            f"the time of {console.world.name} cannot be changed",
            "only a simulated cluster's time can be changed: `fairlead up`",
        )
    return console.world.timekeeper


async def overview(console: Console, request: Request, endpoint: Endpoint) -> Response:
    return json_answer(request, (await console.board_states.latest("overview")).overview)


async def mine(console: Console, request: Request, endpoint: Endpoint) -> Response:
    user, namespace = (request.query_params.get(name, "") for name in ("user", "namespace"))
    if user and namespace:
        raise UserError(
            f"`user` is `{user[:60]}` and `namespace` is `{namespace[:60]}`",
            "ask for one of them",
        )
    board_state = await console.board_states.latest("holders", "waiting", "offers", "places")
    # In a thread: what could start now is asked of a plan of the whole cluster.
    return await asyncio.to_thread(
        lambda: json_answer(request, board_state.my_work(user, namespace))
    )


async def search(console: Console, request: Request, endpoint: Endpoint) -> Response:
    text = query_text(request.query_params.get("q", ""))
    most = parse_whole("size", request.query_params.get("size"), SHOWN, 1, SHOWN_MAX)
    board_state = await console.board_states.latest()
    # In a thread: there may be 50,000 pods to look through.
    return await asyncio.to_thread(lambda: json_answer(request, board_state.search(text, most)))


async def gpu_map(console: Console, request: Request, endpoint: Endpoint) -> Response:
    return packed_answer(request, await console.board_states.packed("gpu_map"))


async def gpus(console: Console, request: Request, endpoint: Endpoint) -> Response:
    board_state = await console.board_states.latest("gpus")
    # In a thread, because there may be 40,000 rows and other requests must not wait for them.
    return await asyncio.to_thread(
        lambda: _list_answer(
            request,
            endpoint,
            board_state,
            board_state.gpus,
            board_state.gpus_sentence,
            GpuList,
            "gpus",
        )
    )


async def holders(console: Console, request: Request, endpoint: Endpoint) -> Response:
    board_state = await console.board_states.latest("holders")
    # In a thread: there may be 50,000 pods, and the sentence speaks of all of them.
    return await asyncio.to_thread(
        lambda: _list_answer(
            request,
            endpoint,
            board_state,
            board_state.holders,
            board_state.holders_sentence,
            HolderList,
            "gpus",
        )
    )


async def grouped_holders(console: Console, request: Request, endpoint: Endpoint) -> Response:
    by = request.query_params.get("by") or GROUPINGS[0]
    if by not in GROUPINGS:
        raise UserError(f"`by` is `{by[:60]}`", f"use one of: {', '.join(GROUPINGS)}")
    board_state = await console.board_states.latest("holders")
    return await asyncio.to_thread(_grouped_answer, request, endpoint, board_state, by)


def _grouped_answer(
    request: Request, endpoint: Endpoint, board_state: BoardState, by: str
) -> Response:
    """Filters and `q` choose pods; what is sorted and cut into pages are the groups of those."""
    query = parse_list_query(
        [pair for pair in request.query_params.multi_items() if pair[0] != "by"], endpoint
    )
    chosen = matching(board_state.holders, structs.replace(query, sort=(), fields=()))
    groups = holder_groups(chosen, by)
    whole = structs.replace(query, q="", filters={})
    return _list_answer(
        request,
        endpoint,
        board_state,
        groups,
        holders_sentence(chosen),
        HolderGroupList,
        "gpus",
        query=whole,
    )


async def nodes(console: Console, request: Request, endpoint: Endpoint) -> Response:
    board_state = await console.board_states.latest("nodes", "nodes_sentence")
    return _list_answer(
        request,
        endpoint,
        board_state,
        board_state.nodes,
        board_state.nodes_sentence,
        NodeList,
        "nodes",
    )


async def node(console: Console, request: Request, endpoint: Endpoint) -> Response:
    name = request.path_params["name"]
    found = (await console.board_states.latest("job_by_pod", "idle")).node(name)
    if found is None:
        raise Refused(404, f"there is no node `{name[:253]}`", "look at the list of nodes")
    return json_answer(request, found)


async def jobs(console: Console, request: Request, endpoint: Endpoint) -> Response:
    board_state = await console.board_states.latest("jobs", "jobs_sentence")
    more = {"missing_types": board_state.missing_types}
    return _list_answer(
        request,
        endpoint,
        board_state,
        board_state.jobs,
        board_state.jobs_sentence,
        JobList,
        "jobs",
        more,
    )


async def job(console: Console, request: Request, endpoint: Endpoint) -> Response:
    return json_answer(request, await _job_with_events(console, request))


async def job_instances(console: Console, request: Request, endpoint: Endpoint) -> Response:
    _, each, found = await _job(console, request)
    return json_answer(
        request, InstanceList(*_envelope(found), found.instances, instance_logs(each))
    )


async def job_events_of(console: Console, request: Request, endpoint: Endpoint) -> Response:
    found = await _job_with_events(console, request)
    return json_answer(request, JobEvents(*_envelope(found), found.events))


async def job_why(console: Console, request: Request, endpoint: Endpoint) -> Response:
    found = (await _job(console, request))[2]
    return json_answer(request, JobWhy(*_envelope(found), found.job.waiting))


async def job_manifest(console: Console, request: Request, endpoint: Endpoint) -> Response:
    _, each, found = await _job(console, request)
    text, redacted = await asyncio.to_thread(
        _shown_yaml, await _job_files(console).manifest(each.job)
    )
    return json_answer(request, JobManifest(*_envelope(found), text, redacted))


def _shown_yaml(manifest: Manifest) -> tuple[str, list[str]]:
    """In a thread: an object may have a megabyte,
    and the page of everybody else waits for the event loop.
    """
    shown, redacted = shown_manifest(manifest)
    return render_manifests([shown]), redacted


async def job_logs(console: Console, request: Request, endpoint: Endpoint) -> Response:
    _, each, _ = await _job(console, request)
    return await console.logs.answer(_job_files(console), each, dict(request.query_params))


async def _job(console: Console, request: Request) -> tuple[BoardState, JobInstances, JobDetail]:
    """The job that the path names. Refuses (404) a job that does not exist."""
    namespace, type_, name = (
        request.path_params[key][:253] for key in ("namespace", "type", "name")
    )
    board_state = await console.board_states.latest("instances", "explainer")
    each, found = (
        board_state.job_instances(namespace, type_, name),
        board_state.job(namespace, type_, name),
    )
    if each is None or found is None:
        raise Refused(
            404,
            f"there is no {type_} `{name}` in namespace `{namespace}`",
            "look at the list of jobs",
        )
    return board_state, each, found


async def _job_with_events(console: Console, request: Request) -> JobDetail:
    """With all that is kept of it and its pods; what is followed are warnings only."""
    board_state, each, found = await _job(console, request)
    if console.world.job_files is None:
        return found
    events = await console.events.of(console.world.job_files, each)
    if isinstance(events, Warning):
        return structs.replace(found, warnings=[*found.warnings, events])
    return board_state.job_with_events(each, found, events)


def _envelope(found: Envelope) -> tuple[str, bool, str, list[Warning]]:
    return found.generated_at, found.stale, found.version, found.warnings


def _job_files(console: Console) -> JobFiles:
    if console.world.job_files is None:
        raise Refused(
            404,
            f"{console.world.name} has no API server: logs and manifests are not kept",
            "look at the cluster itself",
        )
    return console.world.job_files


async def serving(console: Console, request: Request, endpoint: Endpoint) -> Response:
    if console.world.servings is None:
        raise Refused(
            404,
            f"{console.world.name} has no API server: serving jobs are not kept",
            "look at the cluster itself",
        )
    objects = await console.servings.of(console.world.servings)
    board_state = await console.board_states.latest()

    def answer() -> Response:
        rows = board_state.serving_jobs(objects)
        sentence = serving_sentence([entry.row for entry in rows.entries])
        beside = warnings_beside(objects.sources)
        return _list_answer(
            request, endpoint, board_state, rows, sentence, ServingList, "serving", beside=beside
        )

    # In a thread: all pods are looked through.
    return await asyncio.to_thread(answer)


async def quota_usage(console: Console, request: Request, endpoint: Endpoint) -> Response:
    board_state = await console.board_states.latest("quota", "quota_sentence")
    more = {"resources": list(board_state.quota_resources), "faults": board_state.quota_faults}
    return _list_answer(
        request,
        endpoint,
        board_state,
        board_state.quota,
        board_state.quota_sentence,
        QuotaUsage,
        "quota",
        more,
    )


async def quota_waiting(console: Console, request: Request, endpoint: Endpoint) -> Response:
    board_state = await console.board_states.latest("waiting")
    # In a thread, because a plan of the whole cluster may have to be made first.
    return await asyncio.to_thread(
        lambda: _list_answer(
            request,
            endpoint,
            board_state,
            board_state.waiting,
            board_state.waiting_sentence,
            QuotaWaitingList,
            "quota",
        )
    )


async def quota_tree(console: Console, request: Request, endpoint: Endpoint) -> Response:
    board_state = await console.board_states.latest()
    return await asyncio.to_thread(lambda: json_answer(request, board_state.quota_tree))


async def quota_what_if(console: Console, request: Request, endpoint: Endpoint) -> Response:
    asked = parse_what_if(await own_body(request, console.csrf))
    board_state = await console.board_states.latest()
    effects = await asyncio.to_thread(board_state.what_if, asked)
    return json_answer(request, effects)


async def health(console: Console, request: Request, endpoint: Endpoint) -> Response:
    """Also answers while the caches are not filled, with the reason."""
    facts = await console.health.facts(
        console.world, console.board_states, console.history.seconds, console.base_path
    )
    rows = await asyncio.to_thread(health_rows, facts)  # of a large cluster every pod is looked at
    now = exact_timestamp(console.world.clock.now())
    version = console.hints.versions.as_text()["health"]
    return json_answer(request, HealthPage(now, False, version, [], health_sentence(rows), rows))


async def versions(console: Console, request: Request, endpoint: Endpoint) -> Response:
    return json_answer(request, (await console.board_states.latest()).versions)


async def changes(console: Console, request: Request, endpoint: Endpoint) -> Response:
    if console.hints.is_full:
        raise Refused(
            429,
            f"{console.hints.streams_max} event streams are open already",
            "close some tabs",
            {"Retry-After": "10"},
        )
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(
        console.hints.listen(), headers=headers, media_type="text/event-stream"
    )


async def openapi(console: Console, request: Request, endpoint: Endpoint) -> Response:
    return json_answer(request, openapi_document(__version__))


async def chart(console: Console, request: Request, endpoint: Endpoint) -> Response:
    name = request.path_params["query"]
    parameters = request.query_params.multi_items()
    if name == HEATMAP:
        filters = parse_heatmap_filters(parameters)
        return json_answer(request, heatmap(await console.board_states.latest(), filters))
    query = CHART_QUERIES.get(name)
    if query is None:
        raise Refused(
            404,
            f"there is no chart `{name[:80]}`",
            f"charts: {', '.join(f'`{each}`' for each in CHART_NAMES)}",
        )
    asked = parse_chart_request(parameters, query, console.world.clock.now())
    board_state = await console.board_states.latest()
    if console.world.series is not None:
        lines = await prometheus_lines(console.world.series, query, asked)
    else:
        lines = history_lines(console.history, query, asked)
    return json_answer(request, chart_answer(query, asked, lines, board_state, console.history))


ANSWERS: Final[dict[str, Answering]] = {
    "me": me,
    "clock": clock,
    "move_clock": move_clock,
    "overview": overview,
    "mine": mine,
    "search": search,
    "gpu_map": gpu_map,
    "gpus": gpus,
    "holders": holders,
    "holder_groups": grouped_holders,
    "nodes": nodes,
    "node": node,
    "jobs": jobs,
    "job": job,
    "job_instances": job_instances,
    "job_events": job_events_of,
    "job_why": job_why,
    "job_manifest": job_manifest,
    "job_logs": job_logs,
    "serving": serving,
    "quota_usage": quota_usage,
    "quota_waiting": quota_waiting,
    "quota_tree": quota_tree,
    "quota_what_if": quota_what_if,
    "chart": chart,
    "health": health,
    "versions": versions,
    "changes": changes,
    "openapi": openapi,
}


def _list_answer(
    request: Request,
    endpoint: Endpoint,
    board_state: BoardState,
    rows: RowSet[Any],
    sentence: Sentence,
    answer_type: Any,
    page: str,
    more: dict[str, Any] | None = None,
    query: ListQuery | None = None,
    beside: Sequence[Warning] = (),
) -> Response:
    """One page of rows in its envelope, or all matching rows as CSV.

    `query`: of who has read it already. `beside`: warnings of what the route asked for itself.
    """
    query = query or parse_list_query(request.query_params.multi_items(), endpoint)
    found = matching(rows, query)
    if query.as_csv:
        table = endpoint.name.replace("_", "-")  # several tables are of one topic
        headers = {"Content-Disposition": f'attachment; filename="{table}.csv"'}
        return bytes_answer(request, render_csv(found, rows.row_type, query.fields), _CSV, headers)
    shown = page_of(found, query)
    answer = answer_type(
        generated_at=board_state.generated_at,
        stale=board_state.is_stale(page),
        version=board_state.version(page),
        warnings=[*board_state.warnings(page, query.filters.get("job_type", ())), *beside],
        total=shown.total,
        page=query.page,
        size=query.size,
        sentence=sentence,
        facets=dict(rows.facets),
        items=shown.rows,
        **(more or {}),
    )
    return json_answer(request, _with_fields(answer, query) if query.fields else answer)


def _with_fields(answer: Any, query: ListQuery) -> dict[str, Any]:
    """The same answer with only the wanted keys in each row."""
    body = cast(dict[str, Any], msgspec.to_builtins(answer))
    body["items"] = [{key: row[key] for key in query.fields} for row in body["items"]]
    return body
