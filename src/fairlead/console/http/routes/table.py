"""What the server answers on each address: the API's routes, the page's files, health.

Nothing here decides anything. Every function takes the request with its parameters already checked
for names, asks the board state, and returns a value. Failures are raised; `http/guard` turns them
into the error envelope.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, Router

from fairlead.console.http.answers import Refused
from fairlead.console.http.routes import (
    charts,
    cluster,
    components,
    datasets,
    jobs,
    operations,
    past,
    people,
    quota,
    replay,
    session,
    usage,
)
from fairlead.console.http.routes.console import Answer, Answering, Console, csrf_token
from fairlead.console.http.routes.plans import PLANS
from fairlead.console.http.subjects import check_right
from fairlead.console.http.web_files import web_answer
from fairlead.console.pages.endpoints import BASE, ENDPOINTS, Endpoint
from fairlead.console.pages.list_query import check_known

_READS: Final = ("GET", "HEAD")
_METHODS: Final = (*_READS, "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
ANSWERS: Final[dict[str, Answering]] = {
    **cluster.ANSWERS,
    **jobs.ANSWERS,
    **datasets.ANSWERS,
    **operations.ANSWERS,
    **components.ANSWERS,
    **quota.ANSWERS,
    **replay.ANSWERS,
    **charts.ANSWERS,
    **past.ANSWERS,
    **people.ANSWERS,
    **session.ANSWERS,
    **usage.ANSWERS,
}
"""The answers of all routes but the writes of the cluster, by the name of their endpoint."""


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
        csrf = csrf_token(console, request)
        return await console.writes.answer(request, endpoint, csrf, partial(plan, console))

    return answer_write


def _page(console: Console) -> Answer:
    async def answer_page(request: Request) -> Response:
        return web_answer(request, request.path_params["path"], console.base_path)

    return answer_page


async def _no_route(request: Request) -> Response:
    known = ", ".join(dict.fromkeys(f"`{BASE}{endpoint.path}`" for endpoint in ENDPOINTS))
    raise Refused(404, f"there is no route `{request.url.path[:200]}`", f"routes: {known}")
