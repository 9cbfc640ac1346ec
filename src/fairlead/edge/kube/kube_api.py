"""The Kubernetes API for services: one aiohttp session per cluster; lists in pages, watches as batches of changes.

What a newcomer gets wrong: `list` and `watch` do not survive failures, they report them (`api_failure`). Coming back is the business
of `reflector`, so that every loop waits in one way.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
import socket
import zlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from typing import Any, TypeVar

import aiohttp
import msgspec
from msgspec import Struct
from yarl import URL

from fairlead import __version__
from fairlead.edge.connection.backoff import Backoff
from fairlead.edge.connection.certificate import asked_begin
from fairlead.edge.connection.connection import Connection, make_ssl_context
from fairlead.edge.connection.connection_failure import is_not_yet_valid
from fairlead.edge.connection.credentials import ClientCertificate, Issued
from fairlead.edge.connection.decoders import decoder_of
from fairlead.edge.connection.kept_connections import NO_ANSWER, KeptConnections
from fairlead.edge.connection.lines import LineSplitter, in_slices
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
from fairlead.edge.kube.api_page import Change, ItemReader, Listing, Page, WatchEnded
from fairlead.edge.kube.api_request import EVERYTHING, ApiRequest, PatchKind, Selection
from fairlead.edge.kube.resource import Resource

log = logging.getLogger("fairlead.kubernetes")

Row = TypeVar("Row")
Asked = TypeVar("Asked")

CONNECT_SECONDS = 10.0
READ_SECONDS = 65.0  # the API server ends a request after 60 itself
PATIENCE = 5  # tries of one request that the server puts off with Retry-After
WATCH_SECONDS = (300, 600)  # client-go's range; spread, so that watches do not all end together
MAX_RESTARTS = 2  # of a paged list that meets 410; after them one unpaged list
PAGE_BUFFER_BYTES = 4 << 20  # two pages' worth: the sender need not wait while a page is decoded
WATCH_BUFFER_BYTES = 1 << 18  # what one batch may hold: other tasks wait for its end
ORDINARY = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS, sock_read=READ_SECONDS)


class Answer(Struct):
    body: bytes
    content_type: str


class KubeApi:
    """One cluster, as one user. Use as an async context manager, or call `close`.

    `requests_total` counts requests sent. `rng` and `sleep` make waits repeatable in tests.
    """

    def __init__(
        self,
        connection: Connection,
        *,
        rng: random.Random | None = None,
        sleep: Callable[[float], Awaitable[Any]] = asyncio.sleep,
    ) -> None:
        self.connection = connection
        self.requests_total = 0
        self._rng = rng or random.Random()
        self._sleep = sleep
        self._session: aiohttp.ClientSession | None = None
        self._kept: KeptConnections | None = None
        self._certificate: ClientCertificate | None = None
        self._closing: set[asyncio.Future[None]] = set()
        self._proxy = proxy_for(connection.server, connection.proxy_url, os.environ)
        self._label = connection.server + (f" through proxy {self._proxy}" if self._proxy else "")
        # A page of pods shrinks 20 times. That pays on every wire; between two processes of one machine it costs more than it saves.
        self._list_encoding = "gzip" if connection.may_compress and not is_loopback(connection.server) else "identity"

    async def __aenter__(self) -> KubeApi:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        session, self._session = self._session, None
        if self._kept is not None:
            self._kept.close()
        if session is not None:
            await session.close()

    # objects

    async def get(self, resource: Resource, name: str, namespace: str | None = None, type: Any = Any) -> Any:
        """One object, decoded as `type` (a dict by default)."""
        return await self._exchange(api_request.get_request(resource, name, namespace), type)

    async def create(self, resource: Resource, manifest: Any, namespace: str | None = None, *, dry_run: bool = False) -> Any:
        return await self._exchange(api_request.create_request(resource, manifest, namespace, dry_run=dry_run))

    async def update(self, resource: Resource, name: str, manifest: Any, namespace: str | None = None, **more: Any) -> Any:
        """`more`: subresource."""
        return await self._exchange(api_request.update_request(resource, name, manifest, namespace, **more))

    async def patch(
        self, resource: Resource, name: str, patch: Any, namespace: str | None = None, *, kind: PatchKind = "merge", **more: Any
    ) -> Any:
        """`kind`: merge, json, strategic or apply (server-side). `more`: subresource, field_manager, force."""
        return await self._exchange(api_request.patch_request(resource, name, patch, namespace, kind=kind, **more))

    async def delete(self, resource: Resource, name: str, namespace: str | None = None, *, propagation: str = "Background") -> Any:
        return await self._exchange(api_request.delete_request(resource, name, namespace, propagation=propagation))

    # lists and watches

    async def list_all(
        self,
        reader: ItemReader[Row],
        selection: Selection = EVERYTHING,
        *,
        on_page: Callable[[Page[Row]], None] | None = None,
    ) -> Listing[Row]:
        """All objects, in pages. A continue token that has expired (410) restarts the list; the third time it is read in one piece.

        `on_page` sees pages as they come; a restart repeats them.
        """
        for _ in range(MAX_RESTARTS + 1):
            try:
                return await self._list_once(reader, selection, api_request.PAGE_SIZE, on_page)
            except Gone as error:
                log.info("the list of %s starts again: %s", reader.resource.label, error.message)
        return await self._list_once(reader, selection, None, on_page)

    async def _list_once(
        self, reader: ItemReader[Row], selection: Selection, limit: int | None, on_page: Callable[[Page[Row]], None] | None
    ) -> Listing[Row]:
        listing: Listing[Row] = Listing()
        request = api_request.list_request(reader.resource, selection, limit=limit)
        sending = asyncio.ensure_future(self.send(request, encoding=self._list_encoding))
        try:
            while True:
                try:
                    wire = reader.decode_page((await sending).body)
                except NOT_JSON as error:
                    raise not_its_json(self._label, request, error) from error
                if wire.token:  # the server makes the next page while this one becomes rows
                    request = api_request.list_request(reader.resource, selection, limit=limit, token=wire.token)
                    sending = asyncio.ensure_future(self.send(request, encoding=self._list_encoding))
                    await asyncio.sleep(0)
                page = reader.parse_page(wire)
                listing.add(page)
                if on_page is not None:
                    on_page(page)
                if not wire.token:
                    return listing
        finally:
            sending.cancel()

    async def watch(
        self, reader: ItemReader[Row], resource_version: str, selection: Selection = EVERYTHING
    ) -> AsyncGenerator[list[Change[Row]], None]:
        """Changes after `resource_version`, in batches as they arrive, until the server ends the watch (normal: every 5 to 10 minutes).

        The first batch is empty and comes as soon as the server has accepted the watch.
        Raises Gone when the version is no longer kept, told by status or by an ERROR event. A line cut off at the end is dropped, and a
        batch with an unreadable line is not delivered: the next watch from the last delivered version has it all again.
        """
        seconds = self._rng.randint(*WATCH_SECONDS)
        request = api_request.watch_request(reader.resource, selection, resource_version, seconds)
        limits = aiohttp.ClientTimeout(total=seconds + READ_SECONDS, sock_connect=CONNECT_SECONDS)
        try:
            async with asyncio.timeout(READ_SECONDS):  # a watch may be silent for ever, once it has begun
                response = await self._open_authorized(request, limits=limits)
        except TimeoutError as error:
            raise await self._no_answer(error) from error
        splitter = LineSplitter()
        try:
            yield []
            async for chunk in response.content.iter_any():
                if lines := splitter.feed(chunk):
                    for number, some in enumerate(in_slices(lines)):
                        if number:
                            await asyncio.sleep(0)
                        yield reader.read_changes(some)
        except WatchEnded as end:
            body = msgspec.json.encode(end.status)
            raise failure_of_answer(self._label, request, end.status.code or 500, body) from None
        except NOT_JSON as error:
            raise not_its_json(self._label, request, error) from error
        except (aiohttp.ClientError, OSError) as error:
            raise await self._no_answer(error) from error
        finally:
            response.close()

    # the server

    async def version(self) -> api_discovery.ServerVersion:
        version: api_discovery.ServerVersion = await self._exchange(ApiRequest("get", "GET", "/version"), api_discovery.ServerVersion)
        return version

    async def discovery(self, groups: Iterable[str] | None = None) -> api_discovery.Discovery:
        """What is served. `groups` bounds the requests to servers without aggregated discovery; "" in it asks for the core API too."""
        wanted = None if groups is None else set(groups)
        served: list[api_discovery.ServedResource] = []
        for root in api_discovery.roots(wanted):
            request = api_discovery.discovery_request(root)
            answer = await self.send(request)
            try:
                if api_discovery.is_aggregated(answer.content_type):
                    served += api_discovery.parse_aggregated(answer.body)
                    continue
                pairs = api_discovery.parse_groups(answer.body, wanted) if root == "/apis" else [("", "v1")]
            except NOT_JSON as error:
                raise not_its_json(self._label, request, error) from error
            for each in await asyncio.gather(*(self._group_resources(group, version) for group, version in pairs)):
                served += each
        return api_discovery.Discovery(tuple(served))

    async def _group_resources(self, group: str, version: str) -> list[api_discovery.ServedResource]:
        request = api_discovery.resources_request(group, version)
        try:
            return api_discovery.parse_resources((await self.send(request)).body, group, version)
        except (ApiFailure, *NOT_JSON) as error:  # an extension server that is down must not hide the others
            log.warning("discovery of %s/%s failed: %s", group, version, getattr(error, "log_line", error))
            return []

    # requests

    async def send(self, request: ApiRequest, *, encoding: str = "identity", anew: Callable[[], ApiRequest] | None = None) -> Answer:
        """The answer's body, decompressed. What the server puts off (429 or 503 with Retry-After) is asked again a few times.

        `anew` makes the request again right before each time that it is sent, on a connection that stands; what it raises comes out
        of here.
        """
        backoff = Backoff(self._rng)
        while True:
            try:
                return await self._send_once(request, encoding, anew)
            except ApiFailure as error:
                if error.status not in (429, 503) or error.retry_after is None or backoff.failures + 1 >= PATIENCE:
                    raise
                delay = backoff.next_delay(error.retry_after)
                log.info("API server `%s` asks to wait: %s; next try in %.1f s", self._label, error.message, delay)
                await self._sleep(delay)

    async def _exchange(self, request: ApiRequest, type: Any = Any) -> Any:
        answer = await self.send(request)
        try:
            return decoder_of(type).decode(answer.body)
        except NOT_JSON as error:
            raise not_its_json(self._label, request, error) from error

    async def _send_once(self, request: ApiRequest, encoding: str, anew: Callable[[], ApiRequest] | None) -> Answer:
        if anew is not None and self._proxy is None:
            return await self._authorized(lambda issued: self._write(request, issued, anew))
        response = await self._open_authorized(request, encoding=encoding, anew=anew)
        try:
            return Answer(await _body(response), response.headers.get("Content-Type", ""))
        except (aiohttp.ClientError, OSError) as error:
            raise await self._no_answer(error) from error
        finally:
            response.release()

    async def _open_authorized(
        self,
        request: ApiRequest,
        *,
        encoding: str = "identity",
        limits: aiohttp.ClientTimeout = ORDINARY,
        anew: Callable[[], ApiRequest] | None = None,
    ) -> aiohttp.ClientResponse:
        """A response with a good status."""
        return await self._authorized(lambda issued: self._open(anew() if anew else request, issued, encoding, limits))

    async def _authorized(self, ask: Callable[[Issued], Awaitable[Asked]]) -> Asked:
        """On 401 the credentials are renewed, once."""
        for may_renew in (True, False):
            issued = await self._issued()
            try:
                return await ask(issued)
            except Unauthorized as error:
                error.hint = "; ".join(filter(None, (expired_token_words(issued.authorization), error.hint)))
                if not (may_renew and self.connection.credentials.renew(issued)):
                    raise
        raise AssertionError("the second try returns or raises")

    async def _write(self, request: ApiRequest, issued: Issued, anew: Callable[[], ApiRequest]) -> Answer:
        """Over `kept_connections`, in a sixth of the time that a client library takes."""
        self._session_for(issued.certificate)
        assert self._kept is not None

        def made() -> tuple[bytes, float]:
            nonlocal request
            request = anew()
            self.requests_total += 1
            headers = self._headers(request, issued, "identity")
            return kept.render(request.method, request.path, headers, request.body), request.seconds or READ_SECONDS

        kept = self._kept
        try:
            reply = await kept.exchange(made)
        except (*NO_ANSWER, ValueError) as error:
            raise await self._no_answer(error) from error
        if 200 <= reply.status < 300:
            return Answer(reply.body, "")
        raise failure_of_answer(self._label, request, reply.status, reply.body, reply.retry_after)

    def _headers(self, request: ApiRequest, issued: Issued, encoding: str) -> list[tuple[str, str]]:
        return [
            ("Accept", request.accept),
            ("Accept-Encoding", encoding),
            ("User-Agent", f"fairlead/{__version__}"),
            *([("Authorization", issued.authorization)] if issued.authorization else []),
            *([("Content-Type", request.content_type)] if request.body is not None else []),
            *self.connection.impersonation,
        ]

    async def _open(self, request: ApiRequest, issued: Issued, encoding: str, limits: aiohttp.ClientTimeout) -> aiohttp.ClientResponse:
        self.requests_total += 1
        if request.seconds is not None:
            limits = aiohttp.ClientTimeout(total=request.seconds)
        try:
            response = await self._session_for(issued.certificate).request(
                request.method,
                URL(self.connection.server + request.path, encoded=True),
                data=request.body,
                headers=self._headers(request, issued, encoding),
                timeout=limits,
                read_bufsize=WATCH_BUFFER_BYTES if request.verb == "watch" else PAGE_BUFFER_BYTES,
                proxy=self._proxy,
                server_hostname=self.connection.tls_server_name,
                allow_redirects=False,
            )
            if 200 <= response.status < 300:
                return response
            body = await _body(response)
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise await self._no_answer(error) from error
        raise failure_of_answer(self._label, request, response.status, body, response.headers.get("Retry-After"))

    async def _no_answer(self, error: BaseException) -> Unreachable:
        asked = self.connection.server, self.connection.tls_server_name
        begins_at = await asyncio.to_thread(asked_begin, *asked) if is_not_yet_valid(error) else None
        return failure_of_connection(self._label, error, begins_at)

    async def _issued(self) -> Issued:
        credentials = self.connection.credentials
        return credentials.current() if credentials.is_fresh else await asyncio.to_thread(credentials.current)

    def _session_for(self, certificate: ClientCertificate | None) -> aiohttp.ClientSession:
        if self._session is None or certificate != self._certificate:
            if self._session is not None:  # the old one's watches end, and come back through the new one
                closing = asyncio.ensure_future(self._session.close())
                self._closing.add(closing)
                closing.add_done_callback(self._closing.discard)
                if self._kept is not None:
                    self._kept.close()
            context = make_ssl_context(self.connection, certificate) if self.connection.is_tls else None
            self._kept = KeptConnections(self.connection.server, context, self.connection.tls_server_name)
            connector = aiohttp.TCPConnector(ssl=context or False, limit=0, keepalive_timeout=90, socket_factory=_keepalive_socket)
            self._session = aiohttp.ClientSession(connector=connector, auto_decompress=False, cookie_jar=aiohttp.DummyCookieJar())
            self._certificate = certificate
        return self._session


async def _body(response: aiohttp.ClientResponse) -> bytes:
    body = await response.read()
    if response.headers.get("Content-Encoding") != "gzip":
        return body
    try:
        return zlib.decompress(body, wbits=31)
    except zlib.error as error:
        raise aiohttp.ClientPayloadError(f"broken gzip: {error}") from None


def _keepalive_socket(address: Any) -> socket.socket:
    """A socket that notices within a minute that its peer has gone without a word, as a silent watch never would."""
    family, kind, protocol, _, _ = address
    made = socket.socket(family, kind, protocol)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, seconds in (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3)):
        if hasattr(socket, option):
            made.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), seconds)
    return made
