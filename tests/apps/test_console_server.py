"""The console process over HTTP: answers that match their description, refusals,
headers, health.
"""

from __future__ import annotations

import gzip
import json
import math
import re
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import msgspec
import pytest
from tests.apps.described_answers import OF_PEOPLE, check_against, description
from tests.apps.running_console import console
from tests.apps.still_components import StillComponents
from tests.apps.submit_forms import FORMS
from tests.console.clusters import (
    EPOCH,
    MARKUP,
    cluster,
    gpu_node,
    living_cluster,
    reading,
    telemetry,
)
from tests.console.data_parts import MemoryRecords, StillData, claim, data_set, runtime
from tests.console.sign_in_parts import Parts
from tests.console.worlds import StillCluster, still_world
from tests.sim.small_world import small_world
from tests.waiting import until

from fairlead.apps.console_server import ConsoleServer, ConsoleSettings
from fairlead.console.charts.history import SLOTS, TICK_SECONDS
from fairlead.console.charts.history_samples import SAMPLED
from fairlead.console.pages.endpoints import BASE, ENDPOINTS
from fairlead.errors import OutsideError, UserError
from fairlead.model.operations.operation import (
    Operation,
    OperationKind,
    OperationState,
    OperationStep,
    RemoveStep,
    StepProgress,
)
from fairlead.model.snapshot import ClusterSnapshot
from fairlead.model.source import Source
from fairlead.ports import Ports, SeriesLine
from fairlead_sim.world.driver import Driver

EXAMPLES = {
    "node": "/nodes/gpu-1",
    "job": "/jobs/team-a/pytorchjob/bert",
    "job_instances": "/jobs/team-a/pytorchjob/bert/instances",
    "job_events": "/jobs/team-a/pytorchjob/bert/events",
    "job_why": "/jobs/team-a/pytorchjob/bert/why",
    "chart": "/charts/cluster-jobs",
    "search": "/search?q=bert",
    "dataset": "/datasets/a-ns/raw-acc",
    "dataset_blockers": "/datasets/a-ns/raw-acc/blockers",
    "operation": "/operations/op1",
    "component": "/components/fluid",
}
OF_USAGE = (
    *("usage", "usage_days", "idle", "job_cost", "prices", "report"),
    *("past", "past_snapshot", "replay"),
)
ELSEWHERE = (
    *("changes", "job_manifest", "job_clone", "job_logs", "oidc_start", "oidc_callback"),
    *("quota_tree_versions", "operation_history", *OF_PEOPLE, *OF_USAGE),
)
"""Endpoints that stream, ask an API server, lead a browser elsewhere, or are there with sign-in
alone: test_console_hints, test_console_logs, test_console_sign_in, test_console_writes,
test_console_tree_writes, test_console_datasets, test_console_usage, test_console_replay and
console/test_past test them.
"""


def world_with_data() -> Ports:
    """A world with a data set over a claim, an operation, and components."""
    data = StillData(claim("raw"), data_set("raw-acc", "raw"), runtime("raw-acc"))
    step = OperationStep("Remove nothing", RemoveStep(()))
    operation = Operation(
        id="op1",
        kind=OperationKind.UNACCELERATE,
        subject="dataset/a-ns/raw-acc",
        steps=(step,),
        progress=(StepProgress(),),
        state=OperationState.RUNNING,
    )
    records = MemoryRecords(operation)
    components = StillComponents()
    return msgspec.structs.replace(
        still_world(living_cluster()),
        data=data,
        operations=records,
        components=lambda: components,
    )


def address(name: str, path: str) -> str:
    return EXAMPLES.get(name, path)


@pytest.mark.parametrize(
    "endpoint",
    [each for each in ENDPOINTS if each.name not in ELSEWHERE and each.method == "GET"],
    ids=lambda each: each.name,
)
async def test_every_route_answers_with_exactly_the_keys_it_describes(endpoint: Any) -> None:
    async with console(
        msgspec.structs.replace(world_with_data(), timekeeper=Driver(small_world(), 1.0)),
        forms=FORMS,
    ) as page:
        status, headers, body = await page.get(BASE + address(endpoint.name, endpoint.path))
    assert status == 200
    assert headers["Content-Type"].startswith("application/json")
    described = description()
    schema = described["paths"][endpoint.path]["get"]["responses"]["200"]["content"][
        "application/json"
    ]["schema"]
    check_against(json.loads(body), schema, described["components"]["schemas"])


async def test_a_reader_learns_the_cluster_its_clock_and_its_speed() -> None:
    async with console(still_world(living_cluster(), speed=60.0)) as page:
        answer = await page.json("/me")
    assert answer["clock"] == {
        "now": "2026-01-05T08:00:00.000Z",
        "speed": 60.0,
        "isPaused": False,
        "since": None,
        "until": None,
    }
    assert (answer["cluster"], answer["features"]) == (
        {"name": "test-cluster", "world": "kubernetes", "version": "7"},
        {"prometheus": False, "clock": False, "historySeconds": 3600},
    )
    assert len(answer["csrf"]) >= 32


async def test_the_boards_agree_with_each_other() -> None:
    async with console() as page:
        board, nodes, jobs = (
            await page.json("/overview"),
            await page.json("/nodes"),
            await page.json("/jobs"),
        )
    assert board["gpus"]["total"] == sum(row["gpusTotal"] for row in nodes["items"]) == 6
    assert board["gpus"]["allocated"] == sum(row["gpusAllocated"] for row in nodes["items"]) == 2
    assert board["jobs"] == {"running": 1, "pending": 0, "succeeded": 0, "failed": 1}
    assert [row["name"] for row in jobs["items"]] == ["bert", "gpt"]
    assert [warning["code"] for warning in jobs["warnings"]] == ["series-missing"]


async def test_lists_filter_sort_page_and_choose_fields() -> None:
    async with console() as page:
        first = await page.json(
            "/nodes?mode=share&mode=exclusive&sort=-gpusTotal&size=1&fields=name,gpusTotal"
        )
        second = await page.json(
            "/nodes?mode=share&mode=exclusive&sort=-gpusTotal&size=1&page=2&fields=name"
        )
        none = await page.json("/nodes?q=nothing-like-this")
    assert (first["items"], first["total"], first["size"]) == (
        [{"name": "gpu-1", "gpusTotal": 4}],
        2,
        1,
    )
    assert (second["items"], second["page"]) == ([{"name": "share-1"}], 2)
    assert (none["items"], none["total"]) == ([], 0)


async def test_gpus_are_a_list_like_any_other() -> None:
    async with console() as page:
        answer = await page.json(
            "/gpus?gpu_node=gpu-1&status=free&sort=-index&size=1&fields=node,index,state"
        )
        status, headers, body = await page.get(f"{BASE}/gpus?status=free&format=csv")
    assert (answer["items"], answer["total"]) == (
        [{"node": "gpu-1", "index": 3, "state": "free"}],
        2,
    )
    assert answer["sentence"]["text"] == "2 of 6 GPUs allocated."
    assert (status, body.count(b"\r\n")) == (200, 1 + 4)
    assert 'filename="gpus.csv"' in headers["Content-Disposition"]


async def test_the_file_of_each_table_has_its_own_name() -> None:
    names = set()
    async with console(world_with_data()) as page:
        tables = [
            each
            for each in ENDPOINTS
            if any(parameter.name == "format" for parameter in each.parameters)
            and each.name not in (*OF_PEOPLE, *OF_USAGE)
        ]
        for endpoint in tables:
            status, headers, _ = await page.get(f"{BASE}{endpoint.path}?format=csv")
            assert status == 200
            names.add(headers["Content-Disposition"].partition("filename=")[2])
    assert len(names) == len(tables) >= 7 and '"quota-waiting.csv"' in names, names


async def test_csv_has_all_matching_rows_whatever_the_page() -> None:
    async with console() as page:
        status, headers, body = await page.get(f"{BASE}/nodes?size=1&format=csv")
    assert status == 200
    assert headers["Content-Type"] == "text/csv; charset=utf-8"
    assert 'filename="nodes.csv"' in headers["Content-Disposition"]
    assert body.startswith(b"\xef\xbb\xbfname,") and body.count(b"\r\n") == 4


@pytest.mark.parametrize(
    ("path", "status", "code", "words"),
    [
        ("/api/v1/nodes?colour=red", 400, "malformed", "`colour`"),
        ("/api/v1/me?x=1", 400, "malformed", "`x`"),
        ("/api/v1/nodes?page=x", 400, "malformed", "`page` is `x`"),
        ("/api/v1/nodes/nowhere", 404, "not-found", "`nowhere`"),
        ("/api/v1/jobs/team-a/mpijob/bert", 404, "not-found", "`bert`"),
        ("/api/v1/charts/rm-rf", 404, "not-found", "`rm-rf`"),
        ("/api/v1/charts/gpu-duty-cycle?from=x", 400, "malformed", "`from` is `x`"),
        ("/api/v1/charts/gpu-duty-cycle?step=0", 400, "malformed", "`step` is `0`"),
        ("/api/v1/search", 400, "malformed", "`q` is empty"),
        ("/api/v1/mine?user=a&namespace=b", 400, "malformed", "`a`"),
        (f"/api/v1/search?q={'x' * 401}", 400, "malformed", "401 characters"),
        ("/api/v1/search?q=web&size=51", 400, "malformed", "`size` is `51`"),
        ("/api/v1/nothing", 404, "not-found", "/api/v1/nothing"),
        ("/api/v2/nodes", 404, "not-found", "/api/v2/nodes"),
        ("/api", 404, "not-found", "/api"),
        ("/assets/none.js", 404, "not-found", "assets/none.js"),
    ],
)
async def test_a_refusal_contains_the_value_and_a_hint(
    path: str, status: int, code: str, words: str
) -> None:
    async with console() as page:
        got, headers, body = await page.get(path, headers={"X-Request-Id": "abc-1"})
    answer = json.loads(body)
    assert (got, answer["status"], answer["code"], answer["ok"]) == (status, status, code, False)
    assert words in answer["error"] and answer["hint"]
    assert answer["requestId"] == headers["X-Request-Id"] == "abc-1"


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
async def test_nothing_can_be_written(method: str) -> None:
    async with console() as page:
        status, headers, body = await page.get(f"{BASE}/nodes", method=method)
    assert (status, headers["Allow"], json.loads(body)["ok"]) == (405, "GET, HEAD", False)


async def test_a_body_that_is_too_large_is_refused_announced_or_not() -> None:
    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(20):
            yield b"x" * 100_000

    async with console() as page:
        status, _, body = await page.get(f"{BASE}/nodes", method="POST", data=b"x" * 1_048_577)
        assert (status, json.loads(body)["code"]) == (413, "too-large")
        status, _, _ = await page.get(f"{BASE}/nodes", method="POST", data=chunks())
        assert status in (405, 413)
        assert (await page.get("/healthz"))[0] == 200


async def test_a_known_answer_is_not_sent_again() -> None:
    async with console() as page:
        _, headers, _ = await page.get(f"{BASE}/nodes")
        status, again, body = await page.get(
            f"{BASE}/nodes", headers={"If-None-Match": headers["ETag"]}
        )
        assert (status, body, again["ETag"]) == (304, b"", headers["ETag"])
        assert (await page.get(f"{BASE}/nodes?size=1", headers={"If-None-Match": headers["ETag"]}))[
            0
        ] == 200


async def test_large_answers_are_compressed_for_clients_that_accept_it() -> None:
    async with console() as page:
        _, packed, body = await page.get(f"{BASE}/nodes", headers={"Accept-Encoding": "gzip"})
        _, plain, same = await page.get(f"{BASE}/nodes", headers={"Accept-Encoding": "identity"})
        _, small, _ = await page.get(f"{BASE}/versions", headers={"Accept-Encoding": "gzip"})
    assert packed["Content-Encoding"] == "gzip" and gzip.decompress(body) == same
    assert "Content-Encoding" not in plain and "Content-Encoding" not in small


async def test_every_answer_carries_the_security_headers() -> None:
    async with console() as page:
        for path in ("/", f"{BASE}/nodes", f"{BASE}/nothing", "/healthz"):
            _, headers, _ = await page.get(path)
            assert headers["X-Content-Type-Options"] == "nosniff"
            assert headers["Referrer-Policy"] == "no-referrer"
            assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
            assert len(headers["X-Request-Id"]) >= 8


async def test_markup_in_labels_is_json_text_that_no_browser_renders() -> None:
    async with console() as page:
        _, headers, body = await page.get(f"{BASE}/nodes/gpu-1")
    assert json.loads(body)["labels"]["note"] == MARKUP
    assert (
        headers["Content-Type"].startswith("application/json")
        and headers["X-Content-Type-Options"] == "nosniff"
    )


async def test_no_answer_has_a_number_that_json_does_not_know() -> None:
    malformed = reading(ratio=math.nan, used_mib=math.inf)
    async with console(still_world(cluster([gpu_node(gpus=1)], gpus=[malformed]))) as page:
        for path in ("/overview", "/nodes", "/nodes/gpu-1", "/gpus/map"):
            status, _, body = await page.get(BASE + path)
            assert status == 200 and not re.search(rb"NaN|Infinity", body), path
            json.loads(body)


async def test_while_the_caches_fill_nothing_partial_is_shown() -> None:
    half = cluster(
        [gpu_node()],
        sources={"nodes": Source("nodes", good_at=EPOCH), "pods": Source("pods", "syncing")},
    )
    async with console(still_world(half, is_ready=False)) as page:
        for path in (
            "/overview",
            "/nodes",
            "/jobs",
            "/quota/usage",
            "/gpus/map",
            "/charts/cluster-jobs",
            "/versions",
        ):
            status, headers, body = await page.get(BASE + path)
            assert (status, json.loads(body)["code"], headers["Retry-After"]) == (
                503,
                "not-ready",
                "1",
            ), path
            assert "`pods`" in json.loads(body)["error"]
        status, headers, body = await page.get("/readyz")
        reported = json.loads(body)
        assert (status, reported["code"], headers["Retry-After"]) == (503, "not-ready", "1")
        assert "`pods`" in reported["error"]
        assert reported.keys() >= {"hint", "requestId"}
        assert (await page.get("/healthz"))[0] == 200
        assert (await page.json("/me"))["cluster"]["name"] == "test-cluster"


async def test_an_unreadable_cluster_names_the_reason_it_never_got_ready() -> None:
    failing = Source(
        "nodes",
        "failing",
        "https://10.0.0.1:6443 refused the connection",
        "look whether it runs",
    )
    async with console(still_world(cluster(sources={"nodes": failing}), is_ready=False)) as page:
        answer = await page.json("/nodes")
    assert "10.0.0.1:6443" in answer["error"] and answer["hint"] == "look whether it runs"


async def test_without_telemetry_the_tables_work_and_the_banner_names_the_address() -> None:
    source = telemetry("failing", "http://10.0.0.1:9400 does not answer", "set `--gpu-pages`")
    async with console(still_world(cluster([gpu_node()]), source=source)) as page:
        answer = await page.json("/nodes")
    assert (answer["items"][0]["gpusTotal"], answer["items"][0]["gpuUtilPercent"]) == (4, None)
    assert [(each["code"], each["message"]) for each in answer["warnings"]] == [
        ("prometheus-unreachable", "http://10.0.0.1:9400 does not answer")
    ]


class BrokenSeries:
    name = "prometheus"

    async def query_range(
        self, promql: str, start: float, end: float, step: float
    ) -> list[SeriesLine]:
        raise OutsideError(
            "prometheus",
            "`http://10.0.0.9:9090` refused the connection",
            "look whether it runs",
        )


async def test_a_chart_whose_prometheus_fails_is_an_error_and_not_an_empty_chart() -> None:
    async with console(still_world(living_cluster(), series=BrokenSeries())) as page:
        status, _, body = await page.get(f"{BASE}/charts/gpu-duty-cycle")
        assert (await page.get(f"{BASE}/nodes"))[0] == 200
    answer = json.loads(body)
    assert (status, answer["code"]) == (502, "outside-failed")
    assert "http://10.0.0.9:9090" in answer["error"]


async def test_a_bug_is_a_500_that_reports_nothing_but_its_request_id(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> None:
        raise ValueError("secret words")

    monkeypatch.setattr("fairlead.console.boards.board_state.node_rows", fail)
    async with console() as page:
        status, headers, body = await page.get(f"{BASE}/nodes")
        assert (await page.get("/healthz"))[0] == 200
    assert (status, json.loads(body)["code"]) == (500, "bug")
    assert b"secret words" not in body
    assert headers["X-Request-Id"] in caplog.text and "secret words" in caplog.text


async def test_a_cluster_that_no_page_can_show_stops_no_loop_and_fills_no_log(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> None:
        raise ValueError("malformed object")

    async with console() as page:
        await page.json("/nodes")  # the page is in use, so the next board state prepares it
        with monkeypatch.context() as broken:
            broken.setattr("fairlead.console.boards.board_state.node_rows", fail)
            # no pause between two board states
            broken.setattr("fairlead.console.http.board_states.CPU_SHARE", 1e9)
            assert isinstance(page.server.world.cluster, StillCluster)
            page.server.world.cluster.show(living_cluster())
            for _ in range(3):
                assert await page.server.newest_board_state("test") is None
        assert (await page.json("/nodes"))["total"] == 3
    assert caplog.text.count("no board state") == 1


async def test_a_cluster_of_which_no_sample_can_be_taken_stops_no_loop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No page uses jobs here: they are computed only for the samples."""

    def fail(*_: object) -> None:
        raise ValueError("malformed object")

    async with console() as page:
        page.server.world.cluster.show(living_cluster())  # type: ignore[attr-defined]
        monkeypatch.setattr("fairlead.console.boards.board_state.job_rows", fail)
        assert await page.server.newest_board_state("test", *SAMPLED) is None
        assert await page.server.newest_board_state("test") is not None


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("evil.example", 403),
        ("127.0.0.1.evil.example", 403),
        ("localhost", 200),
        ("127.0.0.1:1", 200),
        ("[::1]:80", 200),
        ("10.0.0.1", 403),
    ],
)
async def test_only_names_of_this_machine_are_answered(host: str, status: int) -> None:
    async with console() as page:
        assert (await page.get(f"{BASE}/me", headers={"Host": host}))[0] == status
        assert (await page.get("/", headers={"Host": host}))[0] in (status, 503)


async def test_a_name_that_was_allowed_is_answered() -> None:
    async with console(settings=ConsoleSettings(allowed_hosts=("GPU.example",))) as page:
        assert (await page.get(f"{BASE}/me", headers={"Host": "gpu.example:8080"}))[0] == 200
        assert (await page.get(f"{BASE}/me", headers={"Host": "10.0.0.1"}))[0] == 403
        assert (await page.get(f"{BASE}/me", headers={"Host": "evil.example"}))[0] == 403


async def test_with_sign_in_any_address_is_answered_because_none_can_be_rebound() -> None:
    async with console(desk=Parts().desk()) as page:
        for host, status in (("10.0.0.1", 200), ("evil.example", 403)):
            found = await page.get(f"{BASE}/signin/methods", headers={"Host": host})
            assert found[0] == status, host


@pytest.mark.parametrize("host", ["", "0.0.0.0", "192.168.1.4", "gpu.example"])
def test_an_address_that_others_reach_is_refused_with_the_reason(host: str) -> None:
    with pytest.raises(UserError) as refused:
        ConsoleServer(still_world(cluster()), ConsoleSettings(host=host))
    assert "--sign-in on" in refused.value.hint
    ConsoleServer(still_world(cluster()), ConsoleSettings(host=host), desk=Parts().desk())


async def test_a_base_path_moves_everything_but_health() -> None:
    async with console(settings=ConsoleSettings(base_path="gpu")) as page:
        assert (await page.get(f"/gpu{BASE}/nodes"))[0] == 200
        assert (await page.get(f"{BASE}/nodes"))[0] == 404
        assert (await page.get("/gpu/healthz"))[0] == (await page.get("/healthz"))[0] == 200


async def test_the_ring_is_filled_and_drawn() -> None:
    async with console() as page:
        await until(lambda: page.server.history.line_count)
        chart = await page.json("/charts/cluster-gpus-allocated")
    assert {line["labels"]["line"]: line["points"][-1][1] for line in chart["series"]} == {
        "allocated": 2,
        "total": 6,
    }
    assert (chart["source"], chart["unit"], chart["total"], chart["shown"]) == (
        "built-in",
        "GPUs",
        2,
        2,
    )


async def test_charts_show_the_past_that_the_server_was_given() -> None:
    made = []

    def snapshot(at: float) -> ClusterSnapshot:
        made.append(at)
        return msgspec.structs.replace(living_cluster(), taken_at=at)

    moments = [(at, partial(snapshot, at)) for at in (EPOCH - 15 * ago for ago in range(8, 0, -1))]
    too_old = EPOCH - 2 * SLOTS * TICK_SECONDS
    moments.insert(0, (too_old, partial(snapshot, too_old)))
    async with console(past=lambda: moments) as page:
        await until(lambda: page.server.history.line_count)
        assert page.server.history.is_being_read
        assert made == [], "no request has come yet"
        await page.json("/overview")
        await until(lambda: not page.server.history.is_being_read)
        assert made == [at for at, _ in moments[1:]], "each once, without those out of reach"
        chart = await page.json("/charts/cluster-gpus-allocated")
        assert all(
            value is not None for line in chart["series"] for _, value in line["points"][-8:]
        )
        assert any(
            value is None for line in chart["series"] for _, value in line["points"][:-12]
        ), "before it no request looked"


async def test_a_console_without_a_past_does_not_wait_for_it() -> None:
    async with console(past=lambda: ()) as page:
        await until(lambda: not page.server.history.is_being_read)
        assert not page.server.board_states.asked.is_set()


async def test_a_past_that_breaks_is_reported_and_the_charts_go_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def broken() -> ClusterSnapshot:
        raise ValueError("the past is lost")

    async with console(past=lambda: [(EPOCH - 30, broken)]) as page:
        await page.json("/overview")
        await until(lambda: "the past cannot be remembered" in caplog.text)
        assert (await page.json("/charts/cluster-gpus-allocated"))["series"]


async def test_its_own_counters_name_routes_and_never_paths() -> None:
    async with console() as page:
        await page.get(f"{BASE}/nodes/gpu-1")
        await page.get(f"{BASE}/nodes?colour=red")
        _, headers, body = await page.get("/metrics")
    text = body.decode()
    assert headers["Content-Type"].startswith("text/plain")
    assert 'fairlead_console_requests_total{route="/api/v1/nodes/{name}",status="200"} 1.0' in text
    assert 'fairlead_console_requests_total{route="/api/v1/nodes",status="400"} 1.0' in text
    assert "gpu-1" not in text
