"""A job as JSON and YAML (docs/spec/arena-cli.md#documents): durations in seconds as text, memory
in bytes, moments in whole epoch seconds.
"""

from __future__ import annotations

from typing import Any

from fairlead.cli.frame.documents import number
from fairlead.cli.frame.text import NOTHING
from fairlead.cli.jobs.job_cells import node_ip
from fairlead.rules.jobs.status import requested_memory_units
from fairlead.rules.reports.job import GpuUse, InstanceReport, JobReport

_MIB = 1 << 20


def job_document(report: JobReport, tensorboard: str = "") -> dict[str, Any]:
    job = report.job
    return {
        "uuid": job.uid,
        "name": job.name,
        "namespace": job.namespace,
        "duration": f"{int(report.duration)}s",
        "status": report.status,
        "trainer": job.type,
        "tensorboard": tensorboard,
        "chiefName": report.chief.name if report.chief is not None else "",
        "instances": [_instance(instance) for instance in report.instances],
        "priority": report.priority or NOTHING,
        "requestGPUs": report.gpus_requested,
        "allocatedGPUs": report.gpus_allocated,
        "requestGPUMemory": requested_memory_units(job),
        "node": node_ip(report),
        "creationTimestamp": int(job.created_at or 0),
        "modelName": job.labels.get("modelName", ""),
        "modelVersion": job.labels.get("modelVersion", ""),
        "modelSource": job.annotations.get("modelSource", ""),
    }


def _instance(instance: InstanceReport) -> dict[str, Any]:
    pod = instance.pod
    return {
        "ip": pod.pod_ip,
        "status": instance.status,
        "name": pod.name,
        "age": f"{int(instance.age)}s",
        "node": pod.node,
        "nodeIP": pod.host_ip,
        "chief": instance.is_chief,
        "requestGPUs": instance.gpus,
        "gpuMetrics": {str(use.index): _use(use) for use in instance.uses},
        "creationTimestamp": int(pod.created_at or 0),
    }


def _use(use: GpuUse) -> dict[str, float]:
    """Unknown values have no key."""
    known = {
        "gpuDutyCycle": use.duty_percent,
        "usedGPUMemory": None if use.used_mib is None else use.used_mib * _MIB,
        "totalGPUMemory": None if use.total_mib is None else use.total_mib * _MIB,
    }
    return {key: number(value) for key, value in known.items() if value is not None}
