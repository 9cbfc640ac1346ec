"""Logs and manifests through the console, over an API server on a socket: a log that is followed, a
browser that leaves, pods without a log here, missing permissions, a log that breaks off.
"""

from __future__ import annotations

import asyncio
import json

import aiohttp
import msgspec
import pytest
from aiohttp import web
from tests.apps.log_console import JOB, page_over, refusing
from tests.apps.running_console import console
from tests.console.tenants import BOB, SignedIn
from tests.waiting import HANG_SECONDS, until

LOG = "/api/v1/namespaces/team-a/pods/bert-worker-0/log"


async def test_a_log_comes_byte_for_byte_and_asks_for_no_more_than_it_may() -> None:
    written = "步\x1b[1m<b>\n".encode() + b"\xff\xe6" + b"x" * 1_000_000
    seen: list[tuple[str, dict[str, str]]] = []

    async def answer(request: web.Request) -> web.StreamResponse:
        seen.append((request.path, dict(request.query)))
        return web.Response(body=written)

    async with page_over(answer) as page:
        status, headers, body = await page.get(f"{JOB}/logs?pod=bert-worker-0&tail=7")
    assert (status, body) == (200, written)
    assert headers["Content-Type"] == "text/plain; charset=utf-8"
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert seen == [(LOG, {"container": "main", "tailLines": "7", "limitBytes": str(2 << 20)})]


async def test_a_followed_log_arrives_as_written_and_ends_upstream_when_the_browser_leaves() -> (
    None
):
    left, more = asyncio.Event(), asyncio.Event()

    async def answer(request: web.Request) -> web.StreamResponse:
        assert request.query["follow"] == "true"
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"one\n")
        await more.wait()
        await response.write(b"two\n")
        await until(lambda: request.transport is None or request.transport.is_closing())
        left.set()
        return response

    async with page_over(answer) as page, aiohttp.ClientSession() as browser:
        async with browser.get(page.url + f"{JOB}/logs?follow=true") as stream:
            assert await stream.content.readexactly(4) == b"one\n"
            more.set()
            assert await stream.content.readexactly(4) == b"two\n"
            assert page.server.logs.count == 1
            stream.close()
        await asyncio.wait_for(left.wait(), HANG_SECONDS)
        await until(lambda: page.server.logs.count == 0)


async def test_a_silent_log_is_answered_at_once_and_its_end_is_an_end() -> None:
    begin = asyncio.Event()

    async def answer(request: web.Request) -> web.StreamResponse:
        await begin.wait()
        return web.Response(body=b"late\n")

    async with page_over(answer) as page, aiohttp.ClientSession() as browser:
        stream = await browser.get(page.url + f"{JOB}/logs?follow=true")
        assert stream.status == 200
        begin.set()
        assert await stream.read() == b"late\n"


async def test_a_slow_reader_slows_the_api_server_and_nothing_is_dropped() -> None:
    piece, sent, total = b"x" * (1 << 16), 0, 1 << 26

    async def answer(request: web.Request) -> web.StreamResponse:
        nonlocal sent
        response = web.StreamResponse()
        await response.prepare(request)
        while sent < total:
            await response.write(piece)
            sent += len(piece)
        return response

    async with page_over(answer) as page:
        host, port = page.url.removeprefix("http://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port), limit=1 << 16)
        writer.write(f"GET {JOB}/logs?follow=true HTTP/1.0\r\nHost: localhost\r\n\r\n".encode())
        await until(lambda: sent > 0)
        looks: list[int] = []
        # the client reads no more
        await until(lambda: looks.append(sent) or (len(looks) > 25 and len(set(looks[-25:])) == 1))
        assert sent < total / 2
        await reader.readuntil(b"\r\n\r\n")
        read = 0
        while got := await reader.read(1 << 20):
            read += got.count(b"x")
        assert read == total
        writer.close()


async def test_a_pod_without_a_log_here_gets_the_reason() -> None:
    async with page_over(refusing(500, "", "never asked")) as page:
        for asked, status, words in (
            ("pod=lonely", 404, "`lonely` is no instance of pytorchjob `bert`"),
            ("pod=bert-worker-0&container=x", 404, "it has main"),
            ("pod=bert-worker-1", 404, "has not begun"),
            ("tail=10001", 400, "`tail` is `10001`"),
            ("until=now", 400, "until"),
        ):
            got, _, body = await page.get(f"{JOB}/logs?{asked}")
            assert got == status, asked
            assert words in json.loads(body)["error"]


async def test_a_right_that_is_missing_is_named() -> None:
    async with page_over(
        refusing(
            403,
            "Forbidden",
            ('pods "bert-worker-0" is forbidden: User "x" cannot get resource "pods/log"'),
        )
    ) as page:
        status, _, body = await page.get(f"{JOB}/logs?follow=true")
        reported = json.loads(body)
    assert (status, reported["code"]) == (403, "forbidden")
    assert 'cannot get resource "pods/log"' in reported["error"]
    assert reported["hint"] == (
        "the console's account needs the right `get` of `pods/log` in namespace `team-a`"
    )


BOBS = "system:serviceaccount:kube-ai:bob"


async def test_what_is_read_for_a_user_is_asked_as_the_user() -> None:
    """The log, a run before it, the log that is followed, the manifest and the events."""
    seen: list[tuple[str, str]] = []

    async def answer(request: web.Request) -> web.StreamResponse:
        seen.append((request.path.rpartition("/")[2], request.headers.get("Impersonate-User", "")))
        if request.path.startswith("/apis") and "namespaces" not in request.path:
            return discovered(request)
        return web.json_response({"kind": "PyTorchJob", "items": [], "metadata": {"name": "bert"}})

    bob = msgspec.structs.replace(BOB, account=BOBS)
    async with page_over(answer, SignedIn(bob)) as page:
        for path in ("/logs", "/logs?previous=true", "/logs?follow=true", "/manifest", "/events"):
            status, _, body = await page.get(f"{JOB}{path}")
            assert status == 200, body
    assert {name for name, account in seen if account == BOBS} == {"log", "bert", "events"}
    assert [account for name, account in seen if name == "log"] == [BOBS] * 3
    # What is served is asked by the console itself: it is no object of a tenant.
    assert {name for name, account in seen if not account} <= {"apis", "api", "v1", "kubeflow.org"}


def discovered(request: web.Request) -> web.Response:
    """An API server of old that serves PyTorchJobs."""
    resource = {"name": "pytorchjobs", "kind": "PyTorchJob", "namespaced": True, "verbs": ["get"]}
    version = {"groupVersion": "kubeflow.org/v1", "version": "v1"}
    groups = [{"name": "kubeflow.org", "versions": [version], "preferredVersion": version}]
    if request.path == "/apis/kubeflow.org/v1":
        return web.json_response(
            {"kind": "APIResourceList", "groupVersion": "kubeflow.org/v1", "resources": [resource]}
        )
    return web.json_response({"kind": "APIGroupList", "groups": groups})


MAY_NOT_IMPERSONATE = (
    "the console's account needs the right `impersonate` of `serviceaccounts` in namespace "
    "`kube-ai`"
)
NO_USER = "the console acts for users only: create your user on the page My access"


@pytest.mark.parametrize(
    ("account", "message", "hint"),
    [
        (
            BOBS,
            f'pods "bert-worker-0" is forbidden: User "{BOBS}" cannot get resource "pods/log"',
            f"`{BOBS}` needs the right `get` of `pods/log` in namespace `team-a`",
        ),
        (
            BOBS,
            'serviceaccounts "bob" is forbidden: User "console" cannot impersonate resource '
            '"serviceaccounts" in API group "" in the namespace "kube-ai"',
            MAY_NOT_IMPERSONATE,
        ),
        (
            "root",
            'users "root" is forbidden: User "console" cannot impersonate resource "users" in API '
            'group "" at the cluster scope',
            NO_USER,
        ),
        # since 1.36 in the words of the narrower right, with the resource of the request
        (
            BOBS,
            'pods "bert-worker-0" is forbidden: User "console" cannot '
            'impersonate-on:serviceaccount:get resource "pods/log" in API group "" in the '
            'namespace "team-a"',
            MAY_NOT_IMPERSONATE,
        ),
        (
            "system:serviceaccount:kube-system:installer",
            'pods "bert-worker-0" is forbidden: User "console" cannot '
            'impersonate-on:serviceaccount:get resource "pods/log" in API group "" in the '
            'namespace "team-a"',
            NO_USER,
        ),
        (
            "root",
            'pods "bert-worker-0" is forbidden: User "console" cannot '
            'impersonate-on:user-info:get resource "pods/log" in API group "" in the namespace '
            '"team-a"',
            NO_USER,
        ),
    ],
)
async def test_a_right_that_the_user_lacks_is_named_with_the_user(
    account: str, message: str, hint: str
) -> None:
    bob = msgspec.structs.replace(BOB, account=account)
    async with page_over(refusing(403, "Forbidden", message), SignedIn(bob)) as page:
        status, _, body = await page.get(f"{JOB}/logs")
    answer = json.loads(body)
    assert (status, answer["error"], answer["hint"]) == (403, message, hint)


async def test_before_a_user_is_bound_the_api_server_is_not_asked() -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        raise AssertionError(f"{request.path} was asked")

    bob = msgspec.structs.replace(BOB, account=BOBS, is_bound=False)
    async with page_over(answer, SignedIn(bob)) as page:
        for path in ("/logs", "/logs?follow=true", "/manifest"):
            status, _, body = await page.get(f"{JOB}{path}")
            assert (status, json.loads(body)["code"]) == (403, "forbidden")
        status, _, body = await page.get(JOB)
        assert status == 200, "the page has more than its events"
        (warning,) = json.loads(body)["warnings"]
    assert warning["code"] == "events-unread"
    assert "no ServiceAccount of Fairlead's yet" in warning["message"]


async def test_a_pod_that_is_gone_and_a_run_that_never_was_are_not_found() -> None:
    for status, words in (
        (404, ('pods "bert-worker-0" not found')),
        (400, ('previous terminated container "main" not found')),
    ):
        async with page_over(
            refusing(status, "NotFound" if status == 404 else "BadRequest", words)
        ) as page:
            got, _, body = await page.get(f"{JOB}/logs?previous=true")
        assert (got, json.loads(body)["error"]) == (404, words)


async def test_a_log_that_breaks_off_does_not_look_whole() -> None:
    begun = asyncio.Event()

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"half")
        assert request.transport is not None
        await begun.wait()
        request.transport.abort()
        return response

    async with page_over(answer) as page, aiohttp.ClientSession() as browser:
        stream = await browser.get(page.url + f"{JOB}/logs?follow=true")
        assert await stream.content.readexactly(4) == b"half"
        begun.set()
        with pytest.raises(aiohttp.ClientPayloadError):
            await stream.read()


async def test_a_manifest_comes_from_where_discovery_points_without_secrets() -> None:
    manifest = {
        "kind": "PyTorchJob",
        "metadata": {"name": "bert", "managedFields": []},
        "env": [{"name": "A_TOKEN", "value": "hunter2"}],
    }

    async def answer(request: web.Request) -> web.StreamResponse:
        if request.path == "/apis/kubeflow.org/v1/namespaces/team-a/pytorchjobs/bert":
            return web.json_response(manifest)
        return discovered(request)

    async with page_over(answer) as page:
        reported = json.loads((await page.get(f"{JOB}/manifest"))[2])
    assert (
        "A_TOKEN" in reported["yaml"]
        and "hunter2" not in reported["yaml"]
        and "managedFields" not in reported["yaml"]
    )
    assert reported["redacted"] == ["env[0].value"]


async def test_a_saved_snapshot_has_no_logs_and_the_page_states_it() -> None:
    async with console() as page:
        status, _, body = await page.get(f"{JOB}/logs")
    assert status == 404
    assert "no API server" in json.loads(body)["error"]
