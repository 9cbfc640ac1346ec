"""Both Kubernetes clients, against a scripted server: pages, 410, waits, credentials, and every failure with its words."""

from __future__ import annotations

import gzip
import json
import re
import socket
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cryptography import x509

from fairlead.edge.connection.credentials import ClientCertificate, Credentials, Issued
from fairlead.edge.kube.api_failure import ApiFailure, Conflict, ForbiddenByServer, NotServed, Unauthorized, Unreachable
from fairlead.edge.kube.api_request import Selection
from fairlead.edge.kube.kube_blocking import KubeBlocking
from fairlead.edge.kube.resource import NODES, PODS
from fairlead.errors import Forbidden, NotFound, OutsideError

from .pki import Authority
from .proxy import TestProxy
from .scripted import Reply, ScriptedServer, Stream, page, pod, status
from .twins import TWINS, Twin, connection_to, pod_reader

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


def test_a_list_is_read_in_pages_of_500(twin: MakeTwin) -> None:
    script = {PODS_PATH: [page([pod("a"), pod("b")], token="t1"), page([pod("c")], token="t2"), page([pod("d")], 12)]}
    with ScriptedServer(script) as server:
        listing = twin(server.url).call("list_all", pod_reader(), Selection(fields="spec.nodeName!=", labels="a in (b,c)"))
        assert names(listing) == ["a", "b", "c", "d"]
        assert listing.resource_version == "12"
        assert [seen.query for seen in server.seen] == [
            {"fieldSelector": "spec.nodeName!=", "labelSelector": "a in (b,c)", "limit": "500"} | ({"continue": token} if token else {})
            for token in ("", "t1", "t2")
        ]


def written(name: str, token: str = "") -> Reply:
    """A page in the compact JSON of API servers: the token stands before the items. One inside an item is none."""
    meta = {"resourceVersion": "7", **({"continue": token, "remainingItemCount": 1} if token else {})}
    item = pod(name) | {"annotations": {"continue": "x"}}
    return Reply(json.dumps({"kind": "PodList", "apiVersion": "v1", "metadata": meta, "items": [item]}, separators=(",", ":")).encode())


def test_pages_as_api_servers_write_them(twin: MakeTwin) -> None:
    with ScriptedServer({PODS_PATH: [written("a", "eyJ2/+="), written("b", "t2"), written("c")]}) as server:
        assert names(twin(server.url).call("list_all", pod_reader())) == ["a", "b", "c"]
        assert [seen.query.get("continue") for seen in server.seen] == [None, "eyJ2/+=", "t2"]


def test_the_next_page_is_asked_for_before_this_one_is_decoded() -> None:
    """Of the client of commands, whose time it is: half of what a long list costs is the server's work on the next page."""
    reader = pod_reader()
    decode = reader.decode_page

    def decode_late(body: bytes) -> Any:
        deadline = time.monotonic() + 30
        while len(server.seen) < 2:
            assert time.monotonic() < deadline, "the second page is asked for"
            time.sleep(0.005)
        return decode(body)

    reader.decode_page = decode_late  # type: ignore[method-assign]
    with ScriptedServer({PODS_PATH: [written("a", "t"), written("b")]}) as server, KubeBlocking(connection_to(server.url)) as api:
        assert names(api.list_all(reader)) == ["a", "b"]


def test_a_list_in_one_namespace_asks_only_there(twin: MakeTwin) -> None:
    path = "/api/v1/namespaces/team-a/pods"
    with ScriptedServer({path: [page([pod("a", namespace="team-a")])]}) as server:
        assert names(twin(server.url).call("list_all", pod_reader(), Selection("team-a"))) == ["a"]


def test_an_expired_continue_token_restarts_the_list_without_doubles(twin: MakeTwin) -> None:
    gone = status(410, "Expired", "The provided continue parameter is too old")
    script = {PODS_PATH: [page([pod("a")], token="t"), gone, page([pod("a")], token="u"), page([pod("b")], 20)]}
    with ScriptedServer(script) as server:
        listing = twin(server.url).call("list_all", pod_reader())
        assert (names(listing), listing.resource_version) == (["a", "b"], "20")
        assert "continue" not in server.seen[2].query


def test_a_list_that_always_expires_is_at_last_read_in_one_piece(twin: MakeTwin) -> None:
    gone = status(410, "Expired", "too old")
    script = {PODS_PATH: [*[page([pod("a")], token="t"), gone] * 3, page([pod("a"), pod("b")])]}
    with ScriptedServer(script) as server:
        assert names(twin(server.url).call("list_all", pod_reader())) == ["a", "b"]
        assert "limit" not in server.seen[-1].query


@pytest.mark.parametrize("items", [None, []])
def test_a_null_list_is_an_empty_one(twin: MakeTwin, items: list[Any] | None) -> None:
    with ScriptedServer({PODS_PATH: [page(items)]}) as server:
        assert twin(server.url).call("list_all", pod_reader()).rows == {}


def test_one_malformed_object_costs_only_itself(twin: MakeTwin, caplog: pytest.LogCaptureFixture) -> None:
    strange = [
        pod("number") | {"spec": {"nodeName": 5}},
        pod("list") | {"status": []},
        pod("quantity") | {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "lots"}}}]}},
        {"metadata": None},
        "not even an object",
        None,
    ]
    nulls = pod("nulls") | {"spec": {"containers": None}, "status": None, "x-unknown": {"deep": [1]}}
    with ScriptedServer({PODS_PATH: [page([pod("first"), *strange, nulls, pod("last")])]}) as server:
        reader = pod_reader()
        listing = twin(server.url).call("list_all", reader)
    assert names(listing) == ["first", "nulls", "last"]
    assert len(listing.malformed) == reader.malformed_total == len(strange)
    assert "left out pods default/number: Expected `str | null`, got `int` - at `$.spec.nodeName`" in caplog.text
    assert "left out pods default/quantity" in caplog.text
    assert "lots" in caplog.text
    assert listing.malformed[0].key == "uid-default-number"


@pytest.mark.parametrize("amount", ["1e30", "-5", "0.0001n", "", "1.5.5", "9" * 400, "1e400", "NaN"])
def test_an_absurd_quantity_never_fails_the_page(twin: MakeTwin, amount: str) -> None:
    strange = pod("strange") | {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": amount, "memory": amount}}}]}}
    with ScriptedServer({PODS_PATH: [page([pod("a"), strange, pod("b")])]}) as server:
        assert {"a", "b"} <= set(names(twin(server.url).call("list_all", pod_reader())))


@pytest.mark.parametrize(("code", "wait"), [(429, "3"), (503, "1")])
def test_what_the_server_puts_off_is_asked_again_after_its_time(twin: MakeTwin, code: int, wait: str) -> None:
    later = status(code, "TooManyRequests", "slow down", {"Retry-After": wait})
    with ScriptedServer({PODS_PATH: [later, later, page([pod("a")])]}) as server:
        client = twin(server.url)
        assert names(client.call("list_all", pod_reader())) == ["a"]
        assert len(client.waits) == 2
        assert all(float(wait) <= waited <= float(wait) * 1.1 for waited in client.waits)


def test_a_server_that_always_puts_off_is_told_at_last(twin: MakeTwin) -> None:
    with ScriptedServer({PODS_PATH: [status(429, "TooManyRequests", "slow down", {"Retry-After": "6"})]}) as server:
        client = twin(server.url)
        with pytest.raises(ApiFailure, match=r"429.*slow down") as caught:
            client.call("list_all", pod_reader())
        assert 4 <= len(server.seen) <= 5
        assert 18 <= sum(client.waits) <= 30
        assert caught.value.retry_after == 6.0


@pytest.mark.parametrize("code", [429, 500, 503])
def test_without_retry_after_nothing_is_asked_again(twin: MakeTwin, code: int) -> None:
    with ScriptedServer({PODS_PATH: [status(code, "X", "not now")]}) as server:
        with pytest.raises(ApiFailure, match="not now") as caught:
            twin(server.url).call("list_all", pod_reader())
        assert len(server.seen) == 1
        assert caught.value.may_pass


def test_forbidden_says_what_the_server_says(twin: MakeTwin) -> None:
    words = 'pods is forbidden: User "ann" cannot list resource "pods" in API group "" at the cluster scope'
    with ScriptedServer({PODS_PATH: [status(403, "Forbidden", words)]}) as server, pytest.raises(Forbidden) as caught:
        twin(server.url).call("list_all", pod_reader())
    assert isinstance(caught.value, ForbiddenByServer)
    assert (caught.value.what, caught.value.status, caught.value.may_pass) == (words, 403, False)
    assert "auth can-i" in caught.value.hint


def test_an_absent_object_and_an_absent_resource_are_not_found(twin: MakeTwin) -> None:
    script = {"/api/v1/namespaces/default/pods/x": [status(404, "NotFound", 'pods "x" not found')]}
    with ScriptedServer(script) as server:
        with pytest.raises(NotFound) as caught:
            twin(server.url).call("get", PODS, "x", "default")
        assert caught.value.what == 'pods "x" not found'
        with pytest.raises(NotServed, match="could not find the requested resource"):
            twin(server.url).call("list_all", pod_reader())


def test_401_renews_the_credentials_once(twin: MakeTwin) -> None:
    tokens = iter(["Bearer old", "Bearer new"])
    credentials = Credentials(lambda: Issued(next(tokens)), is_renewable=True)
    with ScriptedServer({PODS_PATH: [status(401, "Unauthorized", "Unauthorized"), page([pod("a")])]}) as server:
        assert names(twin(server.url, credentials=credentials).call("list_all", pod_reader())) == ["a"]
        assert [seen.headers["authorization"] for seen in server.seen] == ["Bearer old", "Bearer new"]


def test_401_again_is_told_with_a_way_out(twin: MakeTwin) -> None:
    from .twins import fixed

    expired = "Bearer e30.eyJleHAiOjYwfQ.sig"  # {"exp": 60}
    with ScriptedServer({PODS_PATH: [status(401, "Unauthorized", "Unauthorized")]}) as server:
        with pytest.raises(Unauthorized) as caught:
            twin(server.url, credentials=fixed(expired)).call("list_all", pod_reader())
        assert len(server.seen) == 1
    assert "the token ended at 1970-01-01T00:01:00Z; log in again" in caught.value.hint


def test_headers_carry_token_impersonation_and_who_we_are(twin: MakeTwin) -> None:
    from .twins import fixed

    impersonation = (("Impersonate-User", "ann"), ("Impersonate-Group", "dev"))
    with ScriptedServer({PODS_PATH: [page([])]}) as server:
        twin(server.url, credentials=fixed("Bearer t"), impersonation=impersonation).call("list_all", pod_reader())
        headers = server.seen[0].headers
    assert headers["authorization"] == "Bearer t"
    assert (headers["impersonate-user"], headers["impersonate-group"]) == ("ann", "dev")
    assert headers["user-agent"].startswith("fairlead/")
    assert headers["host"].startswith("127.0.0.1:")


def test_a_path_behind_the_host_is_kept(twin: MakeTwin) -> None:
    with ScriptedServer({"/k8s/clusters/c1/api/v1/pods": [page([pod("a")])]}) as server:
        assert names(twin(server.url + "/k8s/clusters/c1").call("list_all", pod_reader())) == ["a"]


def test_a_gzipped_answer_is_unpacked_and_a_broken_one_is_told(twin: MakeTwin) -> None:
    body = gzip.compress(page([pod("a")]).content())
    headers = {"Content-Encoding": "gzip"}
    with ScriptedServer({PODS_PATH: [Reply(body, headers=headers), Reply(body[:-30], headers=headers)]}) as server:
        client = twin(server.url)
        assert names(client.call("list_all", pod_reader())) == ["a"]
        with pytest.raises(Unreachable, match="gzip"):
            client.call("list_all", pod_reader())


def test_writes_send_what_they_are_given(twin: MakeTwin) -> None:
    base = "/api/v1/namespaces/team-a/pods"
    script: dict[str, list[Reply | Stream]] = {
        base: [Reply({"kind": "Pod"}, 201)],
        f"{base}/p": [Reply({"kind": "Pod"})],
        f"{base}/p/status": [Reply({})],
    }
    with ScriptedServer(script) as server:
        client = twin(server.url)
        client.call("create", PODS, {"metadata": {"name": "p"}}, "team-a", dry_run=True)
        client.call("update", PODS, "p", {"a": 1}, "team-a", subresource="status")
        client.call("patch", PODS, "p", {"a": None}, "team-a")
        client.call("patch", PODS, "p", [{"op": "remove", "path": "/a"}], "team-a", kind="json")
        client.call("patch", PODS, "p", {"a": 1}, "team-a", kind="apply", force=True)
        client.call("delete", PODS, "p", "team-a")
        create, update, merge, json_patch, apply, delete = server.seen
    assert (create.method, create.query, create.json()) == ("POST", {"dryRun": "All"}, {"metadata": {"name": "p"}})
    assert (update.method, update.path) == ("PUT", f"{base}/p/status")
    assert (merge.headers["content-type"], merge.json()) == ("application/merge-patch+json", {"a": None})
    assert json_patch.headers["content-type"] == "application/json-patch+json"
    assert apply.headers["content-type"] == "application/apply-patch+yaml"
    assert apply.query == {"fieldManager": "fairlead", "force": "true"}
    assert (delete.method, delete.json()["propagationPolicy"]) == ("DELETE", "Background")


def test_a_conflict_is_one(twin: MakeTwin) -> None:
    with ScriptedServer({"/api/v1/nodes": [status(409, "AlreadyExists", 'nodes "n" already exists')]}) as server:
        with pytest.raises(Conflict, match="already exists") as caught:
            twin(server.url).call("create", NODES, {})
        assert caught.value.reason == "AlreadyExists"


def test_nobody_listening_is_told_with_the_address(twin: MakeTwin) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
    with pytest.raises(Unreachable, match=f"API server `{url}` refused the connection") as caught:
        twin(url).call("version")
    assert caught.value.hint
    assert caught.value.status == 0


def test_an_unknown_host_is_told(twin: MakeTwin) -> None:
    with pytest.raises(Unreachable, match="unknown host name") as caught:
        twin("https://no-such-host.invalid:6443").call("version")
    assert "no-such-host.invalid" in caught.value.what


def test_another_ca_is_told_as_such(twin: MakeTwin) -> None:
    with ScriptedServer({PODS_PATH: [page([])]}, SERVER) as server, pytest.raises(Unreachable, match="is not trusted") as caught:
        twin(server.url, ca_pem=Authority("other").pem).call("list_all", pod_reader())
    assert "certificate-authority" in caught.value.hint


def test_another_name_is_told_and_tls_server_name_mends_it(twin: MakeTwin) -> None:
    with ScriptedServer({PODS_PATH: [page([pod("a")])]}, SERVER) as server:
        with pytest.raises(Unreachable, match="is not trusted") as caught:
            twin(server.url, ca_pem=CA.pem, tls_server_name="kubernetes").call("list_all", pod_reader())
        assert "tls-server-name" in caught.value.hint
        assert names(twin(server.url, ca_pem=CA.pem, tls_server_name="localhost").call("list_all", pod_reader())) == ["a"]


def test_an_expired_server_certificate_is_told(twin: MakeTwin) -> None:
    with ScriptedServer({PODS_PATH: [page([])]}, CA.issue("server", days=-1)) as server, pytest.raises(Unreachable) as caught:
        twin(server.url, ca_pem=CA.pem).call("list_all", pod_reader())
    assert "expired" in caught.value.what
    assert "renewed" in caught.value.hint


def test_a_clock_that_is_behind_is_told_with_both_times(twin: MakeTwin) -> None:
    pair = CA.issue("server", days=9, begins_in_days=2)
    begins = x509.load_pem_x509_certificate(pair.certificate_pem).not_valid_before_utc
    with ScriptedServer({PODS_PATH: [page([])]}, pair) as server, pytest.raises(Unreachable) as caught:
        twin(server.url, ca_pem=CA.pem).call("list_all", pod_reader())
    told = re.fullmatch(
        r"the certificate of .+ is not valid yet: it is valid from (\S+), and this machine's clock says (\S+)", caught.value.what
    )
    assert told is not None, caught.value.what
    assert datetime.fromisoformat(told[1]) == begins
    assert abs(datetime.fromisoformat(told[2]) - datetime.now(UTC)) < timedelta(minutes=5)
    assert "clock" in caught.value.hint and "another" not in caught.value.hint


def test_insecure_asks_no_questions(twin: MakeTwin) -> None:
    with ScriptedServer({PODS_PATH: [page([pod("a")])]}, SERVER) as server:
        assert names(twin(server.url, is_insecure=True).call("list_all", pod_reader())) == ["a"]


def test_a_client_certificate_is_shown_to_the_server(twin: MakeTwin) -> None:
    ann = CA.issue("ann")
    issued = Issued(certificate=ClientCertificate(ann.certificate_pem, ann.key_pem))
    with ScriptedServer({PODS_PATH: [page([pod("a")])]}, SERVER, client_ca=CA.pem) as server:
        credentials = Credentials(lambda: issued, is_renewable=False)
        assert names(twin(server.url, ca_pem=CA.pem, credentials=credentials).call("list_all", pod_reader())) == ["a"]
        with pytest.raises(Unreachable):
            twin(server.url, ca_pem=CA.pem).call("list_all", pod_reader())


def test_a_certificate_renewed_after_401_is_the_one_shown_next(twin: MakeTwin) -> None:
    issued = iter([Issued(certificate=ClientCertificate(*CA.issue(name))) for name in ("old", "new")])
    credentials = Credentials(lambda: next(issued), is_renewable=True)
    script: dict[str, list[Reply | Stream]] = {PODS_PATH: [status(401, "Unauthorized", "Unauthorized"), page([pod("a")])]}
    with ScriptedServer(script, SERVER, client_ca=CA.pem) as server:
        assert names(twin(server.url, ca_pem=CA.pem, credentials=credentials).call("list_all", pod_reader())) == ["a"]
        assert [seen.peer for seen in server.seen] == ["old", "new"]


@pytest.mark.parametrize("is_tls", [False, True], ids=["whole address", "tunnel"])
def test_a_proxy_is_gone_through(twin: MakeTwin, is_tls: bool) -> None:
    script: dict[str, list[Reply | Stream]] = {PODS_PATH: [page([pod("a")], token="t"), page([pod("b")])]}
    with ScriptedServer(script, SERVER if is_tls else None) as server, TestProxy() as proxy:
        client = twin(server.url, ca_pem=CA.pem, proxy_url=proxy.url)
        assert names(client.call("list_all", pod_reader())) == ["a", "b"]
        target = server.url.split("//")[1]
        assert proxy.asked[0].split()[:2] == (["CONNECT", target] if is_tls else ["GET", f"{server.url}{PODS_PATH}?limit=500"])


def test_a_proxy_that_is_not_there_is_named(twin: MakeTwin) -> None:
    with TestProxy() as proxy:
        address = proxy.url
    with pytest.raises(Unreachable, match=f"through proxy {address}"):
        twin("https://api.example:6443", proxy_url=address).call("version")


def test_https_to_a_plain_server_says_so(twin: MakeTwin) -> None:
    with ScriptedServer({PODS_PATH: [page([])]}) as server, pytest.raises(Unreachable) as caught:
        twin(server.url.replace("http://", "https://"), is_insecure=True).call("list_all", pod_reader())
    assert "plain HTTP" in caught.value.hint


@pytest.mark.parametrize("cut", [0, 50])
def test_a_connection_cut_in_the_middle_of_a_page_is_an_error_not_a_short_list(twin: MakeTwin, cut: int) -> None:
    with (
        ScriptedServer({PODS_PATH: [Reply(page([pod("a")]).content(), cut=cut)]}) as server,
        pytest.raises(Unreachable, match="closed the connection in the middle"),
    ):
        twin(server.url).call("list_all", pod_reader())


@pytest.mark.parametrize("body", [b"<html>log in</html>", b"", b"[]", b'{"items": 5}'])
def test_a_page_that_is_no_list_is_told(twin: MakeTwin, body: bytes) -> None:
    with ScriptedServer({PODS_PATH: [Reply(body)]}) as server, pytest.raises(ApiFailure, match="something else than its JSON"):
        twin(server.url).call("list_all", pod_reader())


def test_a_proxys_error_page_becomes_a_short_message(twin: MakeTwin) -> None:
    with ScriptedServer({PODS_PATH: [Reply(b"<html>\n" + b"x" * 9000, 502)]}) as server, pytest.raises(ApiFailure, match="502") as caught:
        twin(server.url).call("list_all", pod_reader())
    assert len(caught.value.what) < 400


def test_a_kept_connection_that_the_server_closed_is_replaced(twin: MakeTwin) -> None:
    closing = Reply(page([pod("a")], token="t").content(), cut=10**9)  # whole, then closed without a word
    with ScriptedServer({PODS_PATH: [closing, page([pod("b")])]}) as server:
        assert names(twin(server.url).call("list_all", pod_reader())) == ["a", "b"]


def test_the_version_and_a_server_too_old(twin: MakeTwin) -> None:
    from fairlead.edge.kube.api_discovery import check_version

    versions = [{"major": "1", "minor": "27+", "gitVersion": "v1.27.3-gke"}, {"major": "1", "minor": "16", "gitVersion": "v1.16.15"}, {}]
    with ScriptedServer({"/version": [Reply(each) for each in versions]}) as server:
        client = twin(server.url)
        check_version(server.url, client.call("version"))
        with pytest.raises(OutsideError, match=r"v1\.16\.15.*older than 1\.18") as caught:
            check_version(server.url, client.call("version"))
        assert caught.value.hint
        check_version(server.url, client.call("version"))


AGGREGATED = {
    "kind": "APIGroupDiscoveryList",
    "items": [
        {
            "metadata": {"name": "kubeflow.org"},
            "versions": [
                {
                    "version": version,
                    "resources": [{"resource": "mpijobs", "responseKind": {"kind": "MPIJob"}, "scope": "Namespaced", "verbs": ["list"]}],
                }
                for version in ("v1", "v2beta1")
            ],
        }
    ],
}
GROUPS = {
    "groups": [
        {
            "name": "kubeflow.org",
            "versions": [
                {"groupVersion": "kubeflow.org/v2beta1", "version": "v2beta1"},
                {"groupVersion": "kubeflow.org/v1", "version": "v1"},
            ],
            "preferredVersion": {"version": "v1"},
        },
        {"name": "apps", "versions": [{"version": "v1"}], "preferredVersion": {"version": "v1"}},
        {"name": "down.example", "versions": [{"version": "v1"}]},
    ]
}
RESOURCES = {
    "resources": [
        {"name": "mpijobs", "kind": "MPIJob", "namespaced": True, "verbs": ["list"]},
        {"name": "mpijobs/status", "kind": "MPIJob"},
    ]
}


def test_discovery_takes_one_request_where_it_is_aggregated(twin: MakeTwin) -> None:
    kind = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    with ScriptedServer({"/apis": [Reply(AGGREGATED, headers={"Content-Type": kind})]}) as server:
        found = twin(server.url).call("discovery", ["kubeflow.org"])
        assert len(server.seen) == 1
        assert "APIGroupDiscoveryList" in server.seen[0].headers["accept"]
    assert found.find("kubeflow.org", "mpijobs").version == "v1"
    assert found.find("kubeflow.org", "mpijobs", ("v2beta1", "v1")).version == "v2beta1"
    assert found.find("kubeflow.org", "mpijobs", ("v1alpha1",)) is None
    assert found.find("kubeflow.org", "tfjobs") is None


def test_discovery_of_an_older_server_asks_only_the_groups_it_needs(twin: MakeTwin) -> None:
    script: dict[str, list[Reply | Stream]] = {
        "/apis": [Reply(GROUPS)],
        "/apis/kubeflow.org/v1": [Reply(RESOURCES)],
        "/apis/kubeflow.org/v2beta1": [Reply(RESOURCES)],
        "/apis/down.example/v1": [status(503, "ServiceUnavailable", "down")],
    }
    with ScriptedServer(script) as server:
        found = twin(server.url).call("discovery", ["kubeflow.org", "down.example", "absent.example"])
        assert sorted(seen.path for seen in server.seen) == [
            "/apis",
            "/apis/down.example/v1",
            "/apis/kubeflow.org/v1",
            "/apis/kubeflow.org/v2beta1",
        ]
    assert found.find("kubeflow.org", "mpijobs").version == "v1"
    assert found.find("kubeflow.org", "mpijobs").kind == "MPIJob"
    assert found.find("kubeflow.org", "mpijobs/status") is None
