"""The subject of each request, and its rights."""

from __future__ import annotations

from typing import Protocol, cast

from starlette.requests import Request

from fairlead.console.http.answers import Refused
from fairlead.model.people.permission import Denied, Right
from fairlead.model.people.subject import LOCAL_ADMIN, Subject
from fairlead.rules.people.may import may


class Subjects(Protocol):
    """Who asks. Asked once per request, and by streams again every few seconds."""

    async def of(self, request: Request) -> Subject:
        """The subject of the request, from the live User.

        Raises Refused: 401 `signed-out`, 403 `no-user`.
        """
        ...


class EveryClientIsAdmin:
    """A console without sign-in."""

    async def of(self, request: Request) -> Subject:
        return LOCAL_ADMIN


def subject_of(request: Request) -> Subject:
    """The subject of a request that `check_right` has let pass."""
    return cast(Subject, request.state.subject)


async def check_right(subjects: Subjects, request: Request, right: Right) -> None:
    """Notes the subject in the request. Raises Refused if it has not this right.

    In the namespace of the path, if it has one; a namespace that is in a body is checked by the
    route, with `require`.
    """
    if right.is_open:
        return
    request.state.subject = await subjects.of(request)
    require(request, right, request.path_params.get("namespace", ""))


def require(request: Request, right: Right, namespace: str = "") -> None:
    """Raises Refused if the subject of the request has not this right in the namespace."""
    answer = may(subject_of(request), right.verb, right.resource, namespace)
    if isinstance(answer, Denied):
        raise Refused(answer.status, answer.reason, answer.hint, code=answer.code)
