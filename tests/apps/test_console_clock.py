"""The console moves the time of a simulated cluster for its own page and for programs without a
browser's headers. It refuses other pages, and never moves the time of a real cluster.
"""

from __future__ import annotations

import asyncio
import json
from itertools import pairwise
from typing import Any

import pytest
from tests.apps.described_answers import check_against, description
from tests.apps.moved_console import moved
from tests.apps.running_console import console
from tests.sim.small_world import EPOCH, pod
from tests.waiting import HANG_SECONDS, until

from fairlead.console.pages.endpoints import BASE


async def test_pause_resume_and_speed_show_in_me_and_on_the_clock() -> None:
    async with moved() as one:
        status, answer = await one.order({"action": "pause"})
        assert (status, answer["clock"]["isPaused"], answer["happened"]) == (200, True, [])
        stood = await one.page.json("/clock")
        one.wall.passed += 1000
        assert await one.page.json("/clock") == stood
        assert (await one.page.json("/me"))["clock"] == stood
        await one.order({"action": "speed", "speed": 25})
        await one.order({"action": "resume"})
        face = (await one.page.json("/me"))["clock"]
    assert (face["isPaused"], face["speed"]) == (False, 25.0)


async def test_an_order_answers_with_exactly_the_keys_it_describes() -> None:
    described = description()
    operation = described["paths"]["/clock"]["post"]
    schema = operation["responses"]["200"]["content"]["application/json"]["schema"]
    assert operation["requestBody"]["content"]["application/json"]["schema"]["$ref"].endswith(
        "/ClockOrder"
    )
    assert described["components"]["schemas"]["ClockOrder"]["required"] == ["action"]
    async with moved() as one:
        one.driver.world.cluster.create(pod("p", "train:1m"))
        _, answer = await one.order({"action": "step"})
    check_against(answer, schema, described["components"]["schemas"])


async def test_a_step_reports_what_happened() -> None:
    async with moved() as one:
        one.driver.world.cluster.create(pod("p", "train:1m"))
        _, answer = await one.order({"action": "step"})
    assert answer["clock"]["isPaused"]
    assert answer["happenedCount"] == len(answer["happened"]) > 0
    assert {"verb": "modified", "kind": "Pod", "namespace": "work", "name": "p"} in answer[
        "happened"
    ]


async def test_an_advance_answers_at_once_and_shows_its_progress_until_it_is_over() -> None:
    async with moved(is_running=True) as one:
        status, answer = await one.order({"action": "advance", "seconds": 400 * 600})
        clock = answer["clock"]
        assert (status, bool(clock["since"] and clock["until"])) == (200, True)
        assert clock["since"] <= clock["now"] < clock["until"]
        faces = [clock]

        async def is_over() -> bool:
            faces.append(await one.page.json("/clock"))
            return not faces[-1]["until"]

        await until(is_over)
    assert all(earlier["now"] <= later["now"] for earlier, later in pairwise(faces))
    assert faces[-1]["now"] >= clock["until"]


async def test_until_an_instant_of_any_zone() -> None:
    async with moved() as one:
        status, answer = await one.order({"action": "until", "until": "2026-01-05T18:00:00+08:00"})
    assert (status, answer["clock"]["until"]) == (200, "2026-01-05T10:00:00.000Z")
    assert EPOCH == 1_767_600_000.0  # 08:00 UTC


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "not an order for the clock"),
        (b"{", "not an order for the clock"),
        (b"[]", "Expected `object`"),
        ({"action": "rewind"}, "Invalid enum value 'rewind'"),
        ({"action": "pause", "minutes": 3}, "unknown field `minutes`"),
        ({"action": "pause", "speed": 3}, "`pause` takes nothing, not `speed`"),
        ({"action": "advance"}, "`advance` takes `seconds`, not nothing"),
        ({"action": "advance", "seconds": "10m"}, "Expected `float | null`, got `str`"),
        ({"action": "advance", "seconds": -5}, "`-5.0` is no time to go ahead"),
        ({"action": "advance", "seconds": 0}, "`0.0` is no time to go ahead"),
        ({"action": "advance", "seconds": 1e300}, "days ahead; at most 366"),
        ({"action": "until", "until": "tomorrow"}, "`tomorrow` is no time"),
        (
            {"action": "until", "until": "2026-01-05T07:00:00Z"},
            "`2026-01-05T07:00:00Z` is not after the world's time",
        ),
        ({"action": "until", "until": "9999-12-31T23:59:59Z"}, "days ahead; at most 366"),
        ({"action": "speed", "speed": 0}, "speed `0` is not between 0.01 and 100000"),
        ({"action": "speed", "speed": 1e9}, "is not between 0.01 and 100000"),
    ],
)
async def test_an_order_that_cannot_be_is_refused_with_its_value(body: Any, words: str) -> None:
    async with moved() as one:
        before = one.driver.state()
        status, answer = await one.order(body)
        assert (status, answer["code"]) == (400, "malformed")
        assert words in answer["error"]
        assert answer["hint"]
        after = one.driver.state()
    assert (after.is_paused, after.speed, after.until) == (before.is_paused, before.speed, None)


@pytest.mark.parametrize(
    ("headers", "status", "code"),
    [
        ({"X-Fairlead-Csrf": ""}, 403, "csrf"),
        ({"X-Fairlead-Csrf": "guessed"}, 403, "csrf"),
        ({"X-Fairlead-Csrf": "\u00e4"}, 403, "csrf"),
        ({"Origin": "http://evil.example"}, 403, "csrf"),
        ({"Origin": "null"}, 403, "csrf"),
        ({"Sec-Fetch-Site": "cross-site"}, 403, "csrf"),
        ({"Sec-Fetch-Site": "same-site"}, 403, "csrf"),
        ({"Content-Type": "text/plain"}, 415, "media-type"),
        ({"Content-Type": "application/x-www-form-urlencoded"}, 415, "media-type"),
    ],
)
async def test_a_strange_page_cannot_move_time(
    headers: dict[str, str], status: int, code: str
) -> None:
    async with moved() as one:
        got, answer = await one.order({"action": "pause"}, **headers)
        assert (got, answer["code"]) == (status, code)
        assert not one.driver.state().is_paused


async def test_a_program_without_a_browsers_headers_may() -> None:
    async with moved() as one:
        status, _ = await one.order({"action": "pause"}, **{"Origin": "", "Sec-Fetch-Site": ""})
        assert (status, one.driver.state().is_paused) == (200, True)


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE"])
async def test_a_clock_is_read_with_get_and_moved_with_post(method: str) -> None:
    async with moved() as one:
        status, headers, _ = await one.page.get(f"{BASE}/clock", method=method, headers=one.headers)
    assert (status, headers["Allow"]) == (405, "GET, HEAD, POST")


async def test_a_real_clusters_time_cannot_be_moved() -> None:
    async with console() as page:
        me = await page.json("/me")
        assert not me["features"]["clock"]
        for method in ("GET", "POST"):
            headers = {"X-Fairlead-Csrf": me["csrf"], "Content-Type": "application/json"}
            status, _, body = await page.get(
                f"{BASE}/clock", method=method, data=b'{"action":"pause"}', headers=headers
            )
            assert (status, json.loads(body)["code"]) == (404, "not-found")
            assert "test-cluster" in json.loads(body)["error"]


async def test_a_listener_learns_that_time_was_moved() -> None:
    async with moved() as one, one.page.session.get(f"{one.page.url}{BASE}/changes") as stream:
        lines = stream.content
        async with asyncio.timeout(HANG_SECONDS):
            # the first message announces every topic
            while b'"clock"' not in await lines.readline():
                pass
            await one.order({"action": "pause"})
            while b'"clock"' not in await lines.readline():
                pass
