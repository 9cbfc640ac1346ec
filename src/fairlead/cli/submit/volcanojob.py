"""`arena submit volcanojob`: its flags, and what they mean; `submit` does the work.

It has none of the other kinds' flags: a job of Volcano is a list of tasks, one for each image.
"""

from __future__ import annotations

import argparse
import re
from typing import Final

from fairlead.cli.frame import values
from fairlead.cli.frame.context import Context, Machine
from fairlead.cli.frame.flags import many, read_flags, text
from fairlead.cli.submit.spec import CREATION_FLAGS, LABELLED, add_job_flags, sizes
from fairlead.cli.submit.submit import SubmitVerb, submit
from fairlead.kinds.parts.job_spec import JobSpec, RoleSpec

NAME = "submit volcanojob"
HELP = (
    "Submit a Volcano job: one task per image. "
    "Volcano starts at least --min-available pods at once."
)

_TASK_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_OPTIONS: Final = (
    text(
        "--min-available",
        "min_available",
        values.count,
        twin="minAvailable",
        default="1",
        metavar="N",
        help="start this many pods at once, or none",
    ),
    text(
        "--queue",
        "queue",
        values.object_name,
        default="default",
        metavar="QUEUE",
        help="queue of Volcano",
    ),
    text(
        "--scheduler-name",
        twin="schedulerName",
        default="volcano",
        metavar="NAME",
        help="scheduler of the pods",
    ),
    text(
        "--task-name",
        twin="taskName",
        default="task",
        metavar="NAME",
        help="tasks are called NAME-0, NAME-1, …",
    ),
    many(
        "--task-images",
        twin="taskImages",
        metavar="IMAGE,…",
        help="an image for each task (ubuntu,nginx,busybox)",
    ),
    text(
        "--task-replicas", twin="taskReplicas", default="1", metavar="N", help="pods of each task"
    ),
    text("--task-cpu", twin="taskCPU", default="250m", metavar="CPU", help="cpu of each pod"),
    text(
        "--task-memory",
        twin="taskMemory",
        default="128Mi",
        metavar="SIZE",
        help="memory of each pod",
    ),
    text("--task-gpus", default="0", metavar="N", help="whole GPUs of each pod"),
    text(
        "--task-port",
        "port",
        values.port,
        twin="taskPort",
        default="2222",
        metavar="PORT",
        help="port of each pod",
    ),
)
"""Those with a field are `VolcanoOptions`."""
_COMMAND: Final = "what each task runs, joined by blanks (else what its image does)"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_job_flags(
        parser,
        (text("--name", help="name of the job (required)"), *_OPTIONS, *LABELLED, *CREATION_FLAGS),
        _COMMAND,
    )


def run(args: argparse.Namespace, context: Context) -> int:
    return submit(args, context, what())


def what() -> SubmitVerb:
    from fairlead.kinds.submission import Submission
    from fairlead.kinds.training import volcanojob

    return SubmitVerb(Submission(volcanojob), volcano_spec, needs_command=False)


def volcano_spec(args: argparse.Namespace, namespace: str, machine: Machine) -> JobSpec:
    from fairlead.kinds.training.volcanojob import VolcanoOptions

    images = tuple(
        image
        for given in args.task_images or ["ubuntu,nginx,busybox"]
        for image in given.split(",")
    )
    if not all(images):
        raise values.invalid(
            f"--task-images is invalid: `{','.join(args.task_images)}`",
            "write IMAGE,IMAGE without empty places",
        )
    replicas, least = (
        values.count("task-replicas", args.task_replicas, 1),
        values.count("min-available", args.min_available),
    )
    if least > replicas * len(images):
        raise values.invalid(
            f"--min-available is invalid: it is {least}, "
            f"and the job has {replicas * len(images)} pods"
        )
    return JobSpec(
        name=values.job_name(args.name, may_begin_with_digit=True),
        namespace=namespace,
        command=" ".join(args.command),
        worker=RoleSpec(
            replicas=replicas,
            gpus=values.count("task-gpus", args.task_gpus),
            resources=sizes(
                cpu=("task-cpu", args.task_cpu), memory=("task-memory", args.task_memory)
            ),
        ),
        scheduler=values.object_name("scheduler-name", args.scheduler_name),
        shared_memory="",
        options=VolcanoOptions(
            images=images,
            task_name=_task_name(args.task_name, len(images)),
            **read_flags(args, _OPTIONS),
        ),
        **read_flags(args, LABELLED),
    )


def _task_name(text: str, count: int) -> str:
    """The name before the numbers of `count` tasks; a container is called so."""
    longest = 63 - len(f"-{count - 1}")
    if not _TASK_NAME.fullmatch(text) or len(text) > longest:
        hint = f"at most {longest} lower case letters, digits and `-`"
        raise values.invalid(
            f"--task-name is invalid: `{text}` is not a valid name of a task", hint
        )
    return text
