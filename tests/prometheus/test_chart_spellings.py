"""Where only DCGM's families exist, charts of containers show which container has a card, whether
Prometheus honors labels or not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.prometheus.promtool import Asked, Question, selector, wrong_answers

from fairlead.console.charts.queries import CHART_QUERIES, ChartQuery, Spelling
from fairlead.console.charts.request import ChartRequest, promql_of
from fairlead.wire.metrics.prom_text import parse_page

PAGE = Path(__file__).resolve().parents[1] / "golden" / "metrics" / "gpu-exporter.prom"
"""One card of three is held whole by a pod."""
TARGET = {
    "job": "gpu",
    "instance": "10.0.0.1:9400",
    "namespace": "monitoring",
    "pod": "exporter-x7k2p",
    "container": "nvidia-dcgm-exporter",
}
OWNER_LABELS = {"namespace": "research", "pod": "train-0", "container": "main"}
USED, FREE = 6000.0, 9079.0
VALUES = {
    "container-gpu-memory-used": USED,
    "container-gpu-memory-percent": 100 * USED / (USED + FREE),
    "container-gpu-utilization": 90.0,
}
WHOLE = ChartRequest(0, 60, 15, 8, {})


def scraped(*, honors_labels: bool) -> dict[str, str]:
    """The page's DCGM families as Prometheus stores them."""
    found = {}
    for sample in parse_page(PAGE.read_text(encoding="utf-8"), ("DCGM_",)).samples:
        printed = dict(sample.labels)
        clashing = set() if honors_labels else printed.keys() & TARGET.keys()
        labels = {
            **TARGET,
            **{
                f"exported_{name}" if name in clashing else name: value
                for name, value in printed.items()
            },
        }
        found[selector(sample.name, labels)] = f"{sample.value}x4"
    return found


def dcgm_spellings(query: ChartQuery) -> Iterator[Spelling]:
    return (each for each in query.spellings if "DCGM" in each.expression)


def lines(spelling: Spelling, value: float) -> Mapping[str, float]:
    own = {"node": "gpu-1", "gpu": "0", "uuid": "GPU-gpu-1-0", **OWNER_LABELS}
    return {selector("", {theirs: own[name] for theirs, name in spelling.labels.items()}): value}


def questions() -> Iterator[Question]:
    for is_honored in (False, True):
        asked = []
        for name, value in VALUES.items():
            exported, honored = dcgm_spellings(CHART_QUERIES[name])
            asked.append(
                Asked(60, promql_of(WHOLE, exported), {} if is_honored else lines(exported, value))
            )
            asked.append(
                Asked(60, promql_of(WHOLE, honored), lines(honored, value) if is_honored else {})
            )
        yield Question(f"honorLabels {is_honored}", scraped(honors_labels=is_honored), asked)


def test_clocks_tensor_cores_and_what_links_carry(tmp_path: Path) -> None:
    """Fairlead's families and DCGM's give the same line, even if both report it."""
    own, theirs = (
        {"node_name": "n1", "gpu": "0", "uuid": "GPU-a"},
        {"Hostname": "n1", "gpu": "0", "UUID": "GPU-a"},
    )
    mib, end = 1 << 20, 600
    series = {}
    for job in ("gpu", "of-annotations"):
        series |= {
            selector(
                "fairlead_gpu_clock_hertz", {**own, "clock": "sm", "job": job}
            ): "1410000000x20",
            selector(
                "fairlead_gpu_clock_hertz", {**own, "clock": "memory", "job": job}
            ): "877000000x20",
            selector(
                "fairlead_gpu_nvlink_bytes_total", {**own, "direction": "tx", "job": job}
            ): f"0+{300 * mib}x20",
            selector(
                "fairlead_gpu_nvlink_bytes_total", {**own, "direction": "rx", "job": job}
            ): f"0+{600 * mib}x20",
            selector("DCGM_FI_DEV_SM_CLOCK", {**theirs, "job": job}): "1410x20",
            selector("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", {**theirs, "job": job}): "0.25x20",
            selector("DCGM_FI_PROF_NVLINK_TX_BYTES", {**theirs, "job": job}): f"{10 * mib}x20",
            selector("DCGM_FI_PROF_NVLINK_RX_BYTES", {**theirs, "job": job}): f"{20 * mib}x20",
        }
    shown = {
        "gpu-sm-clock": {"": 1410.0},
        "gpu-tensor-active": {"": 25.0},
        "gpu-nvlink": {"tx": 10.0, "rx": 20.0},
    }
    asked = []
    for name, by_direction in shown.items():
        for spelling in CHART_QUERIES[name].spellings:
            who = own if "node_name" in spelling.labels else theirs
            lines = {
                selector("", {**who, **({"direction": way} if way else {})}): value
                for way, value in by_direction.items()
            }
            asked.append(Asked(end, promql_of(WHOLE, spelling), lines))
    assert wrong_answers([Question("one card", series, asked)], tmp_path) == ""


def test_what_goes_wrong_on_a_card(tmp_path: Path) -> None:
    """Both families give the same line where both report it, each line once however often it is
    scraped, and never a line of another scope.
    """
    own, theirs = (
        {"node_name": "n1", "gpu": "0", "uuid": "GPU-a"},
        {"Hostname": "n1", "gpu": "0", "UUID": "GPU-a"},
    )
    end = 600
    series = {}
    for job in ("gpu", "of-annotations"):
        series |= {
            selector(
                "fairlead_gpu_throttle_seconds_total", {**own, "reason": "power", "job": job}
            ): "0+15x20",
            selector("fairlead_gpu_xid_errors_total", {**own, "xid": "79", "job": job}): "0 1x19",
            selector(
                "fairlead_gpu_ecc_errors_total",
                {**own, "severity": "corrected", "scope": "volatile", "job": job},
            ): "4x20",
            selector(
                "fairlead_gpu_ecc_errors_total",
                {**own, "severity": "corrected", "scope": "aggregate", "job": job},
            ): "900x20",
            selector(
                "fairlead_gpu_remapped_rows_total", {**own, "cause": "uncorrectable", "job": job}
            ): "2x20",
            selector("DCGM_FI_DEV_ECC_SBE_VOL_TOTAL", {**theirs, "job": job}): "4x20",
            selector("DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", {**theirs, "job": job}): "2x20",
        }
    shown = {
        "gpu-held-down": ("reason", "power", 50.0),
        "gpu-xid-errors": ("xid", "79", 1.0),
        "gpu-ecc-errors": ("severity", "corrected", 4.0),
        "gpu-remapped-rows": ("cause", "uncorrectable", 2.0),
    }
    asked = []
    for name, (label, word, value) in shown.items():
        for spelling in CHART_QUERIES[name].spellings:
            who = own if "node_name" in spelling.labels else theirs
            asked.append(
                Asked(end, promql_of(WHOLE, spelling), {selector("", {**who, label: word}): value})
            )
    assert wrong_answers([Question("one card", series, asked)], tmp_path) == ""


def test_containers_of_cards_and_never_the_exporter(tmp_path: Path) -> None:
    assert wrong_answers(questions(), tmp_path) == ""
