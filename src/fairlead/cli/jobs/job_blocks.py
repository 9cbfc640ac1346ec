"""The blocks of one job, `arena get JOB` and `arena top job JOB`.

See docs/spec/arena-cli.md#get, docs/spec/arena-cli.md#top-job;
docs/spec/arena-cli-samples.md#one-job-with-its-gpus,
docs/spec/arena-cli-samples.md#gpus-of-one-job.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from fairlead.cli.frame.text import NOTHING, local_time, short_duration
from fairlead.cli.jobs.job_cells import duty_text, host_ip, memory_text
from fairlead.model.event import Event
from fairlead.rules.jobs.status import SUCCEEDED
from fairlead.rules.reports.job import InstanceReport, JobReport
from fairlead.wire.text.tabwriter import align
from fairlead.wire.text.terminal_text import first_line, join_cells

_MODEL_LABELS: Final = (("ModelName:", "modelName"), ("ModelVersion:", "modelVersion"))
_GET_GPUS: Final = (
    "INSTANCE",
    "NODE(IP)",
    "GPU(Requested)",
    "GPU(IndexId)",
    "GPU(DutyCycle)",
    "GPU Memory(Used/Total)",
)
_GET_INSTANCES: Final = ("NAME", "STATUS", "AGE", "IS_CHIEF", "GPU(Requested)", "NODE")
_TOP_INSTANCES: Final = (
    "NAME",
    "STATUS",
    "GPU(Request)",
    "NODE",
    "GPU(DeviceIndex)",
    "GPU(DutyCycle)",
    "GPU_MEMORY(Used/Total)",
)
_TOP_DASHES: Final = (*("-" * len(cell) for cell in _TOP_INSTANCES[:-1]), "-" * 15)

Events = Sequence[tuple[str, Sequence[Event]]]
"""Of each object its label (`pod/NAME`) and its events."""


def get_blocks(
    report: JobReport,
    *,
    has_gpus: bool,
    pending: Sequence[str],
    events: Events | None,
    now: float,
    tensorboard: str = "",
) -> str:
    """`pending`: sentences of `--explain`; `events` None: not asked for."""
    lines = [*_facts(report), "", "Instances:", *_head(_GET_INSTANCES)]
    lines += [_row(_get_instance(instance)) for instance in report.instances]
    if has_gpus and report.gpus_requested > 0 and report.status != SUCCEEDED:
        lines += ["", "GPUs:", *_head(_GET_GPUS)]
        lines += [_row(row) for instance in report.instances for row in _gpu_rows(instance)]
        lines += ["", _gpu_sum(report)]
    if tensorboard:
        lines += [
            "",
            "Tensorboard:",
            "  Your tensorboard will be available on: ",
            f"  {tensorboard}",
        ]
    if pending:
        lines += ["", "Pending:", *(f"  {first_line(sentence)}" for sentence in pending)]
    if events is not None:
        lines += ["", "Events:", *_event_lines(events, now)]
    return align("\n".join(lines) + "\n")


def top_blocks(report: JobReport, instances: Iterable[InstanceReport]) -> str:
    lines = [*_facts(report), "", "Instances:", _row(_TOP_INSTANCES), _row(_TOP_DASHES)]
    lines += [_row(row) for instance in instances for row in _top_rows(instance)]
    lines += ["", "GPUs:", _gpu_sum(report)]
    return align("\n".join(lines) + "\n")


def _facts(report: JobReport) -> Iterator[str]:
    job = report.job
    yield f"Name:\t{job.name}"
    yield f"Status:\t{report.status}"
    yield f"Namespace:\t{job.namespace}"
    yield f"Priority:\t{report.priority or NOTHING}"
    yield f"Trainer:\t{job.type.upper()}"
    yield f"Duration:\t{short_duration(report.duration)}"
    yield f"CreateTime:\t{local_time(job.created_at)}"
    yield f"EndTime:\t{local_time(report.ended_at)}"
    for key, label in _MODEL_LABELS:
        if job.labels.get(label):
            yield f"{key}\t{first_line(job.labels[label])}"
    if job.annotations.get("modelSource"):
        yield f"ModelSource:\t{first_line(job.annotations['modelSource'])}"


def _get_instance(instance: InstanceReport) -> tuple[str, ...]:
    is_chief = "true" if instance.is_chief else "false"
    return (
        instance.pod.name,
        instance.status,
        short_duration(instance.age),
        is_chief,
        str(instance.gpus),
        instance.pod.node or NOTHING,
    )


def _gpu_rows(instance: InstanceReport) -> Iterator[tuple[str, ...]]:
    """Name, node and request stand in the first row of a pod with several GPUs only."""
    who = (instance.pod.name, host_ip(instance), str(instance.gpus))
    for measured in _gpu_values(instance):
        yield (*who, *measured)
        who = ("", "", "")


def _top_rows(instance: InstanceReport) -> Iterator[tuple[str, ...]]:
    who = (instance.pod.name, instance.status, str(instance.gpus), host_ip(instance))
    for measured in _gpu_values(instance):
        yield (*who, *measured)
        who = ("", "", "", "")


def _gpu_values(instance: InstanceReport) -> list[tuple[str, str, str]]:
    """Index, duty cycle and memory of each GPU with a reading."""
    return [(str(use.index), duty_text(use), memory_text(use)) for use in instance.uses] or [
        (NOTHING, NOTHING, NOTHING)
    ]


def _gpu_sum(report: JobReport) -> str:
    return f"  Allocated/Requested GPUs of Job: {report.gpus_allocated}/{report.gpus_requested}"


def _event_lines(events: Events, now: float) -> Iterator[str]:
    if not events:
        yield "  No events for resources"
        return
    yield from _head(("SOURCE", "TYPE", "AGE", "MESSAGE"))
    for source, found in events:
        for event in found:
            age = short_duration(now - event.at) if event.at is not None else NOTHING
            yield _row(
                (source, event.type, age, " ".join(f"[{event.reason}] {event.message}".split()))
            )
        yield ""


def _head(cells: Sequence[str]) -> tuple[str, str]:
    return _row(cells), _row(["-" * len(cell) for cell in cells])


def _row(cells: Sequence[str]) -> str:
    return "  " + join_cells(cells)
