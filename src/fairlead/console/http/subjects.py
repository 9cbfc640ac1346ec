"""The subject of each request, and its rights."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final, Protocol, cast

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from fairlead.console.http.answers import Refused
from fairlead.model.people.permission import Denied, Right
from fairlead.model.people.reach import reach_of
from fairlead.model.people.subject import LOCAL_ADMIN, Subject
from fairlead.rules.people.may import may

RECHECK_SECONDS: Final = 2.0
"""How often the right to an open stream is checked again."""
EVENT_STREAM: Final = "text/event-stream"


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


def account_of(request: Request) -> str:
    """The user name under which the API server is asked for the subject (`Subject.account`).

    Raises Refused, 403, for a user without a ServiceAccount of Fairlead's: its name may be that of
    another program's.
    """
    subject = subject_of(request)
    if not subject.is_bound:
        raise Refused(
            403,
            f"the user `{subject.user}` has no ServiceAccount of Fairlead's yet, and the API "
            "server is asked as that account",
            "wait until the page Users shows the user as bound; the page Health shows whether the "
            "people controller works",
        )
    return subject.account


async def check_right(subjects: Subjects, request: Request, right: Right) -> None:
    """Notes the subject in the request. Raises Refused if it has not this right.

    In the namespace of the path, if it has one; a namespace that is in a body is checked by the
    route, with `require`.
    """
    if right.is_open:
        return
    subject = request.state.subject = await subjects.of(request)
    any_own = min(subject.namespaces, default="") if right.in_body else ""
    require(request, right, request.path_params.get("namespace", any_own))


async def until_denied(
    subjects: Subjects,
    request: Request,
    right: Right,
    may_go_on: Callable[[], Awaitable[bool]] | None = None,
) -> None:
    """Returns when the subject of an open stream loses the right, signs out, sees other namespaces
    than at its beginning, or may not go on.
    """
    began = reach_of(subject_of(request))
    try:
        while reach_of(subject_of(request)) == began:
            await asyncio.sleep(RECHECK_SECONDS)
            await check_right(subjects, request, right)
            if may_go_on is not None and not await may_go_on():
                return
    except Refused:
        return


class WhileAllowed(Response):
    """A stream that ends when the subject may no longer read it.

    An event stream ends whole, and the browser asks again. Others are cut, because a log must not
    look complete.
    """

    def __init__(self, inner: Response, denied: Callable[[], Coroutine[Any, Any, None]]) -> None:
        super().__init__(status_code=inner.status_code)
        self._inner = inner
        self._denied = denied

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        sending = asyncio.create_task(self._inner(scope, receive, send))
        denied = asyncio.create_task(self._denied())
        try:
            await asyncio.wait({sending, denied}, return_when=asyncio.FIRST_COMPLETED)
            if sending.done():
                await sending
        finally:
            for task in (sending, denied):
                task.cancel()
            await asyncio.gather(sending, denied, return_exceptions=True)
        if self._inner.media_type == EVENT_STREAM and not sending_ended(sending):
            await send({"type": "http.response.body", "body": b"", "more_body": False})


def sending_ended(task: asyncio.Task[None]) -> bool:
    return task.done() and not task.cancelled()


def require(request: Request, right: Right, namespace: str = "") -> None:
    """Raises Refused if the subject of the request has not this right in the namespace."""
    answer = may(subject_of(request), right.verb, right.resource, namespace)
    if isinstance(answer, Denied):
        raise refused(answer)


def refused(denied: Denied) -> Refused:
    """The answer to a subject that may not."""
    return Refused(denied.status, denied.reason, denied.hint, code=denied.code)
