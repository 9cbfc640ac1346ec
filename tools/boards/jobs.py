"""TrainingJobs: what runs or waits, since when, on how many GPUs, and does it use them?"""

from __future__ import annotations

from boards.shape import NO_GPU_EXPORTER, Board, Kind, Panel, Query, Row, Variable, once

_KEY = "job_namespace, job_name, job_type"
_JOB = 'job_namespace=~"$job_namespace", job_type=~"$job_type", job_name=~"$job_name"'
_STATUS = f'fairlead_job_status{{{_JOB}, status=~"$job_status"}}'
_OF_STATUS = f"and on ({_KEY}) {_STATUS}"
_RUNS = (
    f"and on ({_KEY}, instance_name) fairlead_job_instance_info{{{_JOB}, "
    f'instance_status="Running"}} {_OF_STATUS}'
)
_QUEUE_WAIT = f"fairlead_job_queue_wait_seconds{{{_JOB}}}"
_LEGEND = "{{job_name}} {{instance_name}}"


def _of_job(name: str, heading: str, unit: str = "") -> Query:
    return Query(f"max by ({_KEY}) (fairlead_job_{name}{{{_JOB}}} {_OF_STATUS})", heading, unit)


def _of_instance(name: str) -> str:
    return once(f"fairlead_job_instance_{name}{{{_JOB}}}", f"{_KEY}, instance_name")


def _gpus(name: str) -> str:
    return once(f"fairlead_job_gpus_{name}{{{_JOB}}} {_OF_STATUS}", _KEY)


BOARD = Board(
    uid="fairlead-jobs",
    title="TrainingJobs",
    description=(
        "Training jobs: status, duration, GPUs asked for, memory and utilization; each instance's "
        "use; how long jobs waited."
    ),
    variables=(
        Variable("job_namespace", "fairlead_job_status", "job_namespace"),
        Variable("job_type", 'fairlead_job_status{job_namespace=~"$job_namespace"}', "job_type"),
        Variable(
            "job_name",
            'fairlead_job_status{job_namespace=~"$job_namespace", job_type=~"$job_type"}',
            "job_name",
        ),
        Variable("job_status", "fairlead_job_status", "status"),
    ),
    rows=(
        Row(
            "Jobs",
            (
                Panel(
                    "Training Jobs",
                    (
                        Query(f"max by ({_KEY}, status) ({_STATUS})"),
                        _of_job("duration_seconds", "Duration", "dtdurations"),
                        _of_job("gpus_requested", "Request GPUs"),
                        _of_job("gpu_memory_allocated_bytes", "Allocated GPU Memory", "bytes"),
                        _of_job("gpu_memory_used_bytes", "Used GPU Memory", "bytes"),
                        _of_job("gpu_utilization_ratio", "GPU Utilization", "percentunit"),
                    ),
                    Kind.TABLE,
                    empty="No such job. `arena submit` makes one.",
                    width=24,
                    height=10,
                    labels=(
                        ("job_namespace", "Namespace"),
                        ("job_name", "Job Name"),
                        ("job_type", "Job Type"),
                        ("status", "Job Status"),
                    ),
                ),
            ),
        ),
        Row(
            "Instances",
            (
                Panel(
                    "Job Instance Used GPU Memory",
                    (Query(f"{_of_instance('gpu_memory_used_bytes')} {_RUNS}", _LEGEND),),
                    unit="bytes",
                    empty=NO_GPU_EXPORTER,
                    least=0,
                ),
                Panel(
                    "Job Instance Used GPU Memory Percentage",
                    (
                        Query(
                            (
                                f"{_of_instance('gpu_memory_used_bytes')} / "
                                f"({_of_instance('gpu_memory_allocated_bytes')} > 0) {_RUNS}"
                            ),
                            _LEGEND,
                        ),
                    ),
                    unit="percentunit",
                    empty=NO_GPU_EXPORTER,
                    least=0,
                    most=1,
                ),
                Panel(
                    "Job Instance GPU Duty Cycle",
                    (Query(f"{_of_instance('gpu_utilization_ratio')} {_RUNS}", _LEGEND),),
                    unit="percentunit",
                    empty=NO_GPU_EXPORTER,
                    least=0,
                    most=1,
                ),
            ),
        ),
        Row(
            "Waiting",
            (
                Panel(
                    "Queue wait",
                    (
                        Query(
                            f"{once(_QUEUE_WAIT, _KEY)} {_OF_STATUS}",
                            "{{job_namespace}} {{job_name}}",
                        ),
                    ),
                    unit="s",
                    empty="No such job has waited.",
                    description="Until it ran; of one that waits, until now.",
                    width=12,
                    least=0,
                ),
                Panel(
                    "GPUs of jobs",
                    (
                        Query(f"sum({_gpus('requested')})", "asked for"),
                        Query(f"sum({_gpus('allocated')})", "held"),
                    ),
                    empty="No such job.",
                    width=12,
                    least=0,
                ),
            ),
        ),
    ),
)
