"""The rows of the page of serving jobs.

They contain the values of `arena serve list` and `arena serve get`, and why a job is not ready.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from fairlead.console.boards.jobs_rows import Explainer, is_unheard
from fairlead.console.boards.rows import Entry, RowSet, choices, lowered
from fairlead.console.pages.envelope import Sentence, counted, gpu_count, neat, timestamp
from fairlead.console.pages.jobs import Waiting
from fairlead.console.pages.serving.jobs import ServingJob, ServingPod
from fairlead.kinds.serving.kinds import TYPES, servings_of
from fairlead.model.jobs.serving import Serving, ServingObjects
from fairlead.model.pod import Pod, PodPhase
from fairlead.model.snapshot import ClusterSnapshot
from fairlead.rules.holding.occupancy import ClusterOccupancy
from fairlead.rules.jobs.waiting import Wait, why_pod_waits
from fairlead.rules.reports.serving import ServingReport, port_words, report_serving
from fairlead.wire import names

READY = "Ready"
NOT_READY = "NotReady"
UNHEARD = "Unknown"
"""Status of a pod that was running when its node became unreachable."""


def serving_rows(
    objects: ServingObjects,
    snapshot: ClusterSnapshot,
    occupancy: ClusterOccupancy,
    now: float,
    explainer: Explainer,
    silent: Collection[str],
) -> RowSet[ServingJob]:
    """All serving jobs, by namespace, name and version. `silent`: names of unreachable nodes."""
    pods = [pod for pod in snapshot.pods if names.LABEL_SERVING_TYPE in pod.labels]
    entries = []
    for serving in servings_of(objects.workloads, objects.services, pods):
        report = report_serving(serving, {}, now)
        entries.append(_entry(_row(serving, report, occupancy, explainer, silent), serving))
    rows = [entry.row for entry in entries]
    facets = {
        "namespace": choices(row.namespace for row in rows),
        "type": choices(row.type for row in rows),
        "name": choices(row.name for row in rows),
        "status": [word for word in (READY, NOT_READY) if any(row.status == word for row in rows)],
        "user": choices(row.user for row in rows),
    }
    return RowSet(ServingJob, entries, facets)


def serving_sentence(rows: Sequence[ServingJob]) -> Sentence:
    """Numbers of ready jobs and of held GPUs.

    >>> serving_sentence([]).text
    'There are no serving jobs in this cluster.'
    """
    if not rows:
        return Sentence("serving-none", {}, "There are no serving jobs in this cluster.")
    ready, gpus = sum(row.status == READY for row in rows), gpu_count(sum(row.gpus for row in rows))
    text = (
        f"{ready} of {counted(len(rows), 'serving job')} ready; they hold {counted(gpus, 'GPU')}."
    )
    return Sentence("serving", {"ready": ready, "jobs": len(rows), "gpus": gpus}, text)


def _row(
    serving: Serving,
    report: ServingReport,
    occupancy: ClusterOccupancy,
    explainer: Explainer,
    silent: Collection[str],
) -> ServingJob:
    workload = serving.workload
    is_ready = bool(serving.workers) and report.available >= report.desired
    return ServingJob(
        namespace=serving.namespace,
        name=serving.name,
        type=TYPES[serving.type].title,
        version=serving.version,
        status=READY if is_ready else NOT_READY,
        waiting=None if is_ready else _waiting(serving, report.desired, explainer),
        desired=report.desired,
        available=report.available,
        address=report.address,
        ports=[port_words(port) for port in report.endpoints],
        gpus=neat(occupancy.use_together(serving.pods).gpus),
        user=workload.labels.get(names.LABEL_CONSOLE_USER)
        or workload.annotations.get(names.ANNOTATION_USERNAME, ""),
        created_at=timestamp(workload.created_at),
        instances=[
            ServingPod(
                name=each.pod.name,
                status=UNHEARD
                if is_unheard(each.pod, silent) and each.pod.deleted_at is None
                else each.status,
                node=each.pod.node,
                ready=each.ready,
                containers=each.total,
                restarts=each.restarts,
                gpus=neat(occupancy.use(each.pod).gpus),
                created_at=timestamp(each.pod.created_at),
            )
            for each in report.instances
        ],
    )


def _waiting(serving: Serving, desired: int, explainer: Explainer) -> Waiting:
    """The reason of the first waiting pod; else pods are missing or starting."""
    pods: list[Pod] = [pod for pod in serving.pods if not pod.is_finished]
    for pod in pods:
        if (wait := why_pod_waits(pod)) is not None:
            return explainer.explain(wait, [pod])
    if not serving.workers:
        text = f"no Deployment of this {serving.workload.kind} exists yet; its operator creates it"
        return explainer.explain(
            Wait("PodsMissing", text, "serving-no-deployment", {"kind": serving.workload.kind}),
            pods,
        )
    if len(pods) < desired:
        text = f"{len(pods)} of {desired} pods exist; the Deployment controller creates the rest"
        return explainer.explain(
            Wait(
                "PodsMissing",
                text,
                "serving-pods-missing",
                {"there": len(pods), "desired": desired},
            ),
            pods,
        )
    running = sum(pod.phase == PodPhase.RUNNING for pod in pods)
    text = f"{running} of {len(pods)} pods run"
    return explainer.explain(
        Wait("Starting", text, "starting", {"running": running, "pods": len(pods)}), pods
    )


def _entry(row: ServingJob, serving: Serving) -> Entry[ServingJob]:
    words = [row.namespace, row.name, row.type, row.version, row.status, row.user, row.address]
    words += [word for each in row.instances for word in (each.name, each.node)]
    answers = {
        "namespace": lowered(row.namespace),
        "type": lowered(row.type, serving.type),
        "name": lowered(row.name),
        "status": lowered(row.status),
        "user": lowered(row.user),
    }
    return Entry(row, "\n".join(words).lower(), answers)
