"""Every route asks for the subject's right before it answers."""

from __future__ import annotations

import pytest
from starlette.requests import Request

from fairlead.console.http.answers import Refused
from fairlead.console.http.subjects import EveryClientIsAdmin, check_right, require, subject_of
from fairlead.console.pages.endpoints import ENDPOINTS
from fairlead.model.people.permission import ANYONE, ConsoleResource, ConsoleVerb, Right
from fairlead.model.people.rows import UserRole
from fairlead.model.people.subject import LOCAL_ADMIN, Subject

BOB = Subject("Bob", UserRole.RESEARCHER, "bob", frozenset({"team-a"}))


class SignedIn:
    def __init__(self, subject: Subject | None) -> None:
        self.subject = subject

    async def of(self, request: Request) -> Subject:
        if self.subject is None:
            raise Refused(401, "you are signed out", "sign in")
        return self.subject


def request_for(**path: str) -> Request:
    return Request({"type": "http", "headers": [], "path_params": path, "state": {}})


async def test_without_sign_in_every_client_is_the_administrator() -> None:
    request = request_for()
    await check_right(
        EveryClientIsAdmin(), request, Right(ConsoleVerb.UPDATE, ConsoleResource.USERS)
    )
    assert subject_of(request) is LOCAL_ADMIN


async def test_the_namespace_of_the_path_is_the_one_asked_about() -> None:
    logs = Right(ConsoleVerb.GET, ConsoleResource.LOGS)
    await check_right(SignedIn(BOB), request_for(namespace="team-a"), logs)
    with pytest.raises(Refused) as refused:
        await check_right(SignedIn(BOB), request_for(namespace="team-b"), logs)
    assert (refused.value.status, refused.value.code) == (404, "not-found")


async def test_the_namespace_of_a_body_is_checked_by_the_route() -> None:
    request, create = request_for(), Right(ConsoleVerb.CREATE, ConsoleResource.JOBS)
    await check_right(SignedIn(BOB), request, Right(ConsoleVerb.GET, ConsoleResource.JOBS))
    require(request, create, "team-a")
    with pytest.raises(Refused):
        require(request, create, "team-b")


async def test_only_open_routes_need_no_sign_in() -> None:
    await check_right(SignedIn(None), request_for(), ANYONE)
    with pytest.raises(Refused) as refused:
        await check_right(
            SignedIn(None), request_for(), Right(ConsoleVerb.GET, ConsoleResource.SESSION)
        )
    assert refused.value.code == "signed-out"


def test_a_right_in_a_namespace_is_declared_where_the_path_has_one() -> None:
    in_namespaces = {ConsoleResource.JOBS, ConsoleResource.LOGS, ConsoleResource.DATASETS}
    for endpoint in ENDPOINTS:
        if "{namespace}" in endpoint.path:
            assert endpoint.right.resource in in_namespaces, endpoint.path
