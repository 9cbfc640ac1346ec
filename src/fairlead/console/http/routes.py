"""What the server answers on each address: the API's routes, the page's files, health.

Nothing here decides anything. Every function takes the request with its parameters already checked
for names, asks the board state, and returns a value. Failures are raised; `http/guard` turns them
into the error envelope.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, cast

import msgspec
from msgspec import structs
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route, Router

from fairlead import __version__
from fairlead.console.boards.board_state import BoardState
from fairlead.console.boards.change_hints import ChangeHints
from fairlead.console.boards.health import health_rows, health_sentence, health_summary
from fairlead.console.boards.holders import GROUPINGS, holder_groups, holders_sentence
from fairlead.console.boards.job_files import instance_logs
from fairlead.console.boards.notices import warnings_beside
from fairlead.console.boards.rows import RowSet, matching, page_of
from fairlead.console.boards.search import SHOWN, SHOWN_MAX, query_text
from fairlead.console.charts.answer import chart_answer, heatmap
from fairlead.console.charts.charts import (
    BUILT_IN,
    PROMETHEUS,
    Lines,
    history_lines,
    prometheus_lines,
)
from fairlead.console.charts.history import History
from fairlead.console.charts.queries import CHART_NAMES, CHART_QUERIES, HEATMAP, ChartQuery
from fairlead.console.charts.request import (
    ChartRequest,
    parse_chart_request,
    parse_heatmap_filters,
)
from fairlead.console.charts.restricted import OF_ALL_TEAMS, ChartReach
from fairlead.console.http.answers import JSON, Refused, bytes_answer, json_answer, packed_answer
from fairlead.console.http.board_states import BoardStates
from fairlead.console.http.health_answers import HealthAnswers
from fairlead.console.http.job_event_answers import EventAnswers
from fairlead.console.http.log_streams import LogStreams
from fairlead.console.http.pictures import Pictures, States
from fairlead.console.http.serving_answers import ServingAnswers
from fairlead.console.http.sign_in_answers import SignInAnswers
from fairlead.console.http.sign_in_desk import SignInDesk
from fairlead.console.http.subjects import (
    EVENT_STREAM,
    EveryClientIsAdmin,
    Subjects,
    WhileAllowed,
    check_right,
    subject_of,
    until_denied,
)
from fairlead.console.http.web_files import page_build, web_answer
from fairlead.console.http.writes import own_body
from fairlead.console.http.writing.audit import AuditAnswers
from fairlead.console.http.writing.cluster_actions import (
    plan_job,
    plan_job_deletion,
    plan_node,
)
from fairlead.console.http.writing.credentials import CredentialPlans
from fairlead.console.http.writing.frame import READ_ONLY, PlannedWrite, WriteFrame
from fairlead.console.http.writing.people import PeoplePlans
from fairlead.console.http.writing.people_rows import (
    group_row,
    group_rows,
    groups_sentence,
    user_row,
    user_rows,
    users_sentence,
)
from fairlead.console.http.writing.quota_tree import plan_tree, tree_versions
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
from fairlead.console.pages.writing.people import GroupList, UserList
from fairlead.errors import UserError
from fairlead.model.actions import Manifest
from fairlead.model.jobs.instances import JobInstances
from fairlead.model.people.reach import reach_of
from fairlead.model.people.rows import User
from fairlead.ports import ClusterWrites, JobFiles, Ports, Timekeeper
from fairlead.rules.people.restricted import without_claimant
from fairlead.wire.files.manifest_yaml import render_manifests
from fairlead.wire.files.shown_manifest import shown_manifest

_CSV: Final = "text/csv; charset=utf-8"
_READS: Final = ("GET", "HEAD")
_METHODS: Final = (*_READS, "POST", "PUT", "PATCH", "DELETE", "OPTIONS")


class Console(msgspec.Struct):
    """What the routes speak from. `desk`: None = there is no sign-in.

    `csrf`: what writes send back where there is no sign-in.
    """

    world: Ports
    board_states: BoardStates
    pictures: Pictures
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
    desk: SignInDesk | None = None
    writes: WriteFrame = msgspec.field(default_factory=lambda: WriteFrame(None))

    @property
    def roster_desk(self) -> SignInDesk:
        """Raises Refused, 404, where users do not sign in, and so are not followed."""
        if self.desk is None:
            raise Refused(
                404,
                "this console does not read users, because they do not sign in",
                "start it with `fairlead console --sign-in on`",
            )
        return self.desk

    @property
    def plans(self) -> PeoplePlans:
        snapshot = self.world.cluster.snapshot
        return PeoplePlans(self.world.people, lambda: snapshot().namespace_names)

    @property
    def credential_plans(self) -> CredentialPlans:
        records = self.desk.credential_records if self.desk is not None else None
        return CredentialPlans(self.plans, records, self.world.clock.now)

    def now_ms(self) -> int:
        return round(self.world.clock.now() * 1000)

    @property
    def sign_in(self) -> SignInAnswers:
        return SignInAnswers(self.desk, self.base_path)


Answer = Callable[[Request], Awaitable[Response]]
Answering = Callable[[Console, Request, Endpoint], Awaitable[Response]]
Planning = Callable[[Console, Request, Any], Awaitable[PlannedWrite]]
"""Plans a write with its body (`http/writing/frame`)."""


def console_routes(console: Console, extra: Mapping[str, Answer] | None = None) -> Router:
    """The application: `extra` paths first (health, metrics), then the API, then the page."""
    routes = [_route(path, {"GET": answer}) for path, answer in (extra or {}).items()]
    by_path: dict[str, dict[str, Answer]] = {}
    for endpoint in ENDPOINTS:
        by_path.setdefault(endpoint.path, {})[endpoint.method] = _answering(console, endpoint)
    routes += [_route(BASE + path, answers) for path, answers in by_path.items()]
    routes += [
        _route("/api", {"GET": _no_route}),
        _route("/api/{path:path}", {"GET": _no_route}),
        _route("/{path:path}", {"GET": _page(console)}),
    ]
    return Router(routes=routes, redirect_slashes=False)


def _route(path: str, answers: Mapping[str, Answer]) -> Route:
    """A route that answers to these methods, and to HEAD as to GET.

    Other methods are refused here, in our envelope, not by the framework.
    """

    async def answer_known(request: Request) -> Response:
        answer = answers.get("GET" if request.method == "HEAD" else request.method)
        if answer is not None:
            return await answer(request)
        allowed = [each for method in answers for each in _named(method)]
        raise Refused(
            405,
            f"`{request.url.path[:200]}` does not answer to {request.method}",
            f"use {' or '.join(answers)}",
            {"Allow": ", ".join(allowed)},
        )

    return Route(path, answer_known, methods=_METHODS)


def _named(method: str) -> Sequence[str]:
    return _READS if method == "GET" else (method,)


def _answering(console: Console, endpoint: Endpoint) -> Answer:
    if endpoint.action:
        return _writing(console, endpoint)
    answer = ANSWERS[endpoint.name]

    async def answer_request(request: Request) -> Response:
        await check_right(console.subjects, request, endpoint.right)
        if not endpoint.takes_any:
            check_known(request.query_params.multi_items(), endpoint)
        return await answer(console, request, endpoint)

    return answer_request


def _writing(console: Console, endpoint: Endpoint) -> Answer:
    """A write of the cluster, in the frame of `http/writing`."""
    plan = PLANS[endpoint.name]

    async def answer_write(request: Request) -> Response:
        try:
            await check_right(console.subjects, request, endpoint.right)
        except Refused as refused:
            await console.writes.note_refusal(request, endpoint, refused)
            raise
        console.writes.check()
        check_known(request.query_params.multi_items(), endpoint)
        csrf = _csrf(console, request)
        return await console.writes.answer(request, endpoint, csrf, partial(plan, console))

    return answer_write


def _page(console: Console) -> Answer:
    async def answer_page(request: Request) -> Response:
        return web_answer(request, request.path_params["path"], console.base_path)

    return answer_page


async def _no_route(request: Request) -> Response:
    known = ", ".join(dict.fromkeys(f"`{BASE}{endpoint.path}`" for endpoint in ENDPOINTS))
    raise Refused(404, f"there is no route `{request.url.path[:200]}`", f"routes: {known}")


def _states(console: Console, request: Request) -> States:
    """The board states that this subject may see."""
    return console.pictures.of(subject_of(request))


async def me(console: Console, request: Request, endpoint: Endpoint) -> Response:
    world, subject = console.world, subject_of(request)
    body = Me(
        user=Person(
            name=subject.name,
            role=subject.role,
            id=subject.user,
            groups=sorted(subject.groups),
            leaves=sorted(subject.leaves),
            namespaces=sorted(subject.namespaces),
        ),
        way=subject.way,
        can_act_as=[each.name for each in await _acted(console, request)],
        csrf=_csrf(console, request) or "",
        cluster=ClusterName(
            name=world.name,
            world="simulated" if world.is_simulated else "kubernetes",
            version=_cluster_version(console, request),
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


def _csrf(console: Console, request: Request) -> str | None:
    """What a write of this client sends back; None = its token is proof enough."""
    return console.csrf if console.desk is None else request.state.csrf


async def _acted(console: Console, request: Request) -> list[User]:
    return [] if console.desk is None else await console.desk.users_to_act_as(request)


async def act_as(console: Console, request: Request, endpoint: Endpoint) -> Response:
    body = await own_body(request, _csrf(console, request))
    return await console.sign_in.act_as(request, body)


async def own_kubeconfig(console: Console, request: Request, endpoint: Endpoint) -> Response:
    body = await own_body(request, _csrf(console, request))
    return await console.sign_in.own_kubeconfig(request, subject_of(request), body)


async def sign_in_methods(console: Console, request: Request, endpoint: Endpoint) -> Response:
    return await console.sign_in.methods(request)


async def begin_sign_in(console: Console, request: Request, endpoint: Endpoint) -> Response:
    return await console.sign_in.begin(request)


async def end_sign_in(console: Console, request: Request, endpoint: Endpoint) -> Response:
    return await console.sign_in.end(request)


async def oidc_start(console: Console, request: Request, endpoint: Endpoint) -> Response:
    return await console.sign_in.start_at_provider(request)


async def oidc_callback(console: Console, request: Request, endpoint: Endpoint) -> Response:
    return await console.sign_in.finish_at_provider(request)


def _cluster_version(console: Console, request: Request) -> str:
    """A number that grows with every change that the subject sees."""
    reach = reach_of(subject_of(request))
    if reach is None:
        return str(console.world.cluster.version)
    return str(console.pictures.picture(reach).versions.count)


async def clock(console: Console, request: Request, endpoint: Endpoint) -> Response:
    _timekeeper(console)
    return json_answer(request, clock_face(console.world, console.speed()))


async def move_clock(console: Console, request: Request, endpoint: Endpoint) -> Response:
    keeper = _timekeeper(console)
    order = parse_order(await own_body(request, _csrf(console, request)))
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
    return json_answer(request, (await _states(console, request).latest("overview")).overview)


async def mine(console: Console, request: Request, endpoint: Endpoint) -> Response:
    user, namespace = (request.query_params.get(name, "") for name in ("user", "namespace"))
    if user and namespace:
        raise UserError(
            f"`user` is `{user[:60]}` and `namespace` is `{namespace[:60]}`",
            "ask for one of them",
        )
    board_state = await _states(console, request).latest("holders", "waiting", "offers", "places")
    # In a thread: what could start now is asked of a plan of the whole cluster.
    return await asyncio.to_thread(
        lambda: json_answer(request, board_state.my_work(user, namespace))
    )


async def search(console: Console, request: Request, endpoint: Endpoint) -> Response:
    text = query_text(request.query_params.get("q", ""))
    most = parse_whole("size", request.query_params.get("size"), SHOWN, 1, SHOWN_MAX)
    board_state = await _states(console, request).latest()
    # In a thread: there may be 50,000 pods to look through.
    return await asyncio.to_thread(lambda: json_answer(request, board_state.search(text, most)))


async def gpu_map(console: Console, request: Request, endpoint: Endpoint) -> Response:
    return packed_answer(request, await _states(console, request).packed("gpu_map"))


async def gpus(console: Console, request: Request, endpoint: Endpoint) -> Response:
    board_state = await _states(console, request).latest("gpus")
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
    board_state = await _states(console, request).latest("holders")
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
    board_state = await _states(console, request).latest("holders")
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
    board_state = await _states(console, request).latest("nodes", "nodes_sentence")
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
    found = (await _states(console, request).latest("job_by_pod", "idle")).node(name)
    if found is None:
        raise Refused(404, f"there is no node `{name[:253]}`", "look at the list of nodes")
    return json_answer(request, found)


async def jobs(console: Console, request: Request, endpoint: Endpoint) -> Response:
    board_state = await _states(console, request).latest("jobs", "jobs_sentence")
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
    manifest = await _job_files(console).manifest(each.job)
    reach = reach_of(subject_of(request))
    if reach is not None:
        manifest = without_claimant(manifest, reach)
    text, redacted = await asyncio.to_thread(_shown_yaml, manifest)
    return json_answer(request, JobManifest(*_envelope(found), text, redacted))


def _shown_yaml(manifest: Manifest) -> tuple[str, list[str]]:
    """In a thread: an object may have a megabyte,
    and the page of everybody else waits for the event loop.
    """
    shown, redacted = shown_manifest(manifest)
    return render_manifests([shown]), redacted


async def job_logs(console: Console, request: Request, endpoint: Endpoint) -> Response:
    _, each, _ = await _job(console, request)
    log = await console.logs.answer(_job_files(console), each, dict(request.query_params))
    return _while_allowed(console, request, endpoint, log)


async def _job(console: Console, request: Request) -> tuple[BoardState, JobInstances, JobDetail]:
    """The job that the path names. Refuses (404) a job that does not exist."""
    namespace, type_, name = (
        request.path_params[key][:253] for key in ("namespace", "type", "name")
    )
    board_state = await _states(console, request).latest("instances", "explainer")
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
    board_state = await _states(console, request).latest()

    def answer() -> Response:
        rows = board_state.serving_jobs(objects)
        sentence = board_state.serving_sentence([entry.row for entry in rows.entries])
        beside = warnings_beside(objects.sources)
        return _list_answer(
            request, endpoint, board_state, rows, sentence, ServingList, "serving", beside=beside
        )

    # In a thread: all pods are looked through.
    return await asyncio.to_thread(answer)


async def quota_usage(console: Console, request: Request, endpoint: Endpoint) -> Response:
    board_state = await _states(console, request).latest("quota", "quota_sentence")
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
    board_state = await _states(console, request).latest("waiting")
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
    board_state = await _states(console, request).latest()
    return await asyncio.to_thread(lambda: json_answer(request, board_state.quota_tree))


async def quota_tree_versions(console: Console, request: Request, endpoint: Endpoint) -> Response:
    return json_answer(request, await tree_versions(console.desk))


async def quota_what_if(console: Console, request: Request, endpoint: Endpoint) -> Response:
    asked = parse_what_if(await own_body(request, _csrf(console, request)))
    board_state = await _states(console, request).latest()
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
    if (reach := reach_of(subject_of(request))) is not None:
        rows = health_summary(rows)
        version = console.pictures.picture(reach).versions.as_text()["health"]
    return json_answer(request, HealthPage(now, False, version, [], health_sentence(rows), rows))


async def versions(console: Console, request: Request, endpoint: Endpoint) -> Response:
    return json_answer(request, (await _states(console, request).latest()).versions)


async def changes(console: Console, request: Request, endpoint: Endpoint) -> Response:
    if console.hints.stream_count + console.pictures.stream_count >= console.hints.streams_max:
        raise Refused(
            429,
            f"{console.hints.streams_max} event streams are open already",
            "close some tabs",
            {"Retry-After": "10"},
        )
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    reach = reach_of(subject_of(request))
    hints = console.hints if reach is None else console.pictures.picture(reach).hints
    stream = StreamingResponse(hints.listen(), headers=headers, media_type=EVENT_STREAM)
    return _while_allowed(console, request, endpoint, stream)


def _while_allowed(
    console: Console, request: Request, endpoint: Endpoint, stream: Response
) -> Response:
    return WhileAllowed(stream, lambda: until_denied(console.subjects, request, endpoint.right))


async def openapi(console: Console, request: Request, endpoint: Endpoint) -> Response:
    return json_answer(request, openapi_document(__version__))


async def chart(console: Console, request: Request, endpoint: Endpoint) -> Response:
    name = request.path_params["query"]
    parameters = request.query_params.multi_items()
    if name == HEATMAP:
        filters = parse_heatmap_filters(parameters)
        return json_answer(request, heatmap(await _states(console, request).latest(), filters))
    query = CHART_QUERIES.get(name)
    if query is None:
        raise Refused(
            404,
            f"there is no chart `{name[:80]}`",
            f"charts: {', '.join(f'`{each}`' for each in CHART_NAMES)}",
        )
    asked = parse_chart_request(parameters, query, console.world.clock.now())
    board_state = await _states(console, request).latest()
    lines = await _lines(console, query, asked, _chart_reach(request, board_state))
    return json_answer(request, chart_answer(query, asked, lines, board_state, console.history))


def _chart_reach(request: Request, board_state: BoardState) -> ChartReach | None:
    reach, root = reach_of(subject_of(request)), board_state.snapshot.quota
    if reach is None:
        return None
    paths = frozenset(node.path for node in root.walk()) if root else frozenset[str]()
    return ChartReach(reach.namespaces, paths)


async def _lines(
    console: Console, query: ChartQuery, asked: ChartRequest, reach: ChartReach | None
) -> Lines:
    """`reach` None: of all tenants."""
    if reach is None:
        return await _lines_of_all(console, query, asked)
    if query.name in OF_ALL_TEAMS:
        raise Refused(
            403, f"`{query.name}` counts the jobs of all teams", "look at the list of your jobs"
        )
    narrowed = reach.restrict(query, asked)
    if narrowed is None:
        source = BUILT_IN if console.world.series is None else PROMETHEUS
        return Lines([], 0, source, query.words)
    return reach.seen(await _lines_of_all(console, *narrowed))


async def _lines_of_all(console: Console, query: ChartQuery, asked: ChartRequest) -> Lines:
    if console.world.series is not None:
        return await prometheus_lines(console.world.series, query, asked)
    return history_lines(console.history, query, asked)


async def plan_quota_tree(console: Console, request: Request, body: Any) -> PlannedWrite:
    board_state = await console.board_states.latest("quota")
    return await plan_tree(_writes(console), _desk(console), board_state, request, body)


async def plan_node_change(console: Console, request: Request, body: Any) -> PlannedWrite:
    board_state = await console.board_states.latest()
    return await plan_node(_writes(console), board_state.snapshot, request, body)


async def plan_job_change(console: Console, request: Request, body: Any) -> PlannedWrite:
    _, each, _ = await _job(console, request)
    return await plan_job(_writes(console), each.job, request, body)


async def plan_deletion_of_job(console: Console, request: Request, body: Any) -> PlannedWrite:
    _, each, _ = await _job(console, request)
    return await plan_job_deletion(_writes(console), each.job, request)


def _writes(console: Console) -> ClusterWrites:
    if console.world.writes is None:
        raise Refused(
            404,
            f"{console.world.name} has no API server: nothing can be written",
            "look at the cluster itself",
        )
    return console.world.writes


def _desk(console: Console) -> SignInDesk:
    if console.desk is None:
        raise READ_ONLY
    return console.desk


async def users(console: Console, request: Request, endpoint: Endpoint) -> Response:
    desk = console.roster_desk
    rows, sentence = user_rows(desk.roster.users), users_sentence(desk.roster.users)
    return _people_answer(console, request, endpoint, rows, sentence, UserList)


async def groups(console: Console, request: Request, endpoint: Endpoint) -> Response:
    desk = console.roster_desk
    rows = group_rows(desk.roster.groups, desk.roster.users)
    sentence = groups_sentence(desk.roster.groups)
    return _people_answer(console, request, endpoint, rows, sentence, GroupList)


def _people_answer(
    console: Console,
    request: Request,
    endpoint: Endpoint,
    rows: RowSet[Any],
    sentence: Sentence,
    answer_type: Any,
) -> Response:
    query = parse_list_query(request.query_params.multi_items(), endpoint)
    envelope = (exact_timestamp(console.world.clock.now()), False, "", list[Warning]())
    return _rows_answer(request, endpoint, query, rows, sentence, answer_type, envelope)


async def user(console: Console, request: Request, endpoint: Endpoint) -> Response:
    name = request.path_params["id"]
    found = console.roster_desk.roster.users.get(name)
    if found is None:
        raise Refused(404, f"there is no user `{name[:253]}`", "look at the list of users")
    return json_answer(request, user_row(found))


async def group(console: Console, request: Request, endpoint: Endpoint) -> Response:
    name, roster = request.path_params["name"], console.roster_desk.roster
    found = roster.groups.get(name)
    if found is None:
        raise Refused(404, f"there is no group `{name[:253]}`", "look at the list of groups")
    return json_answer(request, group_row(found, roster.users.values()))


async def tokens(console: Console, request: Request, endpoint: Endpoint) -> Response:
    console.writes.check()
    found = await console.credential_plans.listed(request)
    return Response(msgspec.json.encode(found), 200, {"Cache-Control": "no-store"}, JSON)


async def audit(console: Console, request: Request, endpoint: Endpoint) -> Response:
    trail = console.desk.audit if console.desk is not None else None
    return await AuditAnswers(trail, console.now_ms).answer(request)


PLANS: Final[dict[str, Planning]] = {
    "change_node": plan_node_change,
    "change_job": plan_job_change,
    "delete_job": plan_deletion_of_job,
    "write_quota_tree": plan_quota_tree,
    "create_user": lambda console, request, body: console.plans.create_user(request, body),
    "change_user": lambda console, request, body: console.plans.change_user(request, body),
    "delete_user": lambda console, request, body: console.plans.delete_user(request, body),
    "create_group": lambda console, request, body: console.plans.create_group(request, body),
    "change_group": lambda console, request, body: console.plans.change_group(request, body),
    "delete_group": lambda console, request, body: console.plans.delete_group(request, body),
    **{
        name: lambda console, request, body: console.credential_plans.issue_token(request, body)
        for name in ("issue_token", "issue_my_token")
    },
    "issue_kubeconfig": lambda console, request, body: console.credential_plans.issue_kubeconfig(
        request, body
    ),
    **{
        name: lambda console, request, body: console.credential_plans.revoke(request, body)
        for name in ("revoke_token", "revoke_my_token")
    },
    "revoke_tokens": lambda console, request, body: console.credential_plans.revoke_all(
        request, body
    ),
}
"""The writes of the cluster, by the name of their endpoint."""
ANSWERS: Final[dict[str, Answering]] = {
    "me": me,
    "act_as": act_as,
    "own_kubeconfig": own_kubeconfig,
    "sign_in_methods": sign_in_methods,
    "begin_sign_in": begin_sign_in,
    "end_sign_in": end_sign_in,
    "oidc_start": oidc_start,
    "oidc_callback": oidc_callback,
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
    "quota_tree_versions": quota_tree_versions,
    "quota_what_if": quota_what_if,
    "users": users,
    "user": user,
    "groups": groups,
    "group": group,
    "user_tokens": tokens,
    "my_tokens": tokens,
    "audit": audit,
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
    envelope = (
        board_state.generated_at,
        board_state.is_stale(page),
        board_state.version(page),
        [*board_state.warnings(page, query.filters.get("job_type", ())), *beside],
    )
    return _rows_answer(request, endpoint, query, rows, sentence, answer_type, envelope, more)


def _rows_answer(
    request: Request,
    endpoint: Endpoint,
    query: ListQuery,
    rows: RowSet[Any],
    sentence: Sentence,
    answer_type: Any,
    envelope: tuple[str, bool, str, list[Warning]],
    more: dict[str, Any] | None = None,
) -> Response:
    """The same with the values of its envelope."""
    found = matching(rows, query)
    if query.as_csv:
        table = endpoint.name.replace("_", "-")  # several tables are of one topic
        headers = {"Content-Disposition": f'attachment; filename="{table}.csv"'}
        return bytes_answer(request, render_csv(found, rows.row_type, query.fields), _CSV, headers)
    shown = page_of(found, query)
    answer = answer_type(
        *envelope,
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
