"""A marked password is given in every address that a user writes, and must not appear in any
output.

Inputs: the proxies in the environment, `server` and `proxy-url` of a kubeconfig, `--prometheus`,
`--gpu-exporter`. Outputs: what commands print, the log of a server and its answers, exceptions with
their tracebacks, and bug reports.
"""

from __future__ import annotations

import base64
import logging
import os
import socket
import subprocess
import sys
import threading
import traceback
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.edge.kubeconfigs import connection_of, write_kubeconfig
from tests.edge.scripted import Reply, ScriptedServer
from tests.edge.twins import TWINS
from tests.waiting import HANG_SECONDS, wait_until

from fairlead.edge.connection.connection import checked_proxy, normal_server
from fairlead.edge.kube.api_failure import ApiFailure
from fairlead.edge.prometheus.address import prometheus_connection
from fairlead.edge.prometheus.blocking import PrometheusBlocking
from fairlead.edge.prometheus.one_page import read_page
from fairlead.edge.prometheus.page_address import page_address
from fairlead.errors import FairleadError, UserError
from fairlead.run.bug_report import bug_report
from fairlead.run.log_lines import JsonLine, LogLine
from fairlead.run.main import main

SECRET = "s3cr3t-marker"
LOGIN = f"ann:{SECRET}"
IN_BASE64 = base64.b64encode(LOGIN.encode()).decode()
PROXIES = ("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy")


class RefusingProxy:
    """Answers every request with 407. `heads`: the heads of the clients' requests."""

    def __init__(self) -> None:
        self.heads: list[bytes] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.host = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            with client:
                self.heads.append(client.recv(65536))
                client.sendall(
                    b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: "
                    b"0\r\nConnection: close\r\n\r\n"
                )

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(HANG_SECONDS)


@pytest.fixture(scope="module")
def refusing() -> Iterator[RefusingProxy]:
    proxy = RefusingProxy()
    yield proxy
    proxy.close()


@pytest.fixture(autouse=True)
def _no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*PROXIES, "NO_PROXY", "no_proxy", "KUBECONFIG"):
        monkeypatch.delenv(name, raising=False)


def shut() -> str:
    """A host and a port on which no process listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return f"127.0.0.1:{listener.getsockname()[1]}"


def clean(text: str) -> bool:
    return SECRET not in text and IN_BASE64 not in text


WAYS_IN: dict[str, tuple[dict[str, str], dict[str, str]]] = {
    "HTTPS_PROXY": ({"server": "https://api.invalid:6443"}, {"HTTPS_PROXY": "http://LOGIN@PROXY"}),
    "https_proxy, without a scheme": (
        {"server": "https://api.invalid:6443"},
        {"https_proxy": "LOGIN@PROXY"},
    ),
    "HTTP_PROXY": ({"server": "http://api.invalid:8080"}, {"HTTP_PROXY": "http://LOGIN@PROXY"}),
    "a socks proxy of the environment": (
        {"server": "https://api.invalid:6443"},
        {"HTTPS_PROXY": "socks5://LOGIN@PROXY"},
    ),
    "a password with a slash": (
        {"server": "https://api.invalid:6443"},
        {"HTTPS_PROXY": "http://ann:/LOGIN@PROXY"},
    ),
    "proxy-url": ({"server": "https://api.invalid:6443", "proxy-url": "http://LOGIN@PROXY"}, {}),
    "a proxy-url that is none": (
        {"server": "https://api.invalid:6443", "proxy-url": "socks5://LOGIN@PROXY"},
        {},
    ),
    "server": ({"server": "http://LOGIN@PROXY"}, {}),
    "a server with TLS": ({"server": "https://LOGIN@PROXY"}, {}),
    "a server that is none": ({"server": "ftp://LOGIN@PROXY"}, {}),
    "a server with an unusable port": ({"server": "https://LOGIN@PROXY:x"}, {}),
    "a server whose password has a slash": ({"server": "https://ann:1/LOGIN@PROXY"}, {}),
}


def filled(text: str, proxy: str) -> str:
    return text.replace("LOGIN", LOGIN).replace("PROXY", proxy)


@pytest.fixture(params=WAYS_IN.values(), ids=list(WAYS_IN))
def way(request: pytest.FixtureRequest) -> tuple[dict[str, str], dict[str, str]]:
    chosen: tuple[dict[str, str], dict[str, str]] = request.param
    return chosen


def prepared(
    way: tuple[dict[str, str], dict[str, str]],
    host: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Path:
    cluster, env = way
    for name, value in env.items():
        monkeypatch.setenv(name, filled(value, host))
    return write_kubeconfig(
        tmp_path / "config",
        cluster={key: filled(value, host) for key, value in cluster.items()},
        user={"token": "t"},
    )


@pytest.mark.parametrize("place", ["refusing", "shut"])
@pytest.mark.parametrize("program", ["arena", "fairlead"])
def test_commands_do_not_print_it(
    way: Any,
    program: str,
    place: str,
    refusing: RefusingProxy,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Any,
) -> None:
    path = prepared(way, refusing.host if place == "refusing" else shut(), tmp_path, monkeypatch)
    argv = [
        *("list" if program == "arena" else "top node").split(),
        "--kubeconfig",
        str(path),
        "--loglevel",
        "debug",
    ]
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    status = main(program, argv)
    printed = capsys.readouterr()
    assert status in (1, 2) and printed.err
    assert clean(printed.out + printed.err)


@pytest.mark.parametrize("twin", TWINS.values(), ids=list(TWINS))
@pytest.mark.parametrize("place", ["refusing", "shut"])
def test_clients_put_it_into_no_exception_and_no_log(
    way: Any,
    twin: Any,
    place: str,
    refusing: RefusingProxy,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    path = prepared(way, refusing.host if place == "refusing" else shut(), tmp_path, monkeypatch)
    with pytest.raises((FairleadError, ValueError)) as failed:
        twin(connection_of(path)).call("version")
    logging.getLogger("beside").exception("it failed", exc_info=failed.value)
    message = "".join(traceback.format_exception(failed.value)) + repr(failed.value)
    assert clean(message)
    assert clean(caplog.text)
    assert clean(bug_report("fairlead", ["console"], failed.value))
    if isinstance(failed.value, FairleadError):
        assert clean(f"{failed.value.what}{failed.value.hint}")


@pytest.mark.parametrize("twin", TWINS.values(), ids=list(TWINS))
@pytest.mark.parametrize("place", ["refusing", "shut"])
def test_the_hint_names_the_proxy_that_refused_or_is_absent(
    twin: Any, place: str, refusing: RefusingProxy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = refusing.host if place == "refusing" else shut()
    path = prepared(WAYS_IN["HTTPS_PROXY"], host, tmp_path, monkeypatch)
    with pytest.raises(ApiFailure) as failed:
        twin(connection_of(path)).call("version")
    assert f"proxy `http://{host}`" in failed.value.hint
    if place == "refusing":
        # the client still logs in
        assert (f"proxy-authorization: basic {IN_BASE64}").lower() in refusing.heads[
            -1
        ].decode().lower()


@pytest.mark.parametrize("twin", TWINS.values(), ids=list(TWINS))
def test_the_server_gets_the_login_of_its_address_before_that_of_the_user_as_in_client_go(
    twin: Any, tmp_path: Path
) -> None:
    with ScriptedServer({"/version": [Reply({"gitVersion": "v1.34.0"})]}) as server:
        address = server.url.replace("://", f"://{LOGIN}@")
        path = write_kubeconfig(
            tmp_path / "config", cluster={"server": address}, user={"token": "t"}
        )
        twin(connection_of(path)).call("version")
        assert server.seen[0].headers["authorization"] == f"Basic {IN_BASE64}"


ADDRESSES = [
    f"{scheme}://{LOGIN}@{rest}"
    for scheme in ("http", "ftp")
    for rest in ("[::1", "host:x", "host x", ":9", "host:0", "h/a@b", "h?a@b")
] + [f"http://ann:1{sign}{SECRET}@host:9400/metrics" for sign in "/?#@"]


@pytest.mark.parametrize("address", ADDRESSES)
def test_addresses_that_are_refused_are_shown_without_it(address: str) -> None:
    def reported(call: Any, *arguments: Any) -> str:
        try:
            found = call(*arguments)
        except UserError as error:
            return f"{error.what} {error.hint}"
        return str(getattr(found, "server", getattr(found, "url", "")))

    assert clean(reported(page_address, address))
    assert clean(reported(prometheus_connection, address))
    assert (
        SECRET not in reported(lambda text: normal_server(text, has_tls=True), address)
        or "@host" not in address
    )
    assert clean(reported(checked_proxy, address.replace("http:", "socks5:")))


def test_a_page_and_a_prometheus_that_cannot_be_reached_do_not_report_it(
    refusing: RefusingProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", f"http://{LOGIN}@{refusing.host}")
    address = f"http://{LOGIN}@metrics.invalid:9090"
    for call in (
        lambda: read_page(address),
        lambda: PrometheusBlocking(prometheus_connection(address)).query("up"),
    ):
        with pytest.raises(FairleadError) as failed:
            call()
        assert clean("".join(traceback.format_exception(failed.value)) + failed.value.hint)


@pytest.mark.parametrize("form", [LogLine(), JsonLine()])
def test_a_line_of_the_log_has_no_userinfo_even_of_a_library(form: logging.Formatter) -> None:
    try:
        raise ValueError(f"http://{LOGIN}@proxy:1")
    except ValueError:
        record = logging.LogRecord(
            "x", logging.ERROR, "f", 1, "to https://%s@host", (LOGIN,), sys.exc_info()
        )
    line = form.format(record)
    assert clean(line) and "https://host" in line and "http://proxy:1" in line


def test_a_console_neither_answers_nor_logs_it(refusing: RefusingProxy, tmp_path: Path) -> None:
    path = write_kubeconfig(
        tmp_path / "config",
        cluster={
            "server": f"https://{LOGIN}@api.invalid",
            "proxy-url": f"http://{LOGIN}@{refusing.host}",
        },
    )
    env = {key: value for key, value in os.environ.items() if key not in PROXIES}
    env |= {"XDG_STATE_HOME": str(tmp_path), "HTTP_PROXY": f"http://{LOGIN}@{refusing.host}"}
    flags = [f"--prometheus=http://{LOGIN}@{shut()}", f"--kubeconfig={path}", "--loglevel=debug"]
    host = shut()
    log = tmp_path / "log"
    program = [
        sys.executable,
        "-c",
        (
            "import sys; from fairlead.run.main import main; "
            "sys.exit(main('fairlead', sys.argv[1:]))"
        ),
    ]
    with log.open("wb") as file:
        process = subprocess.Popen(
            [*program, "console", f"--listen={host}", *flags], stdout=file, stderr=file, env=env
        )
    try:
        wait_until(
            log.read_text,
            lambda: (
                process.poll() is not None
                or "cannot be read" in _answer(host, "/readyz") + log.read_text()
            ),
            60,
        )
        answers = {
            name: _answer(host, name)
            for name in ("/readyz", "/api/v1/overview", "/api/v1/health", "/metrics")
        }
    finally:
        process.terminate()
        process.wait(HANG_SECONDS)
    assert f"proxy `http://{refusing.host}`" in log.read_text() + "".join(answers.values()), (
        log.read_text()
    )
    assert clean(log.read_text())
    assert {name: clean(text) for name, text in answers.items()} == dict.fromkeys(answers, True)


def _answer(host: str, path: str) -> str:
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with direct.open(f"http://{host}{path}", timeout=HANG_SECONDS) as response:
            return str(response.read().decode())
    except urllib.error.HTTPError as error:
        with error:
            return error.read().decode()
    except OSError:
        return ""
