"""Routes with `at`: the boards of a moment of the past, its refusals, and its snapshot file."""

from __future__ import annotations

import gzip
import json
from argparse import Namespace
from types import SimpleNamespace
from typing import Any

import pytest
from tests.console.clusters import EPOCH, cluster, gpu_node, pod
from tests.console.tenants import BOB, Others, SignedIn, snapshot, world
from tests.usage.kept import StateKeeper
from tests.usage.memory_ledger import MemoryLedger

from fairlead.apps.console_server import ConsoleServer
from fairlead.cli.usage.sources import usage_source
from fairlead.console.pages.envelope import exact_timestamp
from fairlead.errors import StoreDown
from fairlead.model.people.subject import LOCAL_ADMIN, Subject
from fairlead.model.usage.ledger import KeptState, LedgerBatch, StateKind
from fairlead.wire.files.snapshot_file import parse_snapshot

HOUR = 3600


class Past:
    """A console of a cluster that was empty, then had one pod, then is as `tenants` has it."""

    def __init__(self, subject: Subject = LOCAL_ADMIN, ledger: Any = None) -> None:
        self.ledger = ledger or MemoryLedger()
        self.keeper = StateKeeper(self.ledger)
        self.server = ConsoleServer(world(Others()), subjects=SignedIn(subject), ledger=self.ledger)

    async def lived(self) -> Past:
        first = cluster([gpu_node()], [pod("old", "gpu-1", {"nvidia.com/gpu": 2})])
        await self.keeper.look(cluster([gpu_node()], []), _ms(-3 * HOUR))
        await self.keeper.look(first, _ms(-2 * HOUR))
        await self.keeper.look(snapshot(Others()), _ms(-HOUR))
        await self.keeper.look(snapshot(Others()), _ms(-5))
        return self

    async def ask(self, path: str) -> tuple[int, Any]:
        status, _, data = await self.raw(path)
        return status, json.loads(data)

    async def raw(self, path: str) -> tuple[int, dict[str, str], bytes]:
        target, _, query = path.partition("?")
        scope = {
            "type": "http",
            "method": "GET",
            "path": f"/api/v1{target}",
            "query_string": query.encode(),
            "headers": [(b"host", b"localhost")],
        }
        sent: list[Any] = []

        async def receive() -> Any:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: Any) -> None:
            sent.append(message)

        await self.server.app(scope, receive, send)
        headers = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
        return sent[0]["status"], headers, b"".join(each.get("body", b"") for each in sent[1:])


def _ms(seconds: float) -> int:
    return round((EPOCH + seconds) * 1000)


async def test_each_moment_has_its_own_boards() -> None:
    past = await Past().lived()
    held = []
    for ago in ("-170m", "-90m", "-30m"):
        _, overview = await past.ask(f"/overview?at={ago}")
        held.append(overview["gpus"]["allocated"])
    assert held == [0, 2, 3.4]
    _, overview = await past.ask("/overview")
    assert overview["gpus"]["allocated"] == 3.4
    _, rows = await past.ask("/holders?at=-90m")
    assert [(row["namespace"], row["name"]) for row in rows["items"]] == [("team-a", "old")]
    _, map_ = await past.ask("/gpus/map?at=-90m")
    assert map_["generatedAt"] == _text(-1.5 * HOUR)
    assert map_["teams"] == ["team-a"]
    assert sum(cell[0] == 1 for cell in map_["nodes"][0][4]) == 2


async def test_telemetry_is_null_with_a_warning() -> None:
    past = await Past().lived()
    _, rows = await past.ask("/gpus?at=-30m")
    assert {row["utilPercent"] for row in rows["items"]} == {None}
    warnings = {each["code"]: each["message"] for each in rows["warnings"]}
    assert warnings["not-kept"] == "utilization, used memory and power of GPUs are not kept"
    assert rows["stale"] is False


async def test_a_researcher_sees_the_own_past() -> None:
    past = await Past(BOB).lived()
    _, rows = await past.ask("/jobs?at=-30m")
    assert {row["name"] for row in rows["items"]} == {"bert", "waits", "lent"}
    _, rows = await past.ask("/quota/waiting?at=-30m")
    assert [row["name"] for row in rows["items"]] == ["bob-gated"]
    status, answer = await past.ask("/past/snapshot?at=-30m")
    assert (status, answer["error"]) == (403, "a researcher may not see the snapshots")


async def test_the_times_that_can_be_shown() -> None:
    past = await Past().lived()
    await past.ledger.claim_ledger("another", _ms(0))
    _, times = await past.ask("/past")
    assert times == {
        "first": _text(-3 * HOUR),
        "last": _text(0),
        "gaps": [{"start": _text(-5), "end": _text(0)}],
        "zone": "UTC",
    }
    _, times = await Past().ask("/past")
    assert times == {"first": None, "last": None, "gaps": [], "zone": "UTC"}


def _text(seconds: float) -> str:
    return exact_timestamp(EPOCH + seconds)


async def test_a_gap_is_named_and_the_last_state_before_it_is_shown() -> None:
    past = Past()
    await past.keeper.look(
        cluster([gpu_node()], [pod("old", "gpu-1", {"nvidia.com/gpu": 2})]), _ms(-2 * HOUR)
    )
    await past.ledger.write_ledger(1, LedgerBatch(_ms(-2 * HOUR) + 10_000))
    await past.ledger.claim_ledger("another", _ms(-HOUR))
    await past.ledger.write_ledger(2, LedgerBatch(_ms(-5)))
    _, answer = await past.ask("/nodes?at=-90m")
    assert answer["generatedAt"] == _text(-2 * HOUR + 9.999)
    (gap,) = [each for each in answer["warnings"] if each["code"] == "past-gap"]
    assert gap["message"].startswith("nothing was recorded from ")
    _, answer = await past.ask("/nodes?at=-10m")
    assert "past-gap" not in {each["code"] for each in answer["warnings"]}


@pytest.mark.parametrize(
    ("at", "what"),
    [
        ("-4h", "is before the first record"),
        ("2099-01-01T00:00Z", "2099-01-01T00:00:00+00:00 is in the future"),
        ("soon", "`soon` names no moment"),
    ],
)
async def test_a_moment_that_cannot_be_shown_is_refused(at: str, what: str) -> None:
    past = await Past().lived()
    for route in ("overview", "gpus/map", "nodes", "jobs", "quota/waiting", "past/snapshot"):
        status, answer = await past.ask(f"/{route}?at={at}")
        assert status == 400
        assert what in answer["error"]
        assert answer["hint"]


async def test_without_a_ledger_the_past_is_not_known() -> None:
    server = ConsoleServer(world(Others()), subjects=SignedIn(LOCAL_ADMIN))
    past = Past()
    past.server = server
    for path in ("/past", "/overview?at=-1h", "/past/snapshot?at=-1h"):
        status, answer = await past.ask(path)
        assert (status, answer["code"]) == (404, "not-found")
        assert answer["error"] == (
            "this console has no store, and so no usage ledger, because users do not sign in"
        )
    assert (await past.ask("/overview"))[0] == 200


class _Down(MemoryLedger):
    async def ledger_bounds(self) -> Any:
        raise StoreDown("the store does not answer", "look at it")


async def test_while_the_store_is_down_the_present_goes_on() -> None:
    past = Past(ledger=_Down())
    assert (await past.ask("/overview"))[0] == 200
    for path in ("/past", "/overview?at=-1h", "/past/snapshot?at=-1h"):
        assert (await past.ask(path))[0] == 503


async def test_a_damaged_state_is_named() -> None:
    past = await Past().lived()
    broken = KeptState(StateKind.POD, "u", _ms(-2 * HOUR), "team-a", "bad", b"{")
    await past.ledger.write_ledger(1, LedgerBatch(_ms(-1), states=(broken,)))
    status, answer = await past.ask("/overview?at=-10m")
    assert status == 502
    assert "a kept state of kind `pod` cannot be read" in answer["error"]


async def test_the_snapshot_file_is_one_that_commands_read() -> None:
    past = await Past().lived()
    status, headers, data = await past.raw("/past/snapshot?at=-90m")
    assert (status, headers["content-type"]) == (200, "application/gzip")
    saved = parse_snapshot(data if data[:2] == b"\x1f\x8b" else gzip.compress(data), "past")
    assert [each.name for each in saved.snapshot.pods] == ["old"]
    assert saved.snapshot.taken_at == EPOCH - 1.5 * HOUR
    status, answer = await past.ask("/past/snapshot")
    assert (status, answer["error"]) == (400, "`at` is missing")


async def test_a_moment_is_read_once_for_the_routes_of_a_page() -> None:
    past = await Past().lived()
    asked = []
    read = past.ledger.states_at

    async def counted(*args: Any) -> Any:
        asked.append(args)
        return await read(*args)

    past.ledger.states_at = counted
    for route in ("overview", "gpus/map", "jobs", "quota/waiting"):
        assert (await past.ask(f"/{route}?at=-30m"))[0] == 200
    assert len(asked) == 1


async def test_a_job_that_did_not_exist_then_is_absent() -> None:
    past = await Past().lived()
    status, answer = await past.ask("/jobs/team-a/pytorchjob/bert?at=-90m")
    assert (status, answer["code"]) == (404, "not-found")
    status, answer = await past.ask("/jobs?at=-90m&deleted=yes")
    assert (status, answer["error"]) == (400, "`deleted` and `at` are given")


async def test_a_job_of_the_past_has_no_events_of_the_present() -> None:
    past = await Past().lived()
    _, now = await past.ask("/jobs/team-a/pytorchjob/bert")
    _, then = await past.ask("/jobs/team-a/pytorchjob/bert?at=-30m")
    assert now["events"]
    assert then["events"] == []
    assert then["job"]["name"] == "bert"


class _Pages:
    """`ConsolePages` with one answer."""

    def __init__(self, answer: bytes) -> None:
        self.answer = answer
        self.asked: list[tuple[str, Any]] = []

    def get(self, path: str, query: Any) -> bytes:
        self.asked.append((path, dict(query)))
        return self.answer

    def console_pages(self, named: str, ca_file: str) -> _Pages:
        return self


async def test_a_command_reads_the_moment_and_its_gap_from_a_console() -> None:
    past = Past()
    await past.keeper.look(cluster([gpu_node()], []), _ms(-2 * HOUR))
    await past.ledger.claim_ledger("another", _ms(-HOUR))
    await past.ledger.write_ledger(2, LedgerBatch(_ms(-5)))
    pages = _Pages((await past.raw("/past/snapshot?at=-90m"))[2])
    args = Namespace(console="http://x", console_ca_file="", store="")
    context: Any = SimpleNamespace(world=pages, sleep=None)
    snapshot, gap = usage_source(args, context).past("-90m")
    assert [node.name for node in snapshot.nodes] == ["gpu-1"]
    assert gap.startswith("nothing was recorded from ")
    assert pages.asked == [("/past/snapshot", {"at": "-90m"})]
