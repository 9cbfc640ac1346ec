"""An open WebSocket: wsproto handles frames, this module the bytes and the connection.

No method waits. A caller polls `fileno` for `awaited` and then calls `receive` and `flush`, all in
one thread, because OpenSSL does not allow reading and writing one connection from two threads.
"""

from __future__ import annotations

import select
import socket
import ssl
from collections.abc import Iterator
from typing import Final

from wsproto import WSConnection
from wsproto.connection import ConnectionState
from wsproto.events import BytesMessage, CloseConnection, Ping, TextMessage
from wsproto.utilities import RemoteProtocolError

from fairlead.edge.kube.api_failure import Unreachable, failure_of_connection

_PIECE: Final = 1 << 16
_NORMAL: Final = 1000
_LATER: Final = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


class WebSocket:
    """Messages of bytes to and from a server.

    After the server has closed, `reason` may have the cause.
    """

    def __init__(self, connected: socket.socket, frames: WSConnection, label: str) -> None:
        """`frames`: from the handshake (`handshake`); `label` names the server in messages."""
        self._takes_more = True
        self._has_ended = False
        self.reason = ""
        self._socket = connected
        self._frames = frames
        self._label = label
        self._out = bytearray()
        self._message = bytearray()
        # first messages may arrive together with the server's acceptance
        self._early = list(self._messages(b""))
        self._socket.setblocking(False)

    def __enter__(self) -> WebSocket:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def fileno(self) -> int:
        return self._socket.fileno()

    @property
    def is_closed(self) -> bool:
        """Whether the server has closed and all earlier messages have been returned."""
        return self._has_ended and not self._early

    @property
    def awaited(self) -> int:
        """The poll events to wait for on `fileno`."""
        return select.POLLIN | (select.POLLOUT if self._out else 0)

    @property
    def backlog(self) -> int:
        """The number of bytes that are not sent yet."""
        return len(self._out)

    @property
    def has_more(self) -> bool:
        """Whether `receive` would return messages without a poll, because they are read already."""
        return bool(self._early) or (
            isinstance(self._socket, ssl.SSLSocket) and self._socket.pending() > 0
        )

    def send(self, message: bytes) -> None:
        """Sends the message in one frame, because servers take each frame for a message."""
        if self._takes_more:
            self._out += self._frames.send(BytesMessage(data=message))

    def ping(self) -> None:
        if self._takes_more:
            self._out += self._frames.send(Ping())

    def flush(self) -> None:
        """Sends what the connection accepts now.

        A failure to send is not raised yet: the server may have closed after a last message that is
        still to be read.
        """
        while self._out:
            try:
                with memoryview(self._out) as whole, whole[:_PIECE] as piece:
                    sent = self._socket.send(piece)
            except _LATER:
                return
            except OSError:
                self._takes_more = False
                self._out.clear()
                return
            del self._out[:sent]

    def receive(self) -> list[bytes]:
        """The messages of one read, so that a server that sends much does not block the caller."""
        if self._early:
            early, self._early = self._early, []
            return early
        try:
            data = self._socket.recv(_PIECE)
        except _LATER:
            return []
        except ssl.SSLEOFError:  # cut off without a TLS close message
            data = b""
        except OSError as error:
            raise failure_of_connection(self._label, error) from error
        if not data:
            self._end("")
            return []
        return list(self._messages(data))

    def close(self) -> None:
        """Sends a close frame if that is possible at once, and closes the connection."""
        if self._takes_more:
            self._out += self._frames.send(CloseConnection(_NORMAL))
        self.flush()
        self._socket.close()

    def _end(self, reason: str) -> None:
        self._takes_more, self._has_ended, self.reason = False, True, reason

    def _messages(self, data: bytes) -> Iterator[bytes]:
        try:
            self._frames.receive_data(data)
            for event in self._frames.events():
                if isinstance(event, BytesMessage):
                    self._message += event.data
                    if event.message_finished:
                        yield bytes(self._message)
                        self._message.clear()
                elif isinstance(event, Ping):
                    self._out += self._frames.send(event.response())
                elif isinstance(event, CloseConnection):
                    # wsproto could not parse a frame; the server did not close
                    if self._frames.state is ConnectionState.OPEN:
                        raise RemoteProtocolError(event.reason or "a broken frame")
                    self._out += self._frames.send(event.response())
                    self._end(event.reason or "")
                    return
                elif isinstance(event, TextMessage):
                    raise RemoteProtocolError("a text message")
        except RemoteProtocolError as error:
            raise Unreachable(
                f"API server `{self._label}` does not speak WebSocket as it should: {error}"
            ) from error
