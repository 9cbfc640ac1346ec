"""One read of an exporter's page: its values, or one sentence why there are none."""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from tests.waiting import HANG_SECONDS

from fairlead.edge.prometheus import one_page
from fairlead.edge.prometheus.one_page import read_page
from fairlead.errors import OutsideError, UserError


class _Pages(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path != "/metrics":
            self.send_error(404, "Not Found")
            return
        body = b'a{gpu="0"} 1\n\xff\n'
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Writes no log."""


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    pages = ThreadingHTTPServer(("127.0.0.1", 0), _Pages)
    thread = threading.Thread(target=pages.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{pages.server_port}"
    pages.shutdown()
    pages.server_close()
    thread.join(HANG_SECONDS)


def test_its_text(server: str) -> None:
    assert read_page(f"{server}/metrics") == 'a{gpu="0"} 1\n\N{REPLACEMENT CHARACTER}\n'


def test_a_page_that_is_absent(server: str) -> None:
    with pytest.raises(
        OutsideError,
        match=r"`http://127\.0\.0\.1:\d+/` .*\b404\b",
    ):
        read_page(f"{server}/")


def test_a_server_that_is_absent() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(OutsideError, match=rf"`http://127\.0\.0\.1:{port}/metrics`"):
        read_page(f"http://127.0.0.1:{port}/metrics")


def test_a_server_that_sends_nothing_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(one_page, "TIMEOUT_SECONDS", 0.2)
    with (
        socket.create_server(("127.0.0.1", 0)) as silent,
        pytest.raises(OutsideError) as caught,
    ):
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/metrics"
        read_page(url)
    assert caught.value.what == f"the exporter's page `{url}` cannot be read: timed out"


@pytest.mark.parametrize(
    "url",
    [
        "",
        "localhost:9400",
        "https://a/metrics",
        "ftp://a",
        "http://",
        "http://a:x/metrics",
        "http://[::1/metrics",
    ],
)
def test_what_is_no_address(url: str) -> None:
    with pytest.raises(UserError, match=re.escape(f"`{url}`")):
        read_page(url)
