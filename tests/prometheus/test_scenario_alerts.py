"""The alerts that fire in a scenario's history are exactly a stored list, each line with its cause.

Exporters' pages of every minute go through Prometheus's own evaluation (promtool).
`FAIRLEAD_REWRITE_GOLDEN=1` rewrites the lists; a line whose cause is not in `CAUSES` is refused. To
add a scenario, add a row to `MINUTES` and its causes, and rewrite.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest
from tests.prometheus.promtool import FIRING, Asked, Question, wrong_answers
from tests.prometheus.recorded import STEP_SECONDS, recorded

FOLDER = Path(__file__).parent / "golden"
MINUTES = {"default": 180, "faults": 90, "telemetry": 60}
"""How many minutes of a scenario's history are evaluated: all of it, by its file."""
SHOWN = (
    *(
        "severity",
        "node_name",
        "gpu",
        "xid",
        "collector",
        "path",
        "resource",
        "namespace_name",
        "pod_name",
        "container_name",
    ),
    *("job_namespace", "job_name"),
)
CAUSES: Mapping[str, Mapping[str, str]] = {
    "default": {
        (
            r"GpuXidWarning .*gpu-v100-2 "
            r"gpu=3 xid=63"
        ): "the scenario's XID 63 at minute 12: a row is remapped",
        (
            r"GpuXidCritical "
            r".*gpu-v100-2 gpu=3 xid=48"
        ): "the scenario's XID 48 at minute 31: a double-bit error",
        r"(GpuEccUncorrected|GpuRecoveryNeeded|GpuUnhealthy) .*gpu-v100-2 gpu=3": (
            "follows from XID 48, until the card is lost"
        ),
        (
            r"GpuXidCritical "
            r".*gpu-v100-2 gpu=3 xid=79"
        ): "the scenario's XID 79 at minute 47: the card falls off the bus",
        r"GpuDown .*gpu-v100-2 gpu=3": "follows from XID 79",
        r"ExporterStale .*gpu-v100-2 gpu=3": "its values grow old; GpuDown holds it back",
        (
            r"GpuIdleAllocated "
            r".*gpu-a100-1 gpu=0"
        ): "notebook-maria holds a whole A100 and does nothing",
        r"JobFailed .*job_name=nightly-eval-": "its stream: 35 of 100 jobs fail",
        r"JobFailed .*job_name=translate-": "its stream: 10 of 100 jobs fail",
        (
            r"JobPendingLong "
            r".*job_namespace=vision"
        ): "vision has what it is guaranteed, and others need theirs",
        (
            r"JobPendingLong "
            r".*job_namespace=language"
        ): "its jobs ask for 4 GPUs, and no node has that many free",
    },
    "faults": {
        (
            r"GpuXidCritical .*gpu-1 "
            r"gpu=0 xid=79"
        ): "the scenario's XID 79 at minute 20: the card falls off the bus",
        r"GpuDown .*gpu-1 gpu=0": "follows from XID 79",
        r"ExporterStale .*gpu-1 gpu=0": "its values grow old; GpuDown holds it back",
        (
            r"GpuXidCritical .*gpu-2 "
            r"gpu=1 xid=48"
        ): "the scenario's XID 48 at minute 35: a double-bit error",
        r"(GpuEccUncorrected|GpuRecoveryNeeded|GpuUnhealthy) .*gpu-2 gpu=1": "follows from XID 48",
        r"GpuNodeNotReady .*node_name=gpu-3": "the scenario's outage at minute 60",
        r"GpuNodeNotReady .*node_name=gpu-silent-1": "its kubelet never reported",
        r"JobFailed .*job_name=stubborn-": "its stream: half of its jobs fail",
        r"JobFailed .*job_name=unlucky-": "its stream: 40 of 100 jobs fail",
        r"GpuPodPendingLong .*pod_name=never-fits-": "its app asks for more than any node has",
    },
    "telemetry": {
        (
            r"GpuXidCritical .*t4-2 "
            r"gpu=1 xid=79"
        ): "the scenario's XID 79 at minute 40: the card falls off the bus",
        r"GpuDown .*t4-2 gpu=1": "follows from XID 79",
        r"ExporterStale .*t4-2 gpu=1": "its values grow old; GpuDown holds it back",
        r"GpuDown .*hopper-1 gpu=2": "a call of its driver hangs from minute 20 to 25",
        r"GpuDown .*t4-1 gpu=1": "a call of its driver hangs since minute 50",
        r"ExporterStale .*t4-1 gpu=1": "its values grow old; GpuDown holds it back",
        r"GpuForeignProcess .*(a10-1 gpu=0|hopper-1 gpu=3)": "the scenario's process without a pod",
    },
}


@pytest.mark.parametrize("scenario", MINUTES)
def test_what_fires_in_a_scenario_is_its_list(scenario: str, tmp_path: Path) -> None:
    minutes = MINUTES[scenario]
    series = recorded(scenario, minutes * 60)
    expr = f"group by (alertname, {', '.join(SHOWN)}) (last_over_time({FIRING}[{minutes + 1}m]))"

    def wrong(expected: Iterable[str]) -> str:
        asked = Asked(minutes * 60, expr, dict.fromkeys(expected, 1.0))
        return wrong_answers([Question(scenario, series, [asked], step=STEP_SECONDS)], tmp_path)

    file = FOLDER / f"{scenario}.txt"
    if os.environ.get("FAIRLEAD_REWRITE_GOLDEN"):
        reported = re.findall(r"(\{[^}]*\}) 1E\+00", wrong(()).partition("got:")[2])
        file.write_text(
            "".join(
                f"{line}  # {_cause(scenario, line)}\n" for line in sorted(map(_line, reported))
            ),
            encoding="utf-8",
        )
    lines = [line.partition("  # ") for line in file.read_text(encoding="utf-8").splitlines()]
    assert [(line, cause) for line, _, cause in lines if cause != _cause(scenario, line)] == []
    assert wrong(_labels(line) for line, _, _ in lines) == "", (
        "`FAIRLEAD_REWRITE_GOLDEN=1` rewrites the list; read its diff"
    )


def test_every_cause_has_its_line() -> None:
    """A cause without a line must be removed."""
    idle = {
        (scenario, pattern)
        for scenario, causes in CAUSES.items()
        for pattern in causes
        if not re.search(
            rf"^{pattern}", (FOLDER / f"{scenario}.txt").read_text(encoding="utf-8"), re.MULTILINE
        )
    }
    assert idle == set()


def _cause(scenario: str, line: str) -> str:
    causes = [cause for pattern, cause in CAUSES[scenario].items() if re.match(pattern, line)]
    assert len(causes) == 1, (
        f"of `{line}` {len(causes)} causes are known: find why it fires, and add it to CAUSES"
    )
    return causes[0]


def _line(reported: str) -> str:
    """An element of a vector as a line of the list.

    >>> _line('{alertname="FairleadGpuDown", gpu="3", node_name="n", severity="critical"}')
    'GpuDown severity=critical node_name=n gpu=3'
    """
    labels = dict(re.findall(r'(\w+)="([^"]*)"', reported))
    return " ".join(
        (
            labels["alertname"].removeprefix("Fairlead"),
            *(f"{name}={labels[name]}" for name in SHOWN if name in labels),
        )
    )


def _labels(line: str) -> str:
    name, *labels = line.split(" ")
    return (
        "{"
        + ",".join(
            (
                f'alertname="Fairlead{name}"',
                *('{}="{}"'.format(*each.split("=", 1)) for each in labels),
            )
        )
        + "}"
    )
