"""Running a command in a container over each kind of connection, and with servers that are slow,
silent or do not close the connection.
"""

from __future__ import annotations

import asyncio
import os
import re
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import pytest
from aiohttp import WSMsgType, web
from tests.edge.conftest import PluginBuilder
from tests.edge.exec_server import STATUS, STDOUT, V5, ExecServer, ended
from tests.edge.kubeconfigs import connection_of, encoded, write_kubeconfig
from tests.edge.pki import Authority
from tests.edge.proxy import TestProxy
from wsproto.utilities import generate_accept_token

from fairlead.edge.attach.exec_stream import ExecStream, execute
from fairlead.edge.attach.handshake import open_web_socket
from fairlead.edge.attach.web_socket import WebSocket
from fairlead.edge.connection.connection import Connection
from fairlead.edge.connection.credentials import Credentials, IssuedCredentials
from fairlead.edge.kube.api_failure import ApiFailure, NotServed, Unreachable
from fairlead.edge.kube.kube_blocking import KubeBlocking
from fairlead.wire.kube.exec_channels import ProgramEnd

CA = Authority()
PATH = "/api/v1/namespaces/default/pods/p/exec?command=sh"
SECONDS = 60.0


class Pipes:
    """`ports.Streams` without a terminal: `typed` is stdin, and the output is kept."""

    def __init__(self, typed: bytes | None = b"") -> None:
        self.stdin, self._writing = os.pipe()
        self.resized = -1
        self.is_terminal = False
        self.out, self.err = bytearray(), bytearray()
        if typed is not None:
            os.write(self._writing, typed)
            os.close(self._writing)

    def size(self) -> tuple[int, int]:
        return 80, 24

    def raw(self) -> Any:
        return nullcontext()

    def write(self, data: bytes) -> None:
        self.out += data

    def write_error(self, data: bytes) -> None:
        self.err += data


def kube(
    folder: Path,
    server: ExecServer,
    *,
    cluster: dict[str, Any] | None = None,
    user: dict[str, Any] | None = None,
) -> KubeBlocking:
    settings = {"server": server.url, "certificate-authority-data": encoded(CA.pem)} | (
        cluster or {}
    )
    return KubeBlocking(
        connection_of(write_kubeconfig(folder / "config", cluster=settings, user=user))
    )


def run(api: KubeBlocking, streams: Pipes | None = None) -> ProgramEnd:
    return execute(api, "default", "p", "main", ["sh", "-c", "cat; exit 3"], streams or Pipes())


@pytest.fixture(scope="module")
def server() -> Iterator[ExecServer]:
    with ExecServer({}, CA.issue("api")) as running:
        yield running


def test_a_bearer_token_and_impersonation(tmp_path: Path, server: ExecServer) -> None:
    streams = Pipes(b"hello")
    assert (
        run(
            kube(tmp_path, server, user={"token": "t0ken", "as": "ann", "as-groups": ["team"]}),
            streams,
        ).exit_code
        == 3
    )
    assert streams.out == b"hello"
    headers = server.executed[-1].headers
    assert (
        headers["authorization"],
        headers["impersonate-user"],
        headers["impersonate-group"],
    ) == ("Bearer t0ken", "ann", "team")
    assert headers["sec-websocket-protocol"] == V5


def test_a_client_certificate(tmp_path: Path) -> None:
    ann = CA.issue("ann")
    user = {
        "client-certificate-data": encoded(ann.certificate_pem),
        "client-key-data": encoded(ann.key_pem),
    }
    with ExecServer({}, CA.issue("api"), client_ca=CA.pem) as server:
        assert run(kube(tmp_path, server, user=user)).exit_code == 3
        assert server.executed[-1].peer == "ann"


def test_an_exec_plugin_is_asked_once(
    tmp_path: Path, server: ExecServer, plugin: PluginBuilder
) -> None:
    program = plugin(status={"token": "from-plugin"})
    settings = {
        "command": str(program),
        "apiVersion": "client.authentication.k8s.io/v1",
        "interactiveMode": "Never",
    }
    assert run(kube(tmp_path, server, user={"exec": settings})).exit_code == 3
    assert server.executed[-1].headers["authorization"] == "Bearer from-plugin"
    assert len(plugin.calls()) == 1


def test_through_a_proxy(tmp_path: Path, server: ExecServer) -> None:
    with TestProxy() as proxy:
        assert run(kube(tmp_path, server, cluster={"proxy-url": proxy.url})).exit_code == 3
        assert proxy.asked == [f"CONNECT 127.0.0.1:{server.port} HTTP/1.1"] or proxy.asked == [
            f"CONNECT 127.0.0.1:{server.port} HTTP/1.0"
        ]


def test_another_name_in_the_certificate(tmp_path: Path, server: ExecServer) -> None:
    assert run(kube(tmp_path, server, cluster={"tls-server-name": "localhost"})).exit_code == 3
    with pytest.raises(Unreachable) as caught:
        run(kube(tmp_path, server, cluster={"tls-server-name": "api.example"}))
    sentence = f"the certificate of API server `{server.url}` is not trusted: Hostname mismatch, "
    assert caught.value.what.startswith(sentence)


def test_without_tls_and_below_a_path(tmp_path: Path) -> None:
    with ExecServer({}) as server:
        assert (
            run(kube(tmp_path, server, cluster={"certificate-authority-data": None})).exit_code == 3
        )
        elsewhere = kube(
            tmp_path,
            server,
            cluster={"certificate-authority-data": None, "server": f"{server.url}/clusters/c1"},
        )
        with pytest.raises(NotServed):
            run(elsewhere)


def test_no_server(tmp_path: Path) -> None:
    with ExecServer({}) as server:
        api = kube(tmp_path, server, cluster={"certificate-authority-data": None})
    with pytest.raises(Unreachable) as caught:
        run(api)
    assert caught.value.what == f"API server `{server.url}` refused the connection"


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (b"", "hung up without an answer|closed the connection"),
        (b"HTTP/1.1 403 Forbidden\r\nContent-Length: 100\r\n\r\n{", "did not open a WebSocket"),
        (b"HTTP/1.1 403 Forbidden\r\n\r\n", "it answered 403"),
        (b"SSH-2.0-OpenSSH_9\r\n\r\n", "did not open a WebSocket"),
        (
            (
                b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: "
                b"Upgrade\r\n\r\n"
            ),
            "did not open a WebSocket",
        ),
    ],
)
def test_answers_that_open_nothing(answer: bytes, message: str) -> None:
    with answering_once(lambda _: answer) as api, pytest.raises(ApiFailure, match=message):
        run(api)


@contextmanager
def answering_once(answer: Callable[[bytes], bytes]) -> Iterator[KubeBlocking]:
    """A server of raw bytes: it answers the first request, then reads until the client disconnects;
    without an answer it closes the connection.
    """

    def serve() -> None:
        client, _ = listener.accept()
        with client:
            client.sendall(printed := answer(client.recv(65536)))
            client.shutdown(socket.SHUT_WR)
            while printed and client.recv(65536):
                pass

    with socket.create_server(("127.0.0.1", 0)) as listener:
        serving = threading.Thread(target=serve)
        serving.start()
        yield KubeBlocking(
            Connection(
                f"http://127.0.0.1:{listener.getsockname()[1]}",
                Credentials(IssuedCredentials, is_renewable=False),
            )
        )
        serving.join(SECONDS)


@contextmanager
def opened(folder: Path, server: ExecServer) -> Iterator[WebSocket]:
    with open_web_socket(kube(folder, server), PATH, V5) as web_socket:
        yield web_socket


async def _silent(_: web.Request, socket: web.WebSocketResponse) -> None:
    """Answers no ping, because it reads nothing."""
    await socket.send_bytes(bytes([STDOUT]) + b"once")
    await asyncio.sleep(SECONDS)


def test_a_server_that_falls_silent_is_given_up(tmp_path: Path) -> None:
    streams = Pipes(None)
    with (
        ExecServer({}, CA.issue("api"), on_exec=_silent) as server,
        opened(tmp_path, server) as web_socket,
        pytest.raises(Unreachable) as caught,
    ):
        ExecStream(web_socket, streams, ping_seconds=0.1).run()
    assert caught.value.what == "the API server has sent nothing for 1 s"
    assert streams.out == b"once"


async def _patient(_: web.Request, socket: web.WebSocketResponse) -> None:
    """Answers pings for twice the time after which a silent server is given up."""
    with pytest.raises(asyncio.TimeoutError):
        await asyncio.wait_for(socket.receive(), 3.0)
    await socket.send_bytes(bytes([STATUS]) + ended(0))
    await socket.close()


def test_a_program_may_be_silent_for_any_time(tmp_path: Path) -> None:
    with (
        ExecServer({}, CA.issue("api"), on_exec=_patient) as server,
        opened(tmp_path, server) as web_socket,
    ):
        assert ExecStream(web_socket, Pipes(None), ping_seconds=0.1).run() == ProgramEnd(0)


def test_a_server_that_does_not_hang_up_is_not_waited_for_once_the_end_is_known(
    tmp_path: Path,
) -> None:
    """The server answers every ping, so it is alive; but after one more ping the client stops
    waiting.
    """
    pings = []

    async def lingers(_: web.Request, socket: web.WebSocketResponse) -> None:
        await socket.send_bytes(bytes([STATUS]) + ended(6))
        await socket.send_bytes(bytes([STDOUT]) + b"late")
        while len(pings) < 4 and (message := await socket.receive()).type is WSMsgType.PING:
            pings.append(message)
            await socket.pong(message.data)

    streams = Pipes(None)
    with ExecServer({}, CA.issue("api"), on_exec=lingers) as server:
        server.answers_pings = False
        with opened(tmp_path, server) as web_socket:
            assert ExecStream(web_socket, streams, ping_seconds=2.0).run().exit_code == 6
    assert streams.out == b"late", "what comes after the Status is shown as well"
    assert len(pings) < 4


def test_messages_that_come_with_the_consent_are_not_lost() -> None:
    """The messages arrive in one piece with the consent, so no poll would report them."""
    frames = (
        b"\x82\x03\x01hi"
        + b"\x82"
        + bytes([len(ended(0)) + 1, STATUS])
        + ended(0)
        + b"\x88\x02\x03\xe8"
    )

    def answer(request: bytes) -> bytes:
        key = re.search(rb"(?i)sec-websocket-key: (\S+)", request)
        assert key is not None
        consent = (
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: "
            f"Upgrade\r\nSec-WebSocket-Protocol: {V5}\r\n"
        )
        return (
            consent.encode()
            + b"Sec-WebSocket-Accept: "
            + generate_accept_token(key[1])
            + b"\r\n\r\n"
            + frames
        )

    streams = Pipes(None)
    with answering_once(answer) as api:
        assert run(api, streams) == ProgramEnd(0)
    assert streams.out == b"hi"


def test_stdin_is_read_no_faster_than_it_goes_over(tmp_path: Path) -> None:
    """A server that reads nothing: the amount buffered for it is bounded, however much there is to
    read.
    """
    reading = threading.Event()

    async def stuck(_: web.Request, socket: web.WebSocketResponse) -> None:
        await asyncio.to_thread(reading.wait, SECONDS)
        taken = 0
        while taken < len(data):
            taken += len((await socket.receive_bytes())[1:])
        await socket.send_bytes(bytes([STATUS]) + ended(0))
        await socket.close()

    data = os.urandom(1 << 20) * 24
    source = tmp_path / "source"
    source.write_bytes(data)
    streams = Pipes()
    streams.stdin = os.open(source, os.O_RDONLY)
    peaks = []

    def watch() -> None:
        while not ended_run.wait(0.02):
            peaks.append(web_socket.backlog)
            if len(peaks) > 25:
                reading.set()

    ended_run = threading.Event()
    with (
        ExecServer({}, CA.issue("api"), on_exec=stuck) as server,
        opened(tmp_path, server) as web_socket,
    ):
        watcher = threading.Thread(target=watch)
        watcher.start()
        try:
            assert ExecStream(web_socket, streams).run() == ProgramEnd(0)
        finally:
            ended_run.set()
            watcher.join()
    assert 0 < max(peaks) < 1 << 19
