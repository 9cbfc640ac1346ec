"""Does the Prometheus fixture scrape and answer, and does promtool refuse malformed pages?"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from tests.kube.prometheus import check_metrics, running_prometheus

_PAGE = b"# HELP cards_total Cards seen.\n# TYPE cards_total counter\ncards_total 42\n"


class _Page(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.end_headers()
        self.wfile.write(_PAGE)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


@pytest.fixture
def page_address() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Page)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_page_is_scraped_and_an_expression_evaluated(page_address: str, tmp_path: Path) -> None:
    with running_prometheus({"cards": page_address}, tmp_path / "prometheus.log") as prometheus:
        assert prometheus.wait_for_data("cards_total / 2")[0].value == 21
        assert prometheus.label_values("cards_total", "job") == ["cards"]
        assert [target["health"] for target in prometheus.targets()] == ["up"]
        assert prometheus.query("no_such_metric") == []


def test_promtool_accepts_a_good_page_and_names_what_is_wrong() -> None:
    assert check_metrics(_PAGE.decode()) == ""
    assert "counter metrics should have" in check_metrics(
        "# HELP cards Cards.\n# TYPE cards counter\ncards 1\n"
    )
