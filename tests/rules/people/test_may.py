"""The rights of each role, as docs/spec/console.md#access lists them."""

from __future__ import annotations

import pytest

from fairlead.model.people.permission import Allowed, ConsoleResource, ConsoleVerb, Denied
from fairlead.model.people.rows import UserRole
from fairlead.model.people.subject import LOCAL_ADMIN, Subject
from fairlead.rules.people.may import may

BOB = Subject("Bob", UserRole.RESEARCHER, "bob", frozenset({"team-a", "team-b"}))
NEWCOMER = Subject("New", UserRole.RESEARCHER, "new")
SHARED = {
    "session": "get create update delete",
    "cluster": "get",
    "nodes": "get",
    "clock": "get",
    "health": "get",
    "quota": "get",
    "quota tree": "get",
    "own credentials": "get create update delete",
    "prices": "get",
}
OWN = {
    "jobs": "get create update delete",
    "logs": "get",
    "serving": "get",
    "namespaces": "get",
    "data sets": "get",
    "usage": "get",
}


@pytest.mark.parametrize("verb", ConsoleVerb)
@pytest.mark.parametrize("resource", ConsoleResource)
def test_each_cell(verb: ConsoleVerb, resource: ConsoleResource) -> None:
    assert may(LOCAL_ADMIN, verb, resource, "anywhere") == Allowed()
    shared = verb in SHARED.get(resource, "").split()
    own = verb in OWN.get(resource, "").split()
    assert isinstance(may(BOB, verb, resource, "team-b"), Allowed) is (shared or own)
    assert isinstance(may(BOB, verb, resource, "team-c"), Allowed) is shared
    assert isinstance(may(NEWCOMER, verb, resource, "team-c"), Allowed) is shared
    listed = shared or (own and verb is ConsoleVerb.GET)
    assert isinstance(may(BOB, verb, resource), Allowed) is listed


def denied(
    subject: Subject, verb: ConsoleVerb, resource: ConsoleResource, namespace: str = ""
) -> Denied:
    answer = may(subject, verb, resource, namespace)
    assert isinstance(answer, Denied)
    return answer


def test_each_refusal_has_its_status_and_code() -> None:
    seen = {
        (answer.status, answer.code)
        for answer in (
            denied(BOB, ConsoleVerb.GET, ConsoleResource.USERS),
            denied(BOB, ConsoleVerb.CREATE, ConsoleResource.JOBS, "team-c"),
            denied(BOB, ConsoleVerb.CREATE, ConsoleResource.JOBS),
            denied(NEWCOMER, ConsoleVerb.CREATE, ConsoleResource.JOBS, "team-c"),
        )
    }
    assert seen == {
        (403, "forbidden"),
        (404, "not-found"),
        (400, "malformed"),
        (403, "no-quota"),
    }


def test_a_refusal_names_what_the_user_asked_for_and_has() -> None:
    answer = denied(BOB, ConsoleVerb.GET, ConsoleResource.LOGS, "team-c")
    assert answer.reason == "you have no namespace `team-c`"
    assert answer.hint == "yours: team-a, team-b"
    many = Subject("", UserRole.RESEARCHER, "m", frozenset(f"n{each:02}" for each in range(12)))
    assert denied(many, ConsoleVerb.GET, ConsoleResource.JOBS, "x").hint.endswith("n09 and 2 more")
