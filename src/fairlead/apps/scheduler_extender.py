"""The scheduler extender (`fairlead scheduler-extender`): kube-scheduler's five verbs over HTTP, and what people may read.

What a newcomer gets wrong: a refusal is HTTP 200 with `Error`; 4xx is only for what is no question at all. Who may place pods is
whoever reaches the loopback address, or shows a client certificate; everybody else may read.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final
from urllib.parse import quote

import msgspec
from prometheus_client import CollectorRegistry, Histogram, disable_created_metrics, generate_latest
from starlette.types import Receive, Scope, Send

from fairlead import __version__
from fairlead.apps.extender import REBUILDING, Extender
from fairlead.apps.metrics_page import process_metrics
from fairlead.apps.peer import PEER_CERTIFICATE
from fairlead.apps.server import is_loopback
from fairlead.model.refusal import Refusal
from fairlead.rules.sharing.inspect import inspect_shares, unknown_node
from fairlead.rules.sharing.metrics import share_families
from fairlead.wire.metrics.prom_text import CONTENT_TYPE, render_page
from fairlead.wire.sharing.inspect import render_inspection
from fairlead.wire.sharing.scheduler_extender import (
    BadBody,
    parse_bind,
    parse_filter,
    parse_preempt,
    render_error,
    render_filter,
    render_filter_error,
    render_preempt,
    render_priorities,
)

PREFIX: Final = "/gpushare-scheduler"
INSPECT: Final = f"{PREFIX}/inspect"
BODY_BYTES_MAX: Final = 128 << 20
"""5,000 whole Nodes are 50 MiB."""
_BUCKETS: Final = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 1, 5, 10)
_JSON: Final = b"application/json"
_TEXT: Final = b"text/plain; charset=utf-8"
_log = logging.getLogger(__name__)

Answer = tuple[int, bytes, bytes]
"""Status, content type, body."""
disable_created_metrics()  # type: ignore[no-untyped-call]


class _Refused(Exception):
    """The request is no question: `status` and a sentence."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.text = text


class SchedulerExtender:
    """The ASGI app over an extender. Plain ASGI: kube-scheduler asks one question after another, and each waits for this."""

    def __init__(self, extender: Extender) -> None:
        self._extender = extender
        self._registry = CollectorRegistry()
        self._seconds = Histogram(
            "fairlead_gpushare_extender_seconds",
            "How long the extender's answers took.",
            ("verb",),
            buckets=_BUCKETS,
            registry=self._registry,
        )
        self._verbs: Mapping[str, Callable[[bytes], Awaitable[bytes]]] = {
            f"{PREFIX}/filter": self._filter,
            f"{PREFIX}/prioritize": self._prioritize,
            f"{PREFIX}/bind": self._bind,
            f"{PREFIX}/preempt": self._preempt,
        }
        for path in self._verbs:
            self._seconds.labels(path.rpartition("/")[2])  # a counter that is born at 1 is missed by increase()
        self._pages: Mapping[str, Callable[[], Answer]] = {
            "/": lambda: (200, _TEXT, f"Fairlead scheduler extender {__version__}\n{INSPECT}\n/metrics\n/healthz\n/readyz\n".encode()),
            "/version": self._version,
            "/healthz": lambda: (200, _TEXT, b"ok\n"),
            "/readyz": self._readyz,
            "/metrics": self._metrics,
            f"{PREFIX}/version": self._version,
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        try:
            status, kind, body = await self._answer(scope, receive)
        except _Refused as refused:
            status, kind, body = refused.status, _TEXT, f"{refused.text}\n".encode(errors="replace")
        except Exception:  # noqa: BLE001 - one question that meets a bug must not end the process that answers all others
            _log.exception("%s %.200r failed", scope["method"], scope["path"])
            status, kind, body = 500, _TEXT, b"internal error; the log has it\n"
        headers = [(b"content-type", kind), (b"content-length", str(len(body)).encode())]
        if status == 413:  # what is left of the body is not read
            headers.append((b"connection", b"close"))
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body})

    async def _answer(self, scope: Scope, receive: Receive) -> Answer:
        path, method = scope["path"], scope["method"]
        verb = self._verbs.get(path)
        if verb is not None:
            if method != "POST":
                raise _Refused(405, f"{path} takes POST, not {method}")
            _require_scheduler(scope)
            began = time.perf_counter()
            try:
                return 200, _JSON, await verb(await _read(scope, receive))
            except BadBody as error:
                raise _Refused(400, str(error)) from error
            finally:
                self._seconds.labels(path.rpartition("/")[2]).observe(time.perf_counter() - began)
        if path not in self._pages and path != INSPECT and not path.startswith(f"{INSPECT}/"):
            raise _Refused(404, f"there is no {quote(path[:200])}")
        if method not in ("GET", "HEAD"):
            raise _Refused(405, f"{path} takes GET, not {method}")
        page = self._pages.get(path)
        return self._inspect(path.removeprefix(INSPECT).strip("/")) if page is None else page()

    async def _filter(self, body: bytes) -> bytes:
        asked = parse_filter(body)
        answer = await self._extender.filter(asked)
        if isinstance(answer, Refusal):
            return render_filter_error(answer.reason)
        return render_filter(asked, answer.passed, answer.failed, answer.hopeless)

    async def _prioritize(self, body: bytes) -> bytes:
        return render_priorities(await self._extender.prioritize(parse_filter(body)))

    async def _bind(self, body: bytes) -> bytes:
        asked = parse_bind(body)
        why = await self._extender.bind(asked)
        if why:
            _log.info("pod %s/%s was not bound to %s: %s", asked.namespace, asked.name, asked.node, why)
        return render_error(why)

    async def _preempt(self, body: bytes) -> bytes:
        return render_preempt(await self._extender.preempt(parse_preempt(body)))

    def _inspect(self, node: str) -> Answer:
        ledger, names = self._extender.ledger, (node,) if node else ()
        if error := unknown_node(ledger, names):
            return 404, _JSON, msgspec.json.encode(render_inspection((), error))
        return 200, _JSON, msgspec.json.encode(render_inspection(inspect_shares(ledger, names)))

    def _version(self) -> Answer:
        return 200, _JSON, msgspec.json.encode(__version__)

    def _readyz(self) -> Answer:
        if not self._extender.machine.feed.is_rebuilt:
            return 503, _TEXT, f"{REBUILDING}\n".encode()
        return 200, _TEXT, b"ok\n"

    def _metrics(self) -> Answer:
        leader, bindings = self._extender.leader, self._extender.machine.bindings
        families = share_families(self._extender.ledger, bindings.results, is_leading=leader.is_held, doubts=len(bindings.doubts))
        page = b"".join((*render_page(families), generate_latest(self._registry), process_metrics()))
        return 200, CONTENT_TYPE.encode(), page


def _require_scheduler(scope: Scope) -> None:
    """Refuse who may not place pods. A browser on this machine is no scheduler either: it says where its page came from."""
    if any(name == b"origin" for name, _ in scope["headers"]):
        raise _Refused(403, "web pages may not place pods")
    client = scope.get("client")
    if not scope.get(PEER_CERTIFICATE) and not (client and is_loopback(client[0])):
        raise _Refused(403, "only kube-scheduler may ask this: over loopback, or with a client certificate of --client-ca-file")


async def _read(scope: Scope, receive: Receive) -> bytes:
    """The body. How long it may take is the server's to say (`patient_protocol`)."""
    told = next((value for name, value in scope["headers"] if name == b"content-length"), b"0")
    if told.isdigit() and int(told) > BODY_BYTES_MAX:
        raise _Refused(413, f"a body of {int(told)} bytes is larger than {BODY_BYTES_MAX}")
    pieces: list[bytes] = []
    size = 0
    while True:
        message: Mapping[str, Any] = await receive()
        if message["type"] == "http.disconnect":
            raise _Refused(400, "the body ended early")
        piece = message.get("body", b"")
        pieces.append(piece)
        size += len(piece)
        if size > BODY_BYTES_MAX:
            raise _Refused(413, f"the body is larger than {BODY_BYTES_MAX} bytes")
        if not message.get("more_body", False):
            return pieces[0] if len(pieces) == 1 else b"".join(pieces)
