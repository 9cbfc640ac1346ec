"""The API server as a process sees it: slow and dying watchers, bookmarks, expired pages, bugs,
credentials, a fast stop.
"""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.asgi import TOKEN, ask
from tests.sim.objects import StillClock, config_map, pod
from tests.waiting import HANG_SECONDS, until

from fairlead.apps import server
from fairlead.apps.server import bind_socket, serve
from fairlead_sim.api import watch as api_watch
from fairlead_sim.api.credentials import ServerCredentials, make_credentials
from fairlead_sim.api.server import ApiServer
from fairlead_sim.objects.resources import CONFIG_MAPS, PODS
from fairlead_sim.store.cluster import StoredCluster


@pytest.fixture
def cluster() -> StoredCluster:
    return StoredCluster(StillClock(), log_capacity=200)


@asynccontextmanager
async def served(cluster: StoredCluster, **options: Any) -> AsyncIterator[tuple[str, int]]:
    """The server on a plain socket; (host, port)."""
    sock = bind_socket("127.0.0.1", 0)
    address = sock.getsockname()
    ready = asyncio.Event()
    app = ApiServer(cluster, cluster.clock, [TOKEN], **options)
    serving = asyncio.create_task(serve(app, sock=sock, ready=ready, stopping=app.stop))
    await ready.wait()
    try:
        yield address
    finally:
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)


async def open_watch(
    address: tuple[str, int], path: str
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection(*address)
    writer.write(
        (f"GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n\r\n").encode()
    )
    assert b" 200 " in await reader.readline()
    await reader.readuntil(b"\r\n\r\n")
    return reader, writer


async def next_event(reader: asyncio.StreamReader) -> dict[str, Any]:
    """The next line that is a JSON document; chunk sizes and empty lines are skipped."""
    while True:
        line = (await asyncio.wait_for(reader.readline(), HANG_SECONDS)).strip()
        if line.startswith(b"{"):
            return json.loads(line)  # type: ignore[no-any-return]
        assert line or not reader.at_eof(), "the watch ended"


async def test_a_watch_from_a_forgotten_version_gets_410(cluster: StoredCluster) -> None:
    for index in range(500):
        cluster.create(config_map(f"c{index}"))
    status, event = await ask(
        ApiServer(cluster, cluster.clock, [TOKEN]),
        "GET",
        "/api/v1/configmaps?watch=1&resourceVersion=5",
    )
    assert status == 200
    assert (event["type"], event["object"]["code"], event["object"]["reason"]) == (
        "ERROR",
        410,
        "Expired",
    )
    assert event["object"]["message"].startswith("too old resource version: 5 (")


async def test_a_watch_of_the_future_is_refused(cluster: StoredCluster) -> None:
    status, body = await ask(
        ApiServer(cluster, cluster.clock, [TOKEN]),
        "GET",
        "/api/v1/pods?watch=1&resourceVersion=999999",
    )
    assert (status, body["reason"]) == (504, "Timeout")
    assert body["message"].startswith("Too large resource version: 999999, current: ")


async def test_a_watcher_that_never_reads_holds_nothing_and_gets_an_error_when_it_wakes_up(
    cluster: StoredCluster,
) -> None:
    async with served(cluster) as address:
        reader, writer = await open_watch(
            address, f"/api/v1/configmaps?watch=1&resourceVersion={cluster.resource_version}"
        )
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        cluster.create(config_map("c", {"n": ""}))
        for index in range(4_000):
            cluster.merge_patch(
                CONFIG_MAPS, "default", "c", {"data": {"n": f"{index}-" + "x" * 4_000}}
            )
            if index % 100 == 0:
                await asyncio.sleep(0)
        assert len(asyncio.all_tasks()) < 10
        writer.transport.resume_reading()  # type: ignore[attr-defined]
        count, last = 0, {}
        while last.get("type") != "ERROR":
            last = await next_event(reader)
            count += 1
        assert last["object"]["code"] == 410
        assert count < 3_000, (
            "what did not fit into the buffers of the connection was not kept for it"
        )
        writer.close()


async def test_a_watcher_that_takes_nothing_for_long_is_dropped(
    cluster: StoredCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api_watch, "STALL_SECONDS", 0.2)
    async with served(cluster) as address:
        _, writer = await open_watch(
            address, f"/api/v1/configmaps?watch=1&resourceVersion={cluster.resource_version}"
        )
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        cluster.create(config_map("c", {"n": ""}))
        for index in range(150):
            cluster.merge_patch(
                CONFIG_MAPS, "default", "c", {"data": {"n": f"{index}-" + "x" * 200_000}}
            )
        await until(lambda: not cluster.watchers(CONFIG_MAPS))
        writer.close()


async def test_a_watcher_that_leaves_is_forgotten(cluster: StoredCluster) -> None:
    async with served(cluster) as address:
        _, writer = await open_watch(
            address, f"/api/v1/pods?watch=1&resourceVersion={cluster.resource_version}"
        )
        assert cluster.watchers(PODS) == 1
        writer.close()
        await until(lambda: not cluster.watchers(PODS))


async def test_bookmarks_give_a_quiet_watcher_its_position(cluster: StoredCluster) -> None:
    async with served(cluster, bookmark_seconds=0.05) as address:
        reader, writer = await open_watch(
            address,
            f"/api/v1/pods?watch=1&allowWatchBookmarks=true&resourceVersion={cluster.resource_version}",
        )
        cluster.create(config_map())
        event = await next_event(reader)
        assert (event["type"], event["object"]["kind"]) == ("BOOKMARK", "Pod")
        assert event["object"]["metadata"]["resourceVersion"] == str(cluster.resource_version)
        writer.close()


async def test_a_quiet_watcher_without_bookmarks_receives_nothing(cluster: StoredCluster) -> None:
    app = ApiServer(cluster, cluster.clock, [TOKEN], bookmark_seconds=0.05)
    status, body = await ask(
        app,
        "GET",
        f"/api/v1/pods?watch=1&timeoutSeconds=1&resourceVersion={cluster.resource_version}",
    )
    assert (status, body) == (200, "")


async def test_a_page_of_a_list_that_is_no_longer_kept_is_gone(cluster: StoredCluster) -> None:
    app = ApiServer(cluster, cluster.clock, [TOKEN])
    for name in "abc":
        cluster.create(pod(name))
    tokens = [
        (await ask(app, "GET", "/api/v1/pods?limit=1"))[1]["metadata"]["continue"]
        for _ in range(100)
    ]
    assert (await ask(app, "GET", f"/api/v1/pods?limit=1&continue={tokens[-1]}"))[0] == 200
    status, body = await ask(app, "GET", f"/api/v1/pods?limit=1&continue={tokens[0]}")
    assert (status, body["reason"]) == (410, "Expired")
    assert body["message"].startswith(
        "The provided continue parameter is too old to display a consistent list result."
    )


@pytest.mark.parametrize("header", ["Bearer wrong", "bearer a-token-and-more", "Bearer ä"])
async def test_only_a_known_token_is_let_in(cluster: StoredCluster, header: str) -> None:
    app = ApiServer(cluster, cluster.clock, [TOKEN])
    status, body = await ask(app, "GET", "/api/v1/pods", headers={"authorization": header})
    assert (status, body["reason"], body["code"]) == (401, "Unauthorized", 401)


@pytest.mark.parametrize("header", ["", "Bearer", "Basic YTpi", "a-token"])
async def test_a_client_without_a_token_has_no_user(cluster: StoredCluster, header: str) -> None:
    app = ApiServer(cluster, cluster.clock, [TOKEN])
    status, body = await ask(app, "GET", "/api/v1/pods", headers={"authorization": header})
    assert (status, body["reason"], body["code"]) == (403, "Forbidden", 403)
    assert 'User "system:anonymous" cannot list' in body["message"]


async def test_the_world_lives_up_to_now_before_each_request(cluster: StoredCluster) -> None:
    def catch_up() -> None:
        cluster.clock.at += 100  # type: ignore[attr-defined]

    app = ApiServer(cluster, cluster.clock, [TOKEN], catch_up=catch_up)
    body = b'{"metadata": {"name": "late"}}'
    made = (await ask(app, "POST", "/api/v1/namespaces/default/configmaps", body))[1]
    assert made["metadata"]["creationTimestamp"] == "2026-01-05T08:01:40Z"


async def test_a_bug_is_an_internal_error_and_a_trace_in_the_log(
    cluster: StoredCluster, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*arguments: Any) -> Any:
        raise ZeroDivisionError

    cluster.list = broken  # type: ignore[method-assign]
    status, body = await ask(ApiServer(cluster, cluster.clock, [TOKEN]), "GET", "/api/v1/pods")
    assert (status, body["reason"]) == (500, "InternalError")
    assert "ZeroDivisionError" in caplog.text


async def test_a_body_without_end_is_cut_off(cluster: StoredCluster) -> None:
    app = ApiServer(cluster, cluster.clock, [TOKEN])
    status, body = await ask(
        app, "POST", "/api/v1/namespaces/default/configmaps", b"x" * (3 * 1024 * 1024 + 1)
    )
    assert (status, body["reason"]) == (413, "RequestEntityTooLarge")
    assert body["message"] == "Request entity too large: limit is 3145728"


async def test_forms_of_openapi(cluster: StoredCluster) -> None:
    app = ApiServer(cluster, cluster.clock, [TOKEN])
    index = (await ask(app, "GET", "/openapi/v3"))[1]["paths"]
    for place in ("api/v1", "apis/kubeflow.org/v1"):
        document = (await ask(app, "GET", index[place]["serverRelativeURL"]))[1]
        patches = [item["patch"] for item in document["paths"].values() if "patch" in item]
        assert patches and all(
            "fieldValidation" in [p["name"] for p in patch["parameters"]] for patch in patches
        )
    assert (await ask(app, "GET", "/openapi/v2"))[1]["swagger"] == "2.0"
    assert (await ask(app, "GET", "/openapi/v3/apis/nobody.io/v1"))[0] == 404


# --- credentials and the end ----------------------------------------------------------------------


@pytest.fixture(scope="module")
def credentials() -> Iterator[ServerCredentials]:
    yield make_credentials()


def test_two_runs_share_no_secret(credentials: ServerCredentials) -> None:
    other = make_credentials()
    assert other.token != credentials.token and other.authority != credentials.authority


async def test_the_certificate_is_good_for_loopback_and_for_nothing_else(
    cluster: StoredCluster, credentials: ServerCredentials
) -> None:
    sock = bind_socket("127.0.0.1", 0)
    port = sock.getsockname()[1]
    ready = asyncio.Event()
    app = ApiServer(cluster, cluster.clock, [credentials.token])
    serving = asyncio.create_task(serve(app, sock=sock, ssl=credentials.ssl, ready=ready))
    await ready.wait()
    trusting = ssl.create_default_context(cadata=credentials.authority.decode())
    for name in ("127.0.0.1", "localhost"):
        _, writer = await asyncio.open_connection(
            "127.0.0.1", port, ssl=trusting, server_hostname=name
        )
        writer.close()
    with pytest.raises(ssl.SSLCertVerificationError):
        await asyncio.open_connection(
            "127.0.0.1", port, ssl=trusting, server_hostname="example.com"
        )
    with pytest.raises(ssl.SSLCertVerificationError):
        await asyncio.open_connection(
            "127.0.0.1", port, ssl=ssl.create_default_context(), server_hostname="localhost"
        )
    serving.cancel()
    await asyncio.gather(serving, return_exceptions=True)


async def test_a_stop_ends_open_watches_at_once(
    cluster: StoredCluster, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "GRACE_SECONDS", 2 * HANG_SECONDS)
    async with served(cluster) as address:
        streams = [await open_watch(address, "/api/v1/pods?watch=1") for _ in range(20)]
        started = time.monotonic()
    assert time.monotonic() - started < HANG_SECONDS, "no request waited until the grace was over"
    for reader, writer in streams:
        assert (await reader.read()).strip() == b"0", "the stream ends as a whole answer does"
        writer.close()
    assert caplog.text == ""


async def test_a_stop_is_quick_with_watchers_that_read_and_watchers_that_do_not(
    cluster: StoredCluster,
) -> None:
    async with served(cluster) as address:
        streams = [await open_watch(address, "/api/v1/configmaps?watch=1") for _ in range(20)]
        stuck = socket.create_connection(address)
        stuck.sendall(
            b"GET /api/v1/configmaps?watch=1 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer "
            b"a-token\r\n\r\n"
        )
        cluster.create(config_map("c", {"n": ""}))
        for index in range(150):
            cluster.merge_patch(
                CONFIG_MAPS, "default", "c", {"data": {"n": f"{index}-" + "x" * 200_000}}
            )
        for reader, _ in streams:
            await reader.readexactly(1)
        started = time.monotonic()
    assert time.monotonic() - started < 10 * server.GRACE_SECONDS, "one grace for all watchers"
    for _, writer in streams:
        writer.close()
    stuck.close()
