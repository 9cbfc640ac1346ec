"""GPU values by one Prometheus query: old samples do not count as new, and values are kept for a
while when Prometheus does not answer.
"""

from __future__ import annotations

from fairlead.edge.prometheus.answer import PrometheusFailure
from fairlead.edge.prometheus.answer import PrometheusSample as Answer
from fairlead.edge.prometheus.readings import QUERY, PrometheusReadings, cards_of
from fairlead.wire.metrics.gpu_readings import METRICS

LABELS = {
    "__name__": "fairlead_gpu_utilization_ratio",
    "node_name": "n1",
    "gpu": "0",
    "uuid": "GPU-a",
    "model": "T4",
}


class Clock:
    at = 1000.0

    def now(self) -> float:
        return self.at


class Prometheus:
    address = "http://prometheus:9090"

    def __init__(self) -> None:
        self.answer: list[Answer] | PrometheusFailure = []
        self.asked: list[str] = []

    async def query(self, promql: str) -> list[Answer]:
        self.asked.append(promql)
        if isinstance(self.answer, PrometheusFailure):
            raise self.answer
        return self.answer


def made() -> tuple[PrometheusReadings, Prometheus, Clock]:
    prometheus, clock = Prometheus(), Clock()
    return PrometheusReadings(prometheus, clock), prometheus, clock  # type: ignore[arg-type]


async def test_one_query_for_all_metrics() -> None:
    readings, prometheus, _ = made()
    prometheus.answer = [Answer(LABELS, 995.0, 0.5)]
    assert await readings.read_once()
    assert prometheus.asked == [QUERY]
    assert all(metric in QUERY for metric in METRICS)
    assert [(each.node, each.utilization_ratio) for each in readings.latest()] == [("n1", 0.5)]
    assert readings.source().state == "ok"


async def test_no_answer_keeps_readings_for_a_minute() -> None:
    readings, prometheus, clock = made()
    prometheus.answer = [Answer(LABELS, 995.0, 0.5)]
    await readings.read_once()
    prometheus.answer = PrometheusFailure("Prometheus `x` refused the connection", "check it")
    clock.at += 30
    assert not await readings.read_once()
    assert len(readings.latest()) == 1
    assert (readings.source().state, readings.source().good_at) == ("failing", 1000.0)
    clock.at += 40
    await readings.read_once()
    assert readings.latest() == ()


async def test_a_prometheus_without_gpu_metrics_is_reported() -> None:
    readings, _, _ = made()
    await readings.read_once()
    assert "has no GPU metrics" in readings.source().message


def test_samples_older_than_a_minute_are_not_taken_for_now() -> None:
    assert cards_of([Answer(LABELS, 900.0, 0.5)], 1000.0).readings == ()


async def test_a_card_that_two_targets_report_counts_once_and_is_reported() -> None:
    readings, prometheus, clock = made()
    dcgm = {
        "__name__": "DCGM_FI_DEV_GPU_UTIL",
        "Hostname": "n1.example",
        "gpu": "0",
        "UUID": "GPU-a",
        "instance": "a1:9400",
    }
    own = {**LABELS, "__name__": "fairlead_gpu_up", "instance": "n1:9400"}
    prometheus.answer = [
        Answer(own, 995.0, 1),
        Answer({**LABELS, "instance": "n1:9400"}, 995.0, 0.5),
        Answer(dcgm, 999.0, 70),
    ]
    await readings.read_once()
    assert [(each.node, each.utilization_ratio) for each in readings.latest()] == [("n1", 0.5)]
    source = readings.source()
    tally = readings.tally()
    assert (tally.read, tally.reads, tally.twice, tally.duplicates, tally.bad_lines) == (
        1,
        1,
        1,
        1,
        {},
    )
    assert (source.state, source.message.split(";")[0]) == (
        "ok",
        "GPU `GPU-a` is reported by `n1:9400` and by `a1:9400`",
    )
    prometheus.answer = PrometheusFailure("Prometheus `x` refused the connection", "check it")
    clock.at += 70
    await readings.read_once()
    assert (readings.latest(), readings.tally().twice) == ((), 0), (
        "stale readings are reported no more"
    )


async def test_of_one_series_from_two_targets_the_newest_counts() -> None:
    readings, prometheus, _ = made()
    prometheus.answer = [
        Answer({**LABELS, "job": "b"}, 999.0, 0.75),
        Answer({**LABELS, "job": "a"}, 990.0, 0.25),
    ]
    await readings.read_once()
    assert [each.utilization_ratio for each in readings.latest()] == [0.75]
