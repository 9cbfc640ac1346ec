"""The GPU exporter's metrics of itself: version, result of the last sample, duration of pages.

docs/spec/telemetry.md#metrics-of-the-exporter-itself. These families are rendered with the page,
once per sample, so that two scrapes of one sample return the same bytes; values of scrapes are
those of earlier scrapes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from fairlead.model.devices.device import CollectorRun, DeviceSnapshot
from fairlead.model.metric import Family, Key, MetricName


class PodMapState(Struct, frozen=True, gc=False):
    """The state of the record of which containers have the cards.

    `age_seconds`: its age, None = the kubelet has not reported yet.

    `errors`: how often the holders could not be found out, by reason; `faults`: reasons that apply
    now. `is_wanted`: whether names of pods are requested.
    """

    age_seconds: float | None = None
    containers: int = 0
    errors: tuple[tuple[str, int], ...] = ()
    faults: frozenset[str] = frozenset()
    is_wanted: bool = True


class ExporterState(Struct, frozen=True, gc=False):
    """Measurements of an exporter process, in seconds and bytes; None = not yet measured."""

    node: str
    version: str
    backend: str = ""
    scrapes: int = 0
    scrape_seconds: float | None = None
    page_bytes: int | None = None
    reload_succeeded: bool = True
    rows_rejected: int = 0
    refused: tuple[tuple[str, str, str, int], ...] = ()
    """(node, gpu, reason, count) of values that no card can have, since the start."""
    pods: PodMapState | None = None
    """None: the holders of the cards are not requested."""
    labels_left_out: tuple[tuple[str, int], ...] = ()
    """Labels of pods on this node that are not printed, by reason; empty if none are requested."""
    faults: tuple[tuple[str, int], ...] = ()
    """Pages that could not be made, by the exception's name."""


def _metric(name: str, type: str, help: str, *labels: str) -> MetricName:
    return MetricName(f"fairlead_exporter_{name}", type, ("node_name", *labels), help)


BUILD_INFO: Final = _metric(
    "build_info",
    "gauge",
    "1; the version that runs, and where its devices come from.",
    "version",
    "backend",
)
NVML_UP: Final = _metric("nvml_up", "gauge", "1 when the driver answers on this node.")
COLLECTOR_SUCCESS: Final = _metric(
    "collector_success", "gauge", "1 when the collector's last run succeeded.", "collector", "gpu"
)
COLLECTOR_SECONDS: Final = _metric(
    "collector_duration_seconds",
    "gauge",
    "How long the collector's last run took.",
    "collector",
    "gpu",
)
COLLECTOR_LAST: Final = _metric(
    "collector_last_success_timestamp_seconds",
    "gauge",
    "When the collector last succeeded.",
    "collector",
    "gpu",
)
COLLECTOR_ERRORS: Final = _metric(
    "collector_errors_total",
    "counter",
    (
        "Failed runs by collector and error; of `values`: values left out because no card can "
        "have them, by why."
    ),
    "collector",
    "gpu",
    "error",
)
CYCLE: Final = _metric(
    "cycle_duration_seconds", "gauge", "How long the last sample of all devices took."
)
SAMPLE_AGE: Final = _metric(
    "sample_age_seconds",
    "gauge",
    "Age of the device's last values when the page was made.",
    "gpu",
)
STUCK: Final = _metric(
    "stuck_calls",
    "gauge",
    "Calls of the driver that have not come back in time, one per GPU at most.",
)
RELOAD: Final = _metric(
    "config_last_reload_success", "gauge", "1 when the counters file was last read without error."
)
REJECTED: Final = _metric(
    "config_rows_rejected", "gauge", "Rows of the counters file that were not understood."
)
SCRAPES: Final = _metric("scrapes_total", "counter", "Answered scrapes.")
SCRAPE_SECONDS: Final = _metric(
    "scrape_duration_seconds", "gauge", "How long the last scrape before this page took."
)
PAGE_BYTES: Final = _metric(
    "page_bytes", "gauge", "Size of the page before this one, uncompressed."
)
POD_MAP_AGE: Final = _metric(
    "pod_map_age_seconds",
    "gauge",
    "Seconds since the kubelet last reported which pods have the cards.",
)
POD_MAP_CONTAINERS: Final = _metric(
    "pod_map_containers", "gauge", "Containers with devices in the kubelet's last report."
)
POD_MAP_ERRORS: Final = _metric(
    "pod_map_errors_total",
    "counter",
    "Failures to find out which pods have the cards, by reason. kubelet: the kubelet did not "
    "answer; grants: the file of grants cannot be read; placement: the card of a container with "
    "shared memory is unknown; no_host_pid: processes are not visible.",
    "reason",
)
LABELS_LEFT_OUT: Final = _metric(
    "pod_labels_left_out",
    "gauge",
    "Labels of pods on this node that are not printed: owned by the exporter, Prometheus or a "
    "scrape target; collision with another label of the pod.",
    "reason",
)
POD_MAP: Final = "podmap"
VALUES: Final = "values"
"""Not a collector: the check that leaves out values that no card can have."""
PAGE: Final = "page"
NAMES: Final = (
    POD_MAP_AGE,
    POD_MAP_CONTAINERS,
    POD_MAP_ERRORS,
    LABELS_LEFT_OUT,
    BUILD_INFO,
    NVML_UP,
    COLLECTOR_SUCCESS,
    COLLECTOR_SECONDS,
    COLLECTOR_LAST,
    COLLECTOR_ERRORS,
    CYCLE,
    SAMPLE_AGE,
    STUCK,
    RELOAD,
    REJECTED,
    SCRAPES,
    SCRAPE_SECONDS,
    PAGE_BYTES,
)


def exporter_families(state: ExporterState, snapshot: DeviceSnapshot, now: float) -> list[Family]:
    """The exporter's own families. `now`: epoch seconds of the snapshot's `at`.

    An exporter of several nodes (the simulated world) prints `nvml_up` for each. A device that does
    not answer keeps its collectors and its age, so that alerts on them can fire.
    """
    nodes = list(dict.fromkeys(sample.node for sample in snapshot.devices)) or [state.node]
    runs = [(state.node, run) for run in (*snapshot.collectors, *_pod_map_runs(state, snapshot.at))]
    runs += [(sample.node, run) for sample in snapshot.devices for run in sample.collectors]
    keys: list[Key] = [(node, run.collector, run.gpu) for node, run in runs]
    own: Sequence[Key] = [(state.node,)]
    return [
        Family(BUILD_INFO, [(state.node, state.version, state.backend)], [1]),
        Family(NVML_UP, [(node,) for node in nodes], [int(snapshot.is_driver_up)] * len(nodes)),
        Family(
            COLLECTOR_SUCCESS,
            keys,
            [None if run.is_good is None else int(run.is_good) for _, run in runs],
        ),
        Family(COLLECTOR_SECONDS, keys, [run.seconds for _, run in runs]),
        Family(COLLECTOR_LAST, keys, [_epoch(run, snapshot.at, now) for _, run in runs]),
        _errors(runs, state),
        Family(CYCLE, own, [snapshot.cycle_seconds]),
        _ages(snapshot),
        Family(STUCK, own, [snapshot.stuck_calls]),
        Family(RELOAD, own, [int(state.reload_succeeded)]),
        Family(REJECTED, own, [state.rows_rejected]),
        Family(SCRAPES, own, [state.scrapes]),
        Family(SCRAPE_SECONDS, own, [state.scrape_seconds]),
        Family(PAGE_BYTES, own, [state.page_bytes]),
        *_pod_map(state),
        *_labels(state),
    ]


def _ages(snapshot: DeviceSnapshot) -> Family:
    keys: list[Key] = [(sample.node, str(sample.index)) for sample in snapshot.devices]
    return Family(
        SAMPLE_AGE, keys, [max(0.0, snapshot.at - sample.sampled_at) for sample in snapshot.devices]
    )


def _epoch(run: CollectorRun, at: float, now: float) -> float | None:
    return None if run.succeeded_at is None else now - (at - run.succeeded_at)


def _errors(runs: Sequence[tuple[str, CollectorRun]], state: ExporterState) -> Family:
    found: dict[Key, int] = {
        (node, run.collector, run.gpu, kind): count
        for node, run in runs
        for kind, count in run.errors.items()
    }
    found |= {(node, VALUES, gpu, why): count for node, gpu, why, count in state.refused}
    found |= {(state.node, PAGE, "", kind): count for kind, count in state.faults}
    return Family(COLLECTOR_ERRORS, list(found), list(found.values()))


def _pod_map_runs(state: ExporterState, at: float) -> list[CollectorRun]:
    """The pod map as a collector of the node: from the start if names of pods are requested.

    Otherwise from the first report of the kubelet on: an exporter that only counts cards need not
    reach a kubelet.
    """
    pods = state.pods
    if pods is None or not (pods.is_wanted or pods.age_seconds is not None):
        return []
    succeeded_at = None if pods.age_seconds is None else at - pods.age_seconds
    errors = {reason: count for reason, count in pods.errors if count}
    return [CollectorRun(POD_MAP, "", not pods.faults, None, succeeded_at, errors)]


def _labels(state: ExporterState) -> list[Family]:
    left_out = state.labels_left_out
    return (
        [
            Family(
                LABELS_LEFT_OUT,
                [(state.node, reason) for reason, _ in left_out],
                [count for _, count in left_out],
            )
        ]
        if left_out
        else []
    )


def _pod_map(state: ExporterState) -> list[Family]:
    pods = state.pods
    if pods is None:
        return []
    own: Sequence[Key] = [(state.node,)]
    return [
        Family(POD_MAP_AGE, own, [pods.age_seconds]),
        Family(POD_MAP_CONTAINERS, own, [pods.containers]),
        Family(
            POD_MAP_ERRORS,
            [(state.node, reason) for reason, _ in pods.errors],
            [count for _, count in pods.errors],
        ),
    ]
