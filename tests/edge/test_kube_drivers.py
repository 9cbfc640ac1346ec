"""Both drivers of the conversation with an API server, over real sockets: TLS, proxies, connections
that break, and whole lists.

The contents of requests are tested in `test_conversation`, without a driver.
"""

from __future__ import annotations

import asyncio
import gzip
import re
import socket
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cryptography import x509
from tests.edge.pki import Authority
from tests.edge.proxy import TestProxy
from tests.edge.scripted import Reply, ScriptedServer, Stream, page, pod, status
from tests.edge.twins import TWINS, Twin, connection_to, pod_reader
from tests.waiting import HANG_SECONDS, wait_until

from fairlead.edge.connection.credentials import ClientCertificate, Credentials, IssuedCredentials
from fairlead.edge.kube.api_failure import ApiFailure, ForbiddenByServer, Unreachable
from fairlead.edge.kube.api_request import ApiRequest
from fairlead.edge.kube.conversation import PROTOBUF_OR_JSON, Answer, SendRequest
from fairlead.edge.kube.kube_api import KubeApi
from fairlead.edge.kube.kube_blocking import KubeBlocking
from fairlead.edge.kube.resource import PODS

CA = Authority()
SERVER = CA.issue("server")
PODS_PATH = "/api/v1/pods"

MakeTwin = Callable[..., Twin]


@pytest.fixture(params=TWINS.keys())
def twin(request: pytest.FixtureRequest) -> MakeTwin:
    def make(url: str, **parts: Any) -> Twin:
        return TWINS[request.param](connection_to(url, **parts))

    return make


def names(listing: Any) -> list[str]:
    return [row.name for row in listing.rows.values()]


def test_a_path_behind_the_host_is_kept(twin: MakeTwin) -> None:
    with ScriptedServer({"/k8s/clusters/c1/api/v1/pods": [page([pod("a")])]}) as server:
        assert names(twin(server.url + "/k8s/clusters/c1").call("list_all", pod_reader())) == ["a"]


# conversations, once through each driver


def test_a_list_with_everything_that_a_conversation_may_need(twin: MakeTwin) -> None:
    """Pages that are requested ahead, one of them compressed; an answer to try later, one without
    credentials, an expired token; and a new list.
    """
    first = page([pod("a")], token="t")
    zipped = Reply(gzip.compress(first.content()), headers={"Content-Encoding": "gzip"})
    busy = status(429, "TooManyRequests", "slow down", {"Retry-After": "3"})
    gone = status(410, "Expired", "too old")
    script = {
        PODS_PATH: [
            zipped,
            busy,
            status(401, "Unauthorized", "who?"),
            gone,
            first,
            page([pod("b")], 12),
        ]
    }
    tokens = iter(["Bearer old", "Bearer new"])
    with ScriptedServer(script) as server:
        client = twin(
            server.url,
            credentials=Credentials(lambda: IssuedCredentials(next(tokens)), is_renewable=True),
            impersonation=(("Impersonate-Group", "dev"), ("Impersonate-Group", "ops")),
        )
        listing = client.call("list_all", pod_reader())
        assert (names(listing), listing.resource_version, client.requests_total) == (
            ["a", "b"],
            "12",
            6,
        )
        assert [seen.query.get("continue") for seen in server.seen] == [
            None,
            "t",
            "t",
            "t",
            None,
            "t",
        ]
        assert [seen.headers["authorization"].split()[1] for seen in server.seen] == [
            "old",
            "old",
            "old",
            "new",
            "new",
            "new",
        ]
        assert all(3.0 <= waited <= 3.3 for waited in client.waits) and len(client.waits) == 1
        headers = server.seen[0].headers
        assert (headers["user-agent"][:9], headers["impersonate-group"]) == ("fairlead/", "ops")
        assert headers["accept"] in ("application/json", PROTOBUF_OR_JSON)
        assert headers["host"].startswith("127.0.0.1:")


def test_a_failure_of_a_page_that_was_asked_for_ahead_is_reported(twin: MakeTwin) -> None:
    script = {PODS_PATH: [page([pod("a")], token="t"), status(403, "Forbidden", "not you")]}
    with ScriptedServer(script) as server, pytest.raises(ForbiddenByServer) as caught:
        twin(server.url).call("list_all", pod_reader())
    assert (caught.value.status, caught.value.message) == (403, "not you")


def test_the_next_page_is_asked_for_before_this_one_is_decoded(twin: MakeTwin) -> None:
    reader = pod_reader()
    decode = reader.decode_page

    def decode_late(body: bytes) -> Any:
        wait_until("the second page is asked for", lambda: len(server.seen) >= 2, 30, 0.005)
        return decode(body)

    reader.decode_page = decode_late  # type: ignore[method-assign]
    meta = b'"metadata":{"resourceVersion":"7","continue":"t"}'
    first = Reply(b'{"kind":"PodList","apiVersion":"v1",' + meta + b',"items":[]}')
    with ScriptedServer({PODS_PATH: [first, page([pod("b")])]}) as server:
        assert names(twin(server.url).call("list_all", reader)) == ["b"]


GROUPS = Answer(
    200,
    {},
    (
        b'{"groups": [{"name": "x.io", "versions": [{"version": "v1"}, {"version": "v2"}, '
        b'{"version": '
        b'"v3"}]}]}'
    ),
)
YS = b'{"resources": [{"name": "ys"}]}'


def test_threads_ask_for_what_is_begun_at_once() -> None:
    """No group of an older server is answered before all three are requested."""
    all_asked = threading.Barrier(3, timeout=HANG_SECONDS)

    class Meeting(KubeBlocking):
        def ask(self, asked: SendRequest) -> Answer:
            if asked.request.path == "/apis":
                return GROUPS
            all_asked.wait()
            return Answer(200, {}, YS)

    assert len(Meeting(connection_to("http://127.0.0.1:1")).discovery(["x.io"]).served) == 3


async def test_tasks_ask_for_what_is_begun_at_once() -> None:
    all_asked = asyncio.Barrier(3)

    class Meeting(KubeApi):
        async def ask(self, asked: SendRequest) -> Answer:
            if asked.request.path == "/apis":
                return GROUPS
            async with asyncio.timeout(HANG_SECONDS):
                await all_asked.wait()
            return Answer(200, {}, YS)

    assert len((await Meeting(connection_to("http://127.0.0.1:1")).discovery(["x.io"])).served) == 3


def test_a_write_has_its_body(twin: MakeTwin) -> None:
    with ScriptedServer({f"{PODS_PATH}/p": [Reply({"kind": "Pod"})]}) as server:
        assert twin(server.url).call("patch", PODS, "p", {"a": "ü"}) == {"kind": "Pod"}
        (seen,) = server.seen
    assert (seen.method, seen.json(), seen.headers["content-type"]) == (
        "PATCH",
        {"a": "ü"},
        "application/merge-patch+json",
    )


def test_a_stream_renews_its_credentials_after_401_and_reports_a_refusal() -> None:
    log = "/api/v1/namespaces/default/pods/p/log"
    tokens = iter(["Bearer old", "Bearer new"])
    credentials = Credentials(lambda: IssuedCredentials(next(tokens)), is_renewable=True)
    refused = status(401, "Unauthorized", "who?")
    with (
        ScriptedServer(
            {log: [refused, Stream([b"one\n", b"two\n"]), status(403, "Forbidden", "not you")]}
        ) as server,
        KubeBlocking(connection_to(server.url, credentials=credentials)) as api,
    ):
        assert b"".join(api.stream(ApiRequest("get", "GET", log))) == b"one\ntwo\n"
        assert [seen.headers["authorization"] for seen in server.seen] == [
            "Bearer old",
            "Bearer new",
        ]
        with pytest.raises(ForbiddenByServer) as caught:
            list(api.stream(ApiRequest("get", "GET", log)))
        assert (caught.value.status, caught.value.message) == (403, "not you")


@pytest.mark.parametrize("items", ["5", "[]"], ids=["it fails", "it is cancelled"])
async def test_what_was_begun_ends_with_its_conversation(items: str) -> None:
    begun, ended = asyncio.Event(), asyncio.Event()
    first = (
        '{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7","continue":"t"},"items":'
        + items
        + "}"
    )

    class Silent(KubeApi):
        async def ask(self, asked: SendRequest) -> Answer:
            if "continue" not in asked.request.path:
                return Answer(200, {}, first.encode())
            begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                ended.set()
            raise AssertionError

    listing = asyncio.create_task(
        Silent(connection_to("http://127.0.0.1:1")).list_all(pod_reader())
    )
    async with asyncio.timeout(HANG_SECONDS):
        await begun.wait()
        if items == "[]":
            listing.cancel()
        with pytest.raises((ApiFailure, asyncio.CancelledError)):
            await listing
        await ended.wait()


# sockets


def test_an_address_without_a_listener_is_reported_with_the_address(twin: MakeTwin) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
    with pytest.raises(Unreachable, match=rf"`{url}` refused\b") as caught:
        twin(url).call("version")
    assert caught.value.hint
    assert caught.value.status == 0


def test_an_unknown_host_is_reported(twin: MakeTwin) -> None:
    url = "https://no-such-host.invalid:6443"
    with pytest.raises(Unreachable) as caught:
        twin(url).call("version")
    assert caught.value.what.startswith(f"API server `{url}` has an unknown host name: ")


NOT_TRUSTED = "the certificate of API server `{url}` is not trusted: "


def test_another_ca_is_reported_as_such(twin: MakeTwin) -> None:
    with (
        ScriptedServer({PODS_PATH: [page([])]}, SERVER) as server,
        pytest.raises(Unreachable) as caught,
    ):
        twin(server.url, ca_pem=Authority("other").pem).call("list_all", pod_reader())
    assert caught.value.what.startswith(NOT_TRUSTED.format(url=server.url))
    assert "certificate-authority" in caught.value.hint


def test_another_name_is_reported_and_tls_server_name_mends_it(twin: MakeTwin) -> None:
    with ScriptedServer({PODS_PATH: [page([pod("a")])]}, SERVER) as server:
        with pytest.raises(Unreachable) as caught:
            twin(server.url, ca_pem=CA.pem, tls_server_name="kubernetes").call(
                "list_all", pod_reader()
            )
        assert caught.value.what.startswith(NOT_TRUSTED.format(url=server.url))
        assert "tls-server-name" in caught.value.hint
        assert names(
            twin(server.url, ca_pem=CA.pem, tls_server_name="localhost").call(
                "list_all", pod_reader()
            )
        ) == ["a"]


def test_an_expired_server_certificate_is_reported(twin: MakeTwin) -> None:
    with (
        ScriptedServer({PODS_PATH: [page([])]}, CA.issue("server", days=-1)) as server,
        pytest.raises(Unreachable) as caught,
    ):
        twin(server.url, ca_pem=CA.pem).call("list_all", pod_reader())
    assert "expired" in caught.value.what
    assert "renewed" in caught.value.hint


def test_a_clock_that_is_behind_is_reported_with_both_times(twin: MakeTwin) -> None:
    pair = CA.issue("server", days=9, begins_in_days=2)
    begins = x509.load_pem_x509_certificate(pair.certificate_pem).not_valid_before_utc
    with (
        ScriptedServer({PODS_PATH: [page([])]}, pair) as server,
        pytest.raises(Unreachable) as caught,
    ):
        twin(server.url, ca_pem=CA.pem).call("list_all", pod_reader())
    reported = re.fullmatch(
        (
            r"the certificate of .+ is not valid yet: it is valid from (\S+), and this machine's "
            r"clock is at (\S+)"
        ),
        caught.value.what,
    )
    assert reported is not None, caught.value.what
    assert datetime.fromisoformat(reported[1]) == begins
    assert abs(datetime.fromisoformat(reported[2]) - datetime.now(UTC)) < timedelta(minutes=5)
    assert "clock" in caught.value.hint and "another" not in caught.value.hint


def test_insecure_asks_no_questions(twin: MakeTwin) -> None:
    with ScriptedServer({PODS_PATH: [page([pod("a")])]}, SERVER) as server:
        assert names(twin(server.url, is_insecure=True).call("list_all", pod_reader())) == ["a"]


def test_a_client_certificate_is_shown_to_the_server(twin: MakeTwin) -> None:
    ann = CA.issue("ann")
    issued = IssuedCredentials(certificate=ClientCertificate(ann.certificate_pem, ann.key_pem))
    with ScriptedServer({PODS_PATH: [page([pod("a")])]}, SERVER, client_ca=CA.pem) as server:
        credentials = Credentials(lambda: issued, is_renewable=False)
        assert names(
            twin(server.url, ca_pem=CA.pem, credentials=credentials).call("list_all", pod_reader())
        ) == ["a"]
        with pytest.raises(Unreachable):
            twin(server.url, ca_pem=CA.pem).call("list_all", pod_reader())


def test_a_certificate_renewed_after_401_is_the_one_shown_next(twin: MakeTwin) -> None:
    issued = iter(
        [
            IssuedCredentials(certificate=ClientCertificate(*CA.issue(name)))
            for name in ("old", "new")
        ]
    )
    credentials = Credentials(lambda: next(issued), is_renewable=True)
    script: dict[str, list[Reply | Stream]] = {
        PODS_PATH: [status(401, "Unauthorized", "Unauthorized"), page([pod("a")])]
    }
    with ScriptedServer(script, SERVER, client_ca=CA.pem) as server:
        assert names(
            twin(server.url, ca_pem=CA.pem, credentials=credentials).call("list_all", pod_reader())
        ) == ["a"]
        assert [seen.peer for seen in server.seen] == ["old", "new"]


@pytest.mark.parametrize("is_tls", [False, True], ids=["whole address", "tunnel"])
def test_a_proxy_is_gone_through(twin: MakeTwin, is_tls: bool) -> None:
    script: dict[str, list[Reply | Stream]] = {
        PODS_PATH: [page([pod("a")], token="t"), page([pod("b")])]
    }
    with ScriptedServer(script, SERVER if is_tls else None) as server, TestProxy() as proxy:
        client = twin(server.url, ca_pem=CA.pem, proxy_url=proxy.url)
        assert names(client.call("list_all", pod_reader())) == ["a", "b"]
        target = server.url.split("//")[1]
        assert proxy.asked[0].split()[:2] == (
            ["CONNECT", target] if is_tls else ["GET", f"{server.url}{PODS_PATH}?limit=500"]
        )


def test_a_proxy_that_is_absent_is_named(twin: MakeTwin) -> None:
    with TestProxy() as proxy:
        address = proxy.url
    with pytest.raises(Unreachable, match=re.escape(address)):
        twin("https://api.example:6443", proxy_url=address).call("version")


def test_https_to_a_plain_server_is_reported(twin: MakeTwin) -> None:
    with ScriptedServer({PODS_PATH: [page([])]}) as server, pytest.raises(Unreachable) as caught:
        twin(server.url.replace("http://", "https://"), is_insecure=True).call(
            "list_all", pod_reader()
        )
    assert "plain HTTP" in caught.value.hint


@pytest.mark.parametrize("cut", [0, 50])
def test_a_connection_cut_in_the_middle_of_a_page_is_an_error_not_a_short_list(
    twin: MakeTwin, cut: int
) -> None:
    with (
        ScriptedServer({PODS_PATH: [Reply(page([pod("a")]).content(), cut=cut)]}) as server,
        pytest.raises(Unreachable) as caught,
    ):
        twin(server.url).call("list_all", pod_reader())
    assert caught.value.what == (
        f"API server `{server.url}` closed the connection in the middle of an answer"
    )


def test_a_kept_connection_that_the_server_closed_is_replaced(twin: MakeTwin) -> None:
    # an answer that is complete, then a closed connection
    closing = Reply(page([pod("a")], token="t").content(), cut=10**9)
    with ScriptedServer({PODS_PATH: [closing, page([pod("b")])]}) as server:
        assert names(twin(server.url).call("list_all", pod_reader())) == ["a", "b"]
