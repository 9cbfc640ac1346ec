"""Usage, cost, idle GPUs, prices and reports over HTTP."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from msgspec import structs
from tests.apps.running_console import Page, console
from tests.console.clusters import EPOCH, living_cluster
from tests.console.people_parts import MemoryPeople, member, team
from tests.console.sign_in_parts import FakeRecords, FakeSignInApi, Parts
from tests.console.worlds import still_world
from tests.usage.memory_ledger import MemoryLedger
from tests.usage.small_ledger import ALICE, BOB, CAROL, DAVE, DAY, fill, price

from fairlead.console.pages.endpoints import BASE
from fairlead.errors import StoreDown
from fairlead.model.people.rows import UserRole

ANNA, BOB_USER = member("anna", role=UserRole.ADMIN), member("bob", "a")
START = round(EPOCH * 1000) // DAY * DAY - 3 * DAY
HOURS = (round(EPOCH * 1000) - START) // 3_600_000
IN_A = structs.replace(BOB, namespace="a-ns", user="bob")
NEW = {
    "matcher": {"gpu-model": "A100"},
    "nodeHour": "32.5",
    "currency": "EUR",
    "validFrom": "2026-01-02",
}


class DownLedger(MemoryLedger):
    is_down = False

    def __getattribute__(self, name: str) -> Any:
        if name in ("ledger_bounds", "prices") and object.__getattribute__(self, "is_down"):
            raise StoreDown("the database does not answer")
        return object.__getattribute__(self, name)


class Site:
    def __init__(self, page: Page, ledger: DownLedger, records: FakeRecords) -> None:
        self.page, self.ledger, self.records = page, ledger, records

    async def ask(self, who: str, path: str, body: Any = None) -> tuple[int, Any]:
        return await self.page.ask_as(who, "GET" if body is None else "POST", path, body)


@asynccontextmanager
async def site() -> AsyncIterator[Site]:
    """Anna is an administrator; Bob works in the namespace `a-ns`. Three days are folded."""
    ledger, records = DownLedger(), FakeRecords()
    folds = [(START + day * DAY, START + (day + 1) * DAY) for day in range(3)]
    await fill(ledger, (ALICE, IN_A, CAROL, DAVE), start=START, hours=HOURS, folds=folds)
    users, groups = (ANNA, BOB_USER), (team("a"), team("b"))
    desk = Parts(FakeSignInApi(users, groups), records=records, ledger=ledger).desk()
    world = structs.replace(still_world(living_cluster()), people=MemoryPeople(users, groups, ()))
    async with console(world, desk=desk) as page:
        yield Site(page, ledger, records)


async def test_usage_of_everyone_and_of_the_own_namespaces() -> None:
    async with site() as it:
        status, found = await it.ask("anna", "/usage?by=namespace&period=4d")
        assert status == 200
        hours = {row["name"]: row["gpuHours"] for row in found["items"]}
        assert hours == {"team-a": 4 * 36, "a-ns": 2 * (HOURS - 30), "team-b": 0.5 * 17.75}
        assert found["totals"]["gpuHours"] == sum(hours.values())
        assert found["totals"]["cost"] is None and found["currency"] == ""
        assert [each["nodeHours"] for each in found["unpriced"]] == [HOURS, HOURS]
        _, own = await it.ask("bob", "/usage?by=namespace&period=4d")
        assert [row["name"] for row in own["items"]] == ["a-ns"]
        assert own["totals"]["gpuHours"] == hours["a-ns"] and own["unpriced"] == []


async def test_a_price_is_entered_audited_and_counts() -> None:
    async with site() as it:
        status, preview = await it.ask("anna", "/prices?dryRun=true", NEW)
        assert (status, preview["valid"], it.ledger.added) == (200, True, [])
        status, written = await it.ask("anna", "/prices", NEW)
        assert (status, written["price"]["nodeHour"]) == (201, "32.500000")
        assert written["price"]["inForce"] is True and written["warnings"] == []
        begun, ended = it.records.audit[-2:]
        assert (begun.action, str(begun.result), str(ended.result)) == (
            "prices.create",
            "begun",
            "ok",
        )
        assert begun.target.kind == "Price" and begun.target.name == "gpu-model=A100"
        _, found = await it.ask("anna", "/usage?by=model&period=4d")
        (model, plain) = found["items"]
        assert (model["name"], plain["name"]) == ("A100", "")
        assert model["cost"] is not None and plain["cost"] is None
        _, listed = await it.ask("bob", "/prices")
        assert [row["enteredBy"] for row in listed["items"]] == [""]
        _, listed = await it.ask("anna", "/prices")
        assert [row["enteredBy"] for row in listed["items"]] == ["anna"]


async def test_a_researcher_enters_no_price() -> None:
    async with site() as it:
        status, answer = await it.ask("bob", "/prices", NEW)
        assert (status, answer["code"]) == (403, "forbidden")
        assert it.ledger.added == []


@pytest.mark.parametrize(
    ("change", "field", "words"),
    [
        ({"nodeHour": "-1.50"}, "nodeHour", "the price -1.50 is negative"),
        ({"nodeHour": "1e3"}, "nodeHour", "`1e3` is no amount of money"),
        ({"currency": "USD"}, "currency", "the prices are in EUR, and this one is in USD"),
        ({"currency": "euro"}, "currency", "`euro` is no currency"),
        (
            {"matcher": {"node.kubernetes.io/instance-type": "a100-8"}},
            "matcher",
            "`node.kubernetes.io/instance-type=a100-8` and `gpu-model=A100` both match nodes",
        ),
        ({"matcher": {"team": "a"}}, "matcher", "a price cannot match the label `team`"),
        (
            {"validFrom": "2026-01-02T07:00:00Z"},
            "validFrom",
            "nearest beginnings: 2026-01-02T00:00:00+00:00 and 2026-01-03T00:00:00+00:00",
        ),
        ({"gpuSharePercent": 101}, "gpuSharePercent", "the GPU share is 101 %"),
        ({"ended": True, "matcher": {}}, "matcher", "there is no price of `every node` to end"),
    ],
    ids=lambda each: str(each)[:40],
)
async def test_bad_prices_are_refused(change: dict[str, Any], field: str, words: str) -> None:
    async with site() as it:
        await it.ledger.add_price(price(1_000_000, START))
        status, answer = await it.ask("anna", "/prices", {**NEW, **change})
        assert (status, answer["code"]) == (422, "invalid")
        (fault,) = answer["fields"]
        assert fault["path"] == field and words in fault["error"]
        status, preview = await it.ask("anna", "/prices?dryRun=true", {**NEW, **change})
        assert (status, preview["valid"], preview["fields"]) == (200, False, answer["fields"])
        assert len(it.ledger.added) == 1


async def test_times_that_are_none_are_refused() -> None:
    cases = {
        "month=0001-01": "`0001-01` is no month",
        "month=1969-12": "`1969-12` is no month",
        "from=0001-01-01T00:00:00Z&to=0001-01-02T00:00:00Z": "`0001-01-01T00:00:00Z` is no time",
        "from=2026-01-01T00:00:00": "`2026-01-01T00:00:00` is no time",
        "from=2026-01-01T00:00:00Z&to=9999-12-31T23:59:59Z": (
            "the period `custom` is longer than 400 days"
        ),
        "month=2027-01": "the period `2027-01` begins in the future",
        "period=0h": "the period `0h` is malformed",
        "month=2026-01&period=7d": "`period` and `month` are given",
    }
    async with site() as it:
        for path in ("/usage", "/usage/days", "/idle"):
            for words, what in cases.items():
                status, answer = await it.ask("anna", f"{path}?{words}")
                assert (status, answer["error"]) == (400, what), (path, words)


async def test_a_matcher_without_nodes_is_stored_with_a_warning() -> None:
    async with site() as it:
        body = {**NEW, "matcher": {"gpu-model": "H100"}}
        status, written = await it.ask("anna", "/prices", body)
        assert status == 201
        (warning,) = written["warnings"]
        assert warning["code"] == "price-matches-nothing"
        assert warning["text"].startswith(
            "no node of the last 90 days has `gpu-model=H100`; the labels of nodes: gpu-model=A100"
        )


async def test_idle_gpus_name_owner_and_money() -> None:
    async with site() as it:
        await it.ledger.add_price(price(32_000_000, START))
        _, found = await it.ask("anna", "/idle?period=24h")
        idle, *others = found["items"]
        assert (idle["reason"], idle["user"], idle["pod"], idle["gpus"]) == (
            "idle",
            "bob",
            "notebook",
            2,
        )
        assert idle["since"] == "2026-01-04T08:00:00Z", "idle before the period, too"
        assert idle["gpuHours"] == 2 * 24
        assert idle["cost"] == "172.800000", "48 GPU-hours / 8 GPUs × 0.9 × 32"
        assert [row["reason"] for row in others] == ["free"]
        assert found["facets"] == {
            "reason": ["free", "idle"],
            "namespace": ["a-ns"],
            "user": ["bob"],
            "model": ["A100"],
        }
        for words, reasons in {
            "reason=idle": ["idle"],
            "reason=idle&reason=free": ["idle", "free"],
            "user=Bob&namespace=a-ns&model=a100": ["idle"],
            "user=-": ["free"],
            "user=ann": [],
        }.items():
            _, chosen = await it.ask("anna", f"/idle?period=24h&{words}")
            assert [row["reason"] for row in chosen["items"]] == reasons, words
            assert chosen["totals"] == found["totals"]
        money = found["totals"]
        assert money["cost"] == "691.200000", "24 hours × 0.9 × 32"
        parts = ("used", "idle", "unknown", "free", "stranded", "broken")
        assert sum(float(money[f"{part}Cost"]) for part in parts) == pytest.approx(691.2, abs=1e-6)
        _, own = await it.ask("bob", "/idle?period=24h")
        assert [row["pod"] for row in own["items"]] == ["notebook"]
        assert (own["nodes"], own["totals"]) == ([], None)


async def test_the_cost_of_a_deleted_job() -> None:
    async with site() as it:
        await it.ledger.add_price(price(32_000_000, START, list_node_hour=40_000_000))
        _, found = await it.ask("anna", "/jobs/team-a/mpijob/bert/cost")
        (pod,) = found["pods"]
        # 36 h × (0.9 × 4/8 + 0.05 × 16/64 + 0.05 × 4096/524288) × 32
        assert found["figures"]["cost"] == pod["cost"] == "533.250000"
        assert (pod["status"], pod["seconds"], pod["perHour"]) == ("deleted", 129_600, "14.812500")
        assert pod["savedPercent"] == found["figures"]["savedPercent"] == 20
        status, missing = await it.ask("anna", "/jobs/team-a/mpijob/other/cost")
        assert status == 404
        assert "the ledger has no mpijob job `other`" in missing["error"]
        assert (await it.ask("bob", "/jobs/team-a/mpijob/bert/cost"))[0] == 404


async def test_a_report_in_each_format() -> None:
    async with site() as it:
        await it.ledger.add_price(price(32_000_000, START))
        month = "2026-01"
        headers = {"Authorization": "Bearer token-of-anna"}
        for form, begin in (("json", b"{"), ("markdown", b"# Usage and cost 2026-01\n")):
            path = f"{BASE}/reports/{month}?format={form}"
            status, _, body = await it.page.get(path, headers=headers)
            assert status == 200 and body.startswith(begin)
        status, _, body = await it.page.get(f"{BASE}/reports/{month}", headers=headers)
        found = json.loads(body)
        assert not found["isWhole"] and found["until"] == "2026-01-05T00:00:00Z"
        nodes = found["nodes"]
        assert float(nodes["cost"]) == pytest.approx(
            float(nodes["podsCost"]) + float(nodes["rest"]), abs=1e-6
        )
        assert (await it.ask("anna", "/reports/2026-07"))[1]["error"] == (
            "the ledger has no folded day of 2026-07"
        )


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/usage?by=planet", "`by` is `planet`"),
        ("/usage?period=1y", "the period `1y` is malformed"),
        ("/usage?period=24h&month=2026-01", "`period` and `month` are given"),
        ("/usage?to=2026-01-01T00:00:00Z", "`to` is given without `from`"),
        ("/usage?from=2030-01-01T00:00:00Z&to=2031-01-01T00:00:00Z", "begins in the future"),
        ("/usage?from=2026-01-01", "`2026-01-01` is no time"),
        ("/usage?period=500d", "longer than 400 days"),
        ("/idle?period=60d", "longer than 31 days"),
        ("/reports/2026-13", "`2026-13` is no month"),
        ("/reports/2026-01?asOf=later", "`later` is no time"),
        ("/reports/2026-01?format=pdf", "`format` is `pdf`"),
    ],
)
async def test_bad_questions_are_refused_in_words(path: str, words: str) -> None:
    async with site() as it:
        status, answer = await it.ask("anna", path)
        assert (status, answer["code"]) == (400, "malformed")
        assert words in answer["error"] and answer["hint"]


async def test_a_store_that_is_down_is_503_and_live_pages_work() -> None:
    async with site() as it:
        it.ledger.is_down = True
        for path in ("/usage", "/idle", "/prices", "/reports/2026-01"):
            status, answer = await it.ask("anna", path)
            assert (status, answer["error"]) == (503, "store: the database does not answer"), path
        assert (await it.ask("anna", "/prices", NEW))[0] == 503
        assert (await it.ask("anna", "/nodes"))[0] == 200


async def test_without_sign_in_there_is_no_ledger() -> None:
    async with console() as page:
        status, _, body = await page.get(f"{BASE}/usage")
        assert status == 404
        assert "this console has no store, and so no usage ledger" in json.loads(body)["error"]


async def test_a_recorder_that_is_away_is_named() -> None:
    async with site() as it:
        _, found = await it.ask("anna", "/usage")
        assert [each["code"] for each in found["warnings"]] == []
        it.ledger.heartbeat -= 10 * 60_000
        _, found = await it.ask("anna", "/usage")
        assert [each["code"] for each in found["warnings"]] == ["recorder-away"]
