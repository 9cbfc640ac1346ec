"""The simulated cluster as a Kubernetes API, well enough for real `kubectl` and real clients.

One ASGI callable over the store: authentication, discovery and OpenAPI, then resources by path.
TLS, sockets and signals are the shell's that all servers share; certificate and kubeconfig are
`credentials`'.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from fairlead.model.access import Identity
from fairlead.model.installed.facts import SIMULATED_BUILD
from fairlead.ports import Clock
from fairlead_sim.api import discovery
from fairlead_sim.api.access import Access, access_request
from fairlead_sim.api.exec import (
    EXEC,
    Execs,
    ExecSession,
    NoPrograms,
    PodPrograms,
    refusing,
    websocket_as_http,
)
from fairlead_sim.api.kube_path import parse_path
from fairlead_sim.api.logs import IDLE, Logs, NoLogs, PodLogs, not_running
from fairlead_sim.api.options import check_options
from fairlead_sim.api.reads import Reads
from fairlead_sim.api.request import (
    APPLY_PATCH,
    ReceivedRequest,
    media_type,
    read_body,
    wanted_form,
)
from fairlead_sim.api.reviews import REVIEWS, Reviews
from fairlead_sim.api.tokens import Tokens
from fairlead_sim.api.versions import Versions
from fairlead_sim.api.watch import Watches
from fairlead_sim.api.writes import Writes, no_such_verb
from fairlead_sim.objects.watch_log import Object
from fairlead_sim.schema.openapi import openapi_index, openapi_v2, openapi_v3
from fairlead_sim.schema.resource import ResourceKind
from fairlead_sim.schema.status import (
    ApiStatus,
    bad_request,
    method_not_allowed,
    render_status,
    unknown_path,
)
from fairlead_sim.store.cluster import StoredCluster

KUBERNETES_VERSION: Final = "v1.36.3"
BOOKMARK_SECONDS: Final = 60.0
_HEALTH = ("/healthz", "/livez", "/readyz")
_log = logging.getLogger(__name__)


class ApiServer:
    """The ASGI application.

    `tokens` are the administrator's; `signing_key` signs those of ServiceAccounts (a fresh one when
    not given).

    Health and version are everybody's; any other request is served if the roles and bindings of the
    store allow it. `catch_up` is called before each request for a resource: it lets the world live
    up to now, so that a write happens at its time.
    """

    def __init__(
        self,
        cluster: StoredCluster,
        clock: Clock,
        tokens: Sequence[str],
        *,
        signing_key: bytes | None = None,
        logs: PodLogs | None = None,
        programs: PodPrograms | None = None,
        catch_up: Callable[[], None] | None = None,
        bookmark_seconds: float = BOOKMARK_SECONDS,
    ) -> None:
        self._store = store = Versions(cluster)
        self._cluster = cluster
        self._catch_up = catch_up
        self._ending = asyncio.Event()
        self._reads = Reads(store, clock)
        issued = Tokens(store, clock, tokens, signing_key or secrets.token_bytes(32))
        self._access = Access(store, issued)
        self._reviews = Reviews(self._access, issued, clock)
        self._writes = Writes(store, self._reads, clock, self._access.check_gift)
        self._watches = Watches(store, self._reads, bookmark_seconds, self._ending)
        self._logs = Logs(logs or NoLogs(), self._reads, clock, self._ending)
        self._execs = Execs(
            programs or NoPrograms(), self._reads, clock, self._ending, self._may_create
        )

    def stop(self) -> None:
        """End all streams: the server cannot stop while clients keep their watches."""
        self._ending.set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        http = websocket_as_http(scope) if scope["type"] == "websocket" else scope
        request = Request(http, receive)
        try:
            response = await self._respond(request)
        except ApiStatus as error:
            response = _refusal(error)
        except ClientDisconnect:
            return
        except Exception:  # noqa: BLE001 a bug answers 500 and the server goes on; the log has the trace
            _log.exception("the API server failed on %s %.200r", request.method, request.url.path)
            response = _refusal(
                ApiStatus(
                    500,
                    "InternalError",
                    "Internal error occurred: see the log of the simulated API server",
                )
            )
        if scope["type"] == "websocket" and not isinstance(response, ExecSession):
            send = refusing(send)
        await response(http, receive, send)

    async def _respond(self, request: Request) -> ASGIApp:
        path = request.url.path.rstrip("/") or "/"
        if path in _HEALTH or path.startswith(tuple(f"{health}/" for health in _HEALTH)):
            return PlainTextResponse("ok")
        if path == "/version" and request.method in _READS:
            return _json(_version())
        who = self._access.admit(request)
        if path == "/openapi/v2" and "proto-openapi" in request.headers.get("accept", ""):
            # kubectl checks a `List` itself, by this form alone: the empty document, which is no
            # bytes at
            # all, has nothing against it.
            return Response(
                b"", media_type="application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
            )
        if not path.startswith(("/api/", "/apis/")) and request.method not in _READS:
            raise method_not_allowed(None, "")
        if not self._is_api(request.url.path):
            return PlainTextResponse("404 page not found\n", 404)
        document = self._document(request, path)
        return _json(*document) if document is not None else await self._resource(request, who)

    def _is_api(self, path: str) -> bool:
        """Whether a path is one that the API itself answers; the rest are no pages of it at all."""
        first, *rest = path.strip("/").split("/")
        if path.startswith("//") or first not in ("", "api", "apis", "openapi", "version"):
            return False
        return first != "apis" or not rest or any(ref.group == rest[0] for ref in self._kinds())

    # --- what is served ---------------------------------------------------------------------------

    def _document(self, request: Request, path: str) -> tuple[Any, int, str] | None:
        """Discovery and OpenAPI: (body, status, content type); None for paths of resources."""
        kinds = self._kinds()
        steps = path.strip("/").split("/")
        if path == "/":
            return (
                {
                    "paths": [
                        "/api",
                        "/api/v1",
                        "/apis",
                        *_HEALTH,
                        "/openapi/v2",
                        "/openapi/v3",
                        "/version",
                    ]
                },
                200,
                _JSON,
            )
        if steps[0] == "openapi":
            return _openapi(steps, kinds), 200, _JSON
        if path in ("/api", "/apis"):
            if wanted_form(request.headers.get("accept", ""), ("APIGroupDiscoveryList",)):
                return (
                    discovery.aggregated_discovery(kinds, core=path == "/api"),
                    200,
                    discovery.AGGREGATED,
                )
            return (
                discovery.api_versions(request.url.netloc)
                if path == "/api"
                else discovery.api_groups(kinds),
                200,
                _JSON,
            )
        if path == "/api/v1":
            return discovery.api_resources("", "v1", kinds), 200, _JSON
        if steps[0] == "apis" and len(steps) in (2, 3):
            return self._group_document(steps[1:], kinds), 200, _JSON
        return None

    def _group_document(self, steps: list[str], kinds: Sequence[ResourceKind]) -> Object:
        group, version = (*steps, "")[:2]
        served = {ref.version for ref in kinds if ref.group == group and group}
        if not served or (version and version not in served):
            raise unknown_path()
        return (
            discovery.api_resources(group, version, kinds)
            if version
            else discovery.api_group(group, kinds)
        )

    # --- resources --------------------------------------------------------------------------------

    async def _resource(self, http: Request, who: Identity) -> ASGIApp:
        path = parse_path(http.url.path)
        ref = self._served(path.group, path.version, path.plural) if path else None
        if path is None or ref is None or not _has_subresource(ref, path.subresource):
            raise unknown_path()
        if ref.namespaced is (path.namespace is None) and (path.namespace is not None or path.name):
            raise unknown_path()
        if path.name in (".", ".."):
            raise bad_request(f"Name parameter invalid: \"{path.name}\": may not be '{path.name}'")
        request = ReceivedRequest(http, path, ref, who)
        check_options(request)
        body = b"" if http.method in _READS else await read_body(http)
        if self._catch_up is not None:
            self._catch_up()
        if ref.custom is not None and ref.custom.warning:
            request.warnings.append(ref.custom.warning)
        if ref.note and http.method in ("POST", "PUT", "PATCH"):
            request.warnings.append(ref.note)
        if path.subresource == EXEC and http.method in ("GET", "POST"):
            self._store.prepare_read(ref, path.namespace, path.name)
            return self._execs.open(request)
        if http.method == "GET":
            return _warned(self._read(request), request.warnings)
        status, answer = self._write(request, body)
        return _warned(_json(answer, status), request.warnings)

    def _kinds(self) -> tuple[ResourceKind, ...]:
        """What is stored, and what is only asked."""
        return (*self._store.kinds(), *REVIEWS)

    def _served(self, group: str, version: str, plural: str) -> ResourceKind | None:
        wanted = (group, version, plural)
        return next(
            (ref for ref in self._kinds() if (ref.group, ref.version, ref.plural) == wanted), None
        )

    def _read(self, request: ReceivedRequest) -> ASGIApp:
        path, ref = request.path, request.ref
        self._store.prepare_read(ref, path.namespace, path.name)
        if path.subresource in IDLE:
            raise not_running(path.subresource, self._reads.existing(request))
        if ref in REVIEWS:
            raise no_such_verb(request, "")
        if path.subresource == "log":
            return self._logs.open(request)
        if path.subresource == "scale":
            return _json(self._store.scale_of(ref, self._reads.existing(request)))
        if path.subresource not in ("", "status"):
            raise no_such_verb(request, "get")
        if path.name:
            return _json(self._reads.get(request))
        return (
            self._watches.open(request)
            if request.is_true("watch")
            else _json(self._reads.list(request))
        )

    def _write(self, request: ReceivedRequest, body: bytes) -> tuple[int, Object]:
        path, writes = request.path, self._writes
        if path.subresource in IDLE:
            raise not_running(path.subresource, self._reads.existing(request))
        if request.http.method == "PATCH" and not request.who.is_master:
            self._check_creates(request)
        shape = (request.http.method, bool(path.name), path.subresource)
        verbs = {
            ("POST", False, ""): (
                "create",
                self._reviews.answer if request.ref in REVIEWS else writes.create,
            ),
            ("PUT", True, ""): ("update", writes.update),
            ("PATCH", True, ""): ("patch", writes.patch),
            ("DELETE", True, ""): ("delete", writes.delete),
            ("DELETE", False, ""): ("deletecollection", writes.delete_collection),
            ("PUT", True, "status"): ("update", writes.update),
            ("PATCH", True, "status"): ("patch", writes.patch),
            ("PUT", True, "scale"): ("update", writes.update),
            ("PATCH", True, "scale"): ("patch", writes.patch),
            ("POST", True, "binding"): ("create", writes.bind),
            ("POST", True, "eviction"): ("create", writes.evict),
            ("POST", True, "token"): ("create", self._issue_token),
        }
        verb, act = verbs.get(shape, ("", None))
        needs_namespace = request.ref.namespaced and path.namespace is None
        if act is None or verb not in request.ref.verbs or needs_namespace:
            raise no_such_verb(request, verb)
        return act(request, body)

    def _may_create(self, request: ReceivedRequest) -> bool:
        wanted = msgspec.structs.replace(access_request(request.http), verb="create")
        return self._access.judge(request.who, wanted).is_allowed

    def _issue_token(self, request: ReceivedRequest, body: bytes) -> tuple[int, Object]:
        account = self._reads.existing(request)
        return self._reviews.token(request, body, account, self._cluster.admission)

    def _check_creates(self, request: ReceivedRequest) -> None:
        """An apply of a new object creates it, and needs the right to create, too."""
        is_apply = media_type(request.http.headers.get("content-type", "")) == APPLY_PATCH
        if (
            is_apply
            and self._store.get(request.ref, request.path.namespace, request.path.name) is None
        ):
            self._access.check(
                request.who, msgspec.structs.replace(access_request(request.http), verb="create")
            )


_JSON: Final = "application/json"
_READS: Final = ("GET", "HEAD")


def _has_subresource(ref: ResourceKind, name: str) -> bool:
    return (
        not name
        or name in ref.subresources
        or (ref.group_resource == "pods" and name in (*IDLE, EXEC))
    )


def _json(body: Any, status: int = 200, content_type: str = _JSON) -> Response:
    return Response(msgspec.json.encode(body), status, media_type=content_type)


def _warned(answer: ASGIApp, warnings: Sequence[str]) -> ASGIApp:
    """The answer with the warnings in its headers; streams have none."""
    if isinstance(answer, Response):
        for warning in warnings:
            quoted = warning.replace("\\", "\\\\").replace('"', '\\"')
            answer.headers.append("warning", f'299 - "{quoted}"')
    return answer


def _refusal(error: ApiStatus) -> Response:
    response = _json(render_status(error), error.code)
    if error.code == 401:
        response.headers["www-authenticate"] = 'Bearer realm="fairlead"'
    seconds = error.details.get("retryAfterSeconds")
    if seconds:
        response.headers["retry-after"] = str(seconds)
    return response


def _openapi(steps: list[str], kinds: Sequence[ResourceKind]) -> Object:
    if steps[1:] == ["v2"]:
        return openapi_v2(kinds)
    if steps[1:] == ["v3"]:
        return openapi_index(kinds)
    document = openapi_v3("/".join(steps[2:]), kinds) if steps[1] == "v3" else None
    if document is None:
        raise unknown_path()
    return document


def _version() -> Object:
    major, minor, _ = KUBERNETES_VERSION.removeprefix("v").split(".")
    return {
        "major": major,
        "minor": minor,
        "gitVersion": KUBERNETES_VERSION + SIMULATED_BUILD,
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "2026-01-05T08:00:00Z",
        "goVersion": "",
        "compiler": "python",
        "platform": "simulated",
    }
