"""A researcher's answers do not depend on what other tenants have, and name nothing of theirs.

The routes come from the route table, so a new one is asked without being listed here.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import quote, urlencode

import pytest
from tests.console.clusters import EPOCH
from tests.console.tenant_ledger import MONTH, fill_ledger
from tests.console.tenants import (
    ANY,
    BOB,
    MARK,
    NEWCOMER,
    SAME_FIGURES,
    USER,
    Others,
    SignedIn,
    snapshot,
    world,
)
from tests.console.worlds import StillCluster
from tests.examples import examples
from tests.usage.kept import StateKeeper
from tests.usage.memory_ledger import MemoryLedger
from tests.waiting import HANG_SECONDS

from fairlead.apps.console_server import ConsoleServer
from fairlead.cli.submit.forms import SubmitForms
from fairlead.console.boards.search import TEXT_MAX
from fairlead.console.charts.history_samples import samples_of
from fairlead.console.charts.queries import CHART_NAMES
from fairlead.console.charts.restricted import OF_ALL_TEAMS
from fairlead.console.pages.endpoints import BASE, ENDPOINTS, Endpoint
from fairlead.kinds.parts.elastic_training import SshKeys
from fairlead.model.people.subject import LOCAL_ADMIN, Subject

FORMS: Final = SubmitForms(lambda: SshKeys("", ""))
STREAMS: Final = ("changes",)
JOB: Final = {"namespace": "team-a", "type": "pytorchjob", "name": "bert"}
PATHS: Final = {
    **{
        endpoint.name: [{"name": name} for name in ("gpu-1", "share-1", "cpu-1")]
        for endpoint in ENDPOINTS
        if endpoint.path.startswith("/nodes/{name}")
    },
    "chart": [{"query": name} for name in CHART_NAMES],
    **{
        endpoint.name: [{**JOB, "name": name} for name in ("bert", "waits", "lent")]
        for endpoint in ENDPOINTS
        if endpoint.path.startswith("/jobs/{namespace}")
    },
    **{
        endpoint.name: [{"namespace": "team-a", "name": name} for name in ("raw", "raw-acc")]
        for endpoint in ENDPOINTS
        if endpoint.path.startswith("/datasets/{namespace}")
    },
    "operation": [{"id": "op1"}],
    "component": [{"id": "fluid"}],
    "report": [{"month": MONTH}],
    **{
        endpoint.name: [{"id": "bob", "name": "team-a", "token": "bob-0123456789"}]
        for endpoint in ENDPOINTS
        if endpoint.path.startswith(("/users/{id}", "/groups/{name}", "/me/tokens/{token}"))
    },
}
"""Objects of Bob's, and shared ones, by which paths are filled."""
VALUES: Final = {
    "q": ("bert", "team", "gpu", f"{USER}=", MARK),
    "user": ("bob", f"{MARK}-user"),
    "namespace": ("team-a", f"{MARK}-team"),
    "job_namespace": ("team-b", f"{MARK}-team"),
    "holder": ("team-a/bert-worker-0", f"{MARK}-team/{MARK}-gpu-0"),
    "path": ("root", "root.a.1", f"root.{MARK}leaf"),
    "by": ("owner", "leaf", "user", "namespace", "job", "model"),
    "period": ("24h", "7d"),
    "month": (MONTH,),
    "gpu_node": ("gpu-1",),
    "top": ("50",),
    "from": (str(int((EPOCH - 3600) * 1000)),),
    "size": ("2",),
    "format": ("csv", "markdown"),
    "fields": ("name",),
    "tail": ("10",),
    "at": ("-30m", "-1d"),
}
"""Query parameters that are tried, one at a time, where a route has them."""

FIGURES: Final = {
    "overview": "sentence gpuNodes gpus gpuMemory gpuUtilPercent gpusReporting pools attention",
    "nodes": "sentence gpusAllocated gpuMemoryAllocatedMiB gpuUnitsAllocated "
    "gpuUnitsPending gpuUnitsOvercommitted",
    "node": "gpusAllocated gpuMemoryAllocatedMiB gpuUnitsAllocated gpuUnitsPending "
    "gpuUnitsOvercommitted sharing unitsAllocated unitsFree memoryAllocatedMiB memoryFreeMiB flags",
    "gpus": "sentence state unitsAllocated memoryAllocatedMiB facets",
    "gpu_map": "nodes",
    "quota_usage": "sentence used overMax borrowed lent requested claimed min",
    "quota_tree": "sentence used overMax minCounted",
    "quota_waiting": "sentence reason message clauses blocked position facets",
    "mine": "starts borrowable guaranteed waiting reason line position",
    "jobs": "waiting sentence",
    "job": "waiting",
    "job_why": "waiting",
    "job_instances": "waiting",
    "job_events": "waiting",
}
"""Figures of capacity, and what follows from them: docs/spec/console.md#what-a-researcher-sees."""


class Asked:
    """A console of two tenants, and one who asks it."""

    def __init__(self, others: Others, subject: Subject = BOB) -> None:
        self.world = world(others)
        self.subjects = SignedIn(subject)
        self.ledger = MemoryLedger()
        self.server = ConsoleServer(
            self.world, subjects=self.subjects, forms=FORMS, ledger=self.ledger
        )
        self.others = others

    async def begin(self) -> None:
        await self._record(self.others)
        whole = await self.server.board_states.latest()
        self.server.history.add(EPOCH, samples_of(whole))
        await self.get(f"{BASE}/datasets")  # the first page that asks counts its topic up
        await self.get(f"{BASE}/versions")

    async def _record(self, others: Others) -> None:
        """The cluster has been the same for an hour."""
        keeper = StateKeeper(self.ledger)
        for ago in (3600, 10):
            await keeper.look(snapshot(others), round((EPOCH - ago) * 1000))
        await fill_ledger(self.ledger, others)

    async def change(self, others: Others) -> None:
        """The other tenants become these, while the console runs."""
        self.ledger.__init__()  # type: ignore[misc]
        await self._record(others)
        cluster = self.world.cluster
        assert isinstance(cluster, StillCluster)
        now = snapshot(others)
        cluster.show(now)
        self.world.gpus.gpus = now.gpus  # type: ignore[attr-defined]
        for source in (self.world.servings, self.world.job_files, self.world.data):
            source.others = others  # type: ignore[union-attr]
        assert self.server.data is not None
        self.server.data.wrote()  # the data are read anew
        while self.server.board_states.is_behind:
            await self.server.board_states.renew()
            await asyncio.sleep(0)

    async def get(self, address: str, method: str = "GET") -> tuple[int, dict[str, str], bytes]:
        path, _, query = address.partition("?")
        scope = {
            "type": "http",
            "method": method,
            "path": path,
            "query_string": query.encode(),
            "headers": [(b"host", b"localhost"), (b"x-request-id", b"one")],
        }
        sent: list[Any] = []
        gone = asyncio.Event()

        async def receive() -> Any:
            await gone.wait()
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            sent.append(message)

        await asyncio.wait_for(self.server.app(scope, receive, send), HANG_SECONDS)  # type: ignore[arg-type]
        headers = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
        body = b"".join(each.get("body", b"") for each in sent[1:])
        if b'"csrf":' in body:  # of each sign-in another
            body = re.sub(rb'"csrf":"[^"]+"', b'"csrf":""', body)
            headers.pop("etag", None)
        return sent[0]["status"], headers, body


def filled(endpoint: Endpoint) -> Iterator[str]:
    """The route's paths."""
    names = re.findall(r"{(\w+)}", endpoint.path)
    for values in PATHS.get(endpoint.name, [{}]) if names else [{}]:
        path = endpoint.path
        for name in names:
            path = path.replace(f"{{{name}}}", quote(values[name]))
        yield BASE + path


def addresses() -> list[str]:
    """Every GET route that ends, with each of its parameters."""
    found = []
    for endpoint in ENDPOINTS:
        if endpoint.method == "GET" and endpoint.name not in STREAMS:
            for path in filled(endpoint):
                required = "?q=team" if endpoint.name == "search" else ""
                found.append(path + required)
                for parameter in endpoint.parameters:
                    for value in VALUES.get(parameter.name, ()):
                        found.append(f"{path}?{urlencode({parameter.name: value})}")
    return found


ADDRESSES: Final = addresses()


async def answers(asked: Asked) -> dict[str, tuple[int, dict[str, str], bytes]]:
    return {address: await asked.get(address) for address in ADDRESSES}


def differing(
    one: dict[str, tuple[int, dict[str, str], bytes]],
    other: dict[str, tuple[int, dict[str, str], bytes]],
) -> list[str]:
    return [
        f"{address}\n{one[address][2][:4000]!r}\n{other[address][2][:4000]!r}"
        for address in one
        if one[address] != other[address]
    ]


def without(value: Any, keys: frozenset[str]) -> Any:
    if isinstance(value, dict):
        return {key: without(each, keys) for key, each in value.items() if key not in keys}
    if isinstance(value, list):
        return [without(each, keys) for each in value]
    return value


@pytest.mark.parametrize("subject", [BOB, NEWCOMER], ids=["researcher", "without a namespace"])
async def test_no_name_of_another_tenant_is_in_any_byte(subject: Subject) -> None:
    asked = Asked(Others(waiting=2, events=2, splits=2), subject)
    await asked.begin()
    found = []
    for address, (_, headers, body) in (await answers(asked)).items():
        echoed = MARK in address
        if not echoed and (MARK.encode() in body or MARK in str(headers)):
            found.append(f"{address}: {body!r}"[:3000])
    assert found == []


async def test_the_administrator_sees_those_names() -> None:
    """Else the test above could not fail."""
    asked = Asked(Others(waiting=2, events=2, splits=2), LOCAL_ADMIN)
    await asked.begin()
    naming = {
        endpoint.name
        for endpoint in ENDPOINTS
        if endpoint.method == "GET" and endpoint.name not in STREAMS
        for path in filled(endpoint)
        for query in ("?q=zqx" if endpoint.name == "search" else "",)
        if MARK.encode() in (await asked.get(path + query))[2]
    }
    assert naming >= {
        "overview", "mine", "search", "gpu_map", "gpus", "holders", "holder_groups", "node", "jobs",
        "job", "job_instances", "job_why", "job_events", "job_manifest", "serving", "quota_usage",
        "quota_waiting", "quota_tree", "chart", "datasets", "dataset", "dataset_blockers",
        "usage", "idle", "report",
    }  # fmt: skip


async def test_the_administrator_sees_those_names_in_the_past() -> None:
    asked = Asked(Others(waiting=2, events=2, splits=2), LOCAL_ADMIN)
    await asked.begin()
    naming = {
        endpoint.name
        for endpoint in ENDPOINTS
        if any(parameter.name == "at" for parameter in endpoint.parameters)
        for path in filled(endpoint)
        if MARK.encode() in (await asked.get(f"{path}?at=-30m"))[2]
    }
    assert naming == {
        "overview", "gpu_map", "gpus", "holders", "holder_groups", "node", "jobs", "job",
        "quota_usage", "quota_waiting",
    }  # fmt: skip


async def test_a_foreign_object_is_as_absent_as_one_that_does_not_exist() -> None:
    asked = Asked(Others())
    await asked.begin()
    job = f"{MARK}-job-0"
    for endpoint in ENDPOINTS:
        if "{namespace}" not in endpoint.path or endpoint.method != "GET":
            continue
        texts = []
        for namespace, name in ((f"{MARK}-team", job), ("no-such-ns", "no-such-jb")):
            path = endpoint.path.format(namespace=namespace, type="pytorchjob", name=name)
            status, _, body = await asked.get(BASE + path)
            assert status == 404, endpoint.name
            texts.append(body.decode().replace(namespace, "NS").replace(name, "NAME"))
        assert texts[0] == texts[1], endpoint.name


OF_EVERY_USER = (
    *("act_as", "begin_sign_in", "end_sign_in"),
    *("issue_my_kubeconfig", "issue_my_token", "revoke_my_token"),
)
"""Writes that are about the own session and the own credentials."""
OF_OWN_NAMESPACES = ("create_job", "change_job", "delete_job")
"""Writes that a researcher may in the own namespaces: tests/apps/test_console_submit and
test_console_cluster_actions.
"""


@pytest.mark.parametrize(
    "endpoint",
    [
        each
        for each in ENDPOINTS
        if each.method != "GET" and each.name not in (*OF_EVERY_USER, *OF_OWN_NAMESPACES)
    ],
    ids=lambda each: each.name,
)
async def test_what_only_an_administrator_may_is_forbidden(endpoint: Endpoint) -> None:
    asked = Asked(Others())
    status, _, body = await asked.get(BASE + endpoint.path, endpoint.method)
    assert (status, json.loads(body)["code"]) == (403, "forbidden")


async def test_charts_of_all_teams_are_forbidden() -> None:
    asked = Asked(Others())
    for name in OF_ALL_TEAMS:
        assert (await asked.get(f"{BASE}/charts/{name}"))[0] == 403


async def test_a_researcher_sees_the_own_work_and_the_capacity() -> None:
    asked = Asked(Others())
    await asked.begin()

    async def body(path: str) -> Any:
        status, _, text = await asked.get(BASE + path)
        assert status == 200, text
        return json.loads(text)

    assert {row["name"] for row in (await body("/jobs"))["items"]} == {"bert", "waits", "lent"}
    (waiting,) = (await body("/quota/waiting"))["items"]
    assert waiting["name"] == "bob-gated"
    assert waiting["message"] == (
        "cpu asks 25; root 20/40 in use; root.a.1 uses 0 of guaranteed 10 cpu, and 25 more are "
        "over that, so it may only borrow idle quota"
    )
    assert {row["name"] for row in (await body("/holders"))["items"]} == {
        "bert-worker-0", "bert-worker-1", "bob-share",
    }  # fmt: skip
    overview = await body("/overview")
    assert overview["gpus"] == {"total": 10, "allocated": 3.4, "unhealthy": 0}
    paths = {row["path"] for row in (await body("/quota/tree"))["items"]}
    assert paths == {"root", "root.a", "root.a.1"}
    cards = (await body("/gpus?gpu_node=share-1"))["items"]
    assert cards[0]["holders"] == ["team-b/bob-share"]
    assert cards[0]["unitsAllocated"] == 16
    assert (await body("/gpus/map"))["teams"] == ["", "team-a", "team-b"]


async def test_others_with_more_objects_and_other_names_change_no_byte() -> None:
    """As the property below, with others that differ in everything that has no figure."""
    await compare_with(
        Others(
            f"{MARK}a", f"{MARK}b", f"{MARK}c", small_pods=2, jobs=3, waiting=2, events=2, splits=3
        )
    )


@examples(2, 40, SAME_FIGURES)
def test_any_other_tenants_change_no_byte_of_an_answer(others: Others) -> None:
    asyncio.run(compare_with(others))


async def compare_with(others: Others) -> None:
    """Neither while the console runs nor between two consoles; headers and ETags included."""
    first, second = Asked(Others()), Asked(others)
    await first.begin()
    await second.begin()
    before = await answers(first)
    await first.change(others)
    assert differing(before, await answers(first)) == []
    assert differing(before, await answers(second)) == []


@examples(2, 40, ANY)
def test_any_others_change_figures_of_capacity_only(others: Others) -> None:
    async def compare() -> None:
        first, second = Asked(Others()), Asked(others)
        await first.begin()
        await second.begin()
        for endpoint in ENDPOINTS:
            if endpoint.method != "GET" or endpoint.name in (*STREAMS, "chart", "job_logs"):
                continue
            for path in filled(endpoint):
                address = path + ("?q=team" if endpoint.name == "search" else "")
                if endpoint.name == "mine":
                    address += "?namespace=team-a"
                bodies = [json.loads((await each.get(address))[2]) for each in (first, second)]
                figures = frozenset(FIGURES.get(endpoint.name, "").split())
                one, other = (without(each, figures) for each in bodies)
                assert one == other, address

    asyncio.run(compare())


def test_the_texts_that_are_tried_are_valid() -> None:
    assert all(len(value) < TEXT_MAX for values in VALUES.values() for value in values)
