"""Who asks our admission rules where a server has no admission policies? The API server itself, over HTTPS: two questions, two paths.

What a newcomer gets wrong: nothing here decides (`rules/share_admission` does), and nothing here is secret: whoever asks learns only what
our rules say of a pod that he sent himself. The API server trusts the answer because of the certificate.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Final

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from fairlead.errors import UserError
from fairlead.rules.share_admission import refuse_grants, scheduler_for
from fairlead.wire.admission_review import CREATE, BadReview, Review, parse_review, parse_written_pod, render_allowed, render_refused

SCHEDULER_PATH: Final = "/scheduler"
GRANTS_PATH: Final = "/grants"
BODY_BYTES_MAX: Final = 8 * 1024 * 1024
"""Old and new object, 3 MiB each at most, and what stands around them."""
RELOAD_SECONDS: Final = 30.0
_log = logging.getLogger(__name__)


def answer_scheduler(review: Review) -> bytes:
    """Which scheduler a new pod is for."""
    if (review.operation, review.resource) != (CREATE, "pods"):
        return render_allowed(review)
    try:
        pod = parse_written_pod(review)
    except ValueError as error:
        return render_refused(review, str(error), 400, "BadRequest")
    scheduler = scheduler_for(pod)
    if scheduler == pod.scheduler:
        return render_allowed(review)
    return render_allowed(review, [{"op": "add", "path": "/spec/schedulerName", "value": scheduler}])


def answer_grants(review: Review) -> bytes:
    """Whether the writer may leave these annotations behind. What is deleted is left to whoever deletes."""
    refusal = refuse_grants(review.before, review.after, review.user) if review.operation != "DELETE" else None
    return render_refused(review, refusal.reason) if refusal is not None else render_allowed(review)


def webhook_app() -> Starlette:
    return Starlette(
        routes=[
            Route(SCHEDULER_PATH, _answering(answer_scheduler), methods=["POST"]),
            Route(GRANTS_PATH, _answering(answer_grants), methods=["POST"]),
            Route("/healthz", _ok),
            Route("/readyz", _ok),
        ]
    )


class ServingCertificate:
    """The certificate of a server, read again when its files change: a Secret that is renewed needs no restart."""

    def __init__(self, certificate: Path, key: Path) -> None:
        self._files = (certificate, key)
        self._seen = self._state()
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.minimum_version = ssl.TLSVersion.TLSv1_2
        self._load()

    async def follow(self) -> None:
        """Look every `RELOAD_SECONDS`; a pair that does not fit together is logged, and the old one goes on."""
        while True:
            await asyncio.sleep(RELOAD_SECONDS)
            self.reload()

    def reload(self) -> None:
        try:
            now = self._state()
            if now != self._seen:
                self._load()
                self._seen = now
                _log.info("certificate read again")
        except UserError as error:
            _log.warning("the old certificate goes on: %s", error.log_line)

    def _load(self) -> None:
        certificate, key = self._files
        try:
            for context in (ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), self.context):  # a bad pair must not spoil the one in use
                context.load_cert_chain(certificate, key, password="")  # never ask a terminal
        except (OSError, ssl.SSLError, ValueError) as error:
            raise UserError(
                f"`{certificate}` and `{key}` are no certificate and its key: {error}", "both in PEM, the key without password"
            ) from error

    def _state(self) -> tuple[tuple[int, int], ...]:
        try:
            return tuple((found.st_mtime_ns, found.st_ino) for found in (file.stat() for file in self._files))
        except OSError as error:
            raise UserError(f"cannot read `{error.filename}`: {(error.strerror or str(error)).lower()}", "name a PEM file") from error


def _answering(answer: Callable[[Review], bytes]) -> Callable[[Request], object]:
    async def respond(request: Request) -> Response:
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            return _refused(415, "send an AdmissionReview as `application/json`")
        body = await _body(request)
        if body is None:
            return _refused(413, f"the review is larger than {BODY_BYTES_MAX} bytes")
        try:
            return Response(answer(parse_review(body)), media_type="application/json")
        except BadReview as error:
            return _refused(400, str(error))

    return respond


async def _body(request: Request) -> bytes | None:
    """None when it is too long."""
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > BODY_BYTES_MAX:
            return None
    return bytes(body)


def _refused(status: int, why: str) -> Response:
    _log.warning("refused with %d: %s", status, why)
    return PlainTextResponse(f"{why}\n", status)


async def _ok(request: Request) -> Response:
    return PlainTextResponse("ok\n")
