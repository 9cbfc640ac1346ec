"""A mirror against a scripted server: no event is skipped or repeated, and a failure empties
nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import random
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from tests.edge.scripted import (
    Reply,
    ScriptedServer,
    Stream,
    bookmark,
    error_event,
    event,
    page,
    pod,
    scripted_frame,
    status,
)
from tests.edge.twins import connection_to, pod_reader
from tests.protobuf_bodies import envelope, frame
from tests.waiting import until

from fairlead.collector import quiet_collector
from fairlead.edge.connection.lines import SLICE_BYTES
from fairlead.edge.kube import kube_api
from fairlead.edge.kube.kube_api import KubeApi
from fairlead.edge.kube.reflector import Reflector
from fairlead.errors import Forbidden
from fairlead.model.changes import Changes
from fairlead.model.pod import Pod
from fairlead.wire.kube.forms import PROTOBUF

PODS = "/api/v1/pods"
WATCH = f"watch {PODS}"
HOLD = Stream(then="hold")


@pytest.fixture(params=["JSON", "protobuf"], autouse=True)
def form(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The server answers in JSON or in protobuf; the results are the same."""
    monkeypatch.setattr(ScriptedServer, "speaks_protobuf", request.param == "protobuf")
    return str(request.param)


in_json = pytest.mark.parametrize("form", ["JSON"], indirect=True)
in_protobuf = pytest.mark.parametrize("form", ["protobuf"], indirect=True)


class Mirror:
    """A mirror that also records what was reported, in order."""

    def __init__(self) -> None:
        self.rows: dict[str, Pod] = {}
        self.story: list[str] = []

    def observe(self, changes: Changes[Pod]) -> None:
        assert changes.kind == "pods"
        if changes.is_list:
            kept = {key: self.rows[key] for key in changes.unreadable if key in self.rows}
            self.rows = {**changes.all_rows(), **kept}
            self.story.append("replace " + ",".join(self.names))
            return
        for key, row in changes.rows.items():
            if row is None:
                self.story.append(f"remove {self.rows.pop(key).name}")
            else:
                self.rows[key] = row
                self.story.append(f"upsert {row.name} {row.phase}")

    @property
    def names(self) -> list[str]:
        return sorted(row.name for row in self.rows.values())


class Followed:
    """A running reflector. `waits`: the seconds it would have slept."""

    def __init__(self, url: str) -> None:
        self.mirror = Mirror()
        self.waits: list[float] = []
        self.api = KubeApi(connection_to(url), rng=random.Random(1), sleep=self._sleep)
        self.reflector = Reflector(
            self.api,
            pod_reader(),
            "pods",
            self.mirror.observe,
            rng=random.Random(1),
            sleep=self._sleep,
        )

    async def _sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        await asyncio.sleep(0.001)

    async def until(self, is_true: Callable[[], object]) -> None:
        await until(is_true, 10, pause_seconds=0.002)


@contextlib.asynccontextmanager
async def following(
    script: dict[str, list[Reply | Stream]],
) -> AsyncIterator[tuple[Followed, ScriptedServer]]:
    with ScriptedServer(script) as server:
        followed = Followed(server.url)
        task = asyncio.create_task(followed.reflector.run())
        try:
            yield followed, server
            assert not task.done(), "the reflector ended by itself"
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
            await followed.api.close()


def watched_versions(server: ScriptedServer) -> list[str]:
    return [seen.query["resourceVersion"] for seen in server.seen if "watch" in seen.query]


async def test_a_list_and_then_its_changes_in_order() -> None:
    changes = [
        event("ADDED", pod("b", 11)),
        event("MODIFIED", pod("a", 12, phase="Failed")),
        event("DELETED", pod("b", 13)),
    ]
    async with following({PODS: [page([pod("a")])], WATCH: [Stream(changes, "hold")]}) as (
        followed,
        server,
    ):
        await followed.until(lambda: len(followed.mirror.story) == 4)
        assert followed.mirror.story == [
            "replace a",
            "upsert b Running",
            "upsert a Failed",
            "remove b",
        ]
        query = server.seen[-1].query
        assert (query["resourceVersion"], query["allowWatchBookmarks"]) == ("10", "true")
        assert 300 <= int(query["timeoutSeconds"]) <= 600
        assert followed.reflector.is_current


async def test_a_watch_that_ends_goes_on_at_the_last_version_without_a_new_list() -> None:
    streams = [Stream([event("ADDED", pod("b", 11))]), Stream([event("ADDED", pod("c", 15))]), HOLD]
    async with following({PODS: [page([pod("a")])], WATCH: [*streams]}) as (followed, server):
        await followed.until(lambda: len(watched_versions(server)) == 3)
        assert watched_versions(server) == ["10", "11", "15"]
        assert len(server.requests_of(PODS)) == 4
        assert followed.mirror.names == ["a", "b", "c"]
        assert followed.waits == []


async def test_a_bookmark_moves_the_version_and_nothing_else() -> None:
    streams = [Stream([bookmark(77)]), HOLD]
    async with following({PODS: [page([pod("a")])], WATCH: [*streams]}) as (followed, server):
        await followed.until(lambda: len(watched_versions(server)) == 2)
        assert watched_versions(server) == ["10", "77"]
        assert followed.mirror.story == ["replace a"]


@in_json
@pytest.mark.parametrize(
    "cut_at", [1, 20, -1], ids=["after a byte", "in the middle", "before the newline"]
)
async def test_a_line_cut_short_is_dropped_and_asked_for_again(cut_at: int) -> None:
    whole = (
        b'{"type":"ADDED","object":%s}'
        % page([pod("b", 12)]).content().partition(b"[")[2].rpartition(b"]")[0]
    )
    streams = [
        Stream([event("ADDED", pod("c", 11)), whole[:cut_at]], "cut"),
        Stream([event("ADDED", pod("b", 12))], "hold"),
    ]
    async with following({PODS: [page([pod("a")])], WATCH: [*streams]}) as (followed, server):
        await followed.until(lambda: "upsert b Running" in followed.mirror.story)
        assert watched_versions(server) == ["10", "11"]
        assert followed.mirror.story == ["replace a", "upsert c Running", "upsert b Running"]
        assert len(followed.waits) == 1


@in_json
async def test_others_have_their_turn_while_a_burst_is_read() -> None:
    """3,000 events arrive at the speed of a socket: at most two slices are applied per turn of the
    event loop (one ends a chunk).
    """
    lines = [
        json.dumps(event("MODIFIED", pod("a", number, message="x" * 800))).encode() + b"\n"
        for number in range(1000, 4000)
    ]
    async with following(
        {PODS: [page([pod("a")])], WATCH: [Stream([b"".join(lines)], "hold")]}
    ) as (followed, _):
        most = last = 0
        while last < 3000:
            await asyncio.sleep(0)
            now = followed.reflector.events_total
            most, last = max(most, now - last), now
    assert most <= 2 * (SLICE_BYTES // len(lines[0]) + 1)


@in_json
async def test_an_event_split_over_many_chunks_is_one_event() -> None:
    line = page([pod("b", 11)]).content().partition(b"[")[2].rpartition(b"]")[0]
    whole = (
        b'{"type":"ADDED","object":%s}\n' % line
        + b'{"type":"ADDED","object":%s}\n' % line.replace(b'"b"', b'"c"').replace(b"-b", b"-c")
    )
    pieces = [whole[at : at + 7] for at in range(0, len(whole), 7)]
    async with following({PODS: [page([])], WATCH: [Stream(pieces, "hold", pause=0.0005)]}) as (
        followed,
        _,
    ):
        await followed.until(lambda: followed.mirror.names == ["b", "c"])
        assert followed.mirror.story[1:] == ["upsert b Running", "upsert c Running"]


async def test_410_as_a_status_lists_again() -> None:
    script: dict[str, list[Reply | Stream]] = {
        PODS: [page([pod("a"), pod("b")]), page([pod("b"), pod("c")], 50)],
        WATCH: [status(410, "Expired", "too old resource version"), HOLD],
    }
    async with following(script) as (followed, server):
        await followed.until(lambda: followed.reflector.is_current)
        assert followed.mirror.story == ["replace a,b", "replace b,c"]
        assert watched_versions(server) == ["10", "50"]


async def test_410_as_an_event_lists_again_even_with_events_before_it() -> None:
    gone = Stream(
        [
            event("ADDED", pod("b", 11)),
            error_event(410, "Expired", "too old resource version: 11 (40)"),
        ]
    )
    async with following({PODS: [page([pod("a")]), page([pod("c")], 50)], WATCH: [gone, HOLD]}) as (
        followed,
        server,
    ):
        await followed.until(lambda: watched_versions(server)[-1:] == ["50"])
        assert followed.mirror.names == ["c"]


async def test_410_again_and_again_does_not_run_hot() -> None:
    script: dict[str, list[Reply | Stream]] = {
        PODS: [page([pod("a")])],
        WATCH: [status(410, "Expired", "too old")],
    }
    async with following(script) as (followed, _):
        await followed.until(lambda: len(followed.waits) >= 6)
        assert followed.waits[:6] == sorted(followed.waits[:6])
        assert followed.waits[5] > 3
        assert followed.mirror.names == ["a"]


async def test_an_empty_watch_that_always_ends_at_once_does_not_run_hot() -> None:
    async with following({PODS: [page([pod("a")])], WATCH: [Stream()]}) as (followed, _):
        await followed.until(lambda: len(followed.waits) >= 5)
        assert followed.waits[4] > 1.5
        assert followed.reflector.lists_total == 1


async def test_a_failing_list_is_tried_again_with_growing_waits_and_then_forgotten() -> None:
    script: dict[str, list[Reply | Stream]] = {
        PODS: [*[status(500, "X", "etcd is unhealthy")] * 4, page([pod("a")])],
        WATCH: [HOLD],
    }
    async with following(script) as (followed, _):
        await followed.until(lambda: followed.reflector.is_synced)
        assert [0.1 * 2**n <= wait <= 0.2 * 2**n for n, wait in enumerate(followed.waits)] == [
            True
        ] * 4
        await followed.until(lambda: followed.reflector.is_current)
        assert followed.reflector.last_error is None


async def test_a_failure_keeps_the_rows_with_the_time_since_which_they_may_be_old() -> None:
    script: dict[str, list[Reply | Stream]] = {
        PODS: [page([pod("a")]), status(403, "Forbidden", "pods is forbidden")],
        WATCH: [Stream([event("ADDED", pod("b", 11))]), status(410, "Expired", "gone")],
    }
    async with following(script) as (followed, server):
        reflector = followed.reflector
        await followed.until(lambda: reflector.last_error is not None)
        assert isinstance(reflector.last_error, Forbidden)
        assert followed.mirror.names == ["a", "b"]
        assert reflector.is_synced
        assert not reflector.is_current
        before, asked = reflector.good_at, len(server.seen)
        await followed.until(lambda: len(server.seen) > asked + 2)
        assert reflector.good_at == before is not None


async def test_a_watch_the_server_puts_off_is_resumed_after_its_time() -> None:
    later = status(429, "TooManyRequests", "slow down", {"Retry-After": "7"})
    async with following({PODS: [page([pod("a")])], WATCH: [later, HOLD]}) as (followed, server):
        await followed.until(lambda: followed.reflector.is_current)
        assert len(followed.waits) == 1
        assert 7 <= followed.waits[0] <= 7.7
        assert watched_versions(server) == ["10", "10"]


async def test_an_outage_resumes_the_watch_and_does_not_list_again() -> None:
    script: dict[str, list[Reply | Stream]] = {
        PODS: [page([pod("a")])],
        WATCH: [Stream([event("ADDED", pod("b", 11))], "hold")],
    }
    async with following(script) as (followed, server):
        await followed.until(lambda: followed.mirror.names == ["a", "b"])
        server.stop()
        await followed.until(lambda: len(followed.waits) >= 3)
        assert followed.mirror.names == ["a", "b"]
        assert "refused" in str(followed.reflector.last_error)
        with ScriptedServer(
            {WATCH: [Stream([event("ADDED", pod("c", 12))], "hold")]}, port=server.port
        ) as again:
            await followed.until(lambda: followed.mirror.names == ["a", "b", "c"])
            assert [seen.query["resourceVersion"] for seen in again.seen] == ["11"]
            assert followed.reflector.is_current


@in_json
async def test_an_object_that_becomes_unreadable_keeps_its_last_row_over_lists_too() -> None:
    broken: dict[str, Any] = pod("a", 11) | {"spec": 5}
    script: dict[str, list[Reply | Stream]] = {
        PODS: [page([pod("a"), pod("b")]), page([broken, pod("c")], 50)],
        WATCH: [
            Stream([event("MODIFIED", broken), event("DELETED", {**pod("b", 12), "status": []})]),
            status(410, "Expired", "gone"),
            HOLD,
        ],
    }
    async with following(script) as (followed, server):
        await followed.until(
            lambda: followed.reflector.is_current and followed.reflector.lists_total == 2
        )
        assert followed.mirror.story == ["replace a,b", "remove b", "replace a,c"]
        assert watched_versions(server)[1] == "12"
        assert followed.reflector.reader.malformed_total == 2


@in_json
async def test_lines_that_are_no_events_lead_to_a_new_list() -> None:
    async with following(
        {PODS: [page([pod("a")]), page([pod("b")], 50)], WATCH: [Stream([b"<html>\n"]), HOLD]}
    ) as (followed, server):
        await followed.until(lambda: watched_versions(server)[-1:] == ["50"])
        assert followed.mirror.names == ["b"]
        assert len(followed.waits) == 1


# in protobuf


def frames(*events: dict[str, Any]) -> list[bytes]:
    return [scripted_frame("Pod", each) for each in events]


@in_protobuf
@pytest.mark.parametrize(
    "cut_at",
    [2, 4, 30, -1],
    ids=["in the length", "behind the length", "in the middle", "before the last byte"],
)
async def test_a_frame_cut_short_is_dropped_and_asked_for_again(cut_at: int) -> None:
    first, second = frames(event("ADDED", pod("c", 11)), event("ADDED", pod("b", 12)))
    streams = [Stream([first, second[:cut_at]], "cut"), Stream([second], "hold")]
    async with following({PODS: [page([pod("a")])], WATCH: [*streams]}) as (followed, server):
        await followed.until(lambda: "upsert b Running" in followed.mirror.story)
        assert watched_versions(server) == ["10", "11"]
        assert followed.mirror.story == ["replace a", "upsert c Running", "upsert b Running"]
        assert len(followed.waits) == 1


@in_protobuf
async def test_others_have_their_turn_while_a_burst_of_frames_is_read() -> None:
    burst = frames(
        *(event("MODIFIED", pod("a", number, message="x" * 800)) for number in range(1000, 4000))
    )
    async with following(
        {PODS: [page([pod("a")])], WATCH: [Stream([b"".join(burst)], "hold")]}
    ) as (followed, _):
        most = last = 0
        while last < 3000:
            await asyncio.sleep(0)
            now = followed.reflector.events_total
            most, last = max(most, now - last), now
    assert most <= 2 * (SLICE_BYTES // (len(burst[0]) - 4) + 1)


@in_protobuf
async def test_a_frame_split_over_many_chunks_is_one_event() -> None:
    whole = b"".join(frames(event("ADDED", pod("b", 11)), event("ADDED", pod("c", 12))))
    pieces = [whole[at : at + 7] for at in range(0, len(whole), 7)]
    async with following({PODS: [page([pod("a")])], WATCH: [Stream(pieces, "hold")]}) as (
        followed,
        _,
    ):
        await followed.until(lambda: followed.mirror.names == ["a", "b", "c"])
        assert followed.mirror.story == ["replace a", "upsert b Running", "upsert c Running"]


@in_protobuf
async def test_an_object_that_becomes_unreadable_keeps_its_last_row_in_protobuf_too(
    caplog: pytest.LogCaptureFixture,
) -> None:
    broken: dict[str, Any] = pod("a", 11)
    broken["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "a lot"
    script: dict[str, list[Reply | Stream]] = {
        PODS: [page([pod("a"), pod("b")]), page([broken, pod("c")], 50)],
        WATCH: [
            Stream([event("MODIFIED", broken), event("DELETED", pod("b", 12))]),
            status(410, "Expired", "gone"),
            HOLD,
        ],
    }
    async with following(script) as (followed, server):
        await followed.until(
            lambda: followed.reflector.is_current and followed.reflector.lists_total == 2
        )
        assert followed.mirror.story == ["replace a,b", "remove b", "replace a,c"]
        assert watched_versions(server)[1] == "12"
        assert followed.reflector.reader.malformed_total == 2
    assert "left out pods default/a: resource `cpu`: quantity `a lot`" in caplog.text


WRONG_FRAMES = {
    "lines of JSON": (b'{"type":"ADDED"}\n', "a frame of 2065855609 bytes is announced"),
    "2 GB announced, the most that four bytes are trusted with": (
        b"\x80\0\0\0" + b"x" * 9,
        "a frame of 2147483648 bytes is announced",
    ),
    "no event": (b"\0\0\0\4\xff\xff\xff\xff", "an event of a watch cannot be read"),
    "an event without an object": (b"\0\0\0\7\x0a\5ADDED", "does not begin with"),
    "another magic": (frame("ADDED", b"k8x\0" + envelope("Pod", b"")[4:]), "does not begin with"),
    "another kind": (
        frame("ADDED", envelope("Node", b"")),
        "a `Node` of `v1` came where a `Pod` was asked for",
    ),
    "an object cut off": (frame("ADDED", envelope("Pod", b"\x0a\x70x")), "field 1 is cut off"),
}


@in_protobuf
@pytest.mark.parametrize("case", WRONG_FRAMES)
async def test_invalid_frames_are_reported_and_the_watch_goes_on_in_json(
    case: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Events that were delivered before the wrong frame count; nothing of that frame does."""
    caplog.set_level("INFO", "fairlead.kubernetes")
    wrong, words = WRONG_FRAMES[case]
    watches: list[Reply | Stream] = [
        Stream([*frames(event("ADDED", pod("b", 11))), wrong], pause=0.05),
        Stream([event("ADDED", pod("c", 12))], "hold"),
    ]
    async with following({PODS: [page([pod("a")])], WATCH: watches}) as (followed, server):
        await followed.until(lambda: followed.mirror.names == ["a", "b", "c"])
        assert watched_versions(server) == ["10", "11"] and followed.reflector.lists_total == 1
        assert [PROTOBUF in seen.headers["accept"] for seen in server.seen] == [True, True, False]
    [logged] = [line for line in caplog.messages if "is asked for JSON from here on" in line]
    assert words in logged


@in_protobuf
async def test_an_error_in_protobuf_ends_a_watch_with_its_words() -> None:
    """410 as an event, and as an answer."""
    gone = error_event(410, "Expired", "too old resource version")
    script: dict[str, list[Reply | Stream]] = {
        PODS: [page([pod("a")]), page([pod("b")], 50), page([pod("c")], 70)],
        WATCH: [Stream([gone]), status(410, "Expired", "gone"), HOLD],
    }
    async with following(script) as (followed, server):
        await followed.until(lambda: watched_versions(server)[-1:] == ["70"])
        assert followed.mirror.names == ["c"]


async def test_a_slow_server_is_waited_for() -> None:
    slow = Reply(page([pod("a")]).content(), delay=0.3)
    async with following({PODS: [slow], WATCH: [HOLD]}) as (followed, _):
        await followed.until(lambda: followed.reflector.is_synced)
        assert followed.waits == []


async def test_a_watch_that_is_never_answered_is_asked_for_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(kube_api, "READ_SECONDS", 0.2)
    watches: list[Reply | Stream] = [
        Reply(delay=30),
        Stream([event("ADDED", pod("b", 11))], "hold"),
    ]
    async with following({PODS: [page([pod("a")])], WATCH: watches}) as (followed, server):
        await followed.until(lambda: followed.mirror.names == ["a", "b"])
        assert watched_versions(server) == ["10", "10"]


async def test_a_watch_may_be_silent_once_it_has_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kube_api, "READ_SECONDS", 0.2)
    watches: list[Reply | Stream] = [
        Stream([bookmark(11), event("ADDED", pod("b", 12))], "hold", pause=0.6)
    ]
    async with following({PODS: [page([pod("a")])], WATCH: watches}) as (followed, server):
        await followed.until(lambda: followed.mirror.names == ["a", "b"])
        assert watched_versions(server) == ["10"]


async def test_a_second_list_drops_what_is_gone() -> None:
    script: dict[str, list[Reply | Stream]] = {
        PODS: [page([pod("a")], token="t"), page([pod("b")]), page([])],
        WATCH: [status(410, "Expired", "gone"), HOLD],
    }
    async with following(script) as (followed, _):
        await followed.until(lambda: followed.reflector.lists_total == 2)
        assert followed.mirror.story == ["replace a,b", "replace "]


def test_the_collector_rests_during_lists_and_works_after_the_last() -> None:
    with quiet_collector(is_first=True):
        assert not gc.isenabled()
        with quiet_collector(is_first=False):
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()
    assert gc.get_freeze_count() > 0
    gc.unfreeze()


def test_what_a_first_list_read_is_frozen_although_another_reading_ends_later() -> None:
    with quiet_collector():
        with quiet_collector(is_first=True):
            pass
        assert gc.get_freeze_count() == 0
    assert gc.get_freeze_count() > 0
    gc.unfreeze()
    with quiet_collector():
        pass
    assert (gc.isenabled(), gc.get_freeze_count()) == (True, 0)


def test_the_collector_comes_the_more_seldom_the_more_was_read_and_never_more_often() -> None:
    before = gc.get_threshold()
    try:
        kept = [[number] for number in range(300_000)]
        with quiet_collector(is_first=True):
            pass
        seldom = gc.get_threshold()
        assert 30_000 <= seldom[0] <= 100_000 and seldom[1:] == before[1:]
        del kept
        gc.unfreeze()
        with quiet_collector(is_first=True):
            pass
        assert gc.get_threshold() == seldom
    finally:
        gc.unfreeze()
        gc.set_threshold(*before)
