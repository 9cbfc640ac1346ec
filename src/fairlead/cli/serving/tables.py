"""How a serving job is printed: a row of `serve list`, the block of `serve get`, JSON and YAML.

See docs/spec/arena-cli.md#serving-jobs, docs/spec/arena-cli.md#documents.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from fairlead.cli.frame.documents import number
from fairlead.cli.frame.text import NOTHING, count, short_duration
from fairlead.kinds.serving.kinds import TYPES
from fairlead.model.resources import GPU_CORE, counted
from fairlead.rules.pods.devices import memory_units
from fairlead.rules.reports.serving import ServingInstance, ServingReport, port_words
from fairlead.wire.text.tabwriter import align, render_rows
from fairlead.wire.text.terminal_text import first_line, join_cells

_LIST: Final = ("NAME", "TYPE", "VERSION", "DESIRED", "AVAILABLE", "ADDRESS", "PORTS")
_INSTANCES: Final = ("NAME", "STATUS", "AGE", "READY", "RESTARTS")


def list_table(reports: Sequence[ServingReport], *, has_namespace: bool) -> str:
    """With GPUs when any of them holds some."""
    has_gpus = any(report.gpus for report in reports)
    rows = [("NAMESPACE",) * has_namespace + _LIST + ("GPU",) * has_gpus]
    for report in reports:
        serving = report.serving
        reached = (report.address or NOTHING, _ports(report) or NOTHING)
        cells = (
            serving.name,
            TYPES[serving.type].title,
            serving.version,
            str(report.desired),
            str(report.available),
            *reached,
        )
        rows.append((serving.namespace,) * has_namespace + cells + (count(report.gpus),) * has_gpus)
    return render_rows(rows)


def get_block(report: ServingReport) -> str:
    """The line of its GPUs is there without any, too, and empty; a blank line ends the block."""
    gpus = f"GPU:        {count(report.gpus)}" if report.gpus else ""
    has_gpus = bool(report.gpus)
    titles = (*_INSTANCES, *("GPU",) * has_gpus, "NODE")
    lines = [
        *_facts(report),
        gpus,
        "",
        "Instances:",
        _row(titles),
        _row(["-" * len(title) for title in titles]),
    ]
    lines += [_row(_instance_cells(each, has_gpus=has_gpus)) for each in report.instances]
    return align("\n".join([*lines, "", ""]))


def _facts(report: ServingReport) -> Iterator[str]:
    serving = report.serving
    facts = (
        ("Name", serving.name),
        ("Namespace", serving.namespace),
        ("Type", TYPES[serving.type].title),
        ("Version", serving.version),
        ("Desired", str(report.desired)),
        ("Available", str(report.available)),
        ("Age", short_duration(report.age)),
        ("Address", report.address or NOTHING),
        ("Port", _ports(report)),
    )
    for name, value in facts:
        yield f"{name + ':':<12}{value}"
    labels = serving.workload.labels
    models = (("ModelName", labels.get("modelName")), ("ModelVersion", labels.get("modelVersion")))
    yield from (f"{name + ':':<14}{first_line(value)}" for name, value in models if value)


def _ports(report: ServingReport) -> str:
    return ",".join(map(port_words, report.endpoints))


def _instance_cells(instance: ServingInstance, *, has_gpus: bool) -> tuple[str, ...]:
    ready = f"{instance.ready}/{instance.total}"
    cells = (
        instance.pod.name,
        instance.status,
        short_duration(instance.age),
        ready,
        str(instance.restarts),
    )
    return cells + (count(instance.gpus),) * has_gpus + (instance.pod.node,)


def _row(cells: Sequence[str]) -> str:
    return "  " + join_cells(cells)


def serving_document(report: ServingReport) -> dict[str, Any]:
    serving = report.serving
    return {
        "uuid": serving.workload.uid,
        "name": serving.name,
        "namespace": serving.namespace,
        "type": TYPES[serving.type].title,
        "version": serving.version,
        "age": short_duration(report.age),
        "desiredInstances": report.desired,
        "availableInstances": report.available,
        "endpoints": [
            {"name": each.name, "port": each.port, "nodePort": each.node_port}
            for each in report.endpoints
        ],
        "ip": report.address or NOTHING,
        "instances": [_instance_document(each) for each in report.instances],
        "requestCPUs": number(report.cpus),
        "requestGPUs": report.whole_gpus,
        "requestGPUMemory": report.memory_units,
        "requestGPUCore": report.core_percent,
        "creationTimestamp": int(serving.workload.created_at or 0),
    }


def _instance_document(instance: ServingInstance) -> dict[str, Any]:
    pod = instance.pod
    return {
        "name": pod.name,
        "status": instance.status,
        "age": short_duration(instance.age),
        "readyContainers": instance.ready,
        "totalContainers": instance.total,
        "restartCount": instance.restarts,
        "nodeIP": pod.host_ip,
        "nodeName": pod.node,
        "ip": pod.pod_ip,
        "requestGPUs": number(instance.gpus),
        "requestGPUMemory": memory_units(pod.limits),
        "requestGPUCore": counted(pod.limits, GPU_CORE),
        "creationTimestamp": int(pod.created_at or 0),
    }
