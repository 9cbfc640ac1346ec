"""Charts: which requests are valid, the query for each source, which source answers, and what the
built-in series keeps.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs
from tests.console.clusters import (
    EPOCH,
    cluster,
    gpu_node,
    pod,
    quota_tree,
    reading,
    telemetry,
    training_job,
)

from fairlead.console.boards.board_state import BoardState
from fairlead.console.boards.rows import matching
from fairlead.console.charts.answer import chart_answer, heatmap
from fairlead.console.charts.charts import history_lines, is_wanted, prometheus_lines
from fairlead.console.charts.history import History, LineSample
from fairlead.console.charts.history_samples import samples_of
from fairlead.console.charts.queries import CHART_QUERIES, HOLDER
from fairlead.console.charts.request import (
    POINTS_MAX,
    ChartRequest,
    parse_chart_request,
    parse_heatmap_filters,
    promql_of,
    top_lines_promql,
)
from fairlead.console.pages.list_query import ListQuery, parse_filters
from fairlead.errors import OutsideError, UserError
from fairlead.model.devices.gpu import GpuHolder
from fairlead.model.pod import ContainerStatus
from fairlead.ports import SeriesLine

DUTY = CHART_QUERIES["gpu-duty-cycle"]


def request(text: str = "", query: str = "gpu-duty-cycle") -> ChartRequest:
    parameters = [tuple(part.split("=", 1)) for part in text.split("&") if part]
    return parse_chart_request(parameters, CHART_QUERIES[query], EPOCH)  # type: ignore[arg-type]


def test_without_a_range_the_last_half_hour_is_meant() -> None:
    assert request() == ChartRequest(EPOCH - 1800, EPOCH, 15, 8, until=EPOCH)


def test_times_are_milliseconds_or_rfc3339() -> None:
    text = datetime.fromtimestamp(EPOCH - 600, UTC).isoformat().replace("+00:00", "Z")
    assert (
        request(f"from={text}").start
        == request(f"from={int((EPOCH - 600) * 1000)}").start
        == EPOCH - 600
    )


def test_the_default_start_is_no_time_before_time() -> None:
    assert request("to=60000") == ChartRequest(0, 60, 15, 8, until=60)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("from=yesterday", "`from` is `yesterday`"),
        ("to=999999999999999999", "`to` is `999999999999999999`"),
        (f"from={int(EPOCH * 1000)}&to={int(EPOCH * 1000)}", "`from` is not before `to`"),
        (f"from={int((EPOCH - 91 * 86_400) * 1000)}", "the range is 91 days"),
        ("top=51", "`top` is `51`"),
        ("step=-1", "`step` is `-1`"),
        ("step=0", "`step` is `0`"),
        ("job_name=bert", "the chart `gpu-duty-cycle` cannot be filtered by `job_name`"),
        ("from=2026-01-05T08:00:00", "`from` is `2026-01-05T08:00:00`, without a time zone"),
        ("to=2026-01-05", "`to` is `2026-01-05`, without a time zone"),
    ],
)
def test_what_cannot_be_asked_is_refused_with_a_hint(text: str, words: str) -> None:
    with pytest.raises(UserError) as refused:
        request(text)
    assert refused.value.what == words
    assert refused.value.hint


@given(st.floats(15, 90 * 86_400), st.integers(1, 100_000))
def test_there_are_never_more_than_240_points(seconds: float, step: int) -> None:
    asked = request(f"from={int((EPOCH - seconds) * 1000)}&step={step}")
    assert 1 <= (asked.end - asked.start) // asked.step + 1 <= POINTS_MAX
    assert asked.step >= step


def test_filters_become_matchers_of_the_sources_own_labels() -> None:
    asked = request("gpu_node=a&gpu_node=b.2&GPU=3")
    assert [promql_of(asked, spelling) for spelling in DUTY.spellings] == [
        (
            "avg by (node_name,gpu,uuid) (100 * "
            'fairlead_gpu_utilization_ratio{node_name=~"a|b\\\\.2",gpu="3",})'
        ),
        'avg by (Hostname,gpu,UUID) (DCGM_FI_DEV_GPU_UTIL{Hostname=~"a|b\\\\.2",gpu="3",})',
        (
            "avg by (node_name,minor_number,uuid) "
            '(nvidia_gpu_duty_cycle{allocate_mode!="share",node_name=~"a|b\\\\.2",minor_number="3",})'
        ),
    ]


def test_pods_of_several_namespaces_are_asked_for_as_they_are() -> None:
    """A filter by pod names alone would also match `b/x`, which was not requested."""
    query = CHART_QUERIES["container-gpu-utilization"]
    asked = request("holder=b/y&holder=a/x&holder=b/z.1&gpu_node=n", query.name)
    by = "avg by (node_name,gpu,uuid,namespace_name,pod_name,container_name)"
    assert promql_of(asked, query.spellings[0]) == (
        f"{by} (100 * "
        f'fairlead_container_gpu_utilization_ratio{{node_name="n",namespace_name="a",pod_name="x",}})'
        f" or {by} (100 * "
        f'fairlead_container_gpu_utilization_ratio{{node_name="n",namespace_name="b",pod_name=~"y|z\\\\.1",}})'
    )
    assert [
        is_wanted({"namespace": space, "pod": pod, "node": "n"}, asked.filters)
        for space, pod in ("ax", "bx", "by")
    ] == [
        True,
        False,
        True,
    ]
    with pytest.raises(UserError) as caught:
        request("holder=x", query.name)
    assert caught.value.what == "`holder=x` names no pod"


async def test_what_only_a_prometheus_keeps_is_reported_missing_without_one() -> None:
    query = CHART_QUERIES["gpu-pcie"]
    asked = request(f"gpu_node=n&from={int((EPOCH - 7200) * 1000)}", query.name)
    assert promql_of(asked, query.spellings[0]) == (
        "max by (node_name,gpu,uuid,direction) "
        '(rate(fairlead_gpu_pcie_bytes_total{node_name="n",}[120s])) / 1048576'
    )
    state = BoardState(cluster(), EPOCH)
    kept = chart_answer(query, asked, history_lines(History(), query, asked), state, History())
    assert [(each.code, each.source) for each in kept.warnings] == [("history-none", "built-in")]
    followed = chart_answer(
        query, asked, await prometheus_lines(Answers(), query, asked), state, History()
    )
    assert [each.code for each in followed.warnings] == ["chart-empty"]


def test_a_filter_cannot_break_out_of_its_quotes() -> None:
    asked = request('gpu_node=x"} or vector(1) #\\')
    assert '{node_name="x\\"} or vector(1) #\\\\",}' in promql_of(asked, DUTY.spellings[0])


def test_a_uuid_filters_by_uuid() -> None:
    assert 'uuid=~"(?i)GPU-1"' in promql_of(request("GPU=GPU-1"), DUTY.spellings[0])


def test_a_card_by_its_index_or_by_its_uuid_is_one_or_the_other() -> None:
    asked = request("GPU=GPU-1&GPU=3&gpu_node=n")
    of = "avg by (node_name,gpu,uuid) (100 * fairlead_gpu_utilization_ratio"
    assert promql_of(asked, DUTY.spellings[0]) == (
        f'{of}{{node_name="n",gpu="3",}}) or {of}{{node_name="n",uuid=~"(?i)GPU-1",}})'
    )
    cards = [
        {"node": "n", "gpu": "3", "uuid": "GPU-0"},
        {"node": "n", "gpu": "0", "uuid": "GPU-1"},
        {"node": "n", "gpu": "1", "uuid": "GPU-2"},
    ]
    assert [is_wanted(card, asked.filters) for card in cards] == [True, True, False]


def test_charts_read_filters_as_lists_do() -> None:
    """In upper or lower case; names in Kubernetes are lower case only."""
    asked = request("gpu_node=GPU-1&GPU=gpu-GPU-1-0")
    assert promql_of(asked, DUTY.spellings[1]) == (
        "avg by (Hostname,gpu,UUID) "
        '(DCGM_FI_DEV_GPU_UTIL{Hostname="gpu-1",UUID=~"(?i)gpu-GPU-1-0",})'
    )
    history = History()
    history.add(EPOCH, samples_of(running_board_state()))
    assert [line.labels["gpu"] for line in history_lines(history, DUTY, asked).lines] == ["0"]
    assert (
        promql_of(
            request("path=Root.A", "quota-used"), CHART_QUERIES["quota-used"].spellings[0]
        ).count('path=~"(?i)Root\\\\.A"')
        == 1
    )
    seen = running_board_state()
    listed = matching(
        seen.gpus,
        ListQuery(
            filters=parse_filters([("gpu_node", "GPU-1"), ("GPU", "gpu-GPU-1-0"), ("GPU", "1")])
        ),
    )
    assert [row.index for row in listed] == [0, 1]


class Answers:
    """A Prometheus that has some metrics, and records the queries."""

    name = "prometheus"

    def __init__(self, metric: str = "", lines: int = 1, count: int = 1) -> None:
        self.metric, self.lines, self.count = metric, lines, count
        self.asked: list[str] = []

    async def query_range(
        self, promql: str, start: float, end: float, step: float
    ) -> list[SeriesLine]:
        self.asked.append(promql)
        if not self.metric or self.metric not in promql:
            return []
        if promql.startswith("count("):
            return [SeriesLine({}, ((end, float(self.count)),))]
        labels = [
            {"Hostname": f"gpu-{n}", "gpu": "0", "UUID": f"GPU-{n}"} for n in range(self.lines)
        ]
        return [
            SeriesLine(label, ((start, float(n)), (start + 2 * step, float("nan"))))
            for n, label in enumerate(labels)
        ]


async def test_the_first_spelling_with_data_answers_under_our_labels() -> None:
    series = Answers("DCGM_FI_DEV_GPU_UTIL", lines=2)
    asked = request(f"from={int((EPOCH - 30) * 1000)}")
    found = await prometheus_lines(series, DUTY, asked)
    assert [line.labels for line in found.lines] == [
        {"node": "gpu-1", "gpu": "0", "uuid": "GPU-1"},
        {"node": "gpu-0", "gpu": "0", "uuid": "GPU-0"},
    ], "the higher mean first"
    assert found.lines[0].points == [
        ((EPOCH - 30) * 1000, 1.0),
        ((EPOCH - 15) * 1000, None),
        (EPOCH * 1000, None),
    ]
    assert found.query == "avg by (Hostname,gpu,UUID) (DCGM_FI_DEV_GPU_UTIL{})"
    _, whether_it_begins, theirs = series.asked
    assert (
        "fairlead_gpu_utilization_ratio" in whether_it_begins
        and "DCGM" not in whether_it_begins
        and "DCGM" in theirs
    )


class Beginning(Answers):
    """DCGM's families have existed for a while; Fairlead's own have no point yet, but will have one
    soon.
    """

    async def query_range(
        self, promql: str, start: float, end: float, step: float
    ) -> list[SeriesLine]:
        if start == end == EPOCH - 1 and promql.startswith(
            "count(avg by (node_name,gpu,uuid) (100 * fairlead_gpu_utilization_ratio"
        ):
            self.asked.append(promql)
            return [SeriesLine({}, ((end, 1.0),))]
        return await super().query_range(promql, start, end, step)


async def test_a_chart_keeps_to_our_metrics_while_they_begin() -> None:
    series = Beginning("DCGM_FI_DEV_GPU_UTIL")
    asked = request(f"to={int((EPOCH - 1) * 1000)}")
    assert (asked.end, asked.until) == (EPOCH - 15, EPOCH - 1), (
        "the newest point that there can be is older than the newest sample"
    )
    found = await prometheus_lines(series, DUTY, asked)
    assert (found.lines, found.query) == (
        [],
        "avg by (node_name,gpu,uuid) (100 * fairlead_gpu_utilization_ratio{})",
    )
    assert not [promql for promql in series.asked if "DCGM" in promql]
    answer = chart_answer(DUTY, asked, found, BoardState(cluster(), EPOCH), History())
    assert [(each.code, each.message) for each in answer.warnings] == [
        ("cache-syncing", "the first values of `gpu-duty-cycle` are being read")
    ]


def test_a_chart_never_asks_about_the_future() -> None:
    assert request(f"to={int((EPOCH + 900) * 1000)}").until == EPOCH


async def test_only_the_top_lines_come_and_all_are_counted() -> None:
    found = await prometheus_lines(Answers("DCGM", lines=3, count=40_000), DUTY, request("top=3"))
    assert (len(found.lines), found.total) == (3, 40_000)


def test_the_top_is_chosen_by_the_mean_over_the_range() -> None:
    assert top_lines_promql("E", request("top=5"), DUTY.spellings[0]) == (
        f"(E) and on (node_name,gpu,uuid) topk(5, avg_over_time((E)[1800s:15s] @ {EPOCH:.0f}))"
    )


async def test_no_data_anywhere_is_an_empty_answer_with_the_first_query() -> None:
    found = await prometheus_lines(Answers(), DUTY, request())
    assert (found.lines, found.total) == ([], 0)
    assert "fairlead_gpu_utilization_ratio" in found.query


class Broken:
    name = "prometheus"

    async def query_range(
        self, promql: str, start: float, end: float, step: float
    ) -> list[SeriesLine]:
        raise OutsideError(
            "prometheus", "http://127.0.0.1:1 refused the connection", "set --prometheus"
        )


class Hanging(Broken):
    async def query_range(
        self, promql: str, start: float, end: float, step: float
    ) -> list[SeriesLine]:
        await asyncio.Event().wait()
        return []


async def test_a_failing_prometheus_is_an_error_that_names_it() -> None:
    with pytest.raises(OutsideError, match=r"127\.0\.0\.1:1"):
        await prometheus_lines(Broken(), DUTY, request())


async def test_a_prometheus_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairlead.console.charts.charts.OUTSIDE_SECONDS", 0.05)
    with pytest.raises(TimeoutError, match="gpu-duty-cycle"):
        await prometheus_lines(Hanging(), DUTY, request())


def running_board_state(at: float = EPOCH, ratio: float = 0.5) -> BoardState:
    job = training_job(workers=1)
    holder = pod("bert-worker-0", "gpu-1", {"nvidia.com/gpu": 1}, job=job)
    gpus = [
        reading(index=0, holder=holder, used_mib=8192, ratio=ratio),
        reading(index=1, ratio=0.0),
    ]
    return BoardState(cluster([gpu_node(gpus=2)], [holder], [job], gpus, quota_tree()), at)


def test_the_built_in_series_holds_every_named_query() -> None:
    sampled = {sample.query for sample in samples_of(running_board_state())}
    assert sampled == {query.name for query in CHART_QUERIES.values() if query.is_kept}


def test_its_lines_carry_the_same_labels_as_those_of_prometheus() -> None:
    for sample in samples_of(running_board_state()):
        labels = set(CHART_QUERIES[sample.query].spellings[0].labels.values())
        assert {label for label, _ in sample.labels} == labels, sample.query
        assert set(CHART_QUERIES[sample.query].filters.values()) <= {
            HOLDER,
            *(label for label, _ in sample.labels),
        }, sample.query


def test_ring_lines_are_filtered_and_the_highest_mean_comes_first() -> None:
    history = History()
    for tick in range(3):
        history.add(
            EPOCH - 30 + 15 * tick,
            samples_of(running_board_state(EPOCH - 30 + 15 * tick, 0.1 * tick)),
        )
    found = history_lines(history, DUTY, request(f"from={int((EPOCH - 45) * 1000)}"))
    assert [line.labels["gpu"] for line in found.lines] == ["0", "1"]
    assert [value for _, value in found.lines[0].points] == [None, 0, 10, 20]
    assert history_lines(history, DUTY, request("GPU=1")).total == 1
    assert history_lines(history, DUTY, request("gpu_node=nowhere")).total == 0
    assert found.source == "built-in" and "every 15 s" in found.query


@pytest.mark.parametrize(
    ("query", "line", "expected"),
    [
        ("cluster-jobs", "running", 5),
        ("cluster-gpus-allocated", "allocated", 5),
        ("cluster-gpu-memory", "total", 5),
        ("node-gpus-total", "", 5),
        ("quota-used", "", 5),
        ("cluster-gpu-memory", "used", 4.5),
        ("cluster-gpu-utilization", "utilization", 4.5),
        ("job-gpu-memory-used", "", 4.5),
        ("gpu-power", "", 4.5),
    ],
)
def test_what_is_counted_is_never_averaged_and_what_is_measured_is(
    query: str, line: str, expected: float
) -> None:
    history = History()
    for tick, value in enumerate((4.0, 5.0)):
        history.add(EPOCH - 15 + 15 * tick, [LineSample(query, (("line", line),), value)])
    found = history_lines(
        history, CHART_QUERIES[query], request(f"from={int((EPOCH - 60) * 1000)}&step=30", query)
    )
    assert [value for _, value in found.lines[0].points] == [None, None, expected]


def test_a_container_s_lines_are_of_its_card_and_its_percentage_of_its_limit() -> None:
    """A container that has the card alone may use all of it; unknown values have no line."""
    parts = (
        GpuHolder("a", "alone", "c", memory_used_mib=4000.0, utilization_ratio=0.25),
        GpuHolder("a", "half", "c", memory_used_mib=2000.0, memory_limit_mib=8000.0),
    )
    held = structs.replace(reading(total_mib=16_000), holders=parts)
    found = samples_of(BoardState(cluster([gpu_node()], gpus=[held]), EPOCH))
    lines = {
        (each.query, dict(each.labels)["pod"]): each.value
        for each in found
        if each.query.startswith("container-")
    }
    assert lines == {
        ("container-gpu-memory-used", "alone"): 4000,
        ("container-gpu-memory-percent", "alone"): 25,
        ("container-gpu-utilization", "alone"): 25,
        ("container-gpu-memory-used", "half"): 2000,
        ("container-gpu-memory-percent", "half"): 25,
        ("container-gpu-memory-limit", "alone"): 16_000,
        ("container-gpu-memory-limit", "half"): 8000,
    }


def test_the_memory_of_a_node_that_no_container_has_is_the_rest_and_unknown_while_one_is() -> None:
    def rest(*holders: GpuHolder) -> list[float]:
        held = structs.replace(reading(total_mib=16_000, used_mib=5000), holders=holders)
        found = samples_of(BoardState(cluster([gpu_node(gpus=1)], gpus=[held]), EPOCH))
        return [
            each.value
            for each in found
            if each.query == "node-gpu-memory" and dict(each.labels)["line"] == "rest"
        ]

    known, unknown = GpuHolder("a", "p", "c", memory_used_mib=4200.0), GpuHolder("a", "q", "c")
    assert [rest(known), rest(known, unknown), rest()] == [[800], [], [5000]]


def test_a_pod_s_card_s_power_and_its_restarts_are_lines_of_the_pod() -> None:
    statuses = (ContainerStatus("c", restarts=3), ContainerStatus("d", restarts=1))
    holder = structs.replace(pod("p", "gpu-1", {"nvidia.com/gpu": 1}), statuses=statuses)
    holders = (GpuHolder("team-a", "p", "c"), GpuHolder("team-a", "p", "d"))
    held = structs.replace(reading(), power_watts=300.0, holders=holders)
    seen = BoardState(cluster([gpu_node(gpus=1)], [holder], gpus=[held]), EPOCH)
    found = [
        (each.query, dict(each.labels)["pod"], each.value)
        for each in samples_of(seen)
        if each.query.startswith("pod-")
    ]
    assert found == [("pod-gpu-power", "p", 300), ("pod-restarts", "p", 4)]


def test_the_percentage_of_an_instance_is_of_what_it_holds() -> None:
    (sample,) = [
        each
        for each in samples_of(running_board_state())
        if each.query == "instance-gpu-memory-percent"
    ]
    assert sample.value == 10
    assert dict(sample.labels) == {
        "namespace": "team-a",
        "type": "pytorchjob",
        "job": "bert",
        "instance": "bert-worker-0",
        "node": "gpu-1",
    }


def test_an_empty_chart_gives_the_reason() -> None:
    asked = request()
    silent = BoardState(
        cluster(
            sources={"gpu-telemetry": telemetry("failing", "http://10.0.0.1:9400 does not answer")}
        ),
        EPOCH,
    )
    answer = chart_answer(DUTY, asked, history_lines(History(), DUTY, asked), silent, History())
    assert [(each.code, each.message) for each in answer.warnings] == [
        ("prometheus-unreachable", "http://10.0.0.1:9400 does not answer")
    ]
    answer = chart_answer(
        DUTY, asked, history_lines(History(), DUTY, asked), BoardState(cluster(), EPOCH), History()
    )
    assert [(each.code, each.values) for each in answer.warnings] == [
        ("chart-empty", {"query": DUTY.name})
    ]


def test_a_range_longer_than_the_built_in_hour_is_reported() -> None:
    asked = request(f"from={int((EPOCH - 7200) * 1000)}")
    history = History()
    history.add(EPOCH, samples_of(running_board_state()))
    answer = chart_answer(
        DUTY, asked, history_lines(history, DUTY, asked), running_board_state(), history
    )
    assert [each.code for each in answer.warnings] == ["history-off"]


def test_while_the_past_is_read_a_chart_shows_it() -> None:
    history = History()
    asked = request()
    history.is_being_read = True
    codes = [
        each.code
        for each in chart_answer(
            DUTY, asked, history_lines(history, DUTY, asked), running_board_state(), history
        ).warnings
    ]
    assert "history-syncing" in codes
    history.is_being_read = False
    codes = [
        each.code
        for each in chart_answer(
            DUTY, asked, history_lines(history, DUTY, asked), running_board_state(), history
        ).warnings
    ]
    assert "history-syncing" not in codes


def test_the_heat_map_has_a_line_per_node_and_a_point_per_card() -> None:
    (line,) = heatmap(running_board_state()).series
    assert (line.labels, line.points) == ({"node": "gpu-1"}, [(0, 50), (1, 0)])


def test_the_heat_map_knows_the_filters_of_cards_and_no_others() -> None:
    seen = running_board_state()
    for text, points in (
        ("gpu_node=GPU-1&GPU=1", [(1, 0)]),
        ("GPU=gpu-gpu-1-0", [(0, 50)]),
        ("gpu_node=", [(0, 50), (1, 0)]),
    ):
        (line,) = heatmap(
            seen, parse_heatmap_filters([tuple(part.split("=")) for part in text.split("&")])
        ).series  # type: ignore[misc]
        assert line.points == points, text
    assert heatmap(seen, parse_heatmap_filters([("gpu_node", "gpu-2")])).total == 0
    for name in ("job_name", "from", "top"):
        with pytest.raises(UserError) as caught:
            parse_heatmap_filters([(name, "1")])
        assert caught.value.what == f"the chart `gpu-heatmap` cannot be filtered by `{name}`"
