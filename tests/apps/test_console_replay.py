"""Replays of the past over HTTP: one at a time, by administrators, seen again after a reload."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs
from tests.apps.described_answers import check_against
from tests.apps.running_console import Page, console
from tests.cli.usage.usage_shell import Shell
from tests.console.people_parts import MemoryPeople, member, team
from tests.console.sign_in_parts import FakeRecords, FakeSignInApi, Parts
from tests.console.worlds import StillClock, still_world
from tests.usage.memory_ledger import MemoryLedger
from tests.usage.replayed_world import MODEL, lived
from tests.waiting import HANG_SECONDS

from fairlead.console.pages.endpoints import BASE
from fairlead.console.pages.openapi import openapi_document
from fairlead.errors import UserError
from fairlead.model.people.rows import UserRole
from fairlead.model.snapshot import build_snapshot

PATH = "/quota/replay"
ONE_MORE = {"period": "2h", "nodes": [f"{MODEL}=+1"]}


class HeldLedger(MemoryLedger):
    """Its pods and nodes are returned after `released`."""

    def __init__(self) -> None:
        super().__init__()
        self.released = asyncio.Event()

    async def node_intervals(self, *given: Any) -> Any:
        await self.released.wait()
        return await super().node_intervals(*given)


class Site:
    def __init__(self, page: Page, ledger: HeldLedger) -> None:
        self.page, self.ledger = page, ledger

    async def ask(self, who: str, method: str = "GET", body: Any = None) -> tuple[int, Any]:
        return await self.page.ask_as(who, method, PATH, body)

    async def ended(self) -> dict[str, Any]:
        """The replay when it no longer runs."""
        async with asyncio.timeout(HANG_SECONDS):
            while True:
                _, found = await self.ask("anna")
                if found["state"] != "running":
                    return dict(found)


@asynccontextmanager
async def site(*, is_held: bool = False) -> AsyncIterator[Site]:
    """Two hours of a simulated cluster, with its tree. Anna is an administrator, Bob is not."""
    past, end, tree = await asyncio.to_thread(lived, 2 / 24, 6)
    ledger = HeldLedger()
    ledger.__dict__.update({**past.__dict__, "released": ledger.released})
    if not is_held:
        ledger.released.set()
    users, groups = (member("anna", role=UserRole.ADMIN), member("bob", "a")), (team("a"),)
    desk = Parts(FakeSignInApi(users, groups), records=FakeRecords(), ledger=ledger).desk()
    world = structs.replace(
        still_world(build_snapshot(taken_at=end / 1000, quota_tree=tree)),
        people=MemoryPeople(users, groups, ()),
        clock=StillClock(end / 1000),
    )
    async with console(world, desk=desk) as page:
        yield Site(page, ledger)


async def test_a_replay_is_begun_followed_and_shown_again() -> None:
    async with site() as it:
        status, found = await it.ask("anna")
        assert (status, found["state"], found["id"], found["result"]) == (200, "none", "", None)
        status, begun = await it.ask("anna", "POST", ONE_MORE)
        assert (status, begun["state"], begun["doing"], begun["part"]) == (
            (200, "running", "reading", 0.0)
        )
        assert begun["askedBy"] == "anna" and begun["nodes"] == [f"{MODEL}=+1"]
        done = await it.ended()
        assert (done["state"], done["id"], done["error"]) == ("done", begun["id"], "")
        _, again = await it.ask("anna")
    assert again == done
    described = openapi_document("0")
    schema = described["paths"][PATH]["get"]["responses"]["200"]["content"]["application/json"]
    check_against(done, schema["schema"], described["components"]["schemas"])
    result = done["result"]
    assert [each["leaf"] for each in result["leaves"]] == ["root.language", "root.vision"]
    free = result["freeAsked"]["gpuHours"] - result["freeInForce"]["gpuHours"]
    lost = result["totals"]["inForce"]["lostGpuHours"]
    assert 10 < free <= 16.1 + lost, "a node with 8 GPUs, for two hours, and what is not repeated"
    assert result["fidelity"]["happened"] == result["fidelity"]["both"] > 10


async def test_changed_bounds_of_the_tree_are_replayed() -> None:
    change = {"node": "root.vision", "resource": "nvidia.com/gpu", "min": "1", "max": "2"}
    async with site() as it:
        await it.ask("anna", "POST", {"period": "2h", "changes": [change]})
        done = await it.ended()
    assert done["changes"] == [change]
    vision = next(each for each in done["result"]["leaves"] if each["leaf"] == "root.vision")
    assert vision["asked"]["gpuHours"] < 5 < 10 < vision["inForce"]["gpuHours"]


async def test_a_whole_tree_is_replayed_and_one_that_lacks_a_namespace_fails() -> None:
    root = {
        "name": "root",
        "min": {"nvidia.com/gpu": "16"},
        "max": {"nvidia.com/gpu": "16"},
        "children": [
            {
                "name": "root.all",
                "min": {"nvidia.com/gpu": "16"},
                "max": {"nvidia.com/gpu": "16"},
                "namespaces": ["vision", "language"],
            }
        ],
    }
    tree = {"kind": "ElasticQuotaTree", "metadata": {"name": "all"}, "spec": {"root": root}}
    async with site() as it:
        await it.ask("anna", "POST", {"period": "2h", "tree": json.dumps(tree)})
        done = await it.ended()
        assert done["state"] == "done" and done["hasTree"]
        names = {each["leaf"] for each in done["result"]["leaves"] if each["asked"]}
        assert names == {"root.all"}
        root["children"][0]["namespaces"] = ["language"]
        await it.ask("anna", "POST", {"period": "2h", "tree": json.dumps(tree)})
        failed = await it.ended()
    assert failed["state"] == "failed" and failed["result"] is None
    assert failed["error"].startswith("the tree has no leaf for `vision`")
    assert failed["hint"] == "add these namespaces to leaves of the tree"


async def test_one_runs_at_a_time_and_can_be_cancelled() -> None:
    async with site(is_held=True) as it:
        _, begun = await it.ask("anna", "POST", ONE_MORE)
        status, refused = await it.ask("anna", "POST", ONE_MORE)
        assert (status, refused["code"]) == (409, "blocked")
        assert refused["error"] == "a replay of `2h` is running, which anna asked for"
        _, running = await it.ask("anna")
        assert (running["state"], running["id"]) == ("running", begun["id"])
        status, cancelled = await it.ask("anna", "DELETE")
        assert (status, cancelled["state"], cancelled["id"]) == (200, "cancelled", begun["id"])
        it.ledger.released.set()
        status, other = await it.ask("anna", "POST", ONE_MORE)
        assert status == 200 and other["id"] != begun["id"]
        done = await it.ended()
        assert (done["state"], done["id"]) == ("done", other["id"])
        _, still = await it.ask("anna", "DELETE")
    assert still == done, "a replay that is done is not cancelled"


@pytest.mark.parametrize(("method", "body"), [("GET", None), ("POST", ONE_MORE), ("DELETE", None)])
async def test_a_researcher_may_not(method: str, body: Any) -> None:
    async with site() as it:
        status, refused = await it.ask("bob", method, body)
        assert (status, refused["code"]) == (403, "forbidden")
        _, found = await it.ask("anna")
    assert found["state"] == "none"


@pytest.mark.parametrize(
    ("body", "what"),
    [
        ([], "this asks for no replay"),
        ({"period": "2h"}, "the replay has no change"),
        ({"period": "2h", "nodes": ["A"]}, "`--nodes A` changes no number of nodes"),
        ({"period": "2h", "nodes": ["A=+1"] * 101}, "101 nodes are more than 100"),
        ({"period": "2h", "tree": "{"}, "`tree` cannot be read"),
        ({"period": "2h", "tree": '{"spec": ' + "[" * 90_000}, "`tree` cannot be read"),
        (
            {"period": "2h", "tree": "{}", "changes": [{"node": "root", "resource": "cpu"}]},
            "`changes` and `tree` are given",
        ),
        (
            {"period": "2h", "changes": [{"node": "root.z", "resource": "cpu", "min": "1"}]},
            "the quota tree has no node `root.z`",
        ),
    ],
)
async def test_what_asks_for_no_replay_is_malformed(body: Any, what: str) -> None:
    async with site() as it:
        status, refused = await it.ask("anna", "POST", body)
        assert (status, refused["code"]) == (400, "malformed")
        assert refused["error"].startswith(what) and refused["hint"]
        _, found = await it.ask("anna")
    assert found["state"] == "none"


@pytest.mark.parametrize(
    ("more", "what"),
    [
        ({"period": "fortnight"}, "the period `fortnight` is malformed"),
        ({"nodes": ["H100=+1"]}, "no node of this time has GPUs of the model `H100`"),
    ],
)
async def test_what_the_ledger_cannot_answer_fails(more: dict[str, Any], what: str) -> None:
    async with site() as it:
        await it.ask("anna", "POST", {**ONE_MORE, **more})
        failed = await it.ended()
    assert (failed["state"], failed["error"]) == ("failed", what)
    assert failed["hint"]


async def test_without_a_store_there_is_no_replay() -> None:
    async with console(still_world(build_snapshot(taken_at=0.0))) as page:
        status, _, answer = await page.get(BASE + PATH)
    assert (status, json.loads(answer)["code"]) == (404, "not-found")


def _shell(it: Site, who: str = "anna") -> Shell:
    return Shell(it.ledger, it.page.url, f"Bearer token-of-{who}")


async def test_the_command_asks_the_console() -> None:
    async with site() as it:
        line = f"quota plan --replay 2h --nodes {MODEL}=+1"
        printed = await _shell(it).over_console(f"{line} -o json")
        _, state = await it.ask("anna")
        table = await _shell(it).over_console(line)
        with pytest.raises(UserError) as refused:
            await _shell(it, "bob").over_console(line)
    assert printed.status == 0
    assert json.loads(printed.out) == state["result"]
    assert "reading the ledger: 0 %" in printed.err
    assert f" Nodes: {MODEL}=+1. Nothing was written." in table.out
    assert refused.value.what == "a researcher may not create the quota plans"


async def test_the_command_sends_the_tree_of_its_file(tmp_path: Path) -> None:
    file = tmp_path / "tree.yaml"
    file.write_text("""
kind: ElasticQuotaTree
metadata: {name: one}
spec:
  root:
    name: root
    min: {nvidia.com/gpu: 16}
    max: {nvidia.com/gpu: 16}
    children:
    - name: root.vision
      min: {nvidia.com/gpu: 16}
      max: {nvidia.com/gpu: 16}
      namespaces: [vision]
""")
    async with site() as it:
        with pytest.raises(UserError) as caught:
            await _shell(it).over_console(f"quota plan --replay 2h --tree {file}")
        _, state = await it.ask("anna")
    assert caught.value.what.startswith("the tree has no leaf for `language`")
    assert state["hasTree"]


async def test_a_command_that_is_interrupted_cancels_its_replay() -> None:
    def interrupted(_: float) -> None:
        raise KeyboardInterrupt

    async with site(is_held=True) as it:
        shell = _shell(it)
        shell.sleep = interrupted
        line = f"quota plan --replay 2h --nodes {MODEL}=+1"
        assert await asyncio.to_thread(_is_interrupted, shell, line)
        _, state = await it.ask("anna")
    assert state["state"] == "cancelled"


def _is_interrupted(shell: Shell, line: str) -> bool:
    """In its thread, because KeyboardInterrupt would end the event loop."""
    try:
        shell.run(line, is_direct=False)
    except KeyboardInterrupt:
        return True
    return False
