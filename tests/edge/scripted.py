"""A server that answers by script over a plain socket: each request to a path takes the next step
of its list, and the last step repeats.

It runs in its own thread, so that it can serve the blocking client as well, and so that a slow step
never stops the test's event loop.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from tests import protobuf_bodies
from tests.edge.pki import Pair
from tests.waiting import HANG_SECONDS

from fairlead.wire.kube.forms import PROTOBUF


@dataclass
class Reply:
    """One whole answer. With `cut`, the connection is closed after this number of bytes of the
    body.
    """

    body: Any = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    delay: float = 0.0
    cut: int | None = None

    def content(self) -> bytes:
        return self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()


@dataclass
class Stream:
    """A chunked answer of lines (a watch): objects or bytes, then `end` (a proper end), `cut` (the
    connection breaks) or `hold` (open until the test ends).
    """

    lines: Iterable[Any] = ()
    then: str = "end"
    pause: float = 0.0

    def pieces(self) -> list[bytes]:
        return [
            line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n"
            for line in self.lines
        ]


@dataclass
class ReceivedRequest:
    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes
    peer: str = ""

    def json(self) -> Any:
        return json.loads(self.body)


class ScriptedServer:
    """`script` maps a path to its steps; watches are under `watch PATH`. `seen`: every request, in
    order.

    `speaks_protobuf`: clients that accept Kubernetes' protobuf get lists and events of pods and
    nodes in it, if the steps are objects.
    """

    speaks_protobuf = False

    def __init__(
        self,
        script: dict[str, list[Reply | Stream]],
        pair: Pair | None = None,
        *,
        client_ca: bytes | None = None,
        port: int = 0,
    ) -> None:
        self.script = script
        self.seen: list[ReceivedRequest] = []
        self._context = server_context(pair, client_ca) if pair else None
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self.port = port

    @property
    def url(self) -> str:
        return f"{'https' if self._context else 'http'}://127.0.0.1:{self.port}"

    def requests_of(self, path: str) -> list[ReceivedRequest]:
        return [each for each in self.seen if each.path == path]

    def __enter__(self) -> ScriptedServer:
        self._thread.start()
        self._server = asyncio.run_coroutine_threadsafe(self._start(), self._loop).result(
            HANG_SECONDS
        )
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """May be called twice: a test stops the server in the middle of an outage."""
        if self._loop.is_closed():
            return
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result(HANG_SECONDS)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(HANG_SECONDS)
        self._loop.close()

    async def _start(self) -> asyncio.Server:
        server = await asyncio.start_server(self._serve, "127.0.0.1", self.port, ssl=self._context)
        self.port = server.sockets[0].getsockname()[1]
        return server

    async def _stop(self) -> None:
        self._server.close()
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while (seen := await _read_request(reader)) is not None:
                seen.peer = _common_name(writer.get_extra_info("peercert"))
                self.seen.append(seen)
                if not await _answer(self._next_step(seen), writer, self._form(seen)):
                    return
            writer.write(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    def _next_step(self, seen: ReceivedRequest) -> Reply | Stream:
        path = f"watch {seen.path}" if "watch" in seen.query else seen.path
        steps = self.script.get(path)
        if not steps:
            return status(404, "NotFound", "the server could not find the requested resource")
        return steps.pop(0) if len(steps) > 1 else steps[0]

    def _form(self, seen: ReceivedRequest) -> str:
        """The kind that is sent in protobuf, "" for JSON."""
        kind = {"pods": "Pod", "nodes": "Node"}.get(seen.path.rpartition("/")[2], "")
        return kind if self.speaks_protobuf and PROTOBUF in seen.headers.get("accept", "") else ""


async def _read_request(reader: asyncio.StreamReader) -> ReceivedRequest | None:
    first_byte = await reader.readexactly(1)
    if first_byte == b"\x16":  # a TLS greeting
        return None
    head = first_byte + await reader.readuntil(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    method, target, _ = first.split(" ")
    headers = {
        name.strip().lower(): value.strip()
        for name, _, value in (line.partition(":") for line in lines if line)
    }
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    parts = urlsplit(target)
    return ReceivedRequest(method, parts.path, dict(parse_qsl(parts.query)), headers, body)


async def _answer(step: Reply | Stream, writer: asyncio.StreamWriter, kind: str) -> bool:
    """Returns whether the connection stays open."""
    if isinstance(step, Stream):
        return await _answer_stream(step, writer, kind)
    await asyncio.sleep(step.delay)
    is_protobuf = bool(kind) and isinstance(step.body, dict)
    body = _in_protobuf(kind, step.body) if is_protobuf else step.content()
    headers = {
        "Content-Type": PROTOBUF if is_protobuf else "application/json",
        "Content-Length": str(len(body)),
    } | step.headers
    head = (
        f"HTTP/1.1 {step.status} Scripted\r\n"
        + "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        + "\r\n"
    )
    writer.write(head.encode() + (body if step.cut is None else body[: step.cut]))
    await writer.drain()
    return step.cut is None


async def _answer_stream(step: Stream, writer: asyncio.StreamWriter, kind: str) -> bool:
    form = f"{PROTOBUF};stream=watch" if kind else "application/json"
    writer.write(
        (f"HTTP/1.1 200 OK\r\nContent-Type: {form}\r\nTransfer-Encoding: chunked\r\n\r\n").encode()
    )
    for piece in (scripted_frame(kind, each) for each in step.lines) if kind else step.pieces():
        writer.write(b"%x\r\n%s\r\n" % (len(piece), piece))
        await writer.drain()
        await asyncio.sleep(step.pause)
    if step.then == "hold":
        await asyncio.sleep(3600)
    if step.then == "end":
        writer.write(b"0\r\n\r\n")
        await writer.drain()
    return step.then == "end"


def _in_protobuf(kind: str, body: Any) -> bytes:
    if body.get("kind") == "Status":
        return protobuf_bodies.envelope("Status", protobuf_bodies.encoded("meta.Status", body))
    meta = body["metadata"]
    items = [protobuf_bodies.encoded(f"core.{kind}", item) for item in body["items"] or ()]
    return protobuf_bodies.list_body(
        kind, items, version=meta["resourceVersion"], token=meta.get("continue", "")
    )


def scripted_frame(kind: str, line: Any) -> bytes:
    if isinstance(line, bytes):
        return line
    message, body = ("meta.Status", "Status") if line["type"] == "ERROR" else (f"core.{kind}", kind)
    return protobuf_bodies.frame(
        line["type"],
        protobuf_bodies.envelope(body, protobuf_bodies.encoded(message, line["object"])),
    )


def _common_name(certificate: dict[str, Any] | None) -> str:
    """The common name of the client's certificate; "" without one."""
    pairs = [pair for group in (certificate or {}).get("subject", ()) for pair in group]
    return str(dict(pairs).get("commonName", ""))


def server_context(pair: Pair, client_ca: bytes | None) -> ssl.SSLContext:
    from fairlead.edge.connection.pem import in_memory_file

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with in_memory_file(pair.certificate_pem) as certificate, in_memory_file(pair.key_pem) as key:
        context.load_cert_chain(certificate, key)
    if client_ca:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(cadata=client_ca.decode())
    return context


def status(code: int, reason: str, message: str, headers: dict[str, str] | None = None) -> Reply:
    body = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "reason": reason,
        "message": message,
        "code": code,
    }
    return Reply(body, code, headers or {})


def pod(
    name: str, version: int = 1, namespace: str = "default", **status_fields: Any
) -> dict[str, Any]:
    return {
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": f"uid-{namespace}-{name}",
            "resourceVersion": str(version),
        },
        "spec": {
            "nodeName": "n1",
            "containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}],
        },
        "status": {"phase": "Running", **status_fields},
    }


def page(items: list[Any] | None, version: int = 10, token: str = "") -> Reply:
    meta = {"resourceVersion": str(version)} | ({"continue": token} if token else {})
    return Reply({"kind": "List", "apiVersion": "v1", "metadata": meta, "items": items})


def event(kind: str, item: dict[str, Any]) -> dict[str, Any]:
    return {"type": kind, "object": item}


def bookmark(version: int) -> dict[str, Any]:
    return event(
        "BOOKMARK",
        {"kind": "Pod", "apiVersion": "v1", "metadata": {"resourceVersion": str(version)}},
    )


def error_event(code: int, reason: str, message: str) -> dict[str, Any]:
    return event("ERROR", json.loads(status(code, reason, message).content()))
