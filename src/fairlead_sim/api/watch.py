"""Watches over HTTP.

One JSON document per line: writes in order, bookmarks in between, and an ERROR with a 410 if the
watcher asked for a version that is too old or read too slowly. Nothing is queued for a watcher: a
slow one blocks itself, falls behind the log, and gets the 410.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator
from itertools import chain
from typing import Any, Final

import msgspec
from starlette.types import Receive, Scope, Send

from fairlead.model.changes import ChangeType
from fairlead_sim.api.reads import OBJECT_FORMS, Reads, request_version, too_new
from fairlead_sim.api.request import ReceivedRequest, wanted_form
from fairlead_sim.api.versions import Versions, Watch
from fairlead_sim.objects.watch_log import Object
from fairlead_sim.schema.status import ApiStatus, render_status
from fairlead_sim.tables.table import partial_metadata

# between the 30 and 60 minutes of the real server, which draws the value at random
DEFAULT_WATCH_SECONDS: Final = 2400.0
STALL_SECONDS: Final = 60.0  # a client that reads nothing for this time has gone
PIECE_BYTES: Final = 128 * 1024
INITIAL_EVENTS_END: Final = "k8s.io/initial-events-end"
_JSON: Final = "application/json"

_encode = msgspec.json.Encoder().encode
_Shape = Callable[[Object], Object]


class LineStream:
    """An ASGI answer that streams pieces until they end, the client goes or takes nothing for
    `STALL_SECONDS`, or `ending` is set."""

    def __init__(
        self, pieces: AsyncIterator[bytes], content_type: str, ending: asyncio.Event
    ) -> None:
        self._pieces = pieces
        self._content_type = content_type
        self._ending = ending

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = [
            (b"content-type", self._content_type.encode()),
            (b"cache-control", b"no-cache, private"),
        ]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        outcome = await outcome_of_first(
            self._stream(send), _until_gone(receive), self._ending.wait()
        )
        if outcome is None or self._ending.is_set():
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        elif isinstance(outcome, BaseException) and not isinstance(
            outcome, asyncio.CancelledError | TimeoutError
        ):
            raise outcome

    async def _stream(self, send: Send) -> None:
        async with contextlib.aclosing(self._pieces) as pieces:  # type: ignore[type-var]
            async for piece in pieces:
                async with asyncio.timeout(STALL_SECONDS):
                    await send({"type": "http.response.body", "body": piece, "more_body": True})


async def outcome_of_first(*reasons: Coroutine[Any, Any, Any]) -> object:
    """Runs all until one ends, cancels the others and waits for them. Returns what the first of
    `reasons` returned, or its exception, which is CancelledError if another one ended.
    """
    tasks = [asyncio.ensure_future(each) for each in reasons]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        outcome, *_ = await asyncio.gather(*tasks, return_exceptions=True)
    return outcome


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


class Watches:
    """`watch` over a store."""

    def __init__(
        self, store: Versions, reads: Reads, bookmark_seconds: float, ending: asyncio.Event
    ) -> None:
        self._store = store
        self._reads = reads
        self._bookmark_seconds = bookmark_seconds
        self._ending = ending

    def open(self, request: ReceivedRequest) -> LineStream:
        """The stream of one watch request.

        Refuses versions from the future (504) before the stream begins.
        """
        form = wanted_form(request.http.headers.get("accept", ""), OBJECT_FORMS)
        since = request_version(request)
        if since is not None and since > self._store.resource_version:
            raise too_new(since, self._store.resource_version)
        wants_initial = (
            not since
            if "sendInitialEvents" not in request.query
            else request.is_true("sendInitialEvents")
        )
        shape = self._shape(request, form)
        objects = self._reads.matching(request) if wants_initial else []
        initial: Iterable[bytes] = (_line(ChangeType.ADDED, shape(obj)) for obj in objects)
        if request.is_true("sendInitialEvents"):
            initial = chain(
                initial,
                [_bookmark(request, self._store.resource_version, {INITIAL_EVENTS_END: "true"})],
            )
        try:
            start = None if wants_initial else since
            watch = self._store.watch(request.ref, request.path.namespace, start, request.chooses())
        except ApiStatus as error:
            return LineStream(_only(_line("ERROR", render_status(error))), _JSON, self._ending)
        return LineStream(self._lines(request, watch, initial, shape), _JSON, self._ending)

    def _shape(self, request: ReceivedRequest, form: str) -> _Shape:
        """The form of an event's object.

        Of many tables only the first has column definitions.
        """
        if form != "Table":
            return partial_metadata if form else lambda obj: obj
        has_columns = False

        def table(obj: Object) -> Object:
            nonlocal has_columns
            with_headers, has_columns = not has_columns, True
            metadata = {"resourceVersion": obj["metadata"].get("resourceVersion", "")}
            return self._reads.table(request, [obj], metadata, with_headers=with_headers)

        return table

    async def _lines(
        self, request: ReceivedRequest, watch: Watch, initial: Iterable[bytes], shape: _Shape
    ) -> AsyncIterator[bytes]:
        loop = asyncio.get_running_loop()
        end = loop.time() + (request.number("timeoutSeconds") or DEFAULT_WATCH_SECONDS)
        wants_bookmarks = request.is_true("allowWatchBookmarks")
        try:
            for piece in _pieces(initial):
                yield piece
            while True:
                try:
                    events = watch.poll()
                except ApiStatus as error:
                    yield _line("ERROR", render_status(error))
                    return
                if events:
                    for piece in _pieces(
                        _line(event.type, shape(event.object)) for event in events
                    ):
                        yield piece
                    continue
                left = end - loop.time()
                if left > 0 and await watch.wait(min(left, self._bookmark_seconds)):
                    continue
                if wants_bookmarks:
                    yield _bookmark(request, watch.bookmark_version())
                if left <= self._bookmark_seconds:
                    return
        finally:
            watch.close()


def _pieces(lines: Iterable[bytes]) -> Iterator[bytes]:
    """The lines in pieces of about `PIECE_BYTES`: what the server buffers for a client that does
    not read is one or two of them.
    """
    held: list[bytes] = []
    size = 0
    for line in lines:
        held.append(line)
        size += len(line)
        if size >= PIECE_BYTES:
            yield b"".join(held)
            held, size = [], 0
    if held:
        yield b"".join(held)


def _line(kind: str, obj: Object) -> bytes:
    return _encode({"type": kind, "object": obj}) + b"\n"


def _bookmark(
    request: ReceivedRequest, version: int, annotations: dict[str, str] | None = None
) -> bytes:
    metadata: Object = {"resourceVersion": str(version), "creationTimestamp": None}
    if annotations:
        metadata["annotations"] = annotations
    return _line(
        "BOOKMARK",
        {"kind": request.ref.kind, "apiVersion": request.ref.api_version, "metadata": metadata},
    )


async def _only(piece: bytes) -> AsyncIterator[bytes]:
    yield piece
