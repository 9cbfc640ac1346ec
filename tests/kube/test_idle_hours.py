"""How many hours of the last day was each pod idle? The console queries a real Prometheus, in each
of its spellings.

The oracle is the way in which the series were written: minute by minute, for two days.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.kube.prometheus import Prometheus, running_prometheus

from fairlead.console.charts.idle import idle_hours_in_series
from fairlead.edge.prometheus.address import prometheus_connection
from fairlead.edge.prometheus.client import Prometheus as Client

LOGS = Path(__file__).resolve().parents[2] / "test-output" / "kube"
HOUR, MINUTE = 3600, 60
LIVES = {
    "always": lambda ago: 0.0,
    "never": lambda ago: 80.0,
    "six-hours-twice": lambda ago: (
        0.0 if 2 * HOUR <= ago < 8 * HOUR or 30 * HOUR <= ago < 36 * HOUR else 55.0
    ),
    "three-hours-old": lambda ago: None if ago > 3 * HOUR else 0.0,
    "just-below": lambda ago: 0.9 if ago < 4 * HOUR else 1.0,
}
"""Percent that a pod used of its card by the number of seconds ago; None = it did not exist."""
IDLE_HOURS = {"always": 24.0, "six-hours-twice": 6.0, "three-hours-old": 3.0, "just-below": 4.0}
SPELLINGS = {
    "ours": (
        "fairlead_container_gpu_utilization_ratio",
        0.01,
        ("uuid", "namespace_name", "pod_name", "container_name", "node_name"),
    ),
    "dcgm": ("DCGM_FI_DEV_GPU_UTIL", 1.0, ("UUID", "namespace", "pod", "container", "Hostname")),
    "dcgm exported": (
        "DCGM_FI_DEV_GPU_UTIL",
        1.0,
        ("UUID", "exported_namespace", "exported_pod", "exported_container", "Hostname"),
    ),
    "older": (
        "nvidia_gpu_duty_cycle",
        1.0,
        ("uuid", "namespace_name", "pod_name", "container_name", "node_name"),
    ),
}
SLACK_HOURS = 0.2
"""Two evaluations, five minutes apart."""


def history(name: str, now: float) -> str:
    """Two containers of each pod, of which the second is always
    idle: a pod is idle when both are.
    """
    family, factor, (uuid, space, pod, container, node) = SPELLINGS[name]
    lines = [f"# TYPE {family} gauge"]
    for life, used in LIVES.items():
        for which, part in (("main", 1.0), ("side", 0.0)):
            labels = (
                f'{{gpu="0",{uuid}="GPU-{life}",{space}="team",{pod}="{life}",'
                f'{container}="{which}",{node}="n1"}}'
            )
            for ago in range(47 * HOUR, -1, -MINUTE):
                percent = used(ago)
                if percent is not None:
                    lines.append(f"{family}{labels} {percent * part * factor} {now - ago:.0f}")
    return "\n".join([*lines, "# EOF", ""])


@pytest.fixture(scope="module", params=sorted(SPELLINGS))
def reported(request: pytest.FixtureRequest) -> Iterator[tuple[Prometheus, float]]:
    now = float(int(time.time())) - 10
    log = LOGS / f"idle-hours-{request.param.replace(' ', '-')}.log"
    LOGS.mkdir(parents=True, exist_ok=True)
    with running_prometheus({}, log, history=history(request.param, now)) as server:
        yield server, now


def test_hours_of_the_last_day_by_pod_and_card(reported: tuple[Prometheus, float]) -> None:
    server, now = reported

    async def asked() -> dict[tuple[str, str, str], float]:
        async with Client(prometheus_connection(server.url)) as client:
            return dict((await idle_hours_in_series(client, now)).hours_by_key)

    found = asyncio.run(asked())
    assert set(found) == {("team", life, f"GPU-{life}") for life in IDLE_HOURS}
    for life, hours in IDLE_HOURS.items():
        assert found["team", life, f"GPU-{life}"] == pytest.approx(hours, abs=SLACK_HOURS), life
