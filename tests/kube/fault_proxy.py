"""A TLS proxy before the real API server that answers 410, 429 or malformed data when a test plans
it.

It passes everything on unchanged, watches as streams, until a test plans a fault. Each fault
strikes once and is then counted. The proxy uses admin credentials towards the API server, unless
the test wants the clients' own tokens to be used.
"""

from __future__ import annotations

import asyncio
import json
import random
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from email.utils import format_datetime, parsedate_to_datetime
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web
from tests.kube.addresses import free_port
from tests.kube.certificates import KeyPair
from tests.kube.control_plane import ControlPlane
from tests.kube.kubeconfigs import certificate_user, write_kubeconfig
from tests.waiting import HANG_SECONDS, wait_until

_HOP_HEADERS = {
    "connection",
    "transfer-encoding",
    "content-length",
    "content-encoding",
    "host",
    "accept-encoding",
}


@dataclass
class Fault:
    """A fault for the next request for `resource` that is, or is not, a watch: a whole answer, a
    change of the true answer, or the loss of it.

    `held`: the request is passed on when it is set, as if the client had stood still before it sent
    the request; `answered` is then the status of the answer.

    A `resource` that begins with a slash is a whole path: pods of the cluster, and not those of a
    namespace that a client also requests.
    """

    resource: str
    is_watch: bool = False
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    change: Callable[[dict[str, Any]], None] | None = None
    is_reply_lost: bool = False
    strikes: int = 0
    held: asyncio.Event | None = None
    answered: int = 0

    def fits(self, request: web.Request) -> bool:
        watches = request.query.get("watch") in ("1", "true", "True")
        asked = request.path if self.resource.startswith("/") else request.path.rsplit("/", 1)[-1]
        return self.strikes == 0 and watches == self.is_watch and asked == self.resource


def too_many_requests(resource: str, seconds: int) -> Fault:
    return Fault(
        resource,
        status=429,
        headers={"Retry-After": str(seconds)},
        body=_status(429, "TooManyRequests", "slow down"),
    )


def lost_reply(resource: str) -> Fault:
    """The API server executes the request, and the connection breaks before its answer arrives."""
    return Fault(resource, is_reply_lost=True)


def held_back(resource: str) -> Fault:
    """The request waits at the proxy until `FaultProxy.release`."""
    return Fault(resource, held=asyncio.Event())


def gone(resource: str) -> Fault:
    """The watch begins with 200 and one ERROR event, as kube-apiserver does for a version that etcd
    has compacted.
    """
    event = (
        b'{"type":"ERROR","object":' + _status(410, "Expired", "too old resource version") + b"}\n"
    )
    return Fault(resource, is_watch=True, body=event)


def with_malformed_item(resource: str) -> Fault:
    """The true list, and one more item with fields of wrong types."""

    def add(answer: dict[str, Any]) -> None:
        answer["items"].append(
            {"metadata": {"name": 7, "namespace": ["no"]}, "spec": "nothing", "status": 3}
        )

    return Fault(resource, change=add)


def _status(code: int, reason: str, message: str) -> bytes:
    fields = {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "code": code,
        "reason": reason,
        "message": message,
    }
    return json.dumps(fields).encode()


class FaultProxy:
    """`kubeconfig` leads through the proxy; `plan` arms a fault; `close_streams` ends the running
    watches. `ahead`: seconds that the `Date` of each answer is ahead of the API server's clock.
    """

    def __init__(
        self,
        cluster: ControlPlane,
        pair: KeyPair,
        kubeconfig: Path,
        port: int,
        *,
        as_admin: bool = True,
        acting: str = "",
    ) -> None:
        self._acting = acting
        self.kubeconfig = kubeconfig
        self.server = f"https://127.0.0.1:{port}"
        self.failed = 0
        self.ahead = 0
        self._as_admin = as_admin
        self._share, self._chance = 0.0, random.Random()
        self._cluster = cluster
        self._pair = pair
        self._port = port
        self._faults: list[Fault] = []
        self._streams: set[asyncio.Task[Any]] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def plan(self, fault: Fault) -> Fault:
        self._faults.append(fault)
        return fault

    def fail(self, share: float, chance: random.Random) -> None:
        """From now on this share of requests fails: refused, not executed, executed without an
        answer, or answered with "retry later".
        """
        self._share, self._chance = share, chance

    def release(self, fault: Fault) -> None:
        """Pass on the request that is held; returns when the API server has answered it."""
        assert fault.held is not None
        self._loop.call_soon_threadsafe(fault.held.set)
        wait_until("the API server has answered", lambda: fault.answered != 0, 30)

    def forget(self) -> None:
        """Cancel faults that have not struck."""
        self._faults.clear()
        self._share = 0.0

    def close_streams(self) -> None:
        """End the running watches, so that their clients reconnect and meet the planned faults."""
        self._loop.call_soon_threadsafe(lambda: [task.cancel() for task in self._streams])

    def start(self) -> None:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._start(), self._loop).result(timeout=HANG_SECONDS)

    def stop(self) -> None:
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result(timeout=HANG_SECONDS)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(timeout=HANG_SECONDS)
        self._loop.close()

    async def _start(self) -> None:
        upstream = ssl.create_default_context(cafile=str(self._cluster.authority))
        if self._as_admin:
            upstream.load_cert_chain(*self._cluster.admin_pair)
        self._session = aiohttp.ClientSession(
            self._cluster.server,
            connector=aiohttp.TCPConnector(ssl=upstream, limit=0),
            timeout=aiohttp.ClientTimeout(total=None),
        )
        app = web.Application(client_max_size=2**26)
        app.router.add_route("*", "/{path:.*}", self._answer)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        serving.load_cert_chain(self._pair.certificate, self._pair.key)
        await web.TCPSite(self._runner, "127.0.0.1", self._port, ssl_context=serving).start()

    async def _stop(self) -> None:
        for task in list(self._streams):
            task.cancel()
        await self._runner.cleanup()
        await self._session.close()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        fault = (
            next((fault for fault in self._faults if fault.fits(request)), None) or self._accident()
        )
        if fault is not None:
            fault.strikes += 1
            if fault.change is None and not fault.is_reply_lost and fault.held is None:
                return web.Response(
                    status=fault.status,
                    headers=fault.headers,
                    body=fault.body,
                    content_type="application/json",
                )
        task = asyncio.current_task()
        assert task is not None
        self._streams.add(task)
        try:
            return await self._pass_on(request, fault)
        except (
            asyncio.CancelledError
        ):  # `close_streams`: a request without an answer would otherwise wait for ever
            if request.transport is not None:
                request.transport.abort()
            raise
        except (aiohttp.ClientError, OSError):
            raise web.HTTPBadGateway from None
        finally:
            self._streams.discard(task)

    def _accident(self) -> Fault | None:
        if self._chance.random() >= self._share:
            return None
        self.failed += 1
        kind = self._chance.randrange(4)
        if kind == 0:
            return Fault("", is_reply_lost=True)
        if kind == 1:
            return Fault(
                "",
                status=429,
                headers={"Retry-After": "1"},
                body=_status(429, "TooManyRequests", "slow down"),
            )
        code = (500, 503)[kind - 2]
        return Fault(
            "", status=code, body=_status(code, "InternalError", "an accident of this test")
        )

    async def _pass_on(self, request: web.Request, fault: Fault | None) -> web.StreamResponse:
        headers = {
            name: value
            for name, value in request.headers.items()
            if name.lower() not in _HOP_HEADERS
        }
        if self._as_admin:
            headers.pop("Authorization", None)
        if self._acting:
            headers |= {"Impersonate-User": self._acting, "Impersonate-Group": "system:masters"}
        if fault is not None:
            headers["Accept"] = "application/json"
        body = await request.read()
        if fault is not None and fault.held is not None:
            await fault.held.wait()
        async with self._session.request(
            request.method, request.path_qs, headers=headers, data=body or None
        ) as upstream:
            kept = {
                name: value
                for name, value in upstream.headers.items()
                if name.lower() not in _HOP_HEADERS
            }
            if self.ahead:
                date = parsedate_to_datetime(kept["Date"]) + timedelta(seconds=self.ahead)
                kept["Date"] = format_datetime(date, usegmt=True)
            if fault is not None and fault.held is not None:
                fault.answered = upstream.status
                return web.Response(
                    status=upstream.status, headers=kept, body=await upstream.read()
                )
            if fault is not None and fault.is_reply_lost:
                await upstream.read()
                if request.transport is not None:
                    request.transport.abort()
                return web.Response()
            if fault is not None and fault.change is not None:
                answer = await upstream.json()
                fault.change(answer)
                return web.json_response(answer, status=upstream.status)
            response = web.StreamResponse(status=upstream.status, headers=kept)
            await response.prepare(request)
            try:
                async for chunk in upstream.content.iter_any():
                    await response.write(chunk)
            except (aiohttp.ClientError, OSError):
                if request.transport is not None:
                    # This looks like the API server's own end; an open connection without data is
                    # another fault.
                    request.transport.abort()
                return response
            await response.write_eof()
            return response


@contextmanager
def running_fault_proxy(
    cluster: ControlPlane, *, as_admin: bool = True, acting: str = ""
) -> Iterator[FaultProxy]:
    """The proxy for the block, with a certificate of the cluster's own authority.

    `as_admin`: every request is sent as admin; otherwise as the user of the request's token.
    `acting`: the admin acts as this user, with all rights.
    """
    port = free_port()
    pair = cluster.issue("fault-proxy", names=["127.0.0.1"])
    target = cluster.folder / "fault-proxy.kubeconfig"
    user = certificate_user(cluster.admin_pair)
    path = write_kubeconfig(target, f"https://127.0.0.1:{port}", cluster.authority, user)
    proxy = FaultProxy(cluster, pair, path, port, as_admin=as_admin, acting=acting)
    proxy.start()
    try:
        yield proxy
    finally:
        proxy.stop()
