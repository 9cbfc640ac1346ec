"""An open WebSocket: frames are wsproto's business, the bytes and the connection are ours.

Nothing here waits. A caller polls `fileno` for `awaited` and then calls `receive` and `flush`; one thread
does both, because OpenSSL lets nobody read and write one connection at the same time.
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
    """Messages of bytes to and from a server. When it hangs up, `reason` may say why."""

    def __init__(self, connected: socket.socket, frames: WSConnection, label: str) -> None:
        """`frames` have been agreed on (`web_socket_handshake`); `label` names the server in messages."""
        self._takes_more = True
        self._has_ended = False
        self.reason = ""
        self._socket = connected
        self._frames = frames
        self._label = label
        self._out = bytearray()
        self._message = bytearray()
        self._early = list(self._messages(b""))  # the first messages may have come together with the consent
        self._socket.setblocking(False)

    def __enter__(self) -> WebSocket:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def fileno(self) -> int:
        return self._socket.fileno()

    @property
    def is_closed(self) -> bool:
        """Whether the server has hung up, and everything has been given that came before."""
        return self._has_ended and not self._early

    @property
    def awaited(self) -> int:
        """What to poll `fileno` for."""
        return select.POLLIN | (select.POLLOUT if self._out else 0)

    @property
    def backlog(self) -> int:
        """How many bytes have not left yet."""
        return len(self._out)

    @property
    def has_more(self) -> bool:
        """Whether `receive` has something to give already, which no poll would tell."""
        return bool(self._early) or (isinstance(self._socket, ssl.SSLSocket) and self._socket.pending() > 0)

    def send(self, message: bytes) -> None:
        """In one frame: the servers take each frame for a message."""
        if self._takes_more:
            self._out += self._frames.send(BytesMessage(data=message))

    def ping(self) -> None:
        if self._takes_more:
            self._out += self._frames.send(Ping())

    def flush(self) -> None:
        """Send what the connection takes at once.

        One that takes nothing any more is no failure yet: a server may hang up while we send, and what it
        said before is still to be read.
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
        """The messages of one read: however much a server sends, its caller keeps its turn."""
        if self._early:
            early, self._early = self._early, []
            return early
        try:
            data = self._socket.recv(_PIECE)
        except _LATER:
            return []
        except ssl.SSLEOFError:  # cut off without TLS's good-bye
            data = b""
        except OSError as error:
            raise failure_of_connection(self._label, error) from error
        if not data:
            self._end("")
            return []
        return list(self._messages(data))

    def close(self) -> None:
        """Say good-bye, if that can be said at once, and hang up."""
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
                    if self._frames.state is ConnectionState.OPEN:  # not the server closes: wsproto could not read a frame
                        raise RemoteProtocolError(event.reason or "a broken frame")
                    self._out += self._frames.send(event.response())
                    self._end(event.reason or "")
                    return
                elif isinstance(event, TextMessage):
                    raise RemoteProtocolError("a text message")
        except RemoteProtocolError as error:
            raise Unreachable(f"API server `{self._label}` does not speak WebSocket as it should: {error}") from error
