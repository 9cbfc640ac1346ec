"""`arena submit volcanojob`: its flags and what they mean; `submit` does the work.

What a newcomer gets wrong: it has none of the other kinds' flags. A job of Volcano is a list of tasks, one for each image.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import TYPE_CHECKING

from fairlead.cli.frame.context import Context
from fairlead.cli.submit.flags import add_way_flags, many_flag, text_flag
from fairlead.cli.submit.submit import submit

if TYPE_CHECKING:
    from fairlead.kinds.parts.job_spec import JobSpec

NAME = "submit volcanojob"
HELP = "Submit a job of Volcano: one task for each image, of which Volcano starts at least --min-available pods at once."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(parser=parser)
    parser.add_argument("command", nargs="*", metavar="COMMAND", help="what each task runs, joined by blanks (else what its image does)")
    text_flag(parser, "--name", help="name of the job (required)")
    text_flag(parser, "--min-available", twin="minAvailable", default="1", metavar="N", help="start this many pods at once, or none")
    text_flag(parser, "--queue", default="default", metavar="QUEUE", help="queue of Volcano")
    text_flag(parser, "--scheduler-name", twin="schedulerName", default="volcano", metavar="NAME", help="scheduler of the pods")
    text_flag(parser, "--task-name", twin="taskName", default="task", metavar="NAME", help="tasks are called NAME-0, NAME-1, …")
    many_flag(parser, "--task-images", twin="taskImages", metavar="IMAGE,…", help="an image for each task (ubuntu,nginx,busybox)")
    text_flag(parser, "--task-replicas", twin="taskReplicas", default="1", metavar="N", help="pods of each task")
    text_flag(parser, "--task-cpu", twin="taskCPU", default="250m", metavar="CPU", help="cpu of each pod")
    text_flag(parser, "--task-memory", twin="taskMemory", default="128Mi", metavar="SIZE", help="memory of each pod")
    text_flag(parser, "--task-gpus", default="0", metavar="N", help="whole GPUs of each pod")
    text_flag(parser, "--task-port", twin="taskPort", default="2222", metavar="PORT", help="port of each pod")
    many_flag(parser, "--annotation", "-a", metavar="KEY=VALUE", help="an annotation of the job and its pods")
    many_flag(parser, "--label", "-l", metavar="KEY=VALUE", help="a label of the job and its pods")
    add_way_flags(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    from fairlead.kinds.submission import Submission
    from fairlead.kinds.training import volcanojob

    return submit(args, context, Submission(volcanojob), volcano_spec, needs_command=False)


def volcano_spec(args: argparse.Namespace, namespace: str, config: Mapping[str, str]) -> JobSpec:
    from fairlead.cli.submit import values
    from fairlead.cli.submit.spec import sizes
    from fairlead.kinds.parts.job_spec import JobSpec, RoleSpec
    from fairlead.kinds.training.volcanojob import VolcanoOptions

    images = tuple(image for given in args.task_images or ["ubuntu,nginx,busybox"] for image in given.split(","))
    if not all(images):
        raise values.invalid(f"--task-images is invalid: `{','.join(args.task_images)}`", "write IMAGE,IMAGE without empty places")
    replicas, least = values.count("task-replicas", args.task_replicas, 1), values.count("min-available", args.min_available)
    if least > replicas * len(images):
        raise values.invalid(f"--min-available is invalid: it is {least}, and the job has {replicas * len(images)} pods")
    return JobSpec(
        name=values.job_name(args.name),
        namespace=namespace,
        command=" ".join(args.command),
        worker=RoleSpec(
            replicas=replicas,
            gpus=values.count("task-gpus", args.task_gpus),
            resources=sizes(cpu=("task-cpu", args.task_cpu), memory=("task-memory", args.task_memory)),
        ),
        labels=values.labels("label", args.label),
        annotations=values.keyed("annotation", args.annotation),
        scheduler=values.object_name("scheduler-name", args.scheduler_name),
        shared_memory="",
        options=VolcanoOptions(
            images=images,
            task_name=values.task_name(args.task_name, len(images)),
            port=values.port("task-port", args.task_port),
            min_available=least,
            queue=values.object_name("queue", args.queue),
        ),
    )
