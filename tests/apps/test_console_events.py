"""The page of a job shows all Events of the job and its pods. They are read from the API server
when a user opens the page, not every second.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

from aiohttp import web
from tests.apps.log_console import JOB, page_over, refusing
from tests.console.clusters import EPOCH, pod, training_job
from tests.waiting import until

from fairlead.console.http.job_event_answers import KEPT_SECONDS, EventAnswers
from fairlead.console.pages.envelope import Warning
from fairlead.edge.queries.job_files import SINGLE_LISTS_MAX
from fairlead.errors import OutsideError
from fairlead.model.event import Event
from fairlead.model.jobs.instances import JobInstances
from fairlead.wire.kube.time import parse_time

EVENTS = "/api/v1/namespaces/team-a/events"


def kept(name: str, reason: str, uid: str, at: str, type_: str = "Normal") -> dict[str, Any]:
    about = {"kind": "Pod", "namespace": "team-a", "name": uid.removeprefix("uid-"), "uid": uid}
    meta = {"name": name, "namespace": "team-a", "uid": f"uid-{name}", "resourceVersion": "7"}
    return {
        "metadata": meta,
        "involvedObject": about,
        "type": type_,
        "reason": reason,
        "message": reason,
        "lastTimestamp": at,
    }


KEPT = (
    kept("a", "Scheduled", "uid-bert-worker-0", "2026-01-05T07:55:11Z"),
    kept("b", "Pulled", "uid-bert-worker-0", "2026-01-05T07:56:00Z"),
    kept("c", "Pulled", "uid-bert-worker-1", "2026-01-05T07:57:00Z"),
    kept("d", "BackOff", "uid-bert-worker-1", "2026-01-05T07:58:00Z", "Warning"),
    kept("e", "Pulled", "uid-lonely", "2026-01-05T07:58:00Z"),
)


async def listed(request: web.Request) -> web.StreamResponse:
    assert request.path == EVENTS
    wanted = request.query.get("fieldSelector", "").removeprefix("involvedObject.uid=")
    items = [each for each in KEPT if wanted in ("", each["involvedObject"]["uid"])]
    return web.json_response(
        {"kind": "EventList", "metadata": {"resourceVersion": "9"}, "items": items}
    )


async def test_a_healthy_job_shows_its_normal_events_and_when_its_images_were_there() -> None:
    async with page_over(listed) as page:
        reported = json.loads((await page.get(JOB))[2])
        alone = json.loads((await page.get(f"{JOB}/events"))[2])
    assert [each["reason"] for each in reported["events"]] == [
        "BackOff",
        "Pulled",
        "Pulled",
        "Scheduled",
    ]
    assert alone["items"] == reported["events"]
    assert [
        parse_time(step["at"]) - EPOCH for step in reported["life"] if step["step"] == "images"
    ] == [-180]


async def test_a_page_that_refreshes_does_not_ask_each_time() -> None:
    seen: list[str] = []

    async def answer(request: web.Request) -> web.StreamResponse:
        seen.append(request.query["fieldSelector"])
        return await listed(request)

    async with page_over(answer) as page:
        for _ in range(5):
            await page.get(JOB)
    assert sorted(seen) == [
        f"involvedObject.uid={uid}"
        for uid in ("uid-bert-worker-0", "uid-bert-worker-1", "uid-job-bert")
    ]


async def test_events_that_may_not_be_read_are_reported_and_name_the_right() -> None:
    async with page_over(
        refusing(403, "Forbidden", ('events is forbidden: User "x" cannot list resource "events"'))
    ) as page:
        reported = json.loads((await page.get(JOB))[2])
    [warning] = [each for each in reported["warnings"] if each["source"] == "events"]
    assert (warning["code"], warning["hint"]) == (
        "events-forbidden",
        "the console's account needs the right `list` of `events` in namespace `team-a`",
    )
    assert reported["events"] == [] and next(step["step"] for step in reported["life"]) == "created"


async def test_an_api_server_that_fails_is_reported() -> None:
    async with page_over(refusing(500, "InternalError", "etcd is away")) as page:
        reported = json.loads((await page.get(f"{JOB}/events"))[2])
    assert [(each["code"], "etcd is away" in each["message"]) for each in reported["warnings"]] == [
        ("events-unread", True)
    ]


class Slow:
    """Answers when the test sets `answer`, and counts the requests."""

    def __init__(self) -> None:
        self.asked = 0
        self.answer = asyncio.Event()
        self.fails = False

    async def events(self, namespace: str, uids: list[str], account: str) -> tuple[Event, ...]:
        self.asked += 1
        await self.answer.wait()
        if self.fails:
            raise OutsideError("kubernetes", "cut", "")
        return (Event(namespace, "e", uid="e"),)


EACH = JobInstances(training_job(), (pod("bert-worker-0", "gpu-1"),))


async def test_no_page_waits_long_and_a_second_request_has_them() -> None:
    files, asked = Slow(), EventAnswers(patience=0.01)
    late = await asked.of(files, EACH, "")  # type: ignore[arg-type]
    assert isinstance(late, Warning) and late.code == "events-unread"
    files.answer.set()
    await until(lambda: len(asyncio.all_tasks()) == 1)
    assert isinstance(await asked.of(files, EACH, ""), tuple)  # type: ignore[arg-type]
    assert files.asked == 1


async def test_many_readers_at_once_are_one_question_and_the_answer_ages() -> None:
    now = [0.0]
    files, asked = Slow(), EventAnswers(lambda: now[0])
    files.answer.set()
    together = await asyncio.gather(*(asked.of(files, EACH, "") for _ in range(9)))  # type: ignore[arg-type]
    assert (len(together), files.asked) == (9, 1)
    now[0] = KEPT_SECONDS
    files.fails = True
    assert isinstance(await asked.of(files, EACH, ""), Warning)  # type: ignore[arg-type]
    assert files.asked == 2
    grown = JobInstances(EACH.job, (*EACH.pods, pod("bert-worker-1", "gpu-1")))
    await asked.of(files, grown, "")  # type: ignore[arg-type]
    assert files.asked == 3, "a pod more is another question"


async def test_the_answer_to_one_user_is_no_answer_to_another() -> None:
    """The API server decides for each."""
    files, asked = Slow(), EventAnswers(lambda: 0.0)
    files.answer.set()
    for account in ("bob", "anna", "bob"):
        await asked.of(files, EACH, account)  # type: ignore[arg-type]
    assert files.asked == 2


async def test_of_many_pods_the_namespace_is_read_once() -> None:
    seen: list[dict[str, str]] = []

    async def answer(request: web.Request) -> web.StreamResponse:
        seen.append(dict(request.query))
        return await listed(request)

    async with page_over(answer) as page:
        files = page.server.world.job_files
        assert files is not None
        uids = ["uid-bert-worker-1", *(f"uid-{n}" for n in range(SINGLE_LISTS_MAX))]
        found = await files.events("team-a", uids, "")
    assert [event.reason for event in found] == ["Pulled", "BackOff"]
    assert [each.get("fieldSelector") for each in seen] == [None]
