"""The one way of every write: checks, then a plan, then the audit, then the act.

A write of a route plans (`PlannedWrite`): it reads the object as it is now, finds what speaks
against the change, and returns how it is carried out. The frame asks for the rest in one order, so
that no write forgets a part: sign-in, CSRF, size and form of the body, the version on which the
client based it, `dryRun`, `Idempotency-Key`. It stores a row `begun` of the audit before the act,
and one with the result after it. Without the first row nothing is done.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, Literal

import msgspec
from msgspec import Struct, structs
from starlette.requests import Request
from starlette.responses import Response

from fairlead.console.http.answers import JSON, Refused
from fairlead.console.http.audit_notes import ended_row, note, result_noted
from fairlead.console.http.sign_in.tools import Cookie, set_cookie
from fairlead.console.http.subjects import subject_of
from fairlead.console.http.writes import own_body
from fairlead.console.http.writing.targets import named_target
from fairlead.console.pages.endpoints import Endpoint
from fairlead.console.pages.envelope import FieldFault
from fairlead.console.pages.writing.preview import Effect, NoBody, Preview, decoded
from fairlead.model.people.subject import Subject
from fairlead.model.records.audit import AuditResult, AuditRow, AuditTarget
from fairlead.ports import AuditTrail, SignIns

KEY_MS: Final = 24 * 3600 * 1000
"""How long an `Idempotency-Key` counts."""
_KEY_MAX: Final = 200
_ANSWERS_MAX: Final = 1_000
SIGN_IN_HINT: Final = "start it with `fairlead console --sign-in on`"
"""How users sign in, where the program that starts the console names no better way."""


class Written(Struct, frozen=True):
    """The answer to a write. `is_secret`: it contains a credential, and is kept nowhere; so does an
    answer with `cookies`. `location`: the path of what was made, below the console's base path.
    """

    body: Any
    status: int = 200
    location: str = ""
    is_secret: bool = False
    cookies: Sequence[Cookie] = ()


class Blocked(Struct, frozen=True):
    """Why the change may not be made now (409). `code`: `blocked` or `exists`. `fields`: what
    blocks it.
    """

    reason: str
    hint: str = ""
    fields: tuple[FieldFault, ...] = ()
    code: Literal["blocked", "exists"] = "blocked"


class PlannedWrite(Struct, frozen=True, kw_only=True):
    """A write that was planned and not carried out.

    `summary`: names of fields that change, for the audit; never values that may be secret.
    `faults`: what is invalid (422). `version`: of the present object, which `If-Match` must name;
    `current`: that object as a GET answers it, sent back if another version was named. `preview`:
    the answer to `dryRun=true`, None = one of `faults`, `blocked` and `effects`.
    """

    target: AuditTarget
    act: Callable[[], Awaitable[Written]]
    summary: str = ""
    faults: Sequence[FieldFault] = ()
    blocked: Blocked | None = None
    version: str = ""
    current: Any = None
    effects: Sequence[Effect] = ()
    preview: Any = None


Plan = Callable[[Request, Any], Awaitable[PlannedWrite]]
"""Plans a write of this request with this body, which has the endpoint's form."""


class WriteTools(Struct, frozen=True, kw_only=True):
    """`spent`: knows keys that were used. `source_ip`: of a request's client. `now`: milliseconds
    UTC. `cookie_path`: the console's base path.
    """

    audit: AuditTrail
    spent: SignIns
    source_ip: Callable[[Request], str]
    now: Callable[[], int]
    cookie_path: str = "/"


def read_only(hint: str) -> Refused:
    """The answer to each write of a console at which users do not sign in."""
    what = "this console is read only, because users do not sign in"
    return Refused(403, what, hint, code="read-only")


class WriteFrame:
    """The writes of one console. `tools`: None = it is read only; `hint`: how users sign in."""

    def __init__(self, tools: WriteTools | None, hint: str = SIGN_IN_HINT) -> None:
        self._tools = tools
        self._hint = hint
        self._answers: OrderedDict[str, Response] = OrderedDict()
        self._acts: set[asyncio.Task[Response]] = set()

    def check(self) -> None:
        """Raises Refused, 403 `read-only`, where users do not sign in."""
        if self._tools is None:
            raise read_only(self._hint)

    async def answer(
        self, request: Request, endpoint: Endpoint, csrf: str | None, plan: Plan
    ) -> Response:
        """The write, or with `dryRun=true` its preview. `csrf`: see `writes.own_body`.

        The right of the endpoint was checked before. Raises Refused: 403 `read-only` or `csrf`, 400
        without `If-Match`, 409 `conflict`, `blocked` or `exists`, 415, 422 `invalid` with all
        faults; StoreDown if the audit cannot be written.
        """
        tools = self._tools
        if tools is None:
            raise read_only(self._hint)
        body = await own_body(request, csrf, is_empty=endpoint.body in (None, NoBody))
        is_preview = _flag(request, "dryRun")
        version = _asked_version(request, is_needed=endpoint.needs_version)
        key = _key(request, endpoint, body)
        if key in self._answers and not is_preview:
            return self._again(key)  # before the plan, which would find what the first one made
        planned: PlannedWrite | None = None
        try:
            order = decoded(body, endpoint.body or NoBody)
            if isinstance(order, list):
                raise invalid(order)
            planned = await plan(request, order)
            if version is not None and planned.version != version:
                raise moved(planned)
            if is_preview:
                return _plain(_preview(planned), 200)
            check_planned(planned)
        except Refused as refused:
            if is_preview and refused.status == 422:
                return _plain(Preview(False, list(refused.fields), []), 200)
            if not is_preview:
                target = planned.target if planned is not None else None
                await self.note_refusal(request, endpoint, refused, target)
            raise
        begun = self._row(request, endpoint, AuditResult.BEGUN, planned)
        begun = structs.replace(begun, id=await tools.audit.append_audit(begun))
        # After the row: a client that repeats a write that the store did not note may use its key.
        if key and not await tools.spent.spend(key, tools.now() + KEY_MS):
            await note(tools.audit, ended_row(begun, tools.now(), AuditResult.REFUSED, "exists"))
            return self._again(key)
        # A client that goes away does not end an act, whose second row would then be missing.
        task = asyncio.create_task(self._carry_out(tools, planned, begun, key))
        self._acts.add(task)
        task.add_done_callback(self._acts.discard)
        return await asyncio.shield(task)

    async def note_refusal(
        self,
        request: Request,
        endpoint: Endpoint,
        refused: Refused,
        target: AuditTarget | None = None,
    ) -> None:
        """A row of the audit for a write that is refused. Nothing is done, so a store that is away
        does not change the answer. `target`: of the plan, None = there was no plan yet.
        """
        if self._tools is None or not endpoint.action:
            return
        if target is None:
            subject: Subject | None = getattr(request.state, "subject", None)
            own = subject.user if subject is not None else ""
            target = named_target(endpoint.action, request.path_params, own)
        row = self._row(
            request, endpoint, AuditResult.REFUSED, PlannedWrite(target=target, act=_nothing)
        )
        await note(self._tools.audit, structs.replace(row, code=refused.code))

    async def _carry_out(
        self, tools: WriteTools, planned: PlannedWrite, begun: AuditRow, key: str
    ) -> Response:
        async with result_noted(tools.audit, begun, tools.now):
            written = await planned.act()
        answer = _plain(written.body, written.status)
        if written.location:
            answer.headers["Location"] = tools.cookie_path.rstrip("/") + written.location
        for cookie in written.cookies:
            set_cookie(answer, tools.cookie_path, cookie)
        if key and not (written.is_secret or written.cookies):
            self._answers[key] = answer
            while len(self._answers) > _ANSWERS_MAX:
                self._answers.popitem(last=False)
        return answer

    def _again(self, key: str) -> Response:
        found = self._answers.get(key)
        if found is None:
            raise Refused(
                409,
                "a write with this `Idempotency-Key` was begun before, and its answer is not kept",
                "look at the object and at the audit; send another key to write again",
                code="exists",
            )
        return Response(found.body, found.status_code, dict(found.headers))

    def _row(
        self, request: Request, endpoint: Endpoint, result: AuditResult, planned: PlannedWrite
    ) -> AuditRow:
        assert self._tools is not None
        subject: Subject | None = getattr(request.state, "subject", None)
        return AuditRow(
            at=self._tools.now(),
            actor=(subject.user or subject.name) if subject is not None else "",
            action=endpoint.action,
            result=result,
            role=str(subject.role) if subject is not None else "",
            source_ip=self._tools.source_ip(request),
            target=planned.target,
            request_id=request.state.request_id,
            summary=planned.summary,
        )


def check_planned(planned: PlannedWrite) -> None:
    """Raises Refused for a plan that may not be carried out: 422 `invalid`, 409 `blocked`."""
    if planned.faults:
        raise invalid(planned.faults)
    blocked = planned.blocked
    if blocked is None:
        return
    if blocked.code == "exists":
        raise Refused(409, blocked.reason, blocked.hint, code="exists", fields=blocked.fields)
    raise Refused(409, blocked.reason, blocked.hint, code="blocked", fields=blocked.fields)


def invalid(faults: Sequence[FieldFault]) -> Refused:
    """422 with all faults."""
    first = faults[0]
    more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
    return Refused(
        422,
        f"{first.error}{more}",
        "correct the fields",
        fields=tuple(faults),
    )


def moved(planned: PlannedWrite) -> Refused:
    """409 with the object as it is now."""
    return Refused(
        409,
        f"{planned.target.kind} `{planned.target.name}` was changed by another client",
        "compare your change with the object as it is now, and save again",
        code="conflict",
        current=planned.current,
    )


def not_there(kind: str, name: str, hint: str) -> Refused:
    return Refused(404, f"there is no {kind} `{name[:253]}`", hint)


def _preview(planned: PlannedWrite) -> Any:
    if planned.preview is not None:
        return planned.preview
    faults = list(planned.faults)
    blocked = planned.blocked
    if blocked is not None:
        faults += blocked.fields or (FieldFault("", blocked.code, blocked.reason),)
    return Preview(not faults, faults, [] if faults else list(planned.effects))


def _plain(body: Any, status: int) -> Response:
    return Response(msgspec.json.encode(body), status, {"Cache-Control": "no-store"}, JSON)


def _flag(request: Request, name: str) -> bool:
    given = request.query_params.get(name, "false")
    if given not in ("true", "false"):
        raise Refused(400, f"`{name}` is `{given[:60]}`", "use true or false")
    return given == "true"


def _asked_version(request: Request, *, is_needed: bool) -> str | None:
    """The version that the client has read; None = it names none."""
    given = request.headers.get("if-match", "").strip()
    if given:
        return given.removeprefix("W/").strip('"')
    if is_needed:
        raise Refused(
            400,
            "the header `If-Match` is missing",
            "send the `version` of the object that you have read, so that no later change is lost",
        )
    return None


def _key(request: Request, endpoint: Endpoint, body: bytes) -> str:
    """The hash of the `Idempotency-Key` with the client and the request; "" = there is none."""
    given = request.headers.get("idempotency-key", "")
    if not given:
        return ""
    if len(given) > _KEY_MAX or not given.isprintable():
        raise Refused(
            400,
            f"the header `Idempotency-Key` has {len(given)} characters",
            f"send at most {_KEY_MAX} printable characters",
        )
    subject = subject_of(request)
    parts = (
        subject.user or subject.name,
        endpoint.method,
        request.url.path,
        given,
        hashlib.sha256(body).hexdigest(),
    )
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


async def _nothing() -> Written:
    raise NotImplementedError
