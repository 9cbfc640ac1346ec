"""For any request and any values of a device the console refuses or answers. It never fails with a
traceback, and never writes a number that JSON does not have.
"""

from __future__ import annotations

import json

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.console.clusters import EPOCH, cluster, gpu_node, living_cluster, pod, training_job

from fairlead.console.boards.board_state import BoardState
from fairlead.console.boards.rows import matching, page_of
from fairlead.console.charts.history_samples import samples_of
from fairlead.console.charts.queries import CHART_QUERIES
from fairlead.console.charts.request import parse_chart_request
from fairlead.console.pages.endpoints import ENDPOINTS
from fairlead.console.pages.list_query import parse_list_query
from fairlead.errors import UserError
from fairlead.model.devices.gpu import GpuHolder, GpuReading

LISTS = {
    endpoint.name: endpoint
    for endpoint in ENDPOINTS
    if endpoint.name in ("nodes", "jobs", "quota_usage")
}
PICTURE = BoardState(living_cluster(), EPOCH)
ROWS = {"nodes": PICTURE.nodes, "jobs": PICTURE.jobs, "quota_usage": PICTURE.quota}
NUMBERS = st.none() | st.floats(width=32) | st.floats(0, 1)
NAMES = st.sampled_from(
    [each.name for endpoint in LISTS.values() for each in endpoint.parameters]
    + ["from", "to", "step", "top", "x"]
)
TEXTS = st.text(max_size=12) | st.sampled_from(
    ["-name", "name,-status", "gpusTotal", "csv", "1", "500", "9" * 30, "2026-01-05T08:00:00Z"]
)
PARAMETERS = st.lists(st.tuples(NAMES, TEXTS), max_size=5)


@given(st.sampled_from(sorted(LISTS)), PARAMETERS)
def test_any_list_query_is_answered_or_refused_with_a_hint(
    name: str, parameters: list[tuple[str, str]]
) -> None:
    try:
        query = parse_list_query(parameters, LISTS[name])
        found = page_of(matching(ROWS[name], query), query)  # type: ignore[type-var]
        assert len(found.rows) <= query.size
    except UserError as refused:
        assert refused.hint


@given(st.sampled_from(sorted(CHART_QUERIES)), PARAMETERS)
def test_any_chart_request_is_answered_or_refused_with_a_hint(
    name: str, parameters: list[tuple[str, str]]
) -> None:
    try:
        asked = parse_chart_request(parameters, CHART_QUERIES[name], EPOCH)
        assert 0 <= asked.start <= asked.end
    except UserError as refused:
        assert refused.hint


HOLDERS = st.builds(
    GpuHolder,
    namespace=st.just("team-a"),
    pod=st.sampled_from(["bert-worker-0", "bert-worker-1", "nobody"]),
    mode=st.sampled_from(["exclusive", "share", "timeslice"]),
    memory_used_mib=NUMBERS,
    memory_limit_mib=NUMBERS,
    utilization_ratio=NUMBERS,
)
READINGS = st.builds(
    GpuReading,
    node=st.just("gpu-1"),
    index=st.integers(0, 3),
    uuid=st.sampled_from(["", "a", "b", "c"]),
    memory_total_mib=NUMBERS,
    memory_used_mib=NUMBERS,
    utilization_ratio=NUMBERS,
    temperature_celsius=NUMBERS,
    power_watts=NUMBERS,
    healthy=st.sampled_from([True, False, None]),
    last_xid=st.none() | st.integers(0, 200),
    holders=st.lists(HOLDERS, max_size=2).map(tuple),
    idle_since=st.none() | st.floats(EPOCH - 9000, EPOCH + 9000),
)


@given(st.lists(READINGS, max_size=5))
@settings(deadline=None)
def test_whatever_devices_report_the_answers_are_json(readings: list[GpuReading]) -> None:
    job = training_job()
    pods = [pod(f"bert-worker-{n}", "gpu-1", {"nvidia.com/gpu": 1}, job=job) for n in range(2)]
    seen = BoardState(cluster([gpu_node()], pods, [job], readings), EPOCH)
    answers = [
        seen.overview,
        seen.gpu_map,
        seen.node("gpu-1"),
        seen.job(*job.key),
        [e.row for e in seen.nodes.entries],
    ]
    text = msgspec.json.encode(answers).decode()
    json.loads(text, parse_constant=lambda word: (_ for _ in ()).throw(AssertionError(word)))
    assert list(samples_of(seen))
