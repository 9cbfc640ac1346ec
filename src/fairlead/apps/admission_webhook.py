"""The admission webhook: admission rules over HTTPS, and the validation of quota trees, users and
groups.

It applies the rules on API servers that have no admission policies.

Each path answers one question. Nothing is decided here (`rules/sharing/admission`, `rules/quota`
and `rules/people` decide), and hardly anything is secret: a client learns what the rules answer for
an object that it sent itself, and why a tree does not fit the cluster. The API server trusts the
answer because of the certificate.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from fairlead.apps.patient_protocol import CLIENT_CERTIFICATE
from fairlead.apps.questions.people_questions import PeopleQuestions
from fairlead.apps.questions.quota_questions import QuotaQuestions, off_loop
from fairlead.apps.service import Probes
from fairlead.model.installation import OwnAccounts
from fairlead.ports import AdmissionApi
from fairlead.rules.quota.admission import DEFAULT_ACCOUNTS
from fairlead.rules.sharing.admission import refuse_asking, refuse_grants, scheduler_for
from fairlead.wire.kube.admission_review import (
    CREATE,
    BadReview,
    Review,
    parse_review,
    parse_written_pod,
    render_allowed,
    render_refused,
)

SCHEDULER_PATH: Final = "/scheduler"
GRANTS_PATH: Final = "/grants"
EXTENDED_RESOURCES_PATH: Final = "/asks"
GATE_PATH: Final = "/quota-gate"
GUARD_PATH: Final = "/quota-guard"
TREE_PATH: Final = "/quota-tree"
PEOPLE_PATH: Final = "/people"
BODY_BYTES_MAX: Final = 8 * 1024 * 1024
"""`BODY_BYTES_MAX`: the old and the new object, at most 3 MiB each, and what surrounds them."""
_log = logging.getLogger(__name__)


async def answer_scheduler(review: Review) -> bytes:
    """Which scheduler a new pod is for."""
    if (review.operation, review.resource) != (CREATE, "pods"):
        return render_allowed(review)
    try:
        pod = await off_loop(review, parse_written_pod)
    except ValueError as error:
        return render_refused(review, str(error), 400, "BadRequest")
    scheduler = scheduler_for(pod)
    if scheduler == pod.scheduler:
        return render_allowed(review)
    return render_allowed(
        review, [{"op": "add", "path": "/spec/schedulerName", "value": scheduler}]
    )


async def answer_asks(review: Review) -> bytes:
    """Whether any node can run a new pod that asks for shared GPUs."""
    if (review.operation, review.resource) != (CREATE, "pods"):
        return render_allowed(review)
    try:
        refusal = refuse_asking(await off_loop(review, parse_written_pod))
    except ValueError as error:
        return render_refused(review, str(error), 400, "BadRequest")
    return (
        render_allowed(review)
        if refusal is None
        else render_refused(review, refusal.reason, 422, "Invalid")
    )


async def answer_grants(own: OwnAccounts, review: Review) -> bytes:
    """Whether the writer may leave these annotations. A deletion is always allowed."""
    refusal = (
        refuse_grants(review.before, review.after, review.user, own.grant_writers)
        if review.operation != "DELETE"
        else None
    )
    return render_refused(review, refusal.reason) if refusal is not None else render_allowed(review)


def webhook_app(
    api: AdmissionApi | None = None,
    *,
    asks_certificate: bool = False,
    own: OwnAccounts = DEFAULT_ACCOUNTS,
) -> Starlette:
    """Without an `api` some questions about quota are not answered.

    `own`: the accounts of the installation.

    `asks_certificate`: questions are answered only on connections with a client certificate. Probes
    are always answered: a kubelet has no certificate.
    """
    quota = QuotaQuestions(api, own=own)
    answers: dict[str, Callable[[Review], Awaitable[bytes]]] = {
        SCHEDULER_PATH: answer_scheduler,
        GRANTS_PATH: partial(answer_grants, own),
        EXTENDED_RESOURCES_PATH: answer_asks,
        GATE_PATH: quota.gate,
        GUARD_PATH: quota.guard,
        TREE_PATH: quota.tree,
        PEOPLE_PATH: PeopleQuestions(api).answer,
    }
    questions = (
        Route(path, _answering(answer, asks_certificate), methods=["POST"])
        for path, answer in answers.items()
    )
    return Starlette(
        routes=[*questions, *(Route(path, page) for path, page in Probes().pages().items())]
    )


def _answering(
    answer: Callable[[Review], Awaitable[bytes]], asks_certificate: bool
) -> Callable[[Request], object]:
    async def respond(request: Request) -> Response:
        if asks_certificate and CLIENT_CERTIFICATE not in request.scope.get("extensions", {}):
            return _refused(403, "show a client certificate of the authority in `--client-ca`")
        if (
            request.headers.get("content-type", "").partition(";")[0].strip().lower()
            != "application/json"
        ):
            return _refused(415, "send an AdmissionReview as `application/json`")
        body = await _body(request)
        if body is None:
            return _refused(413, f"the review is larger than {BODY_BYTES_MAX} bytes")
        try:
            return Response(await answer(parse_review(body)), media_type="application/json")
        except BadReview as error:
            return _refused(400, str(error))

    return respond


async def _body(request: Request) -> bytes | None:
    """None if it is too long."""
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > BODY_BYTES_MAX:
            return None
    return bytes(body)


def _refused(status: int, why: str) -> Response:
    _log.warning("refused with %d: %s", status, why)
    return PlainTextResponse(f"{why}\n", status)
