"""Cases of alerts: series under which each alert fires, and similar series under which it does not.

See docs/spec/telemetry.md#recording-rules-and-alerts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from tests.prometheus.promtool import STEP_SECONDS, selector

Series = Mapping[str, str]
MINUTE = 60
HOUR = 3600


class Case(NamedTuple):
    """The alert fires at `at` seconds and does not fire at `not_yet`. Its series end at `at`, and
    `lasts` seconds later it has ended.

    `value`: how the alert's text prints its value. `beside`: what else fires at `at`. `silent`: by
    a sentence, series under which it does not fire at `at`; `also`: others under which it does.
    """

    fires: Series
    at: int
    labels: Mapping[str, str]
    silent: Mapping[str, Series]
    not_yet: int | None = None
    value: str = ""
    beside: tuple[str, ...] = ()
    lasts: int = MINUTE
    also: Mapping[str, Series] = {}


TARGET = {"instance": "10.0.0.1:9400", "job": "gpu"}
CLUSTER = {"instance": "10.0.0.9:9401", "job": "cluster"}
RECORDER_TARGET = {"instance": "10.0.0.8:9406", "job": "usage"}
RECORDER = selector("fairlead_usage_recorder_heartbeat_timestamp_seconds", RECORDER_TARGET)
STANDBY = selector(
    "fairlead_usage_recorder_heartbeat_timestamp_seconds",
    {**RECORDER_TARGET, "instance": "10.0.0.9:9406"},
)
CARD = {**TARGET, "node_name": "gpu-1", "gpu": "3", "uuid": "GPU-a", "model": "A100"}
NODE = {**TARGET, "node_name": "gpu-1"}
NODE_OF_CLUSTER = {**CLUSTER, "node_name": "gpu-1"}
SHARE = {
    **CARD,
    "namespace_name": "vision",
    "pod_name": "p",
    "container_name": "c",
    "pod_uid": "u",
    "allocate_mode": "share",
}
LEAF = {
    **CLUSTER,
    "path": "root.vision",
    "quota": "root.vision",
    "parent": "root",
    "leaf": "true",
    "resource": "nvidia.com/gpu",
}
ROOT = {**LEAF, "path": "root", "quota": "root", "parent": "", "leaf": "false"}
JOB = {**CLUSTER, "job_namespace": "vision", "job_name": "bert", "job_type": "pytorchjob"}

CLUSTER_REPORTS = selector("fairlead_cluster_gpu_nodes", CLUSTER)


def gpu(name: str, **labels: str) -> str:
    return selector(f"fairlead_gpu_{name}", {**CARD, **labels})


def exporter(name: str, **labels: str) -> str:
    return selector(f"fairlead_exporter_{name}", {**NODE, **labels})


def last_read(**labels: str) -> str:
    return exporter(
        "collector_last_success_timestamp_seconds", **{"gpu": "3", "collector": "device", **labels}
    )


def node(name: str) -> str:
    return selector(f"fairlead_node_{name}", NODE_OF_CLUSTER)


def container(name: str, **labels: str) -> str:
    return selector(f"fairlead_container_gpu_{name}", {**SHARE, **labels})


def quota(name: str, **labels: str) -> str:
    return selector(f"fairlead_quota_{name}", {**LEAF, **labels})


def job(name: str, **labels: str) -> str:
    return selector(f"fairlead_job_{name}", {**JOB, **labels})


POD = {**CLUSTER, "namespace_name": "vision", "pod_name": "notebook"}


def _pod_waits(seconds: int, **info: str) -> Series:
    return {
        selector("fairlead_gpu_pod_queue_wait_seconds", POD): held(seconds, MINUTE),
        selector(
            "fairlead_gpu_pod_info", {**POD, "phase": "Pending", "gpu_mode": "exclusive", **info}
        ): held(1, MINUTE),
    }


def held(value: float, seconds: int) -> str:
    """The value from the start to that moment."""
    return f"{value:g}x{seconds // STEP_SECONDS}"


def rises(step: float, seconds: int) -> str:
    return f"0+{step:g}x{seconds // STEP_SECONDS}"


def from_then(value: float, since: int, until: int) -> str:
    """No samples, then the value from `since` to `until`."""
    return f"_x{since // STEP_SECONDS} {value:g}x{(until - since) // STEP_SECONDS}"


def jumps(value: float, at: int, until: int) -> str:
    """0, then the value from `at` to `until`."""
    return f"{held(0, at - STEP_SECONDS)} {value:g}x{(until - at) // STEP_SECONDS}"


def _xid(code: str, other: str) -> Case:
    """An XID of the first minute, the first of its kind: present at the first evaluation."""
    at = MINUTE
    return Case(
        {gpu("xid_last_timestamp_seconds", xid=code): from_then(60, at, at)},
        at,
        {**CARD, "xid": code},
        {
            "a fault of the program": {gpu("xid_last_timestamp_seconds", xid="31"): held(60, at)},
            "of the other class": {gpu("xid_last_timestamp_seconds", xid=other): held(60, at)},
            "ten minutes ago": {gpu("xid_last_timestamp_seconds", xid=code): held(60 - 600, at)},
            "a code that begins alike": {
                gpu("xid_last_timestamp_seconds", xid=f"{code}0"): held(60, at)
            },
        },
        not_yet=MINUTE - STEP_SECONDS,
    )


def _flag(
    name: str,
    hold: int,
    *,
    bad: float = 1,
    good: float = 0,
    silent: Mapping[str, Series] | None = None,
    also: Mapping[str, Series] | None = None,
    beside_it: Series | None = None,
    **labels: str,
) -> Case:
    """A gauge with a bad value from the start. `beside_it`: other series of the card, whether the
    gauge is bad or not.
    """
    at = hold + MINUTE if hold else MINUTE
    series = gpu(name, **labels)
    return Case(
        {series: held(bad, at), **(beside_it or {})},
        at,
        {**CARD, **labels},
        {"sound": {series: held(good, at), **(beside_it or {})}, **(silent or {})},
        not_yet=hold - STEP_SECONDS if hold else None,
        value=f"{bad:g}",
        also=also or {},
    )


def _of_a_lost_card(seconds: int) -> Series:
    """What the exporter reports of a lost card: a card with old values is never up, and its age
    grows.
    """
    return {
        exporter("sample_age_seconds", gpu="3"): rises(STEP_SECONDS, seconds),
        last_read(): held(0, seconds),
        gpu("up"): f"1 {held(0, seconds - STEP_SECONDS)}",
    }


def _used(
    of_limit: float, near: float, hold: int, value: str, beside: tuple[str, ...] = ()
) -> Case:
    at = hold + MINUTE
    limit = container("memory_limit_bytes")
    other = {"allocate_mode": "exclusive"}
    return Case(
        {container("memory_used_bytes"): held(of_limit * 1000, at), limit: held(1000, at)},
        at,
        SHARE,
        {
            "near it": {
                container("memory_used_bytes"): held(near * 1000, at),
                limit: held(1000, at),
            },
            "a card of its own": {
                container("memory_used_bytes", **other): held(of_limit * 1000, at),
                container("memory_limit_bytes", **other): held(1000, at),
            },
        },
        not_yet=hold - STEP_SECONDS,
        value=value,
        beside=beside,
    )


def _starved(used: float, smallest: float, waiting: float, seconds: int, **labels: str) -> Series:
    return {
        quota("used", **labels): held(used, seconds),
        quota("min", **labels): held(12, seconds),
        quota("pending_smallest", **labels): held(smallest, seconds),
        quota("waiting_for", **labels): held(waiting, seconds),
    }


def _exhausted(used: str, most: str, pending: float) -> Series:
    return {quota("used"): used, quota("max"): most, quota("pending"): held(pending, _FULL)}


def _key_of(labels: Mapping[str, str]) -> Mapping[str, str]:
    """The series without the labels of its target."""
    return {name: value for name, value in labels.items() if name not in TARGET}


def _restarted(
    metric: Callable[..., str], name: str, value: float, before: int, after: int
) -> Series:
    """One pod reports, then no pod for a minute, and another pod from then on."""
    return {
        metric(name): f"{held(value, before)} stale",
        metric(name, instance="10.0.0.2:9400"): from_then(
            value, before + MINUTE, before + MINUTE + after
        ),
    }


def _waiting(seconds: float, status: str) -> Series:
    return {
        job("queue_wait_seconds"): held(seconds, MINUTE),
        job("status", status=status): held(1, MINUTE),
    }


_FULL = 31 * MINUTE
_IDLE = 2 * HOUR + MINUTE
_LONG = HOUR + 5 * MINUTE
_STARVED = 16 * MINUTE
_FAILS = exporter("collector_success", gpu="3", collector="gpm")
_ECC = {"severity": "uncorrected", "scope": "volatile"}
_SBE = {"severity": "corrected", "scope": "volatile"}

CASES: Mapping[str, Case] = {
    "GpuXidCritical": _xid("79", "63"),
    "GpuXidWarning": _xid("94", "48"),
    "GpuEccUncorrected": Case(
        {gpu("ecc_errors_total", **_ECC): jumps(1, 10 * MINUTE, 11 * MINUTE)},
        11 * MINUTE,
        {**CARD, "scope": "volatile"},
        {
            "none new": {gpu("ecc_errors_total", **_ECC): held(7, 11 * MINUTE)},
            "corrected": {gpu("ecc_errors_total", **_SBE): jumps(1, 10 * MINUTE, 11 * MINUTE)},
            "of the card's whole life": {
                gpu("ecc_errors_total", severity="uncorrected", scope="aggregate"): rises(
                    1, 11 * MINUTE
                )
            },
        },
        not_yet=9 * MINUTE,
        lasts=11 * MINUTE,
    ),
    "GpuEccCorrectedHigh": Case(
        {gpu("ecc_errors_total", **_SBE): rises(2, _LONG)},
        _LONG,
        {**CARD, "scope": "volatile"},
        {
            "fewer": {gpu("ecc_errors_total", **_SBE): rises(0.8, _LONG)},
            "of another kind, or of the card's whole life": {
                gpu("ecc_errors_total", **_ECC): rises(2, _LONG),
                gpu("ecc_errors_total", severity="corrected", scope="aggregate"): rises(2, _LONG),
            },
        },
        value="240",
        lasts=HOUR + MINUTE,
    ),
    "GpuRowRemapFailed": _flag("row_remap_failed", 0),
    "GpuRowRemapPending": _flag("row_remap_pending", HOUR),
    "GpuPagesPending": _flag("retired_pages_pending", HOUR),
    "GpuThermalThrottle": _flag(
        "throttled",
        5 * MINUTE,
        reason="hw_thermal",
        silent={"power": {gpu("throttled", reason="sw_thermal"): held(1, 6 * MINUTE)}},
    ),
    "GpuPowerBrake": _flag(
        "throttled",
        5 * MINUTE,
        reason="hw_power_brake",
        silent={"heat": {gpu("throttled", reason="power_cap"): held(1, 6 * MINUTE)}},
    ),
    "GpuHot": _flag(
        "temperature_celsius",
        10 * MINUTE,
        bad=88,
        good=87,
        sensor="gpu",
        silent={
            "hot memory": {gpu("temperature_celsius", sensor="memory"): held(95, 11 * MINUTE)},
            "a card that slows down later": {
                gpu("temperature_celsius", sensor="gpu"): held(90, 11 * MINUTE),
                gpu("temperature_slowdown_celsius"): held(95, 11 * MINUTE),
            },
        },
        also={
            "a card that slows down earlier": {
                gpu("temperature_celsius", sensor="gpu"): held(79, 11 * MINUTE),
                gpu("temperature_slowdown_celsius"): held(83, 11 * MINUTE),
            },
            "beside one that reports its threshold": {
                gpu("temperature_celsius", sensor="gpu"): held(88, 11 * MINUTE),
                gpu("temperature_slowdown_celsius", uuid="GPU-b", gpu="4"): held(95, 11 * MINUTE),
            },
        },
    ),
    "GpuPcieNarrow": _flag(
        "pcie_link_width",
        15 * MINUTE,
        bad=8,
        good=16,
        beside_it={gpu("pcie_link_width_max"): held(16, 16 * MINUTE)},
        silent={
            "as wide as it can be": {
                gpu("pcie_link_width"): held(8, 16 * MINUTE),
                gpu("pcie_link_width_max"): held(8, 16 * MINUTE),
            },
            "a card that does not report it": {gpu("pcie_link_width"): held(8, 16 * MINUTE)},
        },
    ),
    "GpuPcieSlow": _flag(
        "pcie_link_generation",
        15 * MINUTE,
        bad=3,
        good=5,
        beside_it={
            gpu("pcie_link_generation_max"): held(5, 16 * MINUTE),
            gpu("utilization_ratio"): held(0.9, 16 * MINUTE),
        },
        silent={
            "a card that rests": {
                gpu("pcie_link_generation"): held(1, 16 * MINUTE),
                gpu("pcie_link_generation_max"): held(5, 16 * MINUTE),
                gpu("utilization_ratio"): held(0.01, 16 * MINUTE),
            },
            "a card between two jobs": {
                gpu("pcie_link_generation"): f"{held(5, 10 * MINUTE)} {held(1, 6 * MINUTE)}",
                gpu("pcie_link_generation_max"): held(5, 16 * MINUTE),
                gpu("utilization_ratio"): f"{held(0.9, 10 * MINUTE)} {held(0, 6 * MINUTE)}",
            },
        },
    ),
    "GpuNvlinkDown": Case(
        {
            gpu("nvlink_up", link="0"): held(1, 16 * MINUTE),
            gpu("nvlink_up", link="1"): f"{held(1, 10 * MINUTE)} {held(0, 6 * MINUTE)}",
        },
        16 * MINUTE,
        {name: CARD[name] for name in ("node_name", "gpu", "uuid", "model")},
        {
            "both are up": {gpu("nvlink_up", link=link): held(1, 16 * MINUTE) for link in "01"},
            "a card whose links are not used": {
                gpu("nvlink_up", link=link): held(0, 16 * MINUTE) for link in "01"
            },
            "of another model than its neighbour": {
                gpu("nvlink_up", link="0"): held(0, 16 * MINUTE),
                gpu("nvlink_up", link="0", uuid="GPU-b", gpu="4", model="H100"): held(
                    1, 16 * MINUTE
                ),
            },
            "a card divided by MIG": {
                gpu("nvlink_up", link="0"): f"{held(1, 10 * MINUTE)} {held(0, 6 * MINUTE)}",
                gpu("info", mig_mode="enabled"): held(1, 16 * MINUTE),
            },
        },
        not_yet=14 * MINUTE,
        value="1",
        also={
            "a link that never came up, as its neighbour's did": {
                gpu("nvlink_up", link="0"): held(0, 16 * MINUTE),
                gpu("nvlink_up", link="0", uuid="GPU-b", gpu="4"): held(1, 16 * MINUTE),
            },
        },
    ),
    "GpuEccOff": _flag(
        "ecc_mode",
        HOUR,
        bad=0,
        good=1,
        silent={
            "a card without ECC": {
                gpu("ecc_errors_total", severity="corrected", scope="volatile"): "0x10"
            }
        },
    ),
    "GpuNvlinkErrors": Case(
        {gpu("nvlink_errors_total", type="replay"): jumps(1, 10 * MINUTE, 11 * MINUTE)},
        11 * MINUTE,
        {**CARD, "type": "replay"},
        {"none new": {gpu("nvlink_errors_total", type="replay"): held(7, 11 * MINUTE)}},
        not_yet=9 * MINUTE,
        lasts=11 * MINUTE,
    ),
    "GpuPcieReplays": Case(
        {gpu("pcie_replays_total"): rises(1, _LONG)},
        _LONG,
        CARD,
        {"a few": {gpu("pcie_replays_total"): rises(0.08, _LONG)}},
        value="120",
        lasts=HOUR + MINUTE,
    ),
    "GpuDown": _flag(
        "up",
        2 * MINUTE,
        bad=0,
        good=1,
        silent={
            "without a driver": {
                gpu("up"): held(0, 3 * MINUTE),
                exporter("nvml_up"): held(0, 3 * MINUTE),
            }
        },
    ),
    "GpuUnhealthy": _flag(
        "healthy",
        2 * MINUTE,
        bad=0,
        good=1,
        silent={"lost": {gpu("healthy"): held(0, 3 * MINUTE), gpu("up"): held(0, 3 * MINUTE)}},
    ),
    "GpuRecoveryNeeded": _flag(
        "recovery_action",
        2 * MINUTE,
        bad=2,
        silent={
            "lost": {gpu("recovery_action"): held(2, 3 * MINUTE), gpu("up"): held(0, 3 * MINUTE)}
        },
    ),
    "GpuIdleAllocated": Case(
        {gpu("utilization_ratio"): held(0.002, _IDLE), gpu("allocated_ratio"): held(1, _IDLE)},
        _IDLE,
        _key_of(CARD),
        {
            "no pod holds it": {
                gpu("utilization_ratio"): held(0, _IDLE),
                gpu("allocated_ratio"): held(0, _IDLE),
            },
            "half of it is shared out": {
                gpu("utilization_ratio"): held(0, _IDLE),
                gpu("allocated_ratio"): held(0.5, _IDLE),
            },
            "a little work": {
                gpu("utilization_ratio"): held(0.02, _IDLE),
                gpu("allocated_ratio"): held(1, _IDLE),
            },
            "a little work, before its exporter's pod was replaced": {
                **_restarted(
                    gpu, "utilization_ratio", 0.02, 110 * MINUTE, 10 * MINUTE + STEP_SECONDS
                ),
                gpu("allocated_ratio"): held(1, _IDLE),
            },
            "the idle instance has no owner": {
                gpu("utilization_ratio", mig_gi_id="7"): held(0, _IDLE),
                gpu("utilization_ratio", mig_gi_id="8"): held(0.5, _IDLE),
                gpu("allocated_ratio", mig_gi_id="7"): held(0, _IDLE),
                gpu("allocated_ratio", mig_gi_id="8"): held(1, _IDLE),
            },
        },
        not_yet=2 * HOUR - STEP_SECONDS,
        lasts=6 * MINUTE,
        also={
            "its exporter's pod was replaced meanwhile": {
                **_restarted(gpu, "utilization_ratio", 0.002, HOUR, HOUR),
                **_restarted(gpu, "allocated_ratio", 1, HOUR, HOUR),
            },
            "scraped by two jobs": {
                gpu(name, job=job): held(value, _IDLE)
                for name, value in (("utilization_ratio", 0.002), ("allocated_ratio", 1))
                for job in ("gpu", "kubernetes-pods")
            },
        },
    ),
    "GpuForeignProcess": _flag(
        "memory_foreign_bytes", 10 * MINUTE, bad=512 << 20, good=256 << 20
    )._replace(value="512Mi"),
    "ContainerNearLimit": _used(0.97, 0.95, 10 * MINUTE, "97%"),
    "ContainerOverGrant": _used(1.2, 1.05, MINUTE, "120%"),
    "GuardUnknownAllocator": Case(
        {container("unknown_allocators_total"): held(2, MINUTE)},
        MINUTE,
        {
            name: SHARE[name]
            for name in ("node_name", "namespace_name", "pod_name", "container_name")
        },
        {
            "every allocator is known": {container("unknown_allocators_total"): held(0, MINUTE)},
            "without the guard": {container("memory_used_bytes"): held(1, MINUTE)},
        },
        value="2",
        also={
            "on two cards": {
                container("unknown_allocators_total", uuid=uuid): held(2, MINUTE)
                for uuid in ("GPU-a", "GPU-b")
            },
        },
    ),
    "ExporterMissing": Case(
        {
            node("gpus"): held(8, 6 * MINUTE),
            node("ready"): held(1, 6 * MINUTE),
            exporter("nvml_up"): "stale",
        },
        6 * MINUTE,
        NODE_OF_CLUSTER,
        {
            "it reports": {
                node("gpus"): held(8, 6 * MINUTE),
                exporter("nvml_up"): held(1, 6 * MINUTE),
            },
            "a node without GPUs": {node("gpus"): held(0, 6 * MINUTE)},
            "the whole node is not ready": {
                node("gpus"): held(8, 6 * MINUTE),
                node("ready"): held(0, 6 * MINUTE),
            },
        },
        not_yet=5 * MINUTE - STEP_SECONDS,
        value="8",
    ),
    "UsageNotRecorded": Case(
        {RECORDER: f"0+{STEP_SECONDS}x10 300x21", STANDBY: held(0, 16 * MINUTE)},
        16 * MINUTE,
        {},
        {
            "it records": {RECORDER: rises(STEP_SECONDS, 16 * MINUTE)},
            "the standby took over": {
                RECORDER: f"0+{STEP_SECONDS}x10 300x21",
                STANDBY: f"0x20 600+{STEP_SECONDS}x11",
            },
            "no recorder is installed": {},
        },
        not_yet=15 * MINUTE,
        value="11m 0s",
        lasts=6 * HOUR + MINUTE,
        also={"its series has ended": {RECORDER: f"0+{STEP_SECONDS}x10 _x21"}},
    ),
    "ClusterExporterMissing": Case(
        {CLUSTER_REPORTS: "4x2 stale _x12 4x8"},
        7 * MINUTE,
        {},
        {
            "it reports": {CLUSTER_REPORTS: held(4, 7 * MINUTE)},
            "no node has a GPU": {CLUSTER_REPORTS: held(0, 7 * MINUTE)},
            "another took over after a minute": {CLUSTER_REPORTS: "4x2 stale _x1 4x10"},
        },
        not_yet=6 * MINUTE,
        lasts=2 * MINUTE,
    ),
    "GpuNodeNotReady": Case(
        {node("ready"): held(0, 6 * MINUTE)},
        6 * MINUTE,
        NODE_OF_CLUSTER,
        {
            "ready": {node("ready"): held(1, 6 * MINUTE)},
            "for a moment": {node("ready"): "0x4 1 0x6"},
        },
        not_yet=5 * MINUTE - STEP_SECONDS,
    ),
    "ExporterCollectorFailing": Case(
        {
            _FAILS: held(0, 6 * MINUTE),
            gpu("up"): held(1, 6 * MINUTE),
            exporter("nvml_up"): held(1, 6 * MINUTE),
        },
        6 * MINUTE,
        {**NODE, "gpu": "3", "collector": "gpm"},
        {
            "sound": {_FAILS: held(1, 6 * MINUTE)},
            "of a lost card": {_FAILS: held(0, 6 * MINUTE), gpu("up"): held(0, 6 * MINUTE)},
            "without a driver": {
                _FAILS: held(0, 6 * MINUTE),
                exporter("nvml_up"): held(0, 6 * MINUTE),
            },
            "the kubelet never reported": {
                exporter("collector_success", collector="podmap", gpu=""): held(0, 6 * MINUTE)
            },
            "the kubelet fell silent": {
                exporter("collector_success", collector="podmap", gpu=""): held(0, 6 * MINUTE),
                exporter("pod_map_age_seconds"): rises(STEP_SECONDS, 6 * MINUTE),
            },
        },
        not_yet=5 * MINUTE - STEP_SECONDS,
        also={
            "the kubelet reports and the grants do not": {
                exporter("collector_success", collector="podmap", gpu=""): held(0, 6 * MINUTE),
                exporter("pod_map_age_seconds"): held(3, 6 * MINUTE),
            }
        },
    ),
    "ExporterRowsRejected": Case(
        {exporter("config_rows_rejected"): held(2, 6 * MINUTE)},
        6 * MINUTE,
        NODE,
        {
            "every row is understood": {exporter("config_rows_rejected"): held(0, 6 * MINUTE)},
            "a file that is mended at once": {
                exporter("config_rows_rejected"): f"{held(2, 4 * MINUTE)} {held(0, 2 * MINUTE)}"
            },
        },
        not_yet=5 * MINUTE - STEP_SECONDS,
        value="2",
    ),
    "ExporterReloadFailed": Case(
        {exporter("config_last_reload_success"): held(0, 6 * MINUTE)},
        6 * MINUTE,
        NODE,
        {
            "read": {exporter("config_last_reload_success"): held(1, 6 * MINUTE)},
            "mended at once": {
                exporter("config_last_reload_success"): (
                    f"{held(0, 4 * MINUTE)} {held(1, 2 * MINUTE)}"
                )
            },
        },
        not_yet=5 * MINUTE - STEP_SECONDS,
        value="0",
    ),
    "ExporterStale": Case(
        {
            last_read(): held(0, 7 * MINUTE),
            exporter("sample_age_seconds", gpu="3"): held(2, 7 * MINUTE),
            gpu("up"): held(1, 7 * MINUTE),
        },
        7 * MINUTE,
        {"node_name": "gpu-1", "gpu": "3"},
        {
            "read a moment ago": {
                last_read(): rises(STEP_SECONDS, 7 * MINUTE),
                exporter("sample_age_seconds", gpu="3"): held(5, 7 * MINUTE),
            },
            "read once a minute": {last_read(): "0x1 60x1 120x1 180x1 240x1 300x1 360x1 420"},
            "without a driver": {
                **_of_a_lost_card(7 * MINUTE),
                exporter("nvml_up"): held(0, 7 * MINUTE),
            },
            "of the whole node, whose driver went": {last_read(gpu=""): held(0, 7 * MINUTE)},
        },
        not_yet=6 * MINUTE,
        value="7m 0s",
        also={"of a lost card, which FairleadGpuDown reports": _of_a_lost_card(7 * MINUTE)},
    ),
    "PodMapStale": Case(
        {
            exporter("pod_map_age_seconds"): held(180, 6 * MINUTE),
            exporter("collector_success", collector="podmap", gpu=""): held(0, 6 * MINUTE),
        },
        6 * MINUTE,
        NODE,
        {
            "new": {exporter("pod_map_age_seconds"): held(120, 6 * MINUTE)},
            "it reported a moment ago": {
                exporter("pod_map_age_seconds"): held(20, 6 * MINUTE),
                exporter("collector_success", collector="podmap", gpu=""): held(0, 6 * MINUTE),
            },
            "another reading fails": {
                exporter("collector_success", collector="kmsg", gpu=""): held(0, 6 * MINUTE)
            },
        },
        not_yet=5 * MINUTE - STEP_SECONDS,
        also={
            "it never reported": {
                exporter("collector_success", collector="podmap", gpu=""): held(0, 6 * MINUTE)
            }
        },
    ),
    "QuotaExhausted": Case(
        _exhausted(held(8, _FULL), held(8, _FULL), 2),
        _FULL,
        LEAF,
        {
            "no pod waits": _exhausted(held(8, _FULL), held(8, _FULL), 0),
            "room": _exhausted(held(7, _FULL), held(8, _FULL), 2),
            "unlimited": _exhausted(held(8, _FULL), " ".join(["Inf"] * (_FULL // STEP_SECONDS)), 2),
            "it may have nothing, and no pod requests anything": _exhausted(
                held(0, _FULL), held(0, _FULL), 0
            ),
        },
        not_yet=30 * MINUTE - STEP_SECONDS,
        also={
            "it may have nothing": _exhausted(held(0, _FULL), held(0, _FULL), 2),
            "it has something of nothing": _exhausted(held(1, _FULL), held(0, _FULL), 2),
        },
    ),
    "QuotaGuaranteeStarved": Case(
        _starved(8, 4, 2, _STARVED),
        _STARVED,
        LEAF,
        {
            "the smallest is more than what is left of min": _starved(9, 4, 2, _STARVED),
            "the root": _starved(
                8, 4, 2, _STARVED, path="root", quota="root", parent="", leaf="false"
            ),
            "cores that are asked for too": {
                **_starved(8, 4, 0, _STARVED, resource="cpu"),
                quota("pending", resource="cpu"): held(48, _STARVED),
            },
        },
        not_yet=15 * MINUTE - STEP_SECONDS,
    ),
    "JobPendingLong": Case(
        _waiting(7200, "pending"),
        MINUTE,
        JOB,
        {
            "not long": _waiting(3600, "pending"),
            "it waited long and runs now": _waiting(7200, "running"),
        },
        value="2h 0m 0s",
    ),
    "GpuPodPendingLong": Case(
        _pod_waits(7200),
        MINUTE,
        POD,
        {
            "not long": _pod_waits(3600),
            "it waited long and has its node now": {
                selector(
                    "fairlead_gpu_pod_queue_wait_seconds", {**POD, "node_name": "gpu-1"}
                ): held(7200, MINUTE),
                selector(
                    "fairlead_gpu_pod_info", {**POD, "node_name": "gpu-1", "phase": "Running"}
                ): held(1, MINUTE),
            },
            "a pod of a job, which has an alert of its own": _pod_waits(7200, owner_kind="Job"),
        },
        value="2h 0m 0s",
        also={"a pod of a Deployment": _pod_waits(7200, owner_kind="ReplicaSet")},
    ),
    "JobFailed": Case(
        {job("status", status="failed"): from_then(1, 20 * MINUTE, 21 * MINUTE)},
        21 * MINUTE,
        _key_of(JOB),
        {
            "it ran": {job("status", status="running"): from_then(1, 20 * MINUTE, 21 * MINUTE)},
            "longer ago": {job("status", status="failed"): held(1, 21 * MINUTE)},
            "reported by another exporter since": {
                job("status", status="failed"): f"{held(1, 18 * MINUTE)} stale",
                job("status", status="failed", instance="10.0.0.10:9401"): from_then(
                    1, 19 * MINUTE, 21 * MINUTE
                ),
            },
            "ten minutes after a minute without a report": {
                job("status", status="failed"): f"{held(1, 10 * MINUTE)} stale",
                job("status", status="failed", instance="10.0.0.10:9401"): from_then(
                    1, 11 * MINUTE + STEP_SECONDS, 22 * MINUTE
                ),
            },
            "back after a quarter of an hour without a report": {
                job("status", status="failed"): "1x4 stale _x30 1x10"
            },
        },
        also={
            "one of its name failed before": {
                job("status", status="failed"): "1x20 stale _x18 1x4",
                job("status", status="running"): "_x22 1x17 stale",
            },
        },
        not_yet=20 * MINUTE - STEP_SECONDS,
        lasts=11 * MINUTE,
    ),
}

LOST = 3 * MINUTE
LOST_CARD: Series = {
    gpu("xid_last_timestamp_seconds", xid="79"): held(10, 15 * MINUTE),
    gpu("healthy"): held(0, 15 * MINUTE),
    gpu("health_check", check="lost"): held(2, 15 * MINUTE),
    gpu("recovery_action"): held(1, 15 * MINUTE),
    gpu("allocated_ratio"): held(1, 15 * MINUTE),
    **_of_a_lost_card(15 * MINUTE),
    exporter("collector_success", gpu="3", collector="device"): held(0, 15 * MINUTE),
    exporter("nvml_up"): held(1, 15 * MINUTE),
    node("gpus"): held(8, 15 * MINUTE),
    node("ready"): held(1, 15 * MINUTE),
}
"""A card that fell off the bus: everything that its exporter reports of it."""
LOST_NODE: Series = {
    gpu("up"): "1x4 stale",
    exporter("nvml_up"): "1x4 stale",
    exporter("sample_age_seconds", gpu="3"): "3x4 stale",
    node("gpus"): held(8, 15 * MINUTE),
    node("ready"): held(0, 15 * MINUTE),
}
"""A node whose kubelet stopped reporting, and its exporter with it."""
