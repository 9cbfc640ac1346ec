"""`arena get JOB` shows one job, pod by pod, and why it waits.

See docs/spec/arena-cli.md#get; docs/spec/arena-cli-samples.md#one-job-with-its-gpus.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from fairlead.cli.frame.context import ClusterJobs, Context
from fairlead.cli.frame.documents import check_output
from fairlead.cli.frame.flags import BooleanFlag
from fairlead.cli.jobs.job_search import (
    add_type,
    find_job,
    is_legacy,
    report_of,
    warn_of_pods,
    warn_of_readings,
)

if TYPE_CHECKING:
    from fairlead.cli.jobs.job_blocks import Events
    from fairlead.model.pod import Pod
    from fairlead.rules.jobs.waiting import Wait
    from fairlead.rules.reports.job import JobReport
    from fairlead.rules.sharing.ledger import Ledger

NAME = "get"
HELP = (
    "Show a training job: its state and pods, "
    "and with flags its GPUs, its events, and why it waits."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("job", metavar="JOB", help="the job's name")
    add_type(parser)
    parser.add_argument("--events", "-e", action=BooleanFlag, help="events of its pods")
    parser.add_argument("--gpus", "-g", action=BooleanFlag, help="its GPUs, and how they are used")
    parser.add_argument(
        "--output", "-o", metavar="FORMAT", default="", help="wide, json, yaml or name"
    )
    parser.add_argument(
        "--explain", action=BooleanFlag, help="why each pod waits, and what would help"
    )
    parser.add_argument("--legacy", action=BooleanFlag, help="the layout of arena 0.4")


def run(args: argparse.Namespace, context: Context) -> int:
    check_output(args.output, "name")
    jobs, namespace = context.world.jobs(), context.world.namespace()
    absent = (
        f"Not found training job {args.job} in namespace "
        f"{namespace},please use 'arena submit' to create it."
    )
    is_document = args.output in ("json", "yaml")
    found = find_job(
        jobs, args.job, namespace, args.type, absent=absent, with_readings=is_document or args.gpus
    )
    [report] = report_of(found)
    warn_of_pods(found, context.messages)
    if is_document or args.gpus:
        warn_of_readings(found, [report], context.messages)
    context.stdout.write(_output(args, context, jobs, report, found.taken_at))
    return 0


def _output(
    args: argparse.Namespace, context: Context, jobs: ClusterJobs, report: JobReport, now: float
) -> str:
    if args.output == "name":
        from fairlead.kinds.registry import kind_of

        return f"{report.job.type}.{kind_of(report.job).GROUP}/{report.job.name}\n"
    if args.output in ("json", "yaml"):
        from fairlead.cli.frame.documents import render_document
        from fairlead.cli.jobs.job_document import job_document

        return render_document(args.output, job_document(report, _tensorboard(jobs, report)))
    if is_legacy(args, context):
        from fairlead.cli.jobs.legacy_jobs import legacy_get

        return legacy_get(report)
    from fairlead.cli.jobs.job_blocks import get_blocks

    return get_blocks(
        report,
        has_gpus=args.gpus,
        pending=_why_pending(context, report) if args.explain else (),
        events=_events(jobs, report) if args.events else None,
        now=now,
        tensorboard=_tensorboard(jobs, report),
    )


def _tensorboard(jobs: ClusterJobs, report: JobReport) -> str:
    """Where its TensorBoard is.

    Only a job that names a Service costs a request; any node answers at a node port, so one of its
    own.
    """
    from fairlead.wire.names import ANNOTATION_TENSORBOARD

    service = report.job.annotations.get(ANNOTATION_TENSORBOARD, "")
    host = next((instance.pod.host_ip for instance in report.instances if instance.pod.host_ip), "")
    return jobs.service_url(report.job.namespace, service, host) if service else ""


def _events(jobs: ClusterJobs, report: JobReport) -> Events:
    """Of each pod, then of each batch Job that owns one (an MPIJob's launcher)."""
    pods = [instance.pod for instance in report.instances]
    objects = {pod.uid: f"pod/{pod.name}" for pod in pods}
    objects |= {
        owner.uid: f"job/{owner.name}"
        for pod in pods
        for owner in pod.owners
        if owner.kind == "Job"
    }
    found = jobs.read_events([(report.job.namespace, uid) for uid in objects])
    return list(zip(objects.values(), found, strict=True))


def _why_pending(context: Context, report: JobReport) -> list[str]:
    """One sentence per pod or container that waits; else one for a job that waits without any."""
    from fairlead.model.pod import PodPhase
    from fairlead.rules.jobs.status import PENDING, board_state
    from fairlead.rules.jobs.waiting import why_job_waits, why_pod_waits

    pods = [instance.pod for instance in report.instances]
    waits = [
        (pod, wait) for pod in pods if (wait := why_pod_waits(pod)) or pod.phase == PodPhase.PENDING
    ]
    if not waits and board_state(report.status) == PENDING:
        wait = why_job_waits(report.job, pods)
        return [f"{report.job.name}: {wait.reason}: {wait.message}"]
    room = _why_no_room(context, waits)
    reasons = {
        pod.key: f"{wait.reason}: {wait.message}" if wait else "it starts" for pod, wait in waits
    }
    return [f"{pod.name}: {room.get(pod.key, '')}{reasons[pod.key]}" for pod, _ in waits]


def _why_no_room(context: Context, waits: list[tuple[Pod, Wait | None]]) -> dict[str, str]:
    """For pods that no node accepted: the best node, or for shared GPUs the answer of each node.

    It is printed before the scheduler's message. The cluster's nodes are read only if there are
    such pods without scheduling gates.
    """
    from fairlead.rules.holding.need import asks_share

    waiting = [
        pod
        for pod, wait in waits
        if not pod.node and not pod.gates and (wait is not None or asks_share(pod))
    ]
    if not waiting:
        return {}
    from fairlead.rules.nodes.room import NodeRooms
    from fairlead.rules.sharing.ledger import ledger_of

    snapshot = context.world.reader().read_nodes()
    ledger, rooms = ledger_of(snapshot), NodeRooms(snapshot)
    found = {
        pod.key: _shortage(ledger, pod) if asks_share(pod) else getattr(rooms.why(pod), "text", "")
        for pod in waiting
    }
    return {key: f"{reason}; " for key, reason in found.items() if reason}


def _shortage(ledger: Ledger, pod: Pod) -> str:
    from fairlead.rules.sharing.why import shortage

    short = shortage(ledger, pod)
    return (
        ""
        if short is None
        else short.text
        if short.text == short.by_node
        else f"{short.text} ({short.by_node})"
    )
