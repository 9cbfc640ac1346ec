"""Answers about the signed-in user and this console: sign-in, clock, health, streams."""

from __future__ import annotations

import asyncio
from typing import Final

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from fairlead import __version__
from fairlead.console.boards.health import health_rows, health_sentence, health_summary
from fairlead.console.http.answers import Refused, json_answer
from fairlead.console.http.routes.console import (
    Answering,
    Console,
    csrf_token,
    states_of,
    while_allowed,
)
from fairlead.console.http.sign_in.own_rights import console_rights, kubectl_rights
from fairlead.console.http.subjects import (
    EVENT_STREAM,
    subject_of,
)
from fairlead.console.http.web_files import page_build
from fairlead.console.http.writes import own_body
from fairlead.console.pages.clock import carry_out, clock_face, clock_moved, parse_order
from fairlead.console.pages.endpoints import ENDPOINTS, Endpoint
from fairlead.console.pages.envelope import exact_timestamp
from fairlead.console.pages.health import HealthPage
from fairlead.console.pages.openapi import openapi_document
from fairlead.console.pages.session import ClusterName, Features, Me, OwnRights, Person
from fairlead.model.people.permission import ConsoleResource
from fairlead.model.people.reach import reach_of
from fairlead.model.people.rows import User
from fairlead.ports import Timekeeper


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
        csrf=csrf_token(console, request) or "",
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


async def my_rights(console: Console, request: Request, endpoint: Endpoint) -> Response:
    subject, desk = subject_of(request), console.desk
    user = desk.roster.users.get(subject.user) if desk is not None else None
    declared = [
        each.right
        for each in ENDPOINTS
        if console.world.timekeeper is not None or each.right.resource is not ConsoleResource.CLOCK
    ]
    body = OwnRights(
        console=console_rights(subject, declared),
        kubectl=kubectl_rights(user.status.bindings if user is not None else ()),
    )
    return json_answer(request, body)


async def _acted(console: Console, request: Request) -> list[User]:
    return [] if console.desk is None else await console.desk.users_to_act_as(request)


async def act_as(console: Console, request: Request, endpoint: Endpoint) -> Response:
    body = await own_body(request, csrf_token(console, request))
    return await console.sign_in.act_as(request, body)


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
    order = parse_order(await own_body(request, csrf_token(console, request)))
    return json_answer(request, clock_moved(console.world, carry_out(order, keeper)))


def _timekeeper(console: Console) -> Timekeeper:
    if console.world.timekeeper is None:
        raise Refused(
            404,
            f"the time of {console.world.name} cannot be changed",
            "only a simulated cluster's time can be changed: `fairlead up`",
        )
    return console.world.timekeeper


async def health(console: Console, request: Request, endpoint: Endpoint) -> Response:
    """Also answers while the caches are not filled, with the reason."""
    facts = await console.health.facts(
        console.world,
        console.board_states,
        console.history.seconds,
        console.base_path,
        console.desk.store_facts if console.desk is not None else None,
        console.ledger.ledger_bounds if console.ledger is not None else None,
    )
    rows = await asyncio.to_thread(health_rows, facts)  # of a large cluster every pod is looked at
    now = exact_timestamp(console.world.clock.now())
    version = console.hints.versions.as_text()["health"]
    if (reach := reach_of(subject_of(request))) is not None:
        rows = health_summary(rows)
        version = console.pictures.picture(reach).versions.as_text()["health"]
    return json_answer(request, HealthPage(now, False, version, [], health_sentence(rows), rows))


async def versions(console: Console, request: Request, endpoint: Endpoint) -> Response:
    found = (await states_of(console, request).latest()).versions
    if subject_of(request).is_admin:
        found = {**found, **console.people_versions()}
    return json_answer(request, found)


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
    return while_allowed(console, request, endpoint, stream)


async def openapi(console: Console, request: Request, endpoint: Endpoint) -> Response:
    return json_answer(request, openapi_document(__version__))


ANSWERS: Final[dict[str, Answering]] = {
    "me": me,
    "my_rights": my_rights,
    "act_as": act_as,
    "sign_in_methods": sign_in_methods,
    "begin_sign_in": begin_sign_in,
    "end_sign_in": end_sign_in,
    "oidc_start": oidc_start,
    "oidc_callback": oidc_callback,
    "clock": clock,
    "move_clock": move_clock,
    "health": health,
    "versions": versions,
    "changes": changes,
    "openapi": openapi,
}
"""By the name of their endpoint."""
