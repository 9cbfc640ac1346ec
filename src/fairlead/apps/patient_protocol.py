"""HTTP/1.1 with limits on the time to send a request and on the size of its head.

An answer may take or stream any time, unless its server limits it, too; a connection between two
requests may idle for uvicorn's time. The limit is for head and body together, so that a byte now
and then does not extend it.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any, Final

import httptools
from uvicorn.protocols.http.httptools_impl import (
    STATUS_LINE,
    HttpToolsProtocol,
    RequestResponseCycle,
)

_log = logging.getLogger(__name__)
HEAD_BYTES_MAX: Final = 1 << 20
"""`HEAD_BYTES_MAX`: the limit of Go's servers, such as kube-apiserver."""

CLIENT_CERTIFICATE: Final = "fairlead.client_certificate"
"""An extension of the ASGI scope: the client has a certificate that the authority signed."""


class PatientProtocol(HttpToolsProtocol):
    """One connection.

    A request that is not complete after `read_seconds` is answered with 408, and the connection
    ends.

    A connection without any request is closed silently after the same time. With `write_seconds` it
    is closed, too, if its client has not read an answer within that time after the request.
    """

    def __init__(
        self, *args: Any, read_seconds: float, write_seconds: float | None = None, **named: Any
    ) -> None:
        super().__init__(*args, **named)
        self._write_seconds = write_seconds
        self._unread: asyncio.TimerHandle | None = None
        self._read_seconds = read_seconds
        self._deadline: asyncio.TimerHandle | None = None
        self._is_reading = False
        self._is_in_head = False
        self._head_bytes = 0
        self._unanswered: list[RequestResponseCycle] = []

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._has_certificate = bool(transport.get_extra_info("peercert"))
        self._begin_wait()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end_wait()
        if self._unread is not None:
            self._unread.cancel()
        super().connection_lost(exc)
        self._report_gone()

    def shutdown(self) -> None:
        """Stops the server: half-read requests are refused, running answers may finish."""
        if self._is_reading:
            _log.info("the server stops: a request that was not complete is refused")
            self._refuse(503, "the server stops")
        super().shutdown()

    def data_received(self, data: bytes) -> None:
        if self._deadline is None and not self._is_reading:
            self._begin_wait()
        super().data_received(data)
        if self._is_in_head:
            self._head_bytes += len(data)
            if self._head_bytes > HEAD_BYTES_MAX:
                self._refuse(431, f"the head of the request is larger than {HEAD_BYTES_MAX} bytes")

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.scope["extensions"] = {CLIENT_CERTIFICATE: {}} if self._has_certificate else {}
        self._is_reading = self._is_in_head = True
        self._head_bytes = 0
        self._begin_wait()

    def on_headers_complete(self) -> None:
        if sum(name == b"host" for name, _ in self.headers) > 1:
            raise httptools.HttpParserError("two `Host` headers")
        super().on_headers_complete()
        self._is_in_head = False
        self._unanswered = [
            *(cycle for cycle in self._unanswered if not cycle.response_complete),
            self.cycle,
        ]

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._is_reading = False
        self._end_wait()
        if not self.pipeline:
            self._begin_answer()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        # the next pipelined request begins
        if self.cycle is not None and not self.cycle.response_complete:
            self._begin_answer()
        # it came while an earlier request is being answered
        if self._is_reading and self._deadline is None:
            self._begin_wait()

    def send_400_response(self, msg: str) -> None:
        self._refuse(400, msg)

    def _unsupported_upgrade_warning(self) -> None:
        """A client that asks for another protocol (`kubectl exec`) is answered in this one: no
        library should be installed for it.
        """

    def handle_websocket_upgrade(self) -> None:
        """The connection passes to the protocol of WebSockets.

        A client that does not wait for the answer to an earlier request is disconnected: what the
        two write would mix.
        """
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None
        if self._is_answering_earlier():
            self.transport.abort()
            return
        super().handle_websocket_upgrade()

    def _begin_answer(self) -> None:
        if self._write_seconds is not None:
            if self._unread is not None:
                self._unread.cancel()
            self._unread = self.loop.call_later(self._write_seconds, self._end_unread)

    def _end_unread(self) -> None:
        """What the app has written may still be in the transport, and a close would wait for it."""
        self._unread = None
        if (
            self.cycle is not None and not self.cycle.response_complete
        ) or self.transport.get_write_buffer_size():
            self.transport.abort()

    def _begin_wait(self) -> None:
        self._end_wait()
        self._deadline = self.loop.call_later(self._read_seconds, self._give_up)

    def _end_wait(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _give_up(self) -> None:
        self._deadline = None
        if self._is_answering_earlier():  # until then this request is not read
            return
        if self._is_reading:
            self._refuse(
                408,
                (
                    f"the request was not complete after {self._read_seconds:g} s: send head "
                    "and body without a pause"
                ),
            )
        else:
            self.transport.close()

    def _is_answering_earlier(self) -> bool:
        """Whether an answer is under way to a request before the one that is being read."""
        is_answering = self.cycle is not None and not self.cycle.response_complete
        return is_answering and (bool(self.pipeline) or not self._is_in_body())

    def _is_in_body(self) -> bool:
        """Whether the request that is being read already has its cycle."""
        return self._is_reading and not self._is_in_head

    def _may_be_refused(self) -> bool:
        """Whether a refusal can be the next thing that the client receives: no answer to the
        request that is being read has begun, and none to an earlier one is under way.
        """
        if self.cycle is None:
            return True
        if self._is_in_body():
            return not self.pipeline and not self.cycle.response_started
        return self.cycle.response_complete

    def _refuse(self, status: int, why: str) -> None:
        """End the connection, with a status if one can still be sent."""
        if self.transport.is_closing():
            return
        if self._may_be_refused():
            body = f"{why}\n".encode()
            head = [
                STATUS_LINE[status],
                *(b"%s: %s\r\n" % header for header in self.server_state.default_headers),
            ]
            head.append(
                (
                    b"content-type: text/plain; charset=utf-8\r\ncontent-length: %d\r\nconnection: "
                    b"close\r\n\r\n"
                )
                % len(body)
            )
            self.transport.write(b"".join(head) + body)
        self._report_gone()
        self.transport.close()

    def _report_gone(self) -> None:
        """Report the lost client to every request without a complete answer.

        uvicorn reports it to the newest request only, and a stream before it would never end.
        """
        for cycle in self._unanswered:
            if not cycle.response_complete:
                cycle.disconnected = True
                cycle.message_event.set()
        self._unanswered = []
