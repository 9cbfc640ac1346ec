"""The charts, and the spelling of each in every source: one row per named query.

Clients send no PromQL. Spellings are tried in order until one has data: Fairlead's, DCGM's, the
older `nvidia_gpu_*`, the reference's `arena_*` (where -1 means unknown, hence `>= 0`). Shared cards
are counted once by leaving out the `share` series of `nvidia_gpu_*`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from fairlead.model.devices.exporter_pod import EXPORTER_CONTAINERS


class Spelling(Struct, frozen=True):
    """`expression` with `$m` for label matchers, `$w` for a time window; `labels`: source ->
    Fairlead.

    `$m` stands behind a comma, which PromQL allows to be the last.
    """

    expression: str
    labels: Mapping[str, str]

    def promql(self, matchers: str, window_seconds: int = 0) -> str:
        return self.expression.replace("$m", matchers).replace("$w", f"{window_seconds}s")


class ChartQuery(Struct, frozen=True):
    """One chart. `filters`: query parameter -> Fairlead's label that it matches.

    `words`: description of the built-in history's lines, shown as the chart's query; `is_kept`
    False: only a Prometheus has them.
    """

    name: str
    title: str
    unit: str
    words: str
    spellings: tuple[Spelling, ...]
    filters: Mapping[str, str] = {}
    is_kept: bool = True

    def is_measured(self, labels: Mapping[str, str]) -> bool:
        """Whether a line wobbles (utilization, used memory, heat, power), so that a mean represents
        a step.

        All other values are counts or grants: the mean of 4 and 5 jobs is not a number of jobs.
        """
        return (
            self.unit in _MEASURED_UNITS
            or self.name.endswith("memory-used")
            or labels.get("line") == "used"
        )


_MEASURED_UNITS: Final = ("percent", "celsius", "watts")
GPU_FILTERS: Final = {"gpu_node": "node", "GPU": "gpu"}
HOLDER: Final = "holder"
"""A pod as `namespace/name`: two labels together."""
_CONTAINER_FILTERS: Final = {**GPU_FILTERS, "namespace": "namespace", "pod": "pod", HOLDER: HOLDER}
_NODE_FILTERS: Final = {"gpu_node": "node"}
_JOB_FILTERS: Final = {"job_namespace": "namespace", "job_type": "type", "job_name": "job"}
_QUOTA_FILTERS: Final = {"path": "path", "resource": "resource"}

_OWN_GPU: Final = {"node_name": "node", "gpu": "gpu", "uuid": "uuid"}
_DCGM_GPU: Final = {"Hostname": "node", "gpu": "gpu", "UUID": "uuid"}
_DCGM_SEVERITY: Final = {**_DCGM_GPU, "severity": "severity"}
_DCGM_CAUSE: Final = {**_DCGM_GPU, "cause": "cause"}
_NVIDIA_GPU: Final = {"node_name": "node", "minor_number": "gpu", "uuid": "uuid"}
_OWN_CONTAINER: Final = {
    **_OWN_GPU,
    "namespace_name": "namespace",
    "pod_name": "pod",
    "container_name": "container",
}
_DCGM_CONTAINER: Final = {
    **_DCGM_GPU,
    "namespace": "namespace",
    "pod": "pod",
    "container": "container",
}
_EXPORTED_CONTAINER: Final = {
    **_DCGM_GPU,
    "exported_namespace": "namespace",
    "exported_pod": "pod",
    "exported_container": "container",
}
_NVIDIA_CONTAINER: Final = {
    **_NVIDIA_GPU,
    "namespace_name": "namespace",
    "pod_name": "pod",
    "container_name": "container",
}
_NODE: Final = {"node_name": "node"}
_NODE_LINE: Final = {**_NODE, "line": "line"}
_POD_FILTERS: Final = {"gpu_node": "node", "namespace": "namespace", "pod": "pod"}
_OWN_POD: Final = {**_NODE, "namespace_name": "namespace", "pod_name": "pod"}
_OWN_POD_GPU: Final = {**_OWN_GPU, "namespace_name": "namespace", "pod_name": "pod"}
_LINE: Final = {"line": "line"}
_JOB: Final = {"job_namespace": "namespace", "job_type": "type", "job_name": "job"}
_INSTANCE: Final = {**_JOB, "instance_name": "instance"}
_OWN_INSTANCE: Final = {**_INSTANCE, "node_name": "node"}
_QUOTA: Final = {"path": "path", "quota": "name", "resource": "resource"}
_MIB: Final = " / 1048576"
_WHOLE: Final = "sum without (mig_gi_id,mig_profile)"
_DCGM_WHOLE: Final = (
    "sum without "
    "(GPU_I_ID,GPU_I_PROFILE,container,namespace,pod,exported_container,exported_namespace,exported_pod)"
)
"""Of a divided card its instances together."""
_DEVICE: Final = '{allocate_mode!="share",$m}'
_EXPORTED_HELD: Final = '{exported_pod!="",$m}'
_HELD: Final = f'{{exported_pod="",pod!="",container!~"{"|".join(EXPORTER_CONTAINERS)}",$m}}'
_NVIDIA_HELD: Final = '{pod_name!="",$m}'


def _gpu(
    name: str, title: str, unit: str, words: str, own: str, dcgm: str, nvidia: str
) -> ChartQuery:
    spellings = (
        Spelling(f"avg by (node_name,gpu,uuid) ({own})", _OWN_GPU),
        Spelling(f"avg by (Hostname,gpu,UUID) ({dcgm})", _DCGM_GPU),
        Spelling(f"avg by (node_name,minor_number,uuid) ({nvidia})", _NVIDIA_GPU),
    )
    return ChartQuery(name, title, unit, words, spellings, GPU_FILTERS)


def _sensor(name: str, title: str, unit: str, *spellings: Spelling) -> ChartQuery:
    """A chart that only a Prometheus keeps: readings of cards do not have its values."""
    return ChartQuery(
        name,
        title,
        unit,
        f"{title}: only a Prometheus keeps it",
        spellings,
        GPU_FILTERS,
        is_kept=False,
    )


def _either(together: str, label: str, *named: tuple[str, str]) -> str:
    """Families of DCGM as lines of one chart, with a label for the part that only their names
    contain.

    `together`: the aggregation for a card with duplicate series.
    """
    lines = (
        (
            f"label_replace({together} by (Hostname,gpu,UUID) ({family}{{$m}}), "
            f'"{label}", "{word}", "", "")'
        )
        for word, family in named
    )
    return " or ".join(lines)


def _moved(own: str, dcgm: str) -> tuple[Spelling, ...]:
    """Bytes per second, a line per direction, in MiB. DCGM's are rates already."""
    theirs = _either(
        "avg", "direction", *((way, f"{dcgm}_{way.upper()}_BYTES") for way in ("tx", "rx"))
    )
    return (
        Spelling(
            f"max by (node_name,gpu,uuid,direction) (rate({own}{{$m}}[$w])){_MIB}",
            {**_OWN_GPU, "direction": "direction"},
        ),
        Spelling(f"({theirs}){_MIB}", {**_DCGM_GPU, "direction": "direction"}),
    )


def _container(
    name: str, title: str, unit: str, words: str, own: str, dcgm: str, nvidia: str
) -> ChartQuery:
    """A line per container and GPU. DCGM names the pod only for a card with a single container.

    `dcgm` has `$held` for the selector of such cards: their pod is in `exported_pod` if Prometheus
    does not honor labels, and `pod` is the exporter's own; otherwise it is in `pod`, which is the
    exporter's on all other cards.
    """
    spelled = (
        (own, _OWN_CONTAINER),
        (dcgm.replace("$held", _EXPORTED_HELD), _EXPORTED_CONTAINER),
        (dcgm.replace("$held", _HELD), _DCGM_CONTAINER),
        (nvidia, _NVIDIA_CONTAINER),
    )
    spellings = tuple(
        Spelling(f"avg by ({','.join(labels)}) ({expression})", labels)
        for expression, labels in spelled
    )
    return ChartQuery(name, title, unit, words, spellings, _CONTAINER_FILTERS)


def _lines(**expressions: str) -> str:
    """Several expressions without labels as lines of one chart."""
    return " or ".join(
        f'label_replace({expression}, "line", "{line}", "", "")'
        for line, expression in expressions.items()
    )


def _cluster(name: str, title: str, unit: str, words: str, *expressions: str) -> ChartQuery:
    return ChartQuery(
        name, title, unit, words, tuple(Spelling(expression, _LINE) for expression in expressions)
    )


def _node(name: str, title: str, unit: str, words: str, *expressions: str) -> ChartQuery:
    return ChartQuery(
        name,
        title,
        unit,
        words,
        tuple(Spelling(expression, _NODE) for expression in expressions),
        _NODE_FILTERS,
    )


def _of_card(metric: str) -> str:
    """Sum over a node's cards and instances, each counted once for any number of targets."""
    return f"sum by (node_name) (max by (node_name,uuid,mig_gi_id) ({metric}{{$m}})){_MIB}"


def _job(name: str, title: str, unit: str, words: str, own: str, arena: str) -> ChartQuery:
    spellings = (
        Spelling(own, _JOB),
        Spelling(f"max by (job_namespace,job_type,job_name) ({arena} >= 0)", _JOB),
    )
    return ChartQuery(name, title, unit, words, spellings, _JOB_FILTERS)


def _instance(name: str, title: str, unit: str, words: str, own: str, arena: str) -> ChartQuery:
    spellings = (
        Spelling(own, _OWN_INSTANCE),
        Spelling(f"max by (job_namespace,job_type,job_name,instance_name) ({arena})", _INSTANCE),
    )
    return ChartQuery(name, title, unit, words, spellings, _JOB_FILTERS)


def _quota(amount: str) -> ChartQuery:
    return ChartQuery(
        f"quota-{amount}",
        f"Quota {amount}",
        "base",
        f"{amount} of each quota node and resource: cores, bytes, or whole units",
        (Spelling(f"max by (path,quota,resource) (fairlead_quota_{amount}{{$m}} < Inf)", _QUOTA),),
        _QUOTA_FILTERS,
    )


def _jobs_in(states: str) -> str:
    return f'sum(fairlead_jobs{{status=~"{states}"}})'


def _arena_jobs_in(state: str) -> str:
    return f'(count(arena_duration_of_training_job{{job_status="{state}"}}) or vector(0))'


_RUNNING: Final = '{instance_status="Running",$m}'

CHART_QUERIES: Final = {
    query.name: query
    for query in (
        _cluster(
            "cluster-gpu-utilization",
            "GPU Utilization",
            "percent",
            "mean utilization over all GPUs that report",
            _lines(utilization="100 * max(fairlead_cluster_gpu_utilization_ratio)"),
            _lines(utilization="avg(DCGM_FI_DEV_GPU_UTIL)"),
            _lines(utilization='avg(nvidia_gpu_duty_cycle{allocate_mode!="share"})'),
            _lines(utilization="avg(arena_gpu_utilization_of_node >= 0)"),
        ),
        _cluster(
            "cluster-gpu-memory",
            "GPU Memory",
            "MiB",
            "GPU memory used, allocated and in all",
            _lines(
                used=f"max(fairlead_cluster_gpu_memory_used_bytes){_MIB}",
                allocated=f"max(fairlead_cluster_gpu_memory_allocated_bytes){_MIB}",
                total=f"max(fairlead_cluster_gpu_memory_bytes){_MIB}",
            ),
            _lines(
                used="sum(DCGM_FI_DEV_FB_USED)",
                total="sum(DCGM_FI_DEV_FB_USED + DCGM_FI_DEV_FB_FREE)",
            ),
            _lines(
                used=f"max(arena_used_gpu_memory_of_cluster){_MIB}",
                allocated=f"max(arena_allocated_gpu_memory_of_cluster){_MIB}",
                total=f"max(arena_total_gpu_memory_of_cluster){_MIB}",
            ),
        ),
        _cluster(
            "cluster-gpus-allocated",
            "GPUs",
            "GPUs",
            "GPUs allocated and in all",
            _lines(
                allocated="max(fairlead_cluster_gpus_allocated)", total="max(fairlead_cluster_gpus)"
            ),
            _lines(
                allocated="max(arena_allocated_gpus_of_cluster)",
                total="max(arena_total_gpus_of_cluster)",
            ),
        ),
        _cluster(
            "cluster-jobs",
            "Training jobs",
            "jobs",
            "jobs by state",
            _lines(
                running=_jobs_in("running"),
                pending=_jobs_in("pending|queuing|suspended"),
                succeeded=_jobs_in("succeeded"),
                failed=_jobs_in("failed"),
            ),
            _lines(
                running=_arena_jobs_in("RUNNING"),
                pending=_arena_jobs_in("PENDING"),
                succeeded=_arena_jobs_in("SUCCEEDED"),
                failed=_arena_jobs_in("FAILED"),
            ),
        ),
        _node(
            "node-gpus-allocated",
            "Allocated GPUs Per Node",
            "GPUs",
            "allocated GPUs of each node",
            "max by (node_name) (fairlead_node_gpus_allocated{$m})",
            "max by (node_name) (arena_used_gpus_of_node{$m} >= 0)",
        ),
        _node(
            "node-gpus-total",
            "GPU Number Per Node",
            "GPUs",
            "GPUs of each node",
            "max by (node_name) (fairlead_node_gpus{$m})",
            "max by (node_name) (nvidia_gpu_num_devices{$m})",
        ),
        _node(
            "node-gpu-memory-total",
            "Total GPU Memory Per Node",
            "MiB",
            "GPU memory of each node",
            "max by (node_name) (fairlead_node_gpu_memory_bytes{$m})" + _MIB,
            f"sum by (node_name) (nvidia_gpu_memory_total_bytes{_DEVICE}){_MIB}",
        ),
        ChartQuery(
            "node-gpu-memory",
            "GPU Memory Of The Node",
            "MiB",
            (
                "GPU memory of each node: used, allocated, in all, and used by no container with "
                "a grant (rest)"
            ),
            (
                Spelling(
                    _lines(
                        used=_of_card("fairlead_gpu_memory_used_bytes"),
                        allocated=(
                            "max by (node_name) "
                            f"(fairlead_node_gpu_memory_allocated_bytes{{$m}}){_MIB}"
                        ),
                        total=_of_card("fairlead_gpu_memory_total_bytes"),
                        rest=(
                            f"({_of_card('fairlead_gpu_memory_unattributed_bytes')} + "
                            f"{_of_card('fairlead_gpu_memory_foreign_bytes')})"
                        ),
                    ),
                    _NODE_LINE,
                ),
            ),
            _NODE_FILTERS,
        ),
        _gpu(
            "gpu-duty-cycle",
            "GPU Duty Cycle",
            "percent",
            "utilization of each GPU",
            "100 * fairlead_gpu_utilization_ratio{$m}",
            "DCGM_FI_DEV_GPU_UTIL{$m}",
            f"nvidia_gpu_duty_cycle{_DEVICE}",
        ),
        _gpu(
            "gpu-memory-used",
            "GPU Memory Usage",
            "MiB",
            "memory used on each GPU",
            f"{_WHOLE} (fairlead_gpu_memory_used_bytes{{$m}}){_MIB}",
            f"{_DCGM_WHOLE} (DCGM_FI_DEV_FB_USED{{$m}})",
            f"nvidia_gpu_memory_used_bytes{_DEVICE}{_MIB}",
        ),
        _gpu(
            "gpu-memory-used-percent",
            "GPU Memory Usage Percentage",
            "percent",
            "memory used on each GPU, of its total",
            (
                f"100 * {_WHOLE} (fairlead_gpu_memory_used_bytes{{$m}}) / {_WHOLE} "
                f"(fairlead_gpu_memory_total_bytes{{$m}})"
            ),
            (
                f"100 * {_DCGM_WHOLE} (DCGM_FI_DEV_FB_USED{{$m}}) / {_DCGM_WHOLE} "
                f"(DCGM_FI_DEV_FB_USED{{$m}} + DCGM_FI_DEV_FB_FREE{{$m}})"
            ),
            f"100 * nvidia_gpu_memory_used_bytes{_DEVICE} / nvidia_gpu_memory_total_bytes{_DEVICE}",
        ),
        _gpu(
            "gpu-temperature",
            "GPU Temperature",
            "celsius",
            "temperature of each GPU",
            'fairlead_gpu_temperature_celsius{sensor="gpu",$m}',
            "DCGM_FI_DEV_GPU_TEMP{$m}",
            f"nvidia_gpu_temperature_celsius{_DEVICE}",
        ),
        _gpu(
            "gpu-power",
            "GPU Power",
            "watts",
            "power draw of each GPU",
            "fairlead_gpu_power_watts{$m}",
            "DCGM_FI_DEV_POWER_USAGE{$m}",
            f"nvidia_gpu_power_usage_milliwatts{_DEVICE} / 1000",
        ),
        _sensor(
            "gpu-sm-clock",
            "GPU SM Clocks",
            "MHz",
            Spelling(
                'avg by (node_name,gpu,uuid) (fairlead_gpu_clock_hertz{clock="sm",$m}) / 1000000',
                _OWN_GPU,
            ),
            Spelling("avg by (Hostname,gpu,UUID) (DCGM_FI_DEV_SM_CLOCK{$m})", _DCGM_GPU),
        ),
        _sensor(
            "gpu-tensor-active",
            "Tensor Core Utilization",
            "percent",
            Spelling(
                "100 * avg by (Hostname,gpu,UUID) (DCGM_FI_PROF_PIPE_TENSOR_ACTIVE{$m})",
                _DCGM_GPU,
            ),
        ),
        _sensor(
            "gpu-pcie",
            "PCIe Traffic",
            "MiB/s",
            *_moved("fairlead_gpu_pcie_bytes_total", "DCGM_FI_PROF_PCIE"),
        ),
        _sensor(
            "gpu-nvlink",
            "NVLink Traffic",
            "MiB/s",
            *_moved("fairlead_gpu_nvlink_bytes_total", "DCGM_FI_PROF_NVLINK"),
        ),
        _sensor(
            "gpu-held-down",
            "Time With Throttled Clocks",
            "percent",
            Spelling(
                (
                    "100 * max by (node_name,gpu,uuid,reason) "
                    "(rate(fairlead_gpu_throttle_seconds_total{$m}[$w]))"
                ),
                {**_OWN_GPU, "reason": "reason"},
            ),
        ),
        _sensor(
            "gpu-xid-errors",
            "XID Errors",
            "count",
            Spelling(
                "max by (node_name,gpu,uuid,xid) (fairlead_gpu_xid_errors_total{$m})",
                {**_OWN_GPU, "xid": "xid"},
            ),
        ),
        _sensor(
            "gpu-ecc-errors",
            "ECC Errors Since The Driver Began",
            "count",
            Spelling(
                (
                    "max by (node_name,gpu,uuid,severity) "
                    '(fairlead_gpu_ecc_errors_total{scope="volatile",$m})'
                ),
                {**_OWN_GPU, "severity": "severity"},
            ),
            Spelling(
                _either(
                    "max",
                    "severity",
                    ("corrected", "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL"),
                    ("uncorrected", "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL"),
                ),
                _DCGM_SEVERITY,
            ),
        ),
        _sensor(
            "gpu-remapped-rows",
            "Remapped Memory Rows",
            "count",
            Spelling(
                "max by (node_name,gpu,uuid,cause) (fairlead_gpu_remapped_rows_total{$m})",
                {**_OWN_GPU, "cause": "cause"},
            ),
            Spelling(
                _either(
                    "max",
                    "cause",
                    ("correctable", "DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS"),
                    ("uncorrectable", "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS"),
                ),
                _DCGM_CAUSE,
            ),
        ),
        _container(
            "container-gpu-memory-used",
            "GPU Memory Of Containers",
            "MiB",
            "memory each container uses on each GPU",
            "fairlead_container_gpu_memory_used_bytes{$m}" + _MIB,
            "DCGM_FI_DEV_FB_USED$held",
            f"nvidia_gpu_memory_used_bytes{_NVIDIA_HELD}{_MIB}",
        ),
        ChartQuery(
            "container-gpu-memory-limit",
            "GPU Memory That Containers May Use",
            "MiB",
            (
                "memory each container may use on each GPU; "
                "of one that has the card for itself all of it"
            ),
            (
                Spelling(
                    f"max by ({','.join(_OWN_CONTAINER)}) (sum without (mig_gi_id,mig_profile) "
                    f"(fairlead_container_gpu_memory_limit_bytes{{$m}})){_MIB}",
                    _OWN_CONTAINER,
                ),
            ),
            _CONTAINER_FILTERS,
        ),
        ChartQuery(
            "pod-gpu-power",
            "Power Of The Pods' GPUs",
            "watts",
            "power draw of each GPU that a pod holds a part of, including other pods' use",
            (
                Spelling(
                    f"0 * max by ({','.join(_OWN_POD_GPU)}) "
                    f"(fairlead_container_gpu_memory_limit_bytes{{$m}}) "
                    "+ on (node_name,uuid) group_left () max by (node_name,uuid) "
                    "(fairlead_gpu_power_watts)",
                    _OWN_POD_GPU,
                ),
            ),
            _CONTAINER_FILTERS,
        ),
        ChartQuery(
            "pod-restarts",
            "Restarts Of Pods That Hold GPUs",
            "count",
            "restarts of the containers of each pod that asks for a GPU",
            (
                Spelling(
                    (
                        "max by (node_name,namespace_name,pod_name) "
                        "(fairlead_gpu_pod_restarts_total{$m})"
                    ),
                    _OWN_POD,
                ),
            ),
            _POD_FILTERS,
        ),
        _container(
            "container-gpu-memory-percent",
            "GPU Memory Of Containers, Of Their Limit",
            "percent",
            "memory each container uses on each GPU, of what it may use there",
            (
                "100 * fairlead_container_gpu_memory_used_bytes{$m} / "
                "fairlead_container_gpu_memory_limit_bytes{$m}"
            ),
            (
                "100 * DCGM_FI_DEV_FB_USED$held / (DCGM_FI_DEV_FB_USED$held + "
                "DCGM_FI_DEV_FB_FREE$held)"
            ),
            (
                f"100 * nvidia_gpu_memory_used_bytes{_NVIDIA_HELD} / "
                f"nvidia_gpu_memory_total_bytes{_NVIDIA_HELD}"
            ),
        ),
        _container(
            "container-gpu-utilization",
            "GPU Utilization Of Containers",
            "percent",
            "part of each GPU's compute each container uses",
            "100 * fairlead_container_gpu_utilization_ratio{$m}",
            "DCGM_FI_DEV_GPU_UTIL$held",
            f"nvidia_gpu_duty_cycle{_NVIDIA_HELD}",
        ),
        _job(
            "job-gpu-utilization",
            "Job GPU Utilization",
            "percent",
            "mean utilization of the GPUs each job holds",
            (
                "100 * max by (job_namespace,job_type,job_name) "
                "(fairlead_job_gpu_utilization_ratio{$m})"
            ),
            "arena_gpu_utilization_of_training_job{$m}",
        ),
        _job(
            "job-gpu-memory-used",
            "Job Used GPU Memory",
            "MiB",
            "GPU memory each job uses",
            "max by (job_namespace,job_type,job_name) (fairlead_job_gpu_memory_used_bytes{$m})"
            + _MIB,
            "arena_used_gpu_memory_of_training_job{$m}" + _MIB,
        ),
        _job(
            "job-gpu-memory-allocated",
            "Job Allocated GPU Memory",
            "MiB",
            "GPU memory each job holds",
            (
                "max by (job_namespace,job_type,job_name) "
                "(fairlead_job_gpu_memory_allocated_bytes{$m})"
            )
            + _MIB,
            "arena_allocated_gpu_memory_of_training_job{$m}" + _MIB,
        ),
        _instance(
            "instance-gpu-memory-used",
            "Job Instance Used GPU Memory",
            "MiB",
            "GPU memory each running instance uses",
            "fairlead_job_instance_gpu_memory_used_bytes{$m}" + _MIB,
            f"arena_used_gpu_memory_of_training_job_instance{_RUNNING}{_MIB} >= 0",
        ),
        _instance(
            "instance-gpu-memory-percent",
            "Job Instance Used GPU Memory Percentage",
            "percent",
            "GPU memory each running instance uses, of what it holds",
            (
                "100 * fairlead_job_instance_gpu_memory_used_bytes{$m} / "
                "fairlead_job_instance_gpu_memory_allocated_bytes{$m}"
            ),
            f"100 * arena_used_gpu_memory_of_training_job_instance{_RUNNING} "
            f"/ arena_allocated_gpu_memory_of_training_job_instance{_RUNNING}",
        ),
        _instance(
            "instance-gpu-duty-cycle",
            "Job Instance GPU Duty Cycle",
            "percent",
            "utilization of the GPUs of each running instance",
            "100 * fairlead_job_instance_gpu_utilization_ratio{$m}",
            f"arena_gpu_utilization_of_training_job_instance{_RUNNING} >= 0",
        ),
        _quota("used"),
        _quota("min"),
        _quota("max"),
    )
}
HEATMAP: Final = "gpu-heatmap"
CHART_NAMES: Final = (*CHART_QUERIES, HEATMAP)
