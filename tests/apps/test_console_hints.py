"""Change hints: the contents of a stream, the maximum number of streams, and a stop that does not
wait for them.
"""

from __future__ import annotations

import asyncio
import json
import time
from contextlib import AbstractAsyncContextManager

import aiohttp
import pytest
from msgspec import structs
from tests.apps.running_console import Page, console
from tests.apps.signed_browser import Browser
from tests.console.clusters import cluster, living_cluster, reading, training_job
from tests.console.sign_in_parts import BOB, Parts
from tests.console.worlds import StillCluster, StillReadings, still_world
from tests.waiting import HANG_SECONDS, until

from fairlead.apps.console_server import ConsoleServer
from fairlead.apps.server import bind_socket
from fairlead.console.pages.endpoints import BASE


async def lines_until(
    reader: aiohttp.StreamReader, count: int, seconds: float = HANG_SECONDS
) -> list[str]:
    """The first `count` hints of a stream, without heartbeats."""
    hints: list[str] = []
    async with asyncio.timeout(seconds):
        while len(hints) < count:
            line = (await reader.readline()).decode().strip()
            if line.startswith("data: "):
                hints.append(line.removeprefix("data: "))
    return hints


async def test_a_change_becomes_hints_for_the_topics_that_show_it() -> None:
    world = still_world(living_cluster())
    async with console(world) as page, page.session.get(f"{page.url}{BASE}/changes") as stream:
        assert stream.headers["Content-Type"].startswith("text/event-stream")
        first = await lines_until(stream.content, 7)
        assert {json.loads(hint)["topic"] for hint in first} == {
            "overview",
            "nodes",
            "gpus",
            "jobs",
            "serving",
            "quota",
            "health",
        }
        old = world.cluster.snapshot()
        assert isinstance(world.cluster, StillCluster)
        world.cluster.show(
            cluster(
                old.nodes,
                old.pods,
                (*old.jobs, training_job("new")),
                old.gpus,
                old.quota,
                sources=old.sources,
            )
        )
        hints = [json.loads(hint) for hint in await lines_until(stream.content, 2)]
        assert [hint["topic"] for hint in hints] == ["overview", "jobs"]
        assert (await page.json("/jobs"))["total"] == 3, (
            "who refetches after a hint sees the change"
        )
        versions = await page.json("/versions")
        assert all(versions[hint["topic"]] == hint["version"] for hint in hints)


async def test_users_and_groups_send_hints_to_administrators_alone() -> None:
    parts = Parts()
    world = still_world(living_cluster())
    async with console(world, desk=parts.desk()) as page:
        anna = await Browser(page).signed_in("token-of-anna")
        bob = await Browser(page).signed_in("token-of-bob")
        async with opened(page, anna) as of_admin, opened(page, bob) as of_researcher:
            first = [json.loads(each) for each in await lines_until(of_admin.content, 9)]
            assert {"users", "groups"} < {each["topic"] for each in first}
            seen = {
                json.loads(each)["topic"] for each in await lines_until(of_researcher.content, 7)
            }
            parts.api.change(structs.replace(BOB, user_name="Robert"))
            hints = [json.loads(each) for each in await lines_until(of_admin.content, 2)]
            assert [each["topic"] for each in hints] == ["users", "groups"]
            for path in ("/users", "/groups"):
                answer = (await anna.send(path))[1]
                assert {"topic": path[1:], "version": answer["version"]} in hints
            versions = (await anna.send("/versions"))[1]
            assert versions["users"] == hints[0]["version"]
            assert not {"users", "groups"} & (await bob.send("/versions"))[1].keys()
            # What the researcher receives next is a change of the cluster.
            assert isinstance(world.cluster, StillCluster)
            old = world.cluster.snapshot()
            world.cluster.show(structs.replace(old, nodes=old.nodes[:-1]))
            seen |= {
                json.loads(each)["topic"] for each in await lines_until(of_researcher.content, 1)
            }
            assert seen.isdisjoint({"users", "groups"})


def opened(page: Page, browser: Browser) -> AbstractAsyncContextManager[aiohttp.ClientResponse]:
    """The stream of hints of a browser that is signed in."""
    cookies = "; ".join(f"{name}={value}" for name, value in browser.cookies.items())
    return page.session.get(f"{page.url}{BASE}/changes", headers={"Cookie": cookies})


async def test_answers_hints_and_versions_count_alike() -> None:
    world = still_world(living_cluster())
    async with console(world) as page, page.session.get(f"{page.url}{BASE}/changes") as stream:
        await lines_until(stream.content, 7)
        before = {
            path: (await page.json(path))["version"]
            for path in ("/overview", "/nodes", "/gpus/map", "/jobs", "/quota/usage")
        }
        old = world.cluster.snapshot()
        assert isinstance(world.cluster, StillCluster)
        world.cluster.show(
            cluster(
                old.nodes,
                old.pods,
                (*old.jobs, training_job("new")),
                old.gpus,
                old.quota,
                sources=old.sources,
            )
        )
        reported = {
            hint["topic"]: hint["version"]
            for hint in map(json.loads, await lines_until(stream.content, 2))
        }
        after = {path: (await page.json(path))["version"] for path in before}
        assert {"overview": after["/overview"], "jobs": after["/jobs"]} == reported, (
            "a listener has seen it when the answer reports it"
        )
        moved = [path for path in before if int(after[path]) > int(before[path])]
        assert (moved, len(set(after.values()))) == (["/overview", "/jobs"], 2), (
            "the others stand still"
        )
        versions = await page.json("/versions")
        assert versions["nodes"] == after["/nodes"] and versions["jobs"] == after["/jobs"]


async def test_new_readings_are_a_change_though_the_cluster_stands_still() -> None:
    world = still_world(living_cluster())
    async with console(world) as page, page.session.get(f"{page.url}{BASE}/changes") as stream:
        await lines_until(stream.content, 7)
        assert isinstance(world.gpus, StillReadings)
        world.gpus.gpus = tuple(reading(index=n, ratio=0.25) for n in range(4))
        topics = {json.loads(hint)["topic"] for hint in await lines_until(stream.content, 4)}
        assert topics == {"overview", "nodes", "gpus", "jobs"}
        assert (await page.json("/overview"))["gpuUtilPercent"] == 25


async def test_the_map_is_the_newest_picture_at_each_request_and_the_same_bytes_for_all() -> None:
    """Asked for the first time, again while a page is open, and after a change; uncompressed and
    compressed.
    """
    world = still_world(living_cluster())
    async with console(world) as page, page.session.get(f"{page.url}{BASE}/changes") as stream:
        await lines_until(stream.content, 7)
        assert isinstance(world.gpus, StillReadings)
        first = await page.json("/gpus/map")
        assert await page.json("/gpus/map") == first
        for ratio in (0.25, 0.75):
            world.gpus.gpus = tuple(reading(index=n, ratio=ratio) for n in range(4))
            await lines_until(stream.content, 4)
            status, headers, body = await page.get(
                f"{BASE}/gpus/map", headers={"Accept-Encoding": "identity"}
            )
            assert (status, json.loads(body)) == (200, await page.json("/gpus/map"))
            assert (
                json.loads(body)["version"] != first["version"]
                and json.loads(body)["nodes"] != first["nodes"]
            )
            known, again, nothing = await page.get(
                f"{BASE}/gpus/map", headers={"If-None-Match": headers["ETag"]}
            )
            assert (known, again["ETag"], nothing) == (304, headers["ETag"], b"")
            first = json.loads(body)


async def test_a_quiet_stream_gets_heartbeats() -> None:
    async with console() as page:
        page.server.hints.heartbeat_seconds = 0.05
        async with page.session.get(f"{page.url}{BASE}/changes") as stream:
            async with asyncio.timeout(HANG_SECONDS):
                while (await stream.content.readline()).strip() != b": heartbeat":
                    pass


async def test_streams_are_bounded_and_given_back() -> None:
    async with console() as page:
        page.server.hints.streams_max = 2
        async with (
            page.session.get(f"{page.url}{BASE}/changes") as one,
            page.session.get(f"{page.url}{BASE}/changes") as two,
        ):
            assert (await one.content.readline(), await two.content.readline()) == (
                b"retry: 3000\n",
                b"retry: 3000\n",
            )
            status, headers, body = await page.get(f"{BASE}/changes")
            assert (status, headers["Retry-After"], json.loads(body)["code"]) == (
                429,
                "10",
                "rate-limited",
            )
        await until(lambda: not page.server.hints.stream_count)


async def test_a_stop_ends_within_a_moment_though_streams_are_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("fairlead.apps.server.GRACE_SECONDS", 2 * HANG_SECONDS)
    world = still_world(living_cluster())
    server = ConsoleServer(world)
    sock = bind_socket("127.0.0.1", 0)
    task = asyncio.create_task(server.service(sock).run())
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"http://127.0.0.1:{sock.getsockname()[1]}{BASE}/changes") as stream,
    ):
        await stream.content.readline()
        started = time.monotonic()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert time.monotonic() - started < HANG_SECONDS, "no request waited for the grace"
        await asyncio.wait_for(stream.content.read(), HANG_SECONDS)
