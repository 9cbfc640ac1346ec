"""The dialogue with an API server, without I/O: lists, discovery, renewal after 401, retries.

Each conversation is a generator. It yields a step (`SendRequest`, `Pause`, …), and its driver sends
back the result, or throws the exception of its HTTP client. `kube_api` drives conversations with
tasks, `kube_blocking` with threads; the drivers decide nothing.
"""

from __future__ import annotations

import logging
import os
import zlib
from collections.abc import Callable, Generator, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from msgspec import Struct, structs

from fairlead import __version__
from fairlead.edge.connection.backoff import Backoff
from fairlead.edge.connection.certificate import server_valid_from
from fairlead.edge.connection.connection import Connection
from fairlead.edge.connection.connection_failure import is_not_yet_valid
from fairlead.edge.connection.credentials import ClientCertificate, IssuedCredentials
from fairlead.edge.connection.decoders import decoder_of
from fairlead.edge.connection.proxy import is_loopback, proxy_for
from fairlead.edge.kube import api_discovery, api_request
from fairlead.edge.kube.api_discovery import Discovery, ServedResource, ServerVersion
from fairlead.edge.kube.api_failure import (
    NOT_JSON,
    ApiFailure,
    Gone,
    Unauthorized,
    Unreachable,
    expired_token_words,
    failure_of_answer,
    failure_of_connection,
    not_its_json,
)
from fairlead.edge.kube.api_page import ItemReader, Listing, early_token
from fairlead.edge.kube.api_request import EVERYTHING, ApiRequest, PatchKind, Selection
from fairlead.edge.kube.resource import Resource
from fairlead.wire.kube.forms import PROTOBUF, UnreadableProtobuf
from fairlead.wire.text.printable_address import printable_address

if TYPE_CHECKING:
    import random

log = logging.getLogger("fairlead.kubernetes")

Row = TypeVar("Row")
Result = TypeVar("Result")

READ_SECONDS: Final = 65.0
"""Seconds that the server may be silent before an answer; it ends a request itself after 60."""
PATIENCE_SECONDS = 30.0
"""Seconds that a request waits in all while the server answers with Retry-After. Time is
limited, not the number of attempts: five attempts are 5 s if the server asks for 1 s, and five
minutes if it asks for 60. A server that restarts is back within this time, a user does not wait
longer, and a service's loop retries by itself.
"""
MAX_RESTARTS: Final = 2
"""How often a paged list starts again after 410; then one unpaged list follows."""
UNPACKED_BYTES_MAX: Final = 1 << 30
"""Bytes of one unpacked answer.

A page of 500 objects of etcd's largest size is three quarters of it.
"""
PROTOBUF_OR_JSON: Final = f"{PROTOBUF}, application/json;q=0.9"
_NOT_THIS_FORM: Final = (406, 415)


class SendRequest(Struct, frozen=True):
    """Send a request; the result is an `Answer` of any status.

    `is_stream`: the body of a good answer is not read but left in `Answer.live`. `anew` makes the
    request right before it is sent; its exception is the result.
    """

    request: ApiRequest
    headers: list[tuple[str, str]]
    certificate: ClientCertificate | None = None
    is_stream: bool = False
    anew: Callable[[], ApiRequest] | None = None

    def made(self) -> ApiRequest:
        return self.anew() if self.anew is not None else self.request


class Answer(Struct):
    """An answer.

    `headers.get` ignores case. `live`: the object of the driver from which a stream's body is read.
    """

    status: int
    headers: Any
    body: bytes = b""
    live: Any = None


class StartConversation(Struct, frozen=True):
    """Start another conversation beside this one; the result is the argument for `Finish`.

    A conversation that is not finished is abandoned: a task ends with this conversation, a thread
    runs out and its result is dropped.
    """

    steps: Steps[Any]


class Finish(Struct, frozen=True):
    """Wait for a begun conversation; the result is its result, or its exception is raised."""

    begun: Any


class Pause(Struct, frozen=True):
    seconds: float


class Call(Struct, frozen=True):
    """Make a call that may block (read a file, run a program); the result is its return value."""

    call: Callable[[], Any]


def is_good(status: int) -> bool:
    return 200 <= status < 300


Step = SendRequest | StartConversation | Finish | Pause | Call
Steps = Generator[Step, Any, Result]


class Conversation:
    """One cluster, with one user. Each method that returns `Steps` is a conversation for a driver.

    `broken`: exceptions of the driver's HTTP client when there is no answer. `begins_in_json`: ask
    for the first page of a list in JSON, so that a process without protobuf loads it only for a
    second page.
    """

    def __init__(
        self,
        connection: Connection,
        broken: tuple[type[Exception], ...],
        rng: random.Random | None = None,
        *,
        begins_in_json: bool = False,
    ) -> None:
        self.proxy = proxy_for(connection.server, connection.proxy_url, os.environ)
        self.label = printable_address(connection.server) + (
            f" through proxy {printable_address(self.proxy)}" if self.proxy else ""
        )
        self._connection = connection
        self._broken = broken
        self._rng = rng
        self._begins_in_json = begins_in_json
        self.speaks_protobuf = True
        # Compression shrinks a page many times, and a server that writes JSON in pieces of 4 KiB
        # then writes one piece. It costs more than it saves only between processes of one machine
        # without encryption.
        is_bare = is_loopback(connection.server) and not connection.is_tls
        self._list_encoding = "gzip" if connection.may_compress and not is_bare else "identity"

    # objects

    def get(
        self, resource: Resource, name: str, namespace: str | None = None, type: Any = Any
    ) -> Steps[Any]:
        """One object, decoded as `type` (a dict by default)."""
        return self._exchange(api_request.get_request(resource, name, namespace), type)

    def get_metadata(
        self, resource: Resource, name: str, namespace: str | None = None, type: Any = Any
    ) -> Steps[Any]:
        """As `get`, of an object whose data must not be read: a Secret."""
        return self._exchange(api_request.metadata_request(resource, name, namespace), type)

    def create(
        self, /, resource: Resource, manifest: Any, namespace: str | None = None, **more: bool
    ) -> Steps[Any]:
        """`more`: dry_run, is_strict."""
        return self._exchange(api_request.create_request(resource, manifest, namespace, **more))

    def update(
        self,
        /,
        resource: Resource,
        name: str,
        manifest: Any,
        namespace: str | None = None,
        **more: Any,
    ) -> Steps[Any]:
        """`more`: subresource."""
        return self._exchange(
            api_request.update_request(resource, name, manifest, namespace, **more)
        )

    def patch(
        self,
        /,
        resource: Resource,
        name: str,
        patch: Any,
        namespace: str | None = None,
        *,
        kind: PatchKind = "merge",
        **more: Any,
    ) -> Steps[Any]:
        """`kind`: `apply` is server-side. `more`: subresource, field_manager, force."""
        return self._exchange(
            api_request.patch_request(resource, name, patch, namespace, kind=kind, **more)
        )

    def delete(
        self,
        resource: Resource,
        name: str,
        namespace: str | None = None,
        *,
        propagation: str = "Background",
    ) -> Steps[Any]:
        return self._exchange(
            api_request.delete_request(resource, name, namespace, propagation=propagation)
        )

    # lists

    def list_all(
        self, reader: ItemReader[Row], selection: Selection = EVERYTHING
    ) -> Steps[Listing[Row]]:
        """All objects, in pages.

        An expired continue token (410) restarts the list; the third time it is read in one piece.
        """
        for _ in range(MAX_RESTARTS + 1):
            try:
                return (yield from self._list_once(reader, selection, api_request.PAGE_SIZE))
            except Gone as error:
                log.info("the list of %s starts again: %s", reader.resource.label, error.message)
        return (yield from self._list_once(reader, selection, None))

    def _list_once(
        self, reader: ItemReader[Row], selection: Selection, limit: int | None
    ) -> Steps[Listing[Row]]:
        listing: Listing[Row] = Listing()
        request = api_request.list_request(reader.resource, selection, limit=limit)
        answer = yield from (
            self._page_in_json(request) if self._begins_in_json else self._page(reader, request)
        )
        asked_again: ApiRequest | None = None
        while True:
            ahead = None
            following = partial(api_request.list_request, reader.resource, selection, limit=limit)
            if token := early_token(answer.body):
                ahead = yield StartConversation(self._page(reader, following(token=token)))
            try:
                wire = reader.decode_page(answer.body)
                if wire.token and ahead is None:
                    ahead = yield StartConversation(self._page(reader, following(token=wire.token)))
                page = reader.parse_page(wire)
            except (UnreadableProtobuf, *NOT_JSON) as error:
                if asked_again is request or not isinstance(error, UnreadableProtobuf):
                    raise not_its_json(self.label, request, error) from error
                self.json_only(str(error))
                asked_again = request
                answer = yield from self._page_in_json(request)
                continue
            if wire.token:
                request = following(token=wire.token)
            listing.add(page)
            if ahead is None:
                return listing
            answer = yield Finish(ahead)

    def _page(self, reader: ItemReader[Row], request: ApiRequest) -> Steps[Answer]:
        """Asks for a page, which the server makes while the page before it becomes rows."""
        return self._in_either_form(
            reader, request, partial(self.send, encoding=self._list_encoding)
        )

    def _page_in_json(self, request: ApiRequest) -> Steps[Answer]:
        return self.send(request, encoding=self._list_encoding)

    def open_watch(self, reader: ItemReader[Row], request: ApiRequest) -> Steps[Any]:
        """As `open`, in either form; `is_protobuf` of the headers shows which one came."""
        return self._in_either_form(reader, request, self.open)

    def _in_either_form(
        self,
        reader: ItemReader[Row],
        request: ApiRequest,
        ask: Callable[[ApiRequest], Steps[Result]],
    ) -> Steps[Result]:
        if self.speaks_protobuf and reader.takes_protobuf:
            try:
                return (yield from ask(structs.replace(request, accept=PROTOBUF_OR_JSON)))
            except ApiFailure as error:
                if error.status not in _NOT_THIS_FORM:
                    raise
                self.json_only(error.message)
        return (yield from ask(request))

    def json_only(self, reason: str) -> None:
        """Asks for JSON only from here on: the server, or a proxy, returns malformed protobuf."""
        if self.speaks_protobuf:
            self.speaks_protobuf = False
            log.info("API server `%s` is asked for JSON from here on: %s", self.label, reason)

    # the server

    def version(self) -> Steps[ServerVersion]:
        return self._exchange(ApiRequest("get", "GET", "/version"), ServerVersion)

    def discovery(self, groups: Iterable[str] | None = None) -> Steps[Discovery]:
        """The served resources.

        `groups` limits the requests to servers without aggregated discovery; "" includes the core
        API.
        """
        wanted = None if groups is None else set(groups)
        served: list[ServedResource] = []
        for root in api_discovery.roots(wanted):
            request = api_discovery.discovery_request(root)
            answer = yield from self.send(request)
            try:
                if api_discovery.is_aggregated(answer.headers.get("Content-Type") or ""):
                    served += api_discovery.parse_aggregated(answer.body)
                    continue
                pairs = (
                    api_discovery.parse_groups(answer.body, wanted)
                    if root == "/apis"
                    else [("", "v1")]
                )
            except NOT_JSON as error:
                raise not_its_json(self.label, request, error) from error
            begun = []
            for group, version in pairs:
                begun.append((yield StartConversation(self._group_resources(group, version))))
            for each in begun:
                served += yield Finish(each)
        return Discovery(tuple(served))

    def _group_resources(self, group: str, version: str) -> Steps[list[ServedResource]]:
        try:
            answer = yield from self.send(api_discovery.resources_request(group, version))
            return api_discovery.parse_resources(answer.body, group, version)
        except (
            ApiFailure,
            *NOT_JSON,
        ) as error:  # a failed extension server must not hide the others
            log.warning(
                "discovery of %s/%s failed: %s", group, version, getattr(error, "log_line", error)
            )
            return []

    # requests

    def send(
        self,
        request: ApiRequest,
        *,
        encoding: str = "identity",
        anew: Callable[[], ApiRequest] | None = None,
    ) -> Steps[Answer]:
        """An answer with a good status, decompressed.

        After 429 or 503 with Retry-After the request is repeated, for up to PATIENCE_SECONDS.
        `anew` makes the request again right before each time; its exceptions pass through.
        """
        backoff: Backoff | None = None
        waited = 0.0
        while True:
            try:
                return (yield from self._authorized(request, encoding=encoding, anew=anew))
            except ApiFailure as error:
                if error.status not in (429, 503) or error.retry_after is None:
                    raise
                backoff = backoff or Backoff(self._rng)
                delay = backoff.next_delay(error.retry_after)
                waited += delay
                if waited > PATIENCE_SECONDS:
                    raise
                log.info(
                    "API server `%s` asks to wait: %s; next try in %.1f s",
                    self.label,
                    error.message,
                    delay,
                )
            yield Pause(delay)

    def open(self, request: ApiRequest) -> Steps[Any]:
        """The driver's object from which the body of a good answer is read piece by piece."""
        return (yield from self._authorized(request, is_stream=True)).live

    def no_answer(self, error: Exception) -> Steps[Unreachable]:
        """Why there is no answer, or no complete one."""
        asked = partial(
            server_valid_from, self._connection.server, self._connection.tls_server_name
        )
        begins_at = (yield Call(asked)) if is_not_yet_valid(error) else None
        return failure_of_connection(self.label, error, begins_at, proxy=self.proxy)

    def _exchange(self, request: ApiRequest, type: Any = Any) -> Steps[Any]:
        answer = yield from self.send(request)
        try:
            return decoder_of(type).decode(answer.body)
        except NOT_JSON as error:
            raise not_its_json(self.label, request, error) from error

    def _authorized(
        self,
        request: ApiRequest,
        *,
        encoding: str = "identity",
        anew: Callable[[], ApiRequest] | None = None,
        is_stream: bool = False,
    ) -> Steps[Answer]:
        """An answer with a good status. On 401 the credentials are renewed once."""
        credentials = self._connection.credentials
        for may_renew in (True, False):
            issued = (
                credentials.current() if credentials.is_fresh else (yield Call(credentials.current))
            )
            ask = SendRequest(
                request,
                self._headers(request, issued, encoding),
                issued.certificate,
                is_stream,
                anew,
            )
            try:
                return (yield from self._answered(ask))
            except Unauthorized as error:
                error.hint = "; ".join(
                    filter(None, (expired_token_words(issued.authorization), error.hint))
                )
                if not (may_renew and credentials.renew(issued)):
                    raise
        raise AssertionError("the second try returns or raises")

    def _answered(self, ask: SendRequest) -> Steps[Answer]:
        try:
            answer: Answer = yield ask
            # a proxy may have unpacked it
            if answer.body.startswith(_GZIP) and answer.headers.get("Content-Encoding") == "gzip":
                answer.body = _unzipped(answer.body)
        except self._broken as error:
            raise (yield from self.no_answer(error)) from error
        if not is_good(answer.status):
            raise failure_of_answer(
                self.label,
                ask.request,
                answer.status,
                answer.body,
                answer.headers.get("Retry-After"),
            )
        return answer

    def _headers(
        self, request: ApiRequest, issued: IssuedCredentials, encoding: str
    ) -> list[tuple[str, str]]:
        return [
            ("Accept", request.accept),
            ("Accept-Encoding", encoding),
            ("User-Agent", f"fairlead/{__version__}"),
            *([("Authorization", issued.authorization)] if issued.authorization else []),
            *([("Content-Type", request.content_type)] if request.body is not None else []),
            *(
                [("Impersonate-User", request.account)]
                if request.account
                else self._connection.impersonation
            ),
        ]


_GZIP: Final = b"\x1f\x8b"


def _unzipped(body: bytes) -> bytes:
    unpacking = zlib.decompressobj(wbits=31)
    try:
        unpacked = unpacking.decompress(body, UNPACKED_BYTES_MAX)
    except zlib.error as error:
        raise OSError(f"broken gzip: {error}") from None
    if unpacking.unconsumed_tail:
        raise OSError(f"gzip that unpacks to more than {UNPACKED_BYTES_MAX >> 20} MiB")
    if not unpacking.eof:
        raise OSError("broken gzip: it ends too early")
    return unpacked


def is_protobuf(headers: Any) -> bool:
    """Of an answer's headers: whether its body is Kubernetes' protobuf, or frames of it."""
    return str(headers.get("Content-Type") or "").startswith(PROTOBUF)
