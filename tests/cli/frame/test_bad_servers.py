"""Every command against servers that refuse, fail, answer with garbage, stop in the middle or do
not answer: it prints an error, and never a traceback.

Specific cases and their messages are in the tests of each command; this module combines all
commands with all answers.
"""

from __future__ import annotations

import json
import logging
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
from tests.cli.arena import kubeconfig

from fairlead.cli.frame.verbs import verbs_of
from fairlead.edge.connection import exec_plugin
from fairlead.edge.kube import conversation, kube_blocking
from fairlead.run.main import main

SUBMIT = "--name=a --image=i:1 --workers=1 --gpus=1 run"
LINES = {
    "list": "list -A -o json",
    "get": "get a -e",
    "logs": "logs a",
    "attach": "attach a -- true",
    "delete": "delete a b",
    "prune": "prune --since 1h",
    "top node": "top node -d --metric",
    "top job": "top job a",
    "submit mpijob": f"submit mpijob {SUBMIT}",
    "submit tfjob": f"submit tfjob {SUBMIT}",
    "submit pytorchjob": f"submit pytorchjob --tensorboard -p high {SUBMIT}",
    "submit rayjob": "submit rayjob --name=a --image=i:1 --worker-replicas=1 run",
    "whoami": "whoami",
    "serve list": "serve list -A",
    "data list": "data list -A",
    "dataset list": "dataset list -A",
    "dataset add": "dataset add a --mount s3://a",
    "dataset scale": "dataset scale a --workers 2",
    "operation list": "operation list",
    "component list": "component list",
}
"""The command lines of commands that need more than a name; all others are called with the command
and a name (which the command may refuse).
"""
OFFLINE = {"version", "completion"}


def line_of(name: str) -> str:
    return LINES.get(name, f"{name} a")


def answer(status: int, reason: str, message: str, headers: str = "") -> bytes:
    body = json.dumps(
        {
            "kind": "Status",
            "status": "Failure",
            "reason": reason,
            "message": message,
            "code": status,
        }
    ).encode()
    return (
        f"HTTP/1.1 {status} {reason}\r\nContent-Type: "
        f"application/json\r\n{headers}Content-Length: {len(body)}\r\n\r\n"
    ).encode() + body


def good(body: bytes, length: int | None = None, content_type: str = "application/json") -> bytes:
    return (
        f"HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\nContent-Length: "
        f"{length or len(body)}\r\n\r\n"
    ).encode() + body


ANSWERS = {
    "400": answer(400, "BadRequest", "no"),
    "403": answer(403, "Forbidden", 'is forbidden: User "eve" cannot do it'),
    "404": answer(404, "NotFound", "the server could not find the requested resource"),
    "410": answer(410, "Expired", "too old resource version"),
    "429": answer(429, "TooManyRequests", "too many requests"),
    "429 with a time": answer(429, "TooManyRequests", "too many requests", "Retry-After: 1\r\n"),
    "500": answer(500, "InternalError", "etcdserver: request timed out"),
    "503": answer(
        503, "ServiceUnavailable", "the server is currently unable to handle the request"
    ),
    "a redirect": (
        b"HTTP/1.1 302 Found\r\nLocation: https://elsewhere/\r\nContent-Length: 0\r\n\r\n"
    ),
    "a page of HTML": good(b"<html>log in first</html>", content_type="text/html"),
    "no object": good(b"[1, 2]"),
    "null": good(b"null"),
    "the wrong types": good(
        b'{"metadata": [], "items": {"a": 1}, "groups": 3, "status": "x", "spec": 7, "kind": []}'
    ),
    "items that are none": good(
        b'{"kind":"APIGroupDiscoveryList","metadata":{"name":"a","uid":1},"items":[null, 3, '
        b'{"metadata": 5}]}'
    ),
    "bytes that are no text": good(b'{"metadata": {"name": "\xff\xfe"}}'),
    "an endless number": good(
        (b'{"items": [{"metadata": {"name": "a", "creationTimestamp": 1') + b"0" * 5000 + b"}}]}"
    ),
    "deep brackets": good(b"[" * 20_000),
    "half an answer": good(b'{"metadata": {}, "items": [', 5000),
    "half a header": b"HTTP/1.1 200 OK\r\nContent-Ty",
    "another protocol": b"SSH-2.0-OpenSSH_9.2\r\n",
    "nothing": b"",
}
SILENCE = "it never answers"


@contextmanager
def server(reply: bytes | None) -> Iterator[str]:
    """A server that answers every request with the same bytes and closes the connection; with None
    it accepts connections and never answers.
    """
    listener = socket.create_server(("127.0.0.1", 0))
    lines: list[socket.socket] = []

    def serve() -> None:
        while True:
            try:
                line, _ = listener.accept()
            except OSError:
                return
            lines.append(line)
            if reply is not None:
                threading.Thread(target=speak, args=(line,), daemon=True).start()

    def speak(line: socket.socket) -> None:
        with line:
            try:
                line.recv(1 << 16)
                line.sendall(reply or b"")
            except OSError:
                pass

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        listener.close()
        for line in lines:
            line.close()


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Shortens every wait that a server may ask for, and hides the user's files."""
    monkeypatch.setattr(
        kube_blocking, "KubeBlocking", partial(kube_blocking.KubeBlocking, read_seconds=0.2)
    )
    monkeypatch.setattr(kube_blocking, "READ_SECONDS", 0.2)
    monkeypatch.setattr(conversation, "PATIENCE_SECONDS", 0.5)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)


def ended(line: str, config: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    status = main("arena", [*line.split()[:1], f"--kubeconfig={config}", *line.split()[1:]])
    logger = logging.getLogger("fairlead")
    logger.handlers.clear()  # it writes to the stderr of this call; a real program makes one call
    logger.propagate = True
    return status, *capsys.readouterr()


@pytest.mark.parametrize(
    "name", [verb.name for verb in verbs_of("arena") if verb.name not in OFFLINE]
)
def test_every_command_and_every_answer(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = []
    for printed, reply in {**ANSWERS, SILENCE: None}.items():
        with server(reply) as url:
            status, out, err = ended(line_of(name), kubeconfig(tmp_path, url), capsys)
        is_bug = status not in (0, 1) or "this is a bug" in err or "Traceback" in err
        if is_bug or not (out or err) or ("level=error" in err) is not (status == 1):
            wrong.append((printed, status, out, err))
    assert wrong == []
    assert not list(tmp_path.rglob("reports"))


@pytest.mark.parametrize(
    ("plugin", "message"),
    [
        ("echo 'log in first' >&2; exit 3", "ended with status 3: log in first"),
        ("echo hello", "is not an ExecCredential"),
        ("printf '\\377\\376'", "is not an ExecCredential"),
        ("kill -9 $$", "status -9"),
        ("sleep 600", "gave no answer within"),
    ],
)
@pytest.mark.parametrize("line", ["list", "top node", f"submit mpijob {SUBMIT}"])
def test_a_credential_plugin_that_does_not_work(
    plugin: str,
    message: str,
    line: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(exec_plugin, "TIMEOUT_SECONDS", 0.5)
    config = kubeconfig(tmp_path, "http://127.0.0.1:1")
    document = json.loads(config.read_text())
    entry = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": "sh",
        "args": ["-c", plugin],
        "interactiveMode": "Never",
    }
    document["users"] = [{"name": "u", "user": {"exec": entry}}]
    document["contexts"][0]["context"]["user"] = "u"
    config.write_text(json.dumps(document))
    status, out, err = ended(line, config, capsys)
    assert (status, out) == (1, "")
    assert "exec plugin `sh` of user `u`" in err and message in err, err
    assert err.count("level=error") == 1 and "this is a bug" not in err
