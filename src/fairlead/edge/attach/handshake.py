"""The handshake that opens a WebSocket over Fairlead's connection, with TLS, proxy, credentials.

A refusal is an ordinary HTTP answer whose body is the API server's `Status`; its message goes to
the user.
"""

from __future__ import annotations

import socket
from typing import Final

from wsproto import ConnectionType, WSConnection
from wsproto.events import AcceptConnection, Event, RejectConnection, RejectData, Request
from wsproto.utilities import RemoteProtocolError

from fairlead.edge.attach.web_socket import WebSocket
from fairlead.edge.kube.api_failure import ApiFailure, failure_of_answer, failure_of_connection
from fairlead.edge.kube.api_request import ApiRequest
from fairlead.edge.kube.kube_blocking import KubeBlocking, RawConnection

_PIECE: Final = 1 << 16
_HINT: Final = "this needs Kubernetes 1.30 or later, and nothing on the way that forbids WebSockets"

_NODE_HINT: Final = (
    "a command runs only in a container that runs; `arena get JOB` shows how the job's pods are"
)
_SERVER_FAILED: Final = 500


def open_web_socket(api: KubeBlocking, path: str, protocol: str) -> WebSocket:
    """The open WebSocket. Raises ApiFailure with the server's message when it refuses."""
    request = ApiRequest("get", "GET", path)
    dialled = api.dial(request)
    try:
        return WebSocket(dialled.socket, _agreed(dialled, request, protocol), dialled.label)
    except OSError as error:
        dialled.socket.close()
        raise failure_of_connection(dialled.label, error) from error
    except BaseException:
        dialled.socket.close()
        raise


def _agreed(dialled: RawConnection, request: ApiRequest, protocol: str) -> WSConnection:
    """The frame parser of the WebSocket that both sides agreed on."""
    frames = WSConnection(ConnectionType.CLIENT)
    headers = [(name.encode(), value.encode()) for name, value in dialled.headers]
    asked = Request(
        host=dialled.host, target=dialled.target, subprotocols=[protocol], extra_headers=headers
    )
    dialled.socket.sendall(frames.send(asked))
    answer = _answer(dialled.socket, frames, dialled.label)
    first = answer[0]
    if isinstance(first, RejectConnection):
        raise _refusal(
            dialled,
            request,
            first,
            b"".join(part.data for part in answer if isinstance(part, RejectData)),
        )
    if not isinstance(first, AcceptConnection) or first.subprotocol != protocol:
        raise ApiFailure(f"API server `{dialled.label}` does not speak `{protocol}`", _HINT)
    return frames


def _answer(connected: socket.socket, frames: WSConnection, label: str) -> list[Event]:
    """The events of the server's answer: acceptance, or the complete refusal."""
    events: list[Event] = []
    try:
        while not events or (isinstance(events[0], RejectConnection) and not _is_whole(events)):
            data = connected.recv(_PIECE)
            if not data and not events:
                raise ConnectionError("it hung up without an answer")
            frames.receive_data(data)
            for event in frames.events():
                events.append(event)
                if isinstance(event, AcceptConnection):
                    break  # what follows are messages, for the WebSocket to read
            if not data and not _is_whole(events):
                raise ConnectionError("it hung up in the middle of its answer")
    except RemoteProtocolError as error:
        raise ApiFailure(
            f"API server `{label}` did not open a WebSocket: {error}", _HINT
        ) from error
    return events


def _is_whole(events: list[Event]) -> bool:
    first, last = events[0], events[-1]
    return (isinstance(first, RejectConnection) and not first.has_body) or (
        isinstance(last, RejectData) and last.body_finished
    )


def _refusal(
    dialled: RawConnection, request: ApiRequest, refusal: RejectConnection, body: bytes
) -> ApiFailure:
    headers = {
        bytes(name).lower(): bytes(value).decode("latin-1") for name, value in refusal.headers
    }
    failure = failure_of_answer(
        dialled.label, request, refusal.status_code, body, headers.get(b"retry-after")
    )
    if failure.reason:
        return failure
    # the kubelet's message, which the API server passes on
    if refusal.status_code >= _SERVER_FAILED:
        what = f"the node did not run the command: {failure.message}"
        return ApiFailure(what, _NODE_HINT, status=refusal.status_code, message=failure.message)
    # Without a Status, the answer is of another program that does not know the request. Servers
    # before 1.30 pass the request on to a kubelet, whose 403 has no message.
    what = (
        f"API server `{dialled.label}` did not open a WebSocket; it answered "
        f"{refusal.status_code}: {failure.message}"
    )
    return ApiFailure(what, _HINT, status=refusal.status_code)
