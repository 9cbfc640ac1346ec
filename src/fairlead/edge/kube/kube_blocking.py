"""The Kubernetes API for the command line: the blocking twin of `kube_api` on `http.client`, which starts in a fraction of the time.

What a newcomer gets wrong: nothing here may import asyncio or aiohttp, not even indirectly; independent calls run side by side in
threads (`in_parallel`), each on a connection of its own out of a small pool.
"""

from __future__ import annotations

import http.client
import logging
import os
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar
from urllib.parse import urlsplit

from fairlead import __version__
from fairlead.edge.connection.backoff import Backoff
from fairlead.edge.connection.certificate import asked_begin
from fairlead.edge.connection.connection import Connection, make_ssl_context
from fairlead.edge.connection.connection_failure import is_not_yet_valid
from fairlead.edge.connection.credentials import ClientCertificate, Issued
from fairlead.edge.connection.decoders import decoder_of
from fairlead.edge.connection.http_blocking import open_connection, request_target
from fairlead.edge.connection.proxy import is_loopback, proxy_for
from fairlead.edge.kube import api_discovery, api_request
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

if TYPE_CHECKING:
    import random
    import socket
    import ssl

log = logging.getLogger("fairlead.kubernetes")

Row = TypeVar("Row")
Result = TypeVar("Result")

READ_SECONDS = 65.0  # the API server ends a request after 60 itself
PATIENCE_SECONDS = 30.0  # how long a person is made to wait for a server that puts a request off with Retry-After
MAX_RESTARTS = 2  # of a paged list that meets 410; after them one unpaged list
_BROKEN = (OSError, http.client.HTTPException)


class Dialled(NamedTuple):
    """A connection for another protocol than HTTP's, TLS done, and what the request that asks for it says."""

    socket: socket.socket
    host: str
    target: str
    headers: list[tuple[str, str]]
    label: str


class KubeBlocking:
    """One cluster, as one user; safe to use from several threads. `requests_total` counts requests sent.

    `read_seconds`: how long the server may be silent before an answer.
    """

    def __init__(
        self,
        connection: Connection,
        *,
        rng: random.Random | None = None,
        sleep: Callable[[float], object] = time.sleep,
        read_seconds: float = READ_SECONDS,
    ) -> None:
        self.connection = connection
        self._read_seconds = read_seconds
        self.requests_total = 0
        self._rng = rng
        self._sleep = sleep
        self._idle: list[http.client.HTTPConnection] = []
        self._lock = threading.Lock()
        self._certificate: ClientCertificate | None = None
        self._context: ssl.SSLContext | None = None
        self._proxy = proxy_for(connection.server, connection.proxy_url, os.environ)
        self._label = connection.server + (f" through proxy {self._proxy}" if self._proxy else "")
        self._list_encoding = "gzip" if connection.may_compress and not is_loopback(connection.server) else "identity"

    def __enter__(self) -> KubeBlocking:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for each in idle:
            each.close()

    # objects

    def get(self, resource: Resource, name: str, namespace: str | None = None, type: Any = Any) -> Any:
        """One object, decoded as `type` (a dict by default)."""
        return self._exchange(api_request.get_request(resource, name, namespace), type)

    def create(self, resource: Resource, manifest: Any, namespace: str | None = None, **more: bool) -> Any:
        """`more`: dry_run, is_strict."""
        return self._exchange(api_request.create_request(resource, manifest, namespace, **more))

    def update(self, resource: Resource, name: str, manifest: Any, namespace: str | None = None, **more: Any) -> Any:
        """`more`: subresource."""
        return self._exchange(api_request.update_request(resource, name, manifest, namespace, **more))

    def patch(
        self, resource: Resource, name: str, patch: Any, namespace: str | None = None, *, kind: PatchKind = "merge", **more: Any
    ) -> Any:
        """`kind`: merge, json, strategic or apply (server-side). `more`: subresource, field_manager, force."""
        return self._exchange(api_request.patch_request(resource, name, patch, namespace, kind=kind, **more))

    def delete(self, resource: Resource, name: str, namespace: str | None = None, *, propagation: str = "Background") -> Any:
        return self._exchange(api_request.delete_request(resource, name, namespace, propagation=propagation))

    # lists

    def list_all(self, reader: ItemReader[Row], selection: Selection = EVERYTHING) -> Listing[Row]:
        """All objects, in pages. A continue token that has expired (410) restarts the list; the third time it is read in one piece."""
        for _ in range(MAX_RESTARTS + 1):
            try:
                return self._list_once(reader, selection, api_request.PAGE_SIZE)
            except Gone as error:
                log.info("the list of %s starts again: %s", reader.resource.label, error.message)
        return self._list_once(reader, selection, None)

    def _list_once(self, reader: ItemReader[Row], selection: Selection, limit: int | None) -> Listing[Row]:
        listing: Listing[Row] = Listing()
        request = api_request.list_request(reader.resource, selection, limit=limit)
        body, _ = self.send(request, encoding=self._list_encoding)
        while True:
            early = early_token(body)
            ahead = self._page_ahead(reader.resource, selection, limit, early) if early else None
            try:
                wire = reader.decode_page(body)
            except NOT_JSON as error:
                raise not_its_json(self._label, request, error) from error
            if ahead is None and wire.token:
                ahead = self._page_ahead(reader.resource, selection, limit, wire.token)
            listing.add(reader.parse_page(wire))
            if ahead is None:
                return listing
            body, _ = ahead.result()

    def _page_ahead(self, resource: Resource, selection: Selection, limit: int | None, token: str) -> _Ahead[tuple[bytes, str]]:
        """The server makes the next page while this one becomes rows."""
        request = api_request.list_request(resource, selection, limit=limit, token=token)
        return _Ahead(partial(self.send, request, encoding=self._list_encoding))

    # the server

    def version(self) -> api_discovery.ServerVersion:
        version: api_discovery.ServerVersion = self._exchange(ApiRequest("get", "GET", "/version"), api_discovery.ServerVersion)
        return version

    def discovery(self, groups: Iterable[str] | None = None) -> api_discovery.Discovery:
        """What is served. `groups` bounds the requests to servers without aggregated discovery; "" in it asks for the core API too."""
        wanted = None if groups is None else set(groups)
        served: list[api_discovery.ServedResource] = []
        for root in api_discovery.roots(wanted):
            request = api_discovery.discovery_request(root)
            body, content_type = self.send(request)
            try:
                if api_discovery.is_aggregated(content_type):
                    served += api_discovery.parse_aggregated(body)
                    continue
                pairs = api_discovery.parse_groups(body, wanted) if root == "/apis" else [("", "v1")]
            except NOT_JSON as error:
                raise not_its_json(self._label, request, error) from error
            calls = [lambda group=group, version=version: self._group_resources(group, version) for group, version in pairs]
            for each in in_parallel(calls):
                served += each if isinstance(each, list) else []
        return api_discovery.Discovery(tuple(served))

    def _group_resources(self, group: str, version: str) -> list[api_discovery.ServedResource]:
        try:
            return api_discovery.parse_resources(self.send(api_discovery.resources_request(group, version))[0], group, version)
        except (ApiFailure, *NOT_JSON) as error:  # an extension server that is down must not hide the others
            log.debug("discovery of %s/%s failed: %s", group, version, error)
            return []

    # requests

    def send(self, request: ApiRequest, *, encoding: str = "identity") -> tuple[bytes, str]:
        """The answer's body, decompressed, and its content type. What the server puts off (Retry-After) is asked again a few times."""
        backoff: Backoff | None = None
        waited = 0.0
        while True:
            try:
                return self._send_authorized(request, encoding)
            except ApiFailure as error:
                if error.status not in (429, 503) or error.retry_after is None:
                    raise
                backoff = backoff or Backoff(self._rng)
                delay = backoff.next_delay(error.retry_after)
                waited += delay
                if waited > PATIENCE_SECONDS:
                    raise
                log.info("API server `%s` asks to wait: %s; next try in %.1f s", self._label, error.message, delay)
                self._sleep(delay)

    def stream(self, request: ApiRequest) -> Iterator[bytes]:
        """The answer's body piece by piece as it comes (a followed log), on a connection that may be silent for as long as it likes."""
        issued = self.connection.credentials.current()
        line = self._open(issued.certificate, read_seconds=None)
        try:
            self._put_request(line, request, issued, "identity")
            response = line.getresponse()
            if not 200 <= response.status < 300:
                raise failure_of_answer(self._label, request, response.status, response.read(), response.getheader("Retry-After"))
            while piece := response.read1(1 << 16):
                yield piece
        except _BROKEN as error:
            raise self._no_answer(error) from error
        finally:
            line.close()

    def dial(self, request: ApiRequest) -> Dialled:
        """A connection of its own for a request that asks for another protocol; the caller sends it, and closes the socket."""
        issued = self.connection.credentials.current()
        line = self._open(issued.certificate, READ_SECONDS)
        try:
            line.connect()
        except _BROKEN as error:
            raise self._no_answer(error) from error
        with self._lock:
            self.requests_total += 1
        server = self.connection.server
        target = request_target(server, request.path, self._proxy)
        headers = [("User-Agent", f"fairlead/{__version__}"), *self.connection.headers()]
        return Dialled(line.sock, urlsplit(server).netloc.rpartition("@")[2], target, headers, self._label)

    def _exchange(self, request: ApiRequest, type: Any = Any) -> Any:
        body, _ = self.send(request)
        try:
            return decoder_of(type).decode(body)
        except NOT_JSON as error:
            raise not_its_json(self._label, request, error) from error

    def _send_authorized(self, request: ApiRequest, encoding: str) -> tuple[bytes, str]:
        """The answer of a good status. On 401 the credentials are renewed, once."""
        for may_renew in (True, False):
            issued = self.connection.credentials.current()
            try:
                return self._send_once(request, issued, encoding)
            except Unauthorized as error:
                error.hint = "; ".join(filter(None, (expired_token_words(issued.authorization), error.hint)))
                if not (may_renew and self.connection.credentials.renew(issued)):
                    raise
        raise AssertionError("the second try returns or raises")

    def _send_once(self, request: ApiRequest, issued: Issued, encoding: str) -> tuple[bytes, str]:
        try:
            response, body = self._transfer(request, issued, encoding)
        except _BROKEN as error:
            raise self._no_answer(error) from error
        if not 200 <= response.status < 300:
            raise failure_of_answer(self._label, request, response.status, body, response.getheader("Retry-After"))
        return body, response.getheader("Content-Type", "")

    def _no_answer(self, error: BaseException) -> Unreachable:
        asked = self.connection.server, self.connection.tls_server_name
        return failure_of_connection(self._label, error, asked_begin(*asked) if is_not_yet_valid(error) else None)

    def _transfer(self, request: ApiRequest, issued: Issued, encoding: str) -> tuple[http.client.HTTPResponse, bytes]:
        """One request and its whole answer. A kept connection that the server has closed meanwhile is replaced once, for reads."""
        while True:
            line, is_kept = self._take(issued.certificate)
            try:
                self._put_request(line, request, issued, encoding)
                response = line.getresponse()
                body = response.read()
            except _BROKEN as error:
                line.close()
                is_stale = is_kept and isinstance(error, (http.client.RemoteDisconnected, ConnectionError))
                if not (is_stale and request.method == "GET"):
                    raise
                continue
            except BaseException:  # Ctrl-C: a half-read connection must not go back into the pool
                line.close()
                raise
            self._give_back(line, response)
            return response, _unpacked(response, body)

    def _put_request(self, line: http.client.HTTPConnection, request: ApiRequest, issued: Issued, encoding: str) -> None:
        with self._lock:
            self.requests_total += 1
        line.putrequest(request.method, request_target(self.connection.server, request.path, self._proxy), skip_accept_encoding=True)
        line.putheader("Accept", request.accept)
        line.putheader("Accept-Encoding", encoding)
        line.putheader("User-Agent", f"fairlead/{__version__}")
        if issued.authorization:
            line.putheader("Authorization", issued.authorization)
        for name, value in self.connection.impersonation:
            line.putheader(name, value)
        if request.body is not None:
            line.putheader("Content-Type", request.content_type)
            line.putheader("Content-Length", str(len(request.body)))
        line.endheaders(request.body)

    def _take(self, certificate: ClientCertificate | None) -> tuple[http.client.HTTPConnection, bool]:
        """A connection, and whether it was used before."""
        with self._lock:
            if certificate == self._certificate and self._idle:
                return self._idle.pop(), True
        return self._open(certificate, self._read_seconds), False

    def _open(self, certificate: ClientCertificate | None, read_seconds: float | None) -> http.client.HTTPConnection:
        with self._lock:
            if certificate != self._certificate:
                self._certificate, self._context, self._idle = certificate, None, []
            if self._context is None and self.connection.is_tls:
                self._context = make_ssl_context(self.connection, certificate)
        return open_connection(
            self.connection.server,
            context=self._context,
            server_name=self.connection.tls_server_name,
            proxy=self._proxy,
            read_seconds=read_seconds,
        )

    def _give_back(self, line: http.client.HTTPConnection, response: http.client.HTTPResponse) -> None:
        if response.will_close:
            line.close()
            return
        with self._lock:
            self._idle.append(line)


class _Ahead(Generic[Result]):
    """A call that runs in a thread until its result is asked for."""

    def __init__(self, call: Callable[[], Result]) -> None:
        self._outcome: list[Result | Exception] = []
        self._thread = threading.Thread(target=lambda: self._outcome.extend(in_parallel([call])), daemon=True)
        self._thread.start()

    def result(self) -> Result:
        self._thread.join()
        [outcome] = self._outcome
        if isinstance(outcome, Exception):
            raise outcome
        return outcome


def in_parallel(calls: Sequence[Callable[[], Result]]) -> list[Result | Exception]:
    """The result of each call, or the exception it raised, in the order of the calls; all run at once, in threads.

    >>> in_parallel([lambda: 1, lambda: 1 // 0])
    [1, ZeroDivisionError('integer division or modulo by zero')]
    """
    results: list[Any] = [None] * len(calls)

    def run(index: int) -> None:
        try:
            results[index] = calls[index]()
        except Exception as error:  # noqa: BLE001  (handed to the caller as a value)
            results[index] = error

    threads = [threading.Thread(target=run, args=(index,), daemon=True) for index in range(1, len(calls))]
    for thread in threads:
        thread.start()
    if calls:
        run(0)
    for thread in threads:
        thread.join()
    return results


def _unpacked(response: http.client.HTTPResponse, body: bytes) -> bytes:
    if response.getheader("Content-Encoding") != "gzip":
        return body
    try:
        return zlib.decompress(body, wbits=31)
    except zlib.error as error:
        raise http.client.HTTPException(f"broken gzip: {error}") from None
