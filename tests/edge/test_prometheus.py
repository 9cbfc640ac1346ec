"""Both Prometheus clients against a scripted server: the requests, the numbers, and errors with the
address.
"""

from __future__ import annotations

import asyncio
import math
import re
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest
from tests.edge.pki import Authority
from tests.edge.scripted import Reply, ScriptedServer, Stream

from fairlead.edge.prometheus.address import prometheus_connection
from fairlead.edge.prometheus.answer import TIMEOUT_SECONDS, PrometheusFailure
from fairlead.edge.prometheus.blocking import PrometheusBlocking
from fairlead.edge.prometheus.client import Prometheus
from fairlead.errors import OutsideError, UserError

CA = Authority()
Call = Callable[..., Any]


@pytest.fixture(params=["async", "blocking"])
def ask(request: pytest.FixtureRequest) -> Call:
    def call(
        address: str,
        method: str,
        *arguments: Any,
        timeout_seconds: float = TIMEOUT_SECONDS,
        **settings: str,
    ) -> Any:
        connection = prometheus_connection(address, **settings)
        if request.param == "blocking":
            return getattr(PrometheusBlocking(connection, timeout_seconds), method)(*arguments)

        async def run() -> Any:
            async with Prometheus(connection) as prometheus:
                return await getattr(prometheus, method)(*arguments)

        return asyncio.run(run())

    return call


def vector(*samples: tuple[dict[str, str], str]) -> Reply:
    result = [{"metric": labels, "value": [1767600000.123, text]} for labels, text in samples]
    return Reply({"status": "success", "data": {"resultType": "vector", "result": result}})


def test_an_instant_query_is_posted_and_read(ask: Call) -> None:
    script: dict[str, list[Reply | Stream]] = {
        "/prom/api/v1/query": [vector(({"node": "a"}, "1.5"), ({"node": "b"}, "+Inf"), ({}, "NaN"))]
    }
    with ScriptedServer(script) as server:
        samples = ask(server.url + "/prom/", "query", 'sum by (node) (up{job="a b"})', 1767600000.0)
        seen = server.seen[0]
    assert (seen.method, parse_qs(seen.body.decode())) == (
        "POST",
        {"query": [('sum by (node) (up{job="a b"})')], "time": ["1767600000.000"]},
    )
    assert seen.headers["content-type"] == "application/x-www-form-urlencoded"
    assert [(each.labels, each.at) for each in samples[:2]] == [
        ({"node": "a"}, 1767600000.123),
        ({"node": "b"}, 1767600000.123),
    ]
    assert (samples[0].value, samples[1].value) == (1.5, math.inf)
    assert math.isnan(samples[2].value)


def test_a_scalar_is_one_sample_without_labels(ask: Call) -> None:
    reply = Reply({"status": "success", "data": {"resultType": "scalar", "result": [5, "3"]}})
    with ScriptedServer({"/api/v1/query": [reply]}) as server:
        [sample] = ask(server.url, "query", "3")
    assert (sample.labels, sample.at, sample.value) == ({}, 5, 3.0)


def test_a_range_query_shows_holes_as_gaps(ask: Call) -> None:
    result = [{"metric": {"gpu": "0"}, "values": [[0, "1"], [15, "2"], [60, "NaN"], [75, "4"]]}]
    reply = Reply(
        {"status": "success", "data": {"resultType": "matrix", "result": result}, "warnings": ["x"]}
    )
    with ScriptedServer({"/api/v1/query_range": [reply]}) as server:
        [line] = ask(server.url, "query_range", "m", 0.0, 75.0, 15.0)
        assert parse_qs(server.seen[0].body.decode()) == {
            "query": ["m"],
            "start": ["0.000"],
            "end": ["75.000"],
            "step": ["15"],
        }
    assert line.labels == {"gpu": "0"}
    assert line.points == ((0, 1.0), (15, 2.0), (30, None), (60, None), (75, 4.0))


def test_token_file_and_ca_are_used(ask: Call, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("t1\n")
    (tmp_path / "ca").write_bytes(CA.pem)
    with ScriptedServer({"/api/v1/query": [vector()]}, CA.issue("p")) as server:
        assert (
            ask(
                server.url,
                "query",
                "up",
                token_file=str(tmp_path / "token"),
                ca_file=str(tmp_path / "ca"),
            )
            == []
        )
        assert ask(server.url, "query", "up", token="t2", ca_file=str(tmp_path / "ca")) == []
        assert (
            ask(
                server.url.replace("//", "//ann:p%40ss@"),
                "query",
                "up",
                ca_file=str(tmp_path / "ca"),
            )
            == []
        )
        assert [seen.headers["authorization"] for seen in server.seen] == [
            "Bearer t1",
            "Bearer t2",
            "Basic YW5uOnBAc3M=",
        ]
        (tmp_path / "ca").write_bytes(Authority("other").pem)
        with pytest.raises(PrometheusFailure) as caught:
            ask(server.url, "query", "up", ca_file=str(tmp_path / "ca"))
        sentence = f"the certificate of Prometheus `{server.url}` is not trusted: "
        assert caught.value.what.startswith(sentence)


FAILURES: dict[str, tuple[Reply, str, str]] = {
    "bad expression": (
        Reply(
            {"status": "error", "errorType": "bad_data", "error": "parse error: unexpected end"},
            400,
        ),
        "400: parse error: unexpected end",
        "expression",
    ),
    "no right": (Reply(b"Unauthorized\n", 401), "401: Unauthorized", "token"),
    "a log-in page": (
        Reply(b"<html>\n  <b>please log in</b>", 200),
        "<html> <b>please log in</b>",
        "address",
    ),
    "an empty answer": (Reply(b"", 200), "not Prometheus' JSON", "address"),
    "success without data": (Reply({"status": "success"}), "no reason given", "address"),
    "a string": (
        Reply({"status": "success", "data": {"resultType": "string", "result": [1, "x"]}}),
        "a `string` that cannot be read",
        "",
    ),
}


@pytest.mark.parametrize(("reply", "words", "hint"), FAILURES.values(), ids=FAILURES.keys())
def test_a_failure_names_the_address_and_the_reason(
    ask: Call, reply: Reply, words: str, hint: str
) -> None:
    with (
        ScriptedServer({"/api/v1/query": [reply]}) as server,
        pytest.raises(OutsideError) as caught,
    ):
        ask(server.url, "query", "up")
    assert caught.value.system == "prometheus"
    assert server.url in caught.value.what
    assert words in caught.value.what
    assert hint in caught.value.hint


def test_an_address_without_a_listener_is_reported(ask: Call) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
    with pytest.raises(PrometheusFailure, match=rf"`{url}` refused\b"):
        ask(url, "query", "up")


def test_one_that_never_answers_is_given_up(ask: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairlead.edge.prometheus.client.TIMEOUT_SECONDS", 0.2)
    with (
        ScriptedServer({"/api/v1/query": [Reply(b"{}", delay=5)]}) as server,
        pytest.raises(PrometheusFailure) as caught,
    ):
        ask(server.url, "query", "up", timeout_seconds=0.2)
    assert caught.value.what == f"Prometheus `{server.url}` did not answer in time"


@pytest.mark.parametrize("address", ["", "http://", "ftp://x", "http://x:port", "http://a b"])
def test_what_cannot_be_an_address_is_refused(address: str) -> None:
    with pytest.raises(UserError, match=re.escape(f"`{address}`")):
        prometheus_connection(address)


def test_a_bare_host_gets_http() -> None:
    assert prometheus_connection("prom.example:9090").server == "http://prom.example:9090"
