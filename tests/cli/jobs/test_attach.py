"""`arena attach` against a server that speaks the API server's protocol and really runs the
commands, over TLS with a test authority.
"""

from __future__ import annotations

import asyncio
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from tests.cli.arena import PROGRAM, run_main
from tests.cli.command import run_command
from tests.cli.job_objects import cluster, job_pod
from tests.cli.jobs.attaching import CA, POD_LIST, SECONDS, environment, eventually, jobs
from tests.cli.jobs.scripted_jobs import MPI, PODS, listed
from tests.edge.exec_server import STATUS, STDOUT, ExecServer, ended
from tests.edge.scripted import Reply, status

from fairlead.errors import UserError

CHIEF = "bert-launcher-x"


@pytest.fixture(scope="module")
def server() -> Iterator[ExecServer]:
    with ExecServer(jobs(), CA.issue("api")) as running:
        yield running


def attach(
    folder: Path, server: ExecServer, *words: str, stdin: bytes = b""
) -> subprocess.CompletedProcess[bytes]:
    argv = [*PROGRAM, "attach", *words]
    return subprocess.run(
        argv,
        input=stdin,
        capture_output=True,
        timeout=SECONDS,
        env=environment(folder, server),
        check=False,
    )


def attach_here(folder: Path, server: ExecServer, *words: str) -> subprocess.CompletedProcess[str]:
    """Runs `arena attach` in this process, whose stdin is empty."""
    return run_main("arena", ["attach", *words], environment(folder, server))


def start(
    folder: Path, server: ExecServer, *words: str, stdin: int = subprocess.PIPE
) -> subprocess.Popen[bytes]:
    argv = [*PROGRAM, "attach", *words]
    return subprocess.Popen(
        argv,
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(folder, server),
    )


def test_a_command_with_its_streams_and_its_exit_code(tmp_path: Path, server: ExecServer) -> None:
    done = attach(tmp_path, server, "bert", "--", "sh", "-c", "echo out; echo err >&2; exit 3")
    assert (done.returncode, done.stdout) == (3, b"out\n")
    first, last = done.stderr.splitlines()
    assert first == b"err" and b'msg="command terminated with exit code 3"' in last
    asked = server.executed[-1]
    assert asked.path == f"{POD_LIST}/{CHIEF}/exec"
    assert asked.query == {
        "container": "main",
        "command": "sh",
        "stdin": "true",
        "stdout": "true",
        "stderr": "true",
    }


def test_bytes_go_through_as_they_are_and_the_end_of_stdin_is_reported(
    tmp_path: Path, server: ExecServer
) -> None:
    data = bytes(range(256)) * 8192
    done = attach(tmp_path, server, "bert", "--", "cat", stdin=data)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout == data


def test_without_a_command_it_is_a_shell(tmp_path: Path, server: ExecServer) -> None:
    done = attach(tmp_path, server, "bert", stdin=b"echo $((6 * 7)); exit 5\n")
    assert (done.returncode, done.stdout) == (5, b"42\n")


def test_the_pod_and_the_container_that_are_named(tmp_path: Path, server: ExecServer) -> None:
    assert (
        attach_here(
            tmp_path, server, "bert", "-i", "bert-worker-0", "-c", "main", "--", "true"
        ).returncode
        == 0
    )
    assert server.executed[-1].path == f"{POD_LIST}/bert-worker-0/exec"
    before = len(server.executed)
    pod, container = (
        attach_here(tmp_path, server, "bert", "-i", "x"),
        attach_here(tmp_path, server, "bert", "-c", "x"),
    )
    assert (
        "invalid instance name x in job bert,please use 'arena get bert' to make sure instance name"
    ) in pod.stderr
    assert "container x is not valid for pod bert-launcher-x" in container.stderr
    assert (pod.returncode, container.returncode, len(server.executed)) == (1, 1, before)


def test_flags_of_the_command_are_its_own(tmp_path: Path, server: ExecServer) -> None:
    assert (
        attach_here(
            tmp_path, server, "-n", "default", "bert", "--", "echo", "--help", "-n", "top"
        ).stdout
        == "--help -n top\n"
    )


def test_a_job_must_be_named(tmp_path: Path, server: ExecServer) -> None:
    done = attach_here(tmp_path, server)
    assert done.returncode == 1 and "not set job name,please set it" in done.stderr


def test_what_cannot_be_attached_to_is_reported_before_anything_is_asked(tmp_path: Path) -> None:
    finished = job_pod(MPI, CHIEF, "launcher", on="n1", phase="Succeeded", owner="Job")
    with ExecServer(jobs(finished), CA.issue("api")) as server:
        over = attach_here(tmp_path, server, "bert")
        server.script[POD_LIST] = [listed([])]
        none, absent = attach_here(tmp_path, server, "bert"), attach_here(tmp_path, server, "nope")
        assert server.executed == []
    assert (
        "cannot exec into a container in a completed Instance; current phase is Succeeded"
    ) in over.stderr
    assert f"`arena logs bert -n default -i {CHIEF}`" in over.stderr
    assert "not found instances of the job bert" in none.stderr
    assert (
        "training job not found,please use 'arena list' to make sure job is existed"
    ) in absent.stderr
    assert (over.returncode, none.returncode, absent.returncode) == (1, 1, 1)


@pytest.mark.parametrize(
    ("refusal", "message"),
    [
        (
            status(403, "Forbidden", 'User "eve" cannot create resource "pods/exec"'),
            'User \\"eve\\" cannot create resource \\"pods/exec\\"',
        ),
        (
            status(400, "BadRequest", "pod bert-launcher-x does not have a host assigned"),
            "does not have a host assigned",
        ),
        (
            status(404, "NotFound", ('pods "bert-launcher-x" not found')),
            ('pods \\"bert-launcher-x\\" not found'),
        ),
        (
            status(501, "NotImplemented", "pod x runs in a simulated cluster"),
            "pod x runs in a simulated cluster",
        ),
        (Reply(b"", 403), "this needs Kubernetes 1.30 or later"),
        (Reply(b"<html>no upgrades here</html>", 200), "no upgrades here"),
        (
            Reply((b'unable to upgrade connection: container not found ("main")'), 500),
            ('container not found (\\"main\\")'),
        ),
    ],
)
def test_a_server_that_refuses_is_quoted(
    refusal: Reply, message: str, tmp_path: Path, server: ExecServer
) -> None:
    server.refusal = refusal
    try:
        done = attach_here(tmp_path, server, "bert")
    finally:
        server.refusal = None
    assert (done.returncode, done.stdout) == (1, "")
    assert message in done.stderr and "Traceback" not in done.stderr


def test_a_server_that_speaks_no_v5_is_too_old(tmp_path: Path, server: ExecServer) -> None:
    server.protocols = ("v4.channel.k8s.io",)
    try:
        done = attach_here(tmp_path, server, "bert")
    finally:
        server.protocols = ("v5.channel.k8s.io",)
    assert done.returncode == 1
    assert (
        "does not speak `v5.channel.k8s.io`" in done.stderr
        and ("this needs Kubernetes 1.30 or later") in done.stderr
    )


NOT_FOUND = (
    b'{"status":"Failure","reason":"InternalError","message":"container not found '
    b'(\\"main\\")","code":500}'
)


async def _not_found(_: web.Request, socket: web.WebSocketResponse) -> None:
    await socket.send_bytes(bytes([STATUS]) + NOT_FOUND)
    await socket.close()


async def _hang_up(_: web.Request, socket: web.WebSocketResponse) -> None:
    await socket.send_bytes(bytes([STDOUT]) + b"half\n")
    await socket.close(code=1011, message=b"kubelet is away")


async def _die(request: web.Request, socket: web.WebSocketResponse) -> None:
    await socket.send_bytes(bytes([STDOUT]) + b"half\n")
    await asyncio.sleep(0.1)
    assert request.transport is not None
    request.transport.abort()


async def _rubbish(request: web.Request, _: web.WebSocketResponse) -> None:
    assert request.transport is not None
    request.transport.write(b"\xff\xff\xff\xff not a frame")
    await asyncio.sleep(SECONDS)


async def _text(_: web.Request, socket: web.WebSocketResponse) -> None:
    await socket.send_str("hello")
    await asyncio.sleep(SECONDS)


async def _no_status(_: web.Request, socket: web.WebSocketResponse) -> None:
    await socket.send_bytes(bytes([STATUS]) + b"done")
    await asyncio.sleep(SECONDS)


@pytest.mark.parametrize(
    ("on_exec", "stdout", "message"),
    [
        (_not_found, "", 'container not found (\\"main\\")'),
        (_hang_up, "half\n", "the API server hung up before the command ended: kubelet is away"),
        (_die, "half\n", "API server"),
        (_rubbish, "", "does not speak WebSocket as it should"),
        (_text, "", "does not speak WebSocket as it should"),
        (_no_status, "", "did not report with a Status how the command ended"),
    ],
)
def test_a_command_that_does_not_come_to_its_end_is_an_error(
    on_exec: Any, stdout: str, message: str, tmp_path: Path
) -> None:
    with ExecServer(jobs(), CA.issue("api"), on_exec=on_exec) as server:
        done = attach_here(tmp_path, server, "bert")
    assert (done.returncode, done.stdout) == (1, stdout)
    assert message in done.stderr
    assert "Traceback" not in done.stderr and "this is a bug" not in done.stderr


async def _windows(_: web.Request, socket: web.WebSocketResponse) -> None:
    await socket.send_bytes(bytes([STATUS]) + ended(256))
    await socket.close()


async def _enough(request: web.Request, socket: web.WebSocketResponse) -> None:
    """Closes the connection while more stdin is under way, as the API server does when a command
    ends without reading all of it.
    """
    await socket.receive()
    await socket.send_bytes(bytes([STDOUT]) + b"first\n")
    await socket.send_bytes(bytes([STATUS]) + ended(4))
    assert request.transport is not None
    request.transport.close()


def test_a_command_that_wants_no_more_of_its_stdin_ends_with_its_own_status(tmp_path: Path) -> None:
    with ExecServer(jobs(), CA.issue("api"), on_exec=_enough) as server:
        done = attach(tmp_path, server, "bert", "--", "head", "-1", stdin=bytes(1 << 24))
    assert (done.returncode, done.stdout) == (4, b"first\n"), done.stderr


def test_a_great_exit_code_does_not_become_a_success(tmp_path: Path) -> None:
    with ExecServer(jobs(), CA.issue("api"), on_exec=_windows) as server:
        done = attach_here(tmp_path, server, "bert")
    assert done.returncode == 255 and "command terminated with exit code 256" in done.stderr


def test_a_reader_who_has_seen_enough_is_no_failure_and_the_command_is_let_go(
    tmp_path: Path, server: ExecServer
) -> None:
    before, running = server.killed, start(tmp_path, server, "bert", "--", "yes")
    assert running.stdout is not None and running.stderr is not None and running.stdin is not None
    assert running.stdout.readline() == b"y\n"
    running.stdout.close()
    assert running.wait(SECONDS) == 0
    assert running.stderr.read() == b""
    running.stdin.close()
    eventually(lambda: server.killed == before + 1, "the command lost its caller")


def test_ctrl_c_ends_a_command_that_has_no_terminal(tmp_path: Path, server: ExecServer) -> None:
    before, running = (
        server.killed,
        start(tmp_path, server, "bert", "--", "sh", "-c", "echo ready; sleep 1000"),
    )
    assert running.stdout is not None and running.stdout.readline() == b"ready\n"
    running.send_signal(signal.SIGINT)
    _, stderr = running.communicate(timeout=SECONDS)
    assert (running.returncode, stderr) == (130, b"")
    eventually(lambda: server.killed == before + 1, "the command lost its caller")


def test_a_closed_stdin_is_an_empty_one(tmp_path: Path, server: ExecServer) -> None:
    line = " ".join(
        ["exec", f"'{PROGRAM[0]}'", "-c", f"'{PROGRAM[2]}'", "attach bert -- wc -c <&-"]
    )
    done = subprocess.run(
        ["sh", "-c", line],
        capture_output=True,
        timeout=SECONDS,
        env=environment(tmp_path, server),
        check=False,
    )
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, b"0", b"")


def test_a_stdin_that_cannot_be_read_is_reported(tmp_path: Path, server: ExecServer) -> None:
    with (tmp_path / "written").open("wb") as only_written:
        running = start(tmp_path, server, "bert", "--", "cat", stdin=only_written.fileno())
        _, stderr = running.communicate(timeout=SECONDS)
    assert running.returncode == 1 and b"stdin cannot be read: Bad file descriptor" in stderr


def test_where_nothing_runs_there_is_nothing_to_attach_to() -> None:
    with pytest.raises(UserError) as caught:
        run_command("attach bert", cluster([MPI], PODS))
    assert caught.value.what == "a snapshot of the tests has no programs that run"
