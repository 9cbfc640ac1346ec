"""Deleted jobs, usage per day and the recorder's health over HTTP, from the ledger in memory."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from msgspec import structs
from tests.apps.described_answers import check_against, description
from tests.apps.running_console import Page, console
from tests.console.clusters import EPOCH, living_cluster
from tests.console.people_parts import MemoryPeople, member, team
from tests.console.sign_in_parts import FakeRecords, FakeSignInApi, Parts
from tests.console.worlds import still_world
from tests.usage.memory_ledger import MemoryLedger
from tests.usage.small_ledger import ALICE, BOB, CAROL, DAVE, DAY, fill

from fairlead.errors import StoreDown
from fairlead.model.people.rows import UserRole
from fairlead.model.usage.ledger import LedgerBatch
from fairlead.wire.usage.manifests import kept_manifest

NOW = round(EPOCH * 1000)
START = NOW // DAY * DAY - 3 * DAY
HOURS = (NOW - START) // 3_600_000
OBJECT = {"kind": "MPIJob", "metadata": {"name": "bert"}, "env": {"HF_TOKEN": "hf_x"}}
MANIFEST = kept_manifest("3f", json.dumps(OBJECT).encode())
BERT = "/jobs/team-a/mpijob/bert"


class Site:
    def __init__(self, page: Page, ledger: MemoryLedger) -> None:
        self.page, self.ledger = page, ledger

    async def ask(self, who: str, path: str) -> tuple[int, Any]:
        return await self.page.ask_as(who, "GET", path)


@asynccontextmanager
async def site() -> AsyncIterator[Site]:
    """Anna is an administrator; Bob works in `a-ns`, in which `llm` was deleted. Two days of the
    three are folded.
    """
    ledger = MemoryLedger()
    own = structs.replace(CAROL, namespace="a-ns", user="bob")
    folds = [(START, START + DAY), (START + DAY, START + 2 * DAY)]
    epoch = await fill(ledger, (ALICE, BOB, own, DAVE), start=START, hours=HOURS, folds=folds)
    records = [structs.replace(each, manifest=MANIFEST) for each in ledger.jobs.values()]
    await ledger.write_ledger(epoch, LedgerBatch(NOW, jobs=tuple(records)))
    users, groups = (member("anna", role=UserRole.ADMIN), member("bob", "a")), (team("a"),)
    desk = Parts(FakeSignInApi(users, groups), records=FakeRecords(), ledger=ledger).desk()
    world = structs.replace(still_world(living_cluster()), people=MemoryPeople(users, groups, ()))
    async with console(world, desk=desk) as page:
        yield Site(page, ledger)


async def test_deleted_jobs_are_listed_when_they_are_asked_for() -> None:
    async with site() as it:
        status, found = await it.ask("anna", "/jobs?deleted=yes&sort=name")
        assert (status, found["sentence"]["code"]) == (200, "jobs-deleted")
        rows = {row["name"]: row for row in found["items"]}
        assert list(rows) == ["bert", "llm"]
        assert (rows["bert"]["status"], rows["bert"]["live"]) == ("Deleted", False)
        assert rows["bert"]["deletedAt"] is not None
        _, live = await it.ask("anna", "/jobs")
        assert {row["live"] for row in live["items"]} == {True}
        _, other = await it.ask("anna", "/jobs?deleted=no")
        assert other["items"] == live["items"]
        status, refused = await it.ask("anna", "/jobs?deleted=perhaps")
        assert (status, refused["error"]) == (400, "`deleted` is `perhaps`")


async def test_a_researcher_has_deleted_jobs_of_the_own_namespaces_alone() -> None:
    async with site() as it:
        _, found = await it.ask("bob", "/jobs?deleted=yes")
        assert [row["name"] for row in found["items"]] == ["llm"]
        for path in (BERT, f"{BERT}/manifest", f"{BERT}/cost"):
            status, _ = await it.ask("bob", path)
            assert status == 404, path


async def test_a_deleted_job_has_its_page_and_its_manifest() -> None:
    async with site() as it:
        status, found = await it.ask("anna", BERT)
        assert status == 200
        described = description()
        check_against(
            found,
            {"$ref": "#/components/schemas/JobDetail"},
            described["components"]["schemas"],
        )
        assert found["job"]["gpuSeconds"] == 4 * 36 * 3600
        assert [each["name"] for each in found["instances"]] == ["bert-0"]
        assert [step["step"] for step in found["life"]] == ["created", "running", "ended"]
        _, manifest = await it.ask("anna", f"{BERT}/manifest")
        assert manifest["yaml"] == (
            'kind: MPIJob\nmetadata:\n  name: bert\nenv:\n  HF_TOKEN: "<redacted>"\n'
        )
        assert manifest["redacted"] == ["env.HF_TOKEN"]
        status, refused = await it.ask("anna", "/jobs/team-a/pytorchjob/never")
        assert (status, refused["code"]) == (404, "not-found")


async def test_a_manifest_that_is_not_kept_is_refused_with_its_reason() -> None:
    async with site() as it:
        (record,) = (each for each in it.ledger.jobs.values() if each.name == "bert")
        for manifest, status, words in (
            ('{"spec":"3f","size":70000}', 404, "70,000 bytes"),
            ("kind: MPIJob", 502, "is damaged"),
        ):
            it.ledger.jobs[record.uid] = structs.replace(record, manifest=manifest)
            found, refused = await it.ask("anna", f"{BERT}/manifest")
            assert (found, words in refused["error"]) == (status, True), refused
        it.ledger.jobs[record.uid] = structs.replace(record, manifest="")
        status, refused = await it.ask("anna", f"{BERT}/manifest")
        assert (status, refused["hint"]) == (
            404,
            "a manifest is kept while a usage recorder follows the job",
        )


async def test_an_earlier_job_of_the_name_of_a_living_one_has_its_page_by_uid() -> None:
    async with site() as it:
        alive = "/jobs/team-a/pytorchjob/bert"
        (record,) = (each for each in it.ledger.jobs.values() if each.name == "bert")
        earlier = structs.replace(record, type="pytorchjob", uid="uid-earlier", by=record.by)
        it.ledger.jobs["uid-earlier"] = earlier
        _, rows = await it.ask("anna", "/jobs?deleted=yes&job_type=pytorchjob")
        assert [row["uid"] for row in rows["items"]] == ["uid-earlier"]
        status, found = await it.ask("anna", f"{alive}?uid=uid-earlier")
        assert (status, found["job"]["live"], found["job"]["uid"]) == (200, False, "uid-earlier")
        _, manifest = await it.ask("anna", f"{alive}/manifest?uid=uid-earlier")
        assert "kind: MPIJob" in manifest["yaml"]
        _, living = await it.ask("anna", alive)
        assert living["job"]["live"]
        _, same = await it.ask("anna", f"{alive}?uid={living['job']['uid']}")
        assert same["job"]["live"]
        for path in (f"{alive}?uid=uid-never", f"{alive}/why?uid=uid-earlier"):
            status, refused = await it.ask("anna", path)
            assert (status, refused["code"], "with the uid" in refused["error"]) == (
                404,
                "not-found",
                True,
            )
        status, _ = await it.ask("bob", f"{alive}?uid=uid-earlier")
        assert status == 404


async def test_a_job_of_the_cluster_is_never_shown_from_the_ledger() -> None:
    async with site() as it:
        it.ledger.down = StoreDown("the database does not answer")
        status, found = await it.ask("anna", "/jobs/team-a/pytorchjob/bert")
        assert (status, found["job"]["live"]) == (200, True)
        status, refused = await it.ask("anna", BERT)
        assert (status, refused["code"]) == (503, "store-down")


async def test_days_have_the_same_hours_as_the_table() -> None:
    async with site() as it:
        status, found = await it.ask("anna", "/usage/days?period=30d&by=user")
        assert status == 200
        check_against(
            found,
            {"$ref": "#/components/schemas/UsageDays"},
            description()["components"]["schemas"],
        )
        names = [row["name"] for row in found["rows"]]
        # before the first record there are no days
        assert [day["day"] for day in found["days"]] == [
            *("2026-01-02", "2026-01-03", "2026-01-04", "2026-01-05")
        ]
        _, table = await it.ask("anna", "/usage?period=30d&by=user")
        hours = {row["name"]: row["gpuHours"] for row in table["items"] if row["gpuHours"]}
        assert set(names) == set(hours)
        for place, name in enumerate(names):
            assert sum(day["rows"][place] for day in found["days"]) == pytest.approx(hours[name])
        for day in found["days"]:
            used = day["busy"] + day["idle"] + day["unknown"]
            assert used == pytest.approx(sum(day["rows"]), abs=0.001)
        _, own = await it.ask("bob", "/usage/days?period=30d&by=namespace")
        assert [row["name"] for row in own["rows"]] == ["a-ns"]
        status, refused = await it.ask("anna", "/usage/days?by=color")
        assert (status, refused["error"]) == (400, "`by` is `color`")


async def test_rows_beyond_eight_are_one_part() -> None:
    ledger = MemoryLedger()
    lives = [
        structs.replace(
            ALICE, user=f"u{number}", pod=f"p{number}", start=0, end=number + 1, gpus=0.5
        )
        for number in range(11)
    ]
    await fill(ledger, lives, start=START, hours=HOURS)
    async with console(still_world(living_cluster()), ledger=ledger) as page:
        found = await page.json("/usage/days?period=30d&by=user")
    named = [row["name"] for row in found["rows"] if not row["isRest"]]
    assert named == [f"u{number}" for number in range(10, 2, -1)]
    assert found["rows"][-1]["isRest"] and len(found["rows"]) == 9
    assert sum(day["rows"][-1] for day in found["days"]) == pytest.approx(0.5 * (1 + 2 + 3))


async def test_the_page_health_has_the_recorder() -> None:
    async with site() as it:
        _, found = await it.ask("anna", "/health")
        row = next(each for each in found["items"] if each["name"] == "usage-recorder")
        assert (row["state"], row["found"][0]["text"]) == (
            "ok",
            "`test` records usage; its newest record is 0 s old",
        )
    async with console() as page:
        found = await page.json("/health")
        row = next(each for each in found["items"] if each["name"] == "usage-recorder")
        assert row["state"] == "off"
