"""`kubectl exec` on the simulated cluster: real kubectl, the official Python client, and clients
that break the rules of the protocol.
"""

from __future__ import annotations

import asyncio
import base64
import json
import socket
import ssl
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import kubernetes
import pytest
import websocket
import yaml
from tests.contracts.api_client import ApiClient
from tests.contracts.simulated import SimulatedServer, simulated_server
from tests.kube.kubectl import own_folders
from tests.kube.programs import program
from tests.sim.running_pods import world_with_pods
from tests.sim.small_world import NAMESPACE, get_pod, live
from tests.waiting import wait_until

from fairlead.wire.kube.exec_channels import END_OF_INPUT, parse_end, render_input, render_size
from fairlead_sim.api import exec as exec_module
from fairlead_sim.world.world import World

PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
V5, V4 = "v5.channel.k8s.io", "v4.channel.k8s.io"
SECONDS = 30.0


@pytest.fixture(scope="module")
def world() -> World:
    return world_with_pods()


@pytest.fixture(scope="module")
def server(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimulatedServer]:
    folder = tmp_path_factory.mktemp("exec")
    with simulated_server(
        folder, world.clock, cluster=world.cluster, written=world.logs, programs=world.programs
    ) as running:
        yield running


@pytest.fixture(scope="module")
def api(server: SimulatedServer) -> ApiClient:
    return ApiClient("simulated", server.kubeconfig)


def kubectl(
    server: SimulatedServer, *words: str, stdin: bytes = b"", **environment: str
) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of `kubectl WORDS` in the namespace of the pods."""
    scratch = server.kubeconfig.parent
    ended = subprocess.run(
        [program("kubectl"), "--kubeconfig", server.kubeconfig, "-n", NAMESPACE, *words],
        input=stdin,
        capture_output=True,
        timeout=SECONDS,
        env={"PATH": "/usr/bin:/bin", **own_folders(scratch), **environment},
        check=False,
    )
    return ended.returncode, ended.stdout.decode(), ended.stderr.decode()


# --- kubectl --------------------------------------------------------------------------------------


def test_the_command_of_document_001(server: SimulatedServer) -> None:
    """`kubectl exec -it app-3g-v1-0 nvidia-smi`; kubectl requires `--` since."""
    code, shown, _ = kubectl(server, "exec", "-it", "half", "--", "nvidia-smi")
    assert code == 0
    (row,) = (line for line in shown.splitlines() if "MiB /" in line)
    assert "3193MiB / 4301MiB" in " ".join(row.split())


@pytest.mark.parametrize(
    ("words", "stdin", "found"),
    [
        (("half", "--", "nvidia-smi", "-L"), "", 0),
        (("plain", "--", "hostname"), "", (0, "plain\n", "")),
        (("plain", "--", "false"), "", (1, "", "command terminated with exit code 1\n")),
        (
            ("plain", "--", "sh", "-c", "echo hi; exit 3"),
            "",
            (3, "hi\n", "command terminated with exit code 3\n"),
        ),
        (("-i", "plain", "--", "cat"), "hello", (0, "hello", "")),
        (("plain", "--", "cat"), "hello", (0, "", "")),
        (("-i", "plain", "--", "hostname"), "not read", (0, "plain\n", "")),
        (
            ("plain", "--", "cat", "x"),
            "",
            (
                1,
                "",
                "cat: x: No such file or directory\ncommand terminated with exit code 1\n",
            ),
        ),
        (
            ("pair", "--", "hostname"),
            "",
            (0, "pair\n", 'Defaulted container "main" out of: main, beside\n'),
        ),
        (("pair", "-c", "beside", "--", "hostname"), "", (0, "pair\n", "")),
        (("starts", "-c", "setup", "--", "hostname"), "", (0, "starts\n", "")),
        (
            ("starts", "-c", "main", "--", "hostname"),
            "",
            (1, "", 'error: unable to upgrade connection: container not found ("main")\n'),
        ),
        (
            ("missing", "--", "hostname"),
            "",
            (1, "", 'error: unable to upgrade connection: container not found ("main")\n'),
        ),
        (
            ("absent", "--", "hostname"),
            "",
            (1, "", 'Error from server (NotFound): pods "absent" not found\n'),
        ),
    ],
    ids=str,
)
def test_kubectl(
    server: SimulatedServer, words: tuple[str, ...], stdin: str, found: tuple[int, str, str] | int
) -> None:
    ended = kubectl(server, "exec", *words, stdin=stdin.encode())
    assert found in (ended, ended[0])


def test_kubectl_without_websockets_reads_why(server: SimulatedServer) -> None:
    off = {"KUBECTL_REMOTE_COMMAND_WEBSOCKETS": "false"}
    assert kubectl(server, "exec", "plain", "--", "hostname", **off) == (
        1,
        "",
        "error: unable to upgrade connection: the simulated API server speaks WebSocket here, and "
        "no SPDY: use kubectl 1.31 or later, without KUBECTL_REMOTE_COMMAND_WEBSOCKETS=false\n",
    )


def test_much_input_comes_back_as_it_was(server: SimulatedServer) -> None:
    sent = b"".join(b"%d\n" % number for number in range(300_000))
    code, shown, _ = kubectl(server, "exec", "-i", "plain", "--", "cat", stdin=sent)
    assert (code, shown.encode() == sent) == (0, True)


def test_clients_at_the_same_time(server: SimulatedServer) -> None:
    with ThreadPoolExecutor(4) as pool:
        texts = [f"text {number}" for number in range(4)]
        ended = list(
            pool.map(
                lambda text: kubectl(
                    server, "exec", "-i", "plain", "--", "cat", stdin=text.encode()
                ),
                texts,
            )
        )
    assert ended == [(0, text, "") for text in texts]


# --- the official client, which speaks version 4 --------------------------------------------------


def test_the_python_client(server: SimulatedServer) -> None:
    core = kubernetes.client.CoreV1Api(
        kubernetes.config.new_client_from_config(str(server.kubeconfig))
    )
    stream = kubernetes.stream.stream(
        core.connect_get_namespaced_pod_exec,
        "plain",
        NAMESPACE,
        command=["sh", "-c", "echo hi; exit 3"],
        stdout=True,
        stderr=True,
        _preload_content=False,
    )
    stream.run_forever(timeout=SECONDS)
    assert (stream.read_stdout(), stream.returncode) == ("hi\n", 3)


# --- the protocol ---------------------------------------------------------------------------------


class Client:
    """WebSockets to one server; each is closed at the end of the test."""

    def __init__(self, server: SimulatedServer) -> None:
        self._user = yaml.safe_load(server.kubeconfig.read_text())["users"][0]["user"]
        self._address = server.address
        self._opened: list[websocket.WebSocket] = []

    def opens(self, query: str, *protocols: str, pod: str = "plain", **more: str) -> Any:
        opened = websocket.create_connection(
            f"{self._address.replace('https', 'wss')}{PODS}/{pod}/exec?{query}",
            header={"Authorization": f"Bearer {self._user['token']}", **more},
            subprotocols=list(protocols) or None,
            sslopt={"cert_reqs": ssl.CERT_NONE},
            timeout=SECONDS,
        )
        self._opened.append(opened)
        return opened

    def refused(self, query: str, *protocols: str, pod: str = "plain", **more: str) -> Any:
        with pytest.raises(websocket.WebSocketBadStatusException) as caught:
            self.opens(query, *protocols, pod=pod, **more)
        return caught.value.status_code, (caught.value.resp_body or b"").decode()

    def close(self) -> None:
        for opened in self._opened:
            opened.shutdown()


@pytest.fixture
def client(server: SimulatedServer) -> Iterator[Client]:
    made = Client(server)
    yield made
    made.close()


def messages(opened: websocket.WebSocket) -> list[bytes]:
    """Until the server closes, which it must do with code 1000."""
    found = []
    while True:
        opcode, data = opened.recv_data()
        if opcode == websocket.ABNF.OPCODE_CLOSE:
            assert data == b"\x03\xe8"
            return found
        found.append(data)


SUCCESS = b'\x03{"metadata":{},"status":"Success"}'


@pytest.mark.parametrize("protocol", [V5, V4])
def test_the_messages_are_a_kubelets(client: Client, protocol: str) -> None:
    opened = client.opens("command=hostname&stdout=true&stderr=true", protocol)
    assert opened.getsubprotocol() == protocol
    assert messages(opened) == [b"\x01", b"\x01plain\n", SUCCESS]
    terminal = client.opens("command=hostname&stdout=true&tty=true", protocol)
    assert messages(terminal) == [b"\x01", b"\x01plain\r\n", SUCCESS]
    ended = client.opens("command=false&stdout=true", protocol)
    assert parse_end(messages(ended)[-1][1:]).exit_code == 1
    absent = client.opens("command=nosuch&stdout=true", protocol)
    end = parse_end(messages(absent)[-1][1:])
    prefix = "Internal error occurred: " * (2 if protocol == V5 else 1)
    assert end.exit_code is None
    assert end.message.startswith(f"{prefix}error executing command in container: failed to exec")


def test_the_newest_version_is_chosen(client: Client) -> None:
    opened = client.opens("command=true&stdout=true", "nonsense", V4, V5)
    assert opened.getsubprotocol() == V5


def test_only_the_asked_streams_come(client: Client) -> None:
    both = client.opens("command=cat&command=x&stdout=true&stderr=true", V5)
    assert messages(both)[1] == b"\x02cat: x: No such file or directory\n"
    one = client.opens("command=cat&command=x&stdout=true&stderr=false", V5)
    assert len(messages(one)) == 2


@pytest.mark.parametrize("protocols", [("nonsense",), (), ("channel.k8s.io",)])
def test_another_protocol_is_refused(client: Client, protocols: tuple[str, ...]) -> None:
    assert client.refused("command=true&stdout=true", *protocols) == (403, "")


def test_refusals_before_the_upgrade(client: Client, api: ApiClient) -> None:
    no_stream = "you must specify at least 1 of stdin, stdout, stderr"
    assert client.refused("command=true", V5) == (400, no_stream)
    assert client.refused("command=true&stdout=false", V5) == (400, no_stream)
    missing = client.refused("command=true&stdout=true", V5, pod="missing")
    assert missing == (500, 'container not found ("main")')
    status, body = client.refused("command=true&stdout=true", V5, pod="pair")
    assert (status, json.loads(body)["message"]) == (
        400,
        "a container name must be specified for pod pair, choose one of: [main beside]",
    )
    for method in ("GET", "POST"):
        plain = api.ask(method, f"{PODS}/plain/exec?command=true&stdout=true")
        assert (plain.status, plain.message) == (400, "Upgrade request required")


def test_another_path_answers_a_websocket_in_http(server: SimulatedServer) -> None:
    token = yaml.safe_load(server.kubeconfig.read_text())["users"][0]["user"]["token"]
    with pytest.raises(websocket.WebSocketBadStatusException) as caught:
        websocket.create_connection(
            f"{server.address.replace('https', 'wss')}{PODS}/plain",
            header={"Authorization": f"Bearer {token}"},
            sslopt={"cert_reqs": ssl.CERT_NONE},
            timeout=SECONDS,
        )
    assert caught.value.status_code == 200
    assert json.loads(caught.value.resp_body)["metadata"]["name"] == "plain"


def test_fragments_texts_and_unknown_channels(client: Client) -> None:
    opened = client.opens("command=cat&stdin=true&stdout=true", V5)
    first, last = websocket.ABNF.create_frame, websocket.ABNF
    opened.send_frame(first(b"\x00he", last.OPCODE_BINARY, fin=0))
    opened.send_frame(first(b"ll", last.OPCODE_CONT, fin=0))
    opened.send_frame(first(b"o", last.OPCODE_CONT, fin=1))
    opened.send(render_size(80, 24), last.OPCODE_BINARY)
    opened.send(b"", last.OPCODE_BINARY)
    opened.send(b"\x07lost", last.OPCODE_BINARY)
    opened.send("\x00 you", last.OPCODE_TEXT)
    opened.send(END_OF_INPUT, last.OPCODE_BINARY)
    assert messages(opened) == [b"\x01", b"\x01hello", b"\x01 you", SUCCESS]


def test_a_message_that_is_too_large_ends_the_connection(client: Client) -> None:
    opened = client.opens("command=cat&stdin=true&stdout=true", V5)
    assert opened.recv() == b"\x01"
    opened.send(render_input(b"x" * (1 << 20)), websocket.ABNF.OPCODE_BINARY)
    opcode, data = opened.recv_data()
    assert (opcode, data[:2]) == (websocket.ABNF.OPCODE_CLOSE, (1009).to_bytes(2))


def test_a_broken_frame_ends_the_connection_alone(client: Client, server: SimulatedServer) -> None:
    opened = client.opens("command=cat&stdin=true&stdout=true", V5)
    assert opened.recv() == b"\x01"
    opened.sock.sendall(b"\xff\xff\xff\xff")
    with pytest.raises(websocket.WebSocketConnectionClosedException):
        opened.recv_data()
    assert kubectl(server, "exec", "plain", "--", "hostname")[0] == 0


def test_a_client_that_does_not_read_is_disconnected(
    client: Client, server: SimulatedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exec_module, "STALL_SECONDS", 0.3)
    before = open_sessions(server)
    opened = client.opens("command=cat&stdin=true&stdout=true", V5)
    with pytest.raises((OSError, websocket.WebSocketException)):
        while True:
            opened.send(render_input(bytes(1 << 18)), websocket.ABNF.OPCODE_BINARY)
    assert open_sessions(server) == before


def test_a_client_that_goes_leaves_nothing_behind(client: Client, server: SimulatedServer) -> None:
    before = open_sessions(server)
    opened = client.opens("command=sleep&command=infinity&stdin=true&stdout=true", V5)
    assert opened.recv() == b"\x01"
    assert open_sessions(server) == before + 1
    opened.sock.shutdown(socket.SHUT_RDWR)
    wait_until("the session ended", lambda: open_sessions(server) == before, SECONDS)


def test_a_program_ends_with_its_container(
    client: Client, server: SimulatedServer, world: World
) -> None:
    opened = client.opens("command=sleep&command=infinity&stdout=true", V5, pod="other")
    copying = client.opens("command=cat&stdin=true&stdout=true", V5, pod="other")
    assert (opened.recv(), copying.recv()) == (b"\x01", b"\x01")
    uid = get_pod(world, "other")["metadata"]["uid"]
    server.do(lambda _: (world.kubelets.kill(uid, "main", 137), live(world, 1)))
    for each in (opened, copying):
        assert parse_end(messages(each)[-1][1:]).exit_code == 137


def test_time_passes_for_a_program(client: Client, server: SimulatedServer, world: World) -> None:
    script = "command=sh&command=-c&command=echo+one%3B+sleep+20%3B+echo+two%3B+exit+4"
    opened = client.opens(f"{script}&stdout=true", V5)
    assert (opened.recv(), opened.recv()) == (b"\x01", b"\x01one\n")
    server.do(lambda _: live(world, 21))
    rest = messages(opened)
    assert rest[0] == b"\x01two\n"
    assert parse_end(rest[-1][1:]).exit_code == 4


def open_sessions(server: SimulatedServer) -> int:
    """Programs that run at the server, each a task."""

    def count(_: object) -> int:
        return sum(
            "_run" in repr(task.get_coro()) and "ExecSession" in repr(task.get_coro())
            for task in asyncio.all_tasks()
        )

    return int(server.do(count))


def test_the_server_ends_while_programs_run(tmp_path: Path) -> None:
    world = world_with_pods()
    with simulated_server(
        tmp_path, world.clock, cluster=world.cluster, programs=world.programs
    ) as server:
        client = Client(server)
        opened = client.opens("command=sleep&command=infinity&stdout=true", V5)
        assert opened.recv() == b"\x01"
    opcode, data = opened.recv_data()
    assert (opcode, data[:2]) == (websocket.ABNF.OPCODE_CLOSE, (1012).to_bytes(2))
    client.close()


def test_a_handshake_that_is_none(server: SimulatedServer) -> None:
    """By hand: a WebSocket of another version, and one without a key."""
    token = yaml.safe_load(server.kubeconfig.read_text())["users"][0]["user"]["token"]
    key = base64.b64encode(bytes(16)).decode()
    for head, status in (
        (f"sec-websocket-key: {key}\r\nsec-websocket-version: 12", 426),
        ("sec-websocket-version: 13", 400),
    ):
        address = urlsplit(server.address)
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        with (
            socket.create_connection((address.hostname, address.port), SECONDS) as plain,
            context.wrap_socket(plain, server_hostname=address.hostname) as secure,
        ):
            secure.sendall(
                f"GET {PODS}/plain/exec?command=true&stdout=true HTTP/1.1\r\nhost: x\r\n"
                f"authorization: Bearer {token}\r\nconnection: upgrade\r\nupgrade: websocket\r\n"
                f"{head}\r\n\r\n".encode()
            )
            assert secure.recv(1000).split()[1] == str(status).encode()
