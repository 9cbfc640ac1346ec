"""`arena top node -o json|yaml`: one object with four arrays (docs/spec/arena-cli.md#documents).

Memory in bytes, arrays never null, keys never renamed; a share pod's request and grants are in the
node's own units.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fairlead.cli.frame.documents import number
from fairlead.cli.nodes.node_details import TYPE_OF_MODE, description
from fairlead.cli.nodes.node_devices import device_uses
from fairlead.cli.nodes.node_table import ip_text
from fairlead.model.devices.gpu import GpuReading
from fairlead.rules.nodes.status import EXCLUSIVE, SHARE, TOPOLOGY, role_text
from fairlead.rules.pods.status import pod_status
from fairlead.rules.reports.node import (
    NORMAL,
    DeviceReport,
    HolderReport,
    NodeReport,
    node_condition,
)
from fairlead.wire.names import ANNOTATION_TOPOLOGY_VISIBLE

_ARRAY_OF_MODE = {
    EXCLUSIVE: "gpuExclusiveNodes",
    SHARE: "gpuShareNodes",
    TOPOLOGY: "gpuTopologyNodes",
    NORMAL: "normalNodes",
}


def node_document(reports: Sequence[NodeReport]) -> dict[str, Any]:
    document: dict[str, Any] = {name: [] for name in _ARRAY_OF_MODE.values()}
    for report in reports:
        document[_ARRAY_OF_MODE[report.mode]].append(_node(report))
    return document


def _node(report: NodeReport) -> dict[str, Any]:
    common = {
        "name": report.node.name,
        "description": f"\n{description(report)}",
        "ip": ip_text(report),
        "status": node_condition(report.node),
        "role": role_text(report.node),
        "type": TYPE_OF_MODE[report.mode],
    }
    if report.mode == NORMAL:
        return common
    return {
        **common,
        "totalGPUs": report.gpus,
        "allocatedGPUs": number(report.gpus_allocated_shown),
        "unhealthyGPUs": report.gpus_unhealthy,
        "instances": [_instance(report, holder) for holder in report.holders],
        "gpuMetrics": _metrics(report),
        **_own_keys(report),
    }


def _instance(report: NodeReport, holder: HolderReport) -> dict[str, Any]:
    common: dict[str, Any] = {
        "name": holder.pod.name,
        "namespace": holder.pod.namespace,
        "status": pod_status(holder.pod),
    }
    if report.mode == SHARE:
        return {
            **common,
            "requestGPUMemory": holder.requested,
            "requestGPUCore": holder.core_percent,
            "gpuMemoryAllocation": _by_text(holder.units_by_gpu),
            "gpuCoreAllocation": _by_text(holder.core_by_gpu),
        }
    common["requestGPUs"] = holder.requested
    if report.mode == TOPOLOGY:
        common |= {
            "allocation": [str(index) for index in holder.whole],
            "visibleGPUs": _visible(holder),
        }
    return common


def _visible(holder: HolderReport) -> list[str]:
    text = holder.pod.annotations.get(ANNOTATION_TOPOLOGY_VISIBLE, "")
    return [part.strip() for part in text.split(",") if part.strip()]


def _metrics(report: NodeReport) -> list[dict[str, Any]]:
    """Unknown values have no key: a GPU without a reading is not idle. The table shows `N/A`.

    Names only of pods that hold GPUs here: a scraped label may name the exporter's own pod, or one
    that has ended.
    """
    holding = {(holder.pod.namespace, holder.pod.name) for holder in report.holders}
    return [
        {
            "id": str(use.reading.index),
            "uuid": use.reading.uuid,
            **_known(
                gpuDutyCycle=use.duty_percent,
                usedGPUMemory=use.used_bytes,
                totalGPUMemory=use.total_bytes,
            ),
            "podNames": [
                f"{namespace}/{pod}" for namespace, pod in sorted(holding & _named_by(use.reading))
            ],
        }
        for use in device_uses(report)
    ]


def _named_by(reading: GpuReading) -> set[tuple[str, str]]:
    return {(holder.namespace, holder.pod) for holder in reading.holders}


def _known(**values: float | None) -> dict[str, float]:
    return {key: number(value) for key, value in values.items() if value is not None}


def _own_keys(report: NodeReport) -> dict[str, Any]:
    if report.mode == SHARE:
        return {
            "totalGPUMemory": report.memory_bytes,
            "allocatedGPUMemory": report.memory_allocated_bytes,
            "totalGPUCore": report.core,
            "allocatedGPUCore": report.core_allocated,
            "devices": [_share_device(report, device) for device in report.devices],
        }
    if report.mode == TOPOLOGY and report.topology is not None:
        topology = report.topology
        using = {index for holder in report.holders for index in holder.whole}
        return {
            "gpuTopology": {
                "linkMatrix": [[*row] for row in topology.links],
                "bandwidthMatrix": [[*row] for row in topology.bandwidths],
            },
            "devices": [
                {
                    "id": str(index),
                    "healthy": health == "Healthy",
                    "status": "using" if index in using else "idle",
                }
                for index, health in topology.health_by_index.items()
            ],
        }
    return {}


def _share_device(report: NodeReport, device: DeviceReport) -> dict[str, Any]:
    return {
        "id": str(device.index),
        "totalGPUMemory": number(device.units * report.unit_bytes),
        "allocatedGPUMemory": device.units_allocated * report.unit_bytes,
        "totalGPUCore": device.core,
        "allocatedGPUCore": device.core_allocated,
    }


def _by_text(amounts: Mapping[int, int]) -> dict[str, int]:
    return {str(index): amount for index, amount in amounts.items()}
