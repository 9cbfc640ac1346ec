"""Does each alert fire when it should, stay silent in similar cases, and end when its series are
gone? Prometheus's promtool evaluates the rules.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml
from tests.prometheus.alert_cases import (
    CARD,
    CASES,
    CLUSTER,
    CLUSTER_REPORTS,
    LOST,
    LOST_CARD,
    LOST_NODE,
    MINUTE,
    Case,
    container,
    gpu,
    held,
    quota,
)
from tests.prometheus.inhibition import not_inhibited
from tests.prometheus.promtool import (
    FIRING,
    RULES,
    Asked,
    ExpectedAlert,
    Question,
    check_rules,
    rendered,
    selector,
    wrong_answers,
)

ALERTS: dict[str, dict[str, Any]] = {
    rule["alert"].removeprefix("Fairlead"): rule
    for group in yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]
    for rule in group["rules"]
    if "alert" in rule
}
NAMES_FIRING = f"sum by (alertname) ({FIRING})"


def test_promtool_takes_the_rules() -> None:
    assert check_rules(RULES) == ""


def test_every_alert_has_its_cases() -> None:
    assert set(CASES) == set(ALERTS)
    assert [name for name, case in CASES.items() if not case.silent] == []


def test_alerts_fire_stay_silent_and_end_as_they_should(tmp_path: Path) -> None:
    assert (
        wrong_answers(
            [*_questions(), *_one_fault_one_alert(), _recordings(), _scraped_twice(), _restart()],
            tmp_path,
        )
        == ""
    )


def _questions() -> Iterator[Question]:
    for name, case in CASES.items():
        yield Question(f"{name} fires", _with_a_cluster(_ending(case)), *_firing(name, case))
        for why, series in case.silent.items():
            yield Question(
                f"{name} is silent: {why}",
                series,
                alerts=[ExpectedAlert(case.at, f"Fairlead{name}", None)],
            )
        for why, series in case.also.items():
            fires = f'sum(ALERTS{{alertname="Fairlead{name}",alertstate="firing"}})'
            yield Question(
                f"{name} fires once, too: {why}", series, [Asked(case.at, fires, {"{}": 1})]
            )


def _with_a_cluster(series: Mapping[str, str]) -> Mapping[str, str]:
    """Adds a cluster exporter for three hours, unless the case has series of it."""
    return {CLUSTER_REPORTS: held(4, 180 * MINUTE), **series}


def _ending(case: Case) -> dict[str, str]:
    """The series end after the alert fired."""
    return {series: f"{values} stale" for series, values in case.fires.items()}


def _firing(name: str, case: Case) -> tuple[list[Asked], list[ExpectedAlert]]:
    rule, alert = ALERTS[name], f"Fairlead{name}"
    labels = {**case.labels, "severity": rule["labels"]["severity"]}
    annotations = {
        key: rendered(text, labels, case.value) for key, text in rule["annotations"].items()
    }
    alerts = [
        ExpectedAlert(case.at, alert, labels, annotations),
        ExpectedAlert(case.at + case.lasts, alert, None),
    ]
    if case.not_yet is not None:
        alerts.append(ExpectedAlert(case.not_yet, alert, None))
    return [Asked(case.at, NAMES_FIRING, _names(name, *case.beside))], alerts


def _one_fault_one_alert() -> Iterator[Question]:
    """Expressions exclude what another alert reports. Alertmanager inhibits the rest, see below:
    also the age of a lost card's values.
    """
    after = [
        Asked(LOST, NAMES_FIRING, _names("GpuXidCritical", "GpuDown")),
        Asked(12 * MINUTE, NAMES_FIRING, _names("GpuDown", "ExporterStale")),
    ]
    yield Question("a lost card", _with_a_cluster(LOST_CARD), after)
    yield Question(
        "a lost node",
        _with_a_cluster(LOST_NODE),
        [Asked(10 * MINUTE, NAMES_FIRING, _names("GpuNodeNotReady"))],
    )


def _recordings() -> Question:
    """Two cards held whole and 4 and 3 of the 15 units of a shared card: 2 + 7/15 GPUs, whatever
    memory the driver reserves.
    """
    end, unit = 2 * MINUTE, 1000.0
    series = {
        gpu("memory_grantable_bytes", uuid=uuid, gpu=uuid): held(15 * unit, end)
        for uuid in ("a", "b", "c")
    }
    for pod, uuid, units, mode in (
        ("p", "a", 15, "exclusive"),
        ("p", "b", 15, "exclusive"),
        ("q", "c", 4, "share"),
        ("r", "c", 3, "share"),
    ):
        labels = {"uuid": uuid, "gpu": uuid, "pod_name": pod, "allocate_mode": mode}
        series[container("memory_limit_bytes", **labels)] = held(units * unit, end)
        series[container("memory_used_bytes", **labels)] = held(unit, end)
    series |= {
        gpu("memory_used_bytes"): held(4, end),
        gpu("memory_total_bytes"): held(16, end),
        gpu("utilization_ratio"): held(0.25, end),
    }
    series |= {quota("used"): held(9, end), quota("min"): held(6, end), quota("max"): held(12, end)}
    series |= {
        quota("used", resource="cpu"): held(9, end),
        quota("min", resource="cpu"): held(0, end),
    }
    series[selector("fairlead_cluster_gpu_utilization_ratio", CLUSTER)] = held(0.5, end)
    asked = (
        (
            "fairlead:namespace_gpus_allocated:sum",
            {
                '{__name__="fairlead:namespace_gpus_allocated:sum",namespace_name="vision"}': 2
                + 7 / 15
            },
        ),
        (
            "max by (pod_name) (fairlead:container_gpu_memory_used:ratio)",
            {f'{{pod_name="{pod}"}}': 1 / units for pod, units in (("p", 15), ("q", 4), ("r", 3))},
        ),
        ("max by (uuid) (fairlead:gpu_memory_used:ratio)", {'{uuid="GPU-a"}': 0.25}),
        ("max by (uuid) (fairlead:gpu_utilization:avg30m)", {'{uuid="GPU-a"}': 0.25}),
        ("sum by (job) (fairlead:cluster_gpu_utilization:avg1h)", {'{job="cluster"}': 0.5}),
        (
            "sum by (resource) (fairlead:quota_used:ratio_max)",
            {'{resource="nvidia.com/gpu"}': 0.75},
        ),
        ("sum by (resource) (fairlead:quota_used:ratio_min)", {'{resource="nvidia.com/gpu"}': 1.5}),
    )
    return Question(
        "recording rules", series, [Asked(end, expr, expected) for expr, expected in asked]
    )


def _scraped_twice() -> Question:
    """Two scrape jobs, one of Fairlead's and one that follows annotations: each series exists
    twice, and each thing counts once.
    """
    once, end = _recordings(), 2 * MINUTE
    series = once.series | {
        name.replace('job="', 'job="other-'): values for name, values in once.series.items()
    }
    asked = [
        each for each in once.asked if each.expr.startswith(("fairlead:namespace", "max by (uuid)"))
    ]
    asked.append(Asked(end, "fairlead:gpu_utilization:avg30m", {_mean_of_the_card(): 0.25}))
    return Question("scraped twice", series, asked)


def _restart() -> Question:
    """Half an hour's mean stays one value while the series of two pods are in its window."""
    name, moved = "utilization_ratio", {"instance": "10.0.0.2:9400"}
    series = {
        gpu(name): f"{held(0.5, 20 * MINUTE)} stale",
        gpu(name, **moved): f"_x42 {held(0.25, 30 * MINUTE)}",
    }
    asked = [(19 * MINUTE, 0.5), (25 * MINUTE, 0.5), (55 * MINUTE, 0.25)]
    return Question(
        "a restart",
        series,
        [
            Asked(at, "fairlead:gpu_utilization:avg30m", {_mean_of_the_card(): mean})
            for at, mean in asked
        ],
    )


def _mean_of_the_card() -> str:
    return selector(
        "fairlead:gpu_utilization:avg30m",
        {label: CARD[label] for label in ("node_name", "gpu", "uuid", "model")},
    )


def _names(*names: str) -> dict[str, float]:
    return {f'{{alertname="Fairlead{name}"}}': 1 for name in names}


def _alert(name: str, **labels: str) -> dict[str, str]:
    return {"alertname": f"Fairlead{name}", **labels}


def test_of_a_lost_card_users_are_informed_once() -> None:
    """XID 79 and the unreachable card fire together, as promtool shows above; other alerts may
    follow from the same fault.
    """
    card = {label: CARD[label] for label in ("node_name", "uuid", "gpu")}
    xid, down = _alert("GpuXidCritical", **card, xid="79"), _alert("GpuDown", **card)
    rest = [
        _alert(name, **card)
        for name in ("GpuUnhealthy", "GpuRecoveryNeeded", "GpuIdleAllocated", "GpuHot")
    ]
    of_the_exporter = [
        _alert("ExporterStale", node_name="gpu-1", gpu="3"),
        _alert("ExporterCollectorFailing", node_name="gpu-1", gpu="3"),
    ]
    assert not_inhibited([xid, down]) == [xid]
    assert not_inhibited([xid, down, *rest, *of_the_exporter]) == [xid]
    assert not_inhibited([down, *rest, *of_the_exporter]) == [down]
    neighbour = _alert("GpuDown", node_name="gpu-1", uuid="GPU-b", gpu="4")
    assert not_inhibited([xid, down, neighbour]) == [xid, neighbour]


def test_of_a_lost_node_users_are_informed_once() -> None:
    node = _alert("GpuNodeNotReady", node_name="gpu-1")
    others = [
        _alert("ExporterMissing", node_name="gpu-1"),
        _alert("GpuDown", node_name="gpu-1", uuid="GPU-a", gpu="0"),
    ]
    elsewhere = _alert("GpuDown", node_name="gpu-2", uuid="GPU-c", gpu="0")
    assert not_inhibited([node, *others, elsewhere]) == [node, elsewhere]
