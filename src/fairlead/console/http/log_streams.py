"""Logs on their way from the API server to browsers, byte for byte.

Nothing is buffered here: a slow reader slows the API server's connection down, and nothing is
dropped. The request to the API server ends with the browser's.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Final

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from fairlead.console.boards.job_files import chosen_container, instance_log
from fairlead.console.http.answers import Refused
from fairlead.console.http.kept_answers import KeptAnswers
from fairlead.errors import OutsideError, UserError
from fairlead.model.jobs.instances import JobInstances
from fairlead.model.refusal import Refusal
from fairlead.ports import JobFiles, LogRequest

TAIL_LINES: Final = 500
TAIL_MAX: Final = 10_000
BYTES_MAX: Final = 2 << 20
STREAMS_MAX: Final = 200
FIRST_SECONDS: Final = 1.0
"""How long an answer waits for a log's first bytes, to be able to refuse; a followed log may be
silent for hours.
"""
RIGHT_SECONDS: Final = 2.0
"""How long an answer of the API server counts, and how long it is waited for."""
RIGHTS_MAX: Final = 2 * STREAMS_MAX
_MEDIA_TYPE: Final = "text/plain; charset=utf-8"
_log: Final = logging.getLogger(__name__)
_TRUTHS: Final = {"": False, "false": False, "true": True}


class LogStreams:
    """The logs that are open now."""

    def __init__(self) -> None:
        self._open: set[asyncio.Task[None]] = set()
        self._rights: KeptAnswers[tuple[str, str], bool] = KeptAnswers(
            RIGHT_SECONDS, RIGHT_SECONDS, RIGHTS_MAX
        )

    @property
    def count(self) -> int:
        return len(self._open)

    def close(self) -> None:
        """Ends all of them, so that a stop never waits for a browser."""
        for task in tuple(self._open):
            task.cancel()

    async def may_go_on(self, files: JobFiles, namespace: str, account: str) -> bool:
        """Whether the API server still lets the account read logs of the namespace. The API server
        itself checks only when a log begins. True while it does not answer.
        """
        if not account:
            return True
        return await self._rights.of(
            (account, namespace), lambda: _may_read(files, namespace, account)
        ) in (True, None)

    async def answer(
        self, files: JobFiles, each: JobInstances, asked: Mapping[str, str], account: str
    ) -> Response:
        """Refuses a pod that is not the job's (404), and a container that has no log yet (404).

        `account`: the user that asks the API server, "" = the server itself.
        """
        chosen = chosen_container(each, asked.get("pod", ""), asked.get("container", ""))
        if isinstance(chosen, Refusal):
            raise Refused(404, chosen.reason, "look at the job's instances")
        pod, container = chosen
        wish = parse_log_request(container, asked)
        log = instance_log(pod, container)
        if not (log.begun or wish.previous):
            why = f"container `{container}` of pod `{pod.name}` has not begun: {log.why}"
            raise Refused(404, why, "wait until it runs; the page does so by itself")
        if self.count >= STREAMS_MAX:
            raise Refused(
                429,
                f"{self.count} logs are open already",
                "close some tabs",
                {"Retry-After": "10"},
            )
        pieces = files.log(pod.namespace, pod.name, wish, account)
        first = asyncio.create_task(_first(pieces))
        try:
            await asyncio.wait({first}, timeout=FIRST_SECONDS if wish.follow else None)
            if first.done():
                first.result()
        except BaseException:
            first.cancel()
            await asyncio.gather(first, return_exceptions=True)
            await pieces.aclose()
            raise
        return _LogAnswer(self._open, first, pieces)


def parse_log_request(container: str, asked: Mapping[str, str]) -> LogRequest:
    """Raises UserError, naming the parameter."""
    tail, previous, follow = (
        asked.get("tail", ""),
        _truth(asked, "previous"),
        _truth(asked, "follow"),
    )
    if tail and not (
        tail.isascii() and tail.isdigit() and len(tail) <= 6 and 1 <= int(tail) <= TAIL_MAX
    ):
        raise UserError(f"`tail` is `{tail[:60]}`", f"give a number of lines from 1 to {TAIL_MAX}")
    if previous and follow:
        raise UserError(
            "`previous` and `follow` are both `true`",
            "a run that has ended writes nothing more: leave one out",
        )
    return LogRequest(
        container, int(tail or TAIL_LINES), previous, follow, 0 if follow else BYTES_MAX
    )


def _truth(asked: Mapping[str, str], name: str) -> bool:
    if asked.get(name, "") not in _TRUTHS:
        raise UserError(f"`{name}` is `{asked[name][:60]}`", "use `true` or `false`")
    return _TRUTHS[asked.get(name, "")]


async def _may_read(files: JobFiles, namespace: str, account: str) -> bool:
    try:
        return await files.may_read_logs(namespace, account)
    except OutsideError as error:
        _log.warning("the right to read logs is not checked: %s", error.log_line)
        return True


async def _first(pieces: AsyncGenerator[bytes, None]) -> bytes:
    return await anext(pieces, b"")


class _LogAnswer(Response):
    """The answer that streams. A failure after the first byte cuts it: it must not look whole."""

    def __init__(
        self,
        opened: set[asyncio.Task[None]],
        first: asyncio.Task[bytes],
        pieces: AsyncGenerator[bytes, None],
    ) -> None:
        super().__init__(
            media_type=_MEDIA_TYPE, headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        )
        del self.headers["content-length"]
        self._opened, self._first, self._pieces = opened, first, pieces

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        sending = asyncio.create_task(self._send(send))
        leaving = asyncio.create_task(_left(receive))
        self._opened.add(sending)
        try:
            await asyncio.wait({sending, leaving}, return_when=asyncio.FIRST_COMPLETED)
            if sending.done() and not sending.cancelled():
                sending.result()
        finally:
            for task in (sending, leaving, self._first):
                task.cancel()
            await asyncio.gather(sending, leaving, self._first, return_exceptions=True)
            self._opened.discard(sending)
            await self._pieces.aclose()

    async def _send(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        async with aclosing(self._pieces) as pieces:
            await send({"type": "http.response.body", "body": await self._first, "more_body": True})
            async for piece in pieces:
                await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
