"""The scheduler extender (`fairlead scheduler-extender`): kube-scheduler's verbs and web pages.

A refusal is HTTP 200 with `Error`; 4xx is only for what is no valid question. Only clients on the
loopback address, or with a client certificate, may place pods; all others may read.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Final
from urllib.parse import quote

import msgspec
from prometheus_client import CollectorRegistry, Histogram, disable_created_metrics, generate_latest

from fairlead import __version__
from fairlead.apps.extender import Extender
from fairlead.apps.metrics_page import process_metrics
from fairlead.apps.question_protocol import TEXT, Answer, Question
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
_BUCKETS: Final = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 1, 5, 10)
_JSON: Final = b"application/json"
_log = logging.getLogger(__name__)

disable_created_metrics()  # type: ignore[no-untyped-call]


class SchedulerExtender:
    """Questions over HTTP to an extender (`question_protocol.Answerer`)."""

    def __init__(self, extender: Extender) -> None:
        self._extender = extender
        self._registry = CollectorRegistry()
        seconds = Histogram(
            "fairlead_gpushare_extender_seconds",
            "How long the extender's answers took.",
            ("verb",),
            buckets=_BUCKETS,
            registry=self._registry,
        )
        verbs = {
            "filter": self._filter,
            "prioritize": self._prioritize,
            "bind": self._bind,
            "preempt": self._preempt,
        }
        self._verbs: Mapping[str, tuple[Callable[[bytes], Awaitable[bytes]], Histogram]] = {
            f"{PREFIX}/{name}": (verb, seconds.labels(name)) for name, verb in verbs.items()
        }
        self._pages: Mapping[str, Callable[[], Answer]] = {
            "/": lambda: (
                200,
                TEXT,
                (
                    "Fairlead scheduler extender "
                    f"{__version__}\n{INSPECT}\n/metrics\n/healthz\n/readyz\n"
                ).encode(),
            ),
            "/version": self._version,
            "/healthz": lambda: (200, TEXT, b"ok\n"),
            "/readyz": self._readyz,
            "/metrics": self._metrics,
            f"{PREFIX}/version": self._version,
        }

    def refusal(self, asked: Question) -> Answer | None:
        """Refuses clients that may not ask, and paths that do not exist.

        A browser on this machine is no scheduler: its request has the origin of the page.
        """
        path, method = asked.path, asked.method
        if path in self._verbs:
            if method != "POST":
                return _refused(405, f"{path} takes POST, not {method}")
            if asked.is_of_page:
                return _refused(403, "web pages may not place pods")
            if not asked.has_certificate and not is_loopback(asked.client):
                return _refused(
                    403,
                    (
                        "only kube-scheduler may ask this: over loopback, or with a client "
                        "certificate of --client-ca-file"
                    ),
                )
        elif path not in self._pages and path != INSPECT and not path.startswith(f"{INSPECT}/"):
            return _refused(404, f"there is no {quote(path[:200])}")
        elif method not in ("GET", "HEAD"):
            return _refused(405, f"{path} takes GET, not {method}")
        return None

    async def answer(self, asked: Question) -> Answer:
        path = asked.path
        try:
            if path not in self._verbs:
                page = self._pages.get(path)
                return (
                    self._inspect(path.removeprefix(INSPECT).strip("/")) if page is None else page()
                )
            verb, seconds = self._verbs[path]
            began = time.perf_counter()
            try:
                return 200, _JSON, await verb(asked.body)
            except BadBody as error:
                return _refused(400, str(error))
            finally:
                seconds.observe(time.perf_counter() - began)
        except Exception:  # noqa: BLE001 - one question that meets a bug must not end the process that answers all others
            _log.exception("%s %.200r failed", asked.method, path)
            return _refused(500, "internal error; the log has it")

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
            _log.info(
                "pod %s/%s was not bound to %s: %s", asked.namespace, asked.name, asked.node, why
            )
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
        why = self._extender.unready
        return _refused(503, why) if why else (200, TEXT, b"ok\n")

    def _metrics(self) -> Answer:
        leader, bindings = self._extender.leader, self._extender.machine.bindings
        families = share_families(
            self._extender.ledger,
            bindings.results,
            is_leading=leader.is_held,
            doubts=len(bindings.doubts),
        )
        page = b"".join(
            (*render_page(families), generate_latest(self._registry), process_metrics())
        )
        return 200, CONTENT_TYPE.encode(), page


def _refused(status: int, text: str) -> Answer:
    return status, TEXT, f"{text}\n".encode(errors="replace")
