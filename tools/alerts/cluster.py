"""Rules about quota and jobs, and which alert replaces which others.

See docs/spec/telemetry.md#recording-rules-and-alerts.
"""

from __future__ import annotations

from typing import Final

from alerts.gpu import GROUP as CARDS
from alerts.node import CONTAINERS, EXPORTERS
from alerts.rule import Alert, Group, Inhibition, Recording
from alerts.usage import GROUP as USAGE

WAIT_SECONDS: Final = 3600
_LEAF: Final = "{{ $labels.path }}"
_JOB: Final = "{{ $labels.job_type }} {{ $labels.job_namespace }}/{{ $labels.job_name }}"
_JOB_KEY: Final = "job_namespace, job_name, job_type"
_JOB_LABELS: Final = f"on ({_JOB_KEY})"
_FAILED: Final = 'fairlead_job_status{status="failed"}'
_FAILED_BEFORE: Final = f"max_over_time({_FAILED}[1h] offset 10m)"
"""Jobs that had failed before, over a window, because the series has gaps.

There is a gap when an exporter is replaced, another takes the Lease, or a scrape fails.
"""
_LIVED: Final = 'max_over_time(fairlead_job_status{status!="failed"}[10m])'
"""A job of the same name that was made anew, and whatever else was no failure a moment ago."""

QUOTA: Final = Group(
    "fairlead-quota",
    "Quota",
    (
        Recording(
            "fairlead:quota_used:ratio_max",
            "fairlead_quota_used / fairlead_quota_max",
            "Used part of a quota's max.",
        ),
        Recording(
            "fairlead:quota_used:ratio_min",
            "fairlead_quota_used / (fairlead_quota_min > 0)",
            "Used part of what a quota is guaranteed, where it is guaranteed something.",
        ),
    ),
    (
        Alert(
            "QuotaExhausted",
            (
                "(fairlead:quota_used:ratio_max >= 1 or fairlead_quota_max == 0) and on (path, "
                "quota, resource) fairlead_quota_pending > 0"
            ),
            "warning",
            f"Quota {_LEAF} has reached its max of {{{{ $labels.resource }}}}, and pods wait",
            f"{_LEAF} has used all {{{{ $labels.resource }}}} it may have for half an hour, "
            "or may have none, while pods that ask for it"
            " wait. Nothing is wrong with the cluster: its people wait for each other, or its "
            "max is too small.",
            "A quota uses its max of a resource, and waiting pods below it ask for more of "
            "it; a max of 0 is used up from the start. Of the"
            " root: the whole cluster is full.",
            (
                "$ fairlead quota plan",
                'fairlead_quota_waiting_pods{path="PATH"} > 0',
                'fairlead_quota_user_used{path="PATH"}',
            ),
            "Check who uses it and what waits. Raise the max in the ElasticQuotaTree if that "
            "is what you want; others are still safe,"
            " their min is guaranteed.",
            hold="30m",
        ),
        Alert(
            "QuotaGuaranteeStarved",
            'fairlead_quota_used{leaf="true"} + fairlead_quota_pending_smallest <= '
            "fairlead_quota_min"
            " and on (path, quota, resource) fairlead_quota_waiting_for > 0",
            "critical",
            f"Quota {_LEAF} does not get the {{{{ $labels.resource }}}} it is guaranteed",
            f"{_LEAF} has waited for {{{{ $labels.resource }}}} for fifteen minutes although "
            "what it uses and the smallest request that"
            " waits are within its min. Find out why it is not given back.",
            "A leaf waits for what it is guaranteed: what it uses and the smallest request "
            "that waits for this resource stay within its"
            " min. Others hold it and are not made to give it back in time, or the cluster "
            "has less than its mins promise.",
            (
                "$ fairlead quota plan",
                'fairlead_quota_waiting_pods{path="PATH"} > 0',
                'fairlead_quota_borrowed{leaf="true"} > 0',
            ),
            "`PDBBlocked`: a PodDisruptionBudget protects the borrower's pods. "
            "`WaitingForEvictions` for long: a victim does not end, look"
            " for pods in Terminating. No reason at all: is the quota controller running "
            "(`fairlead_quota_leading`)? If cards were lost,"
            " the cluster has less than the tree promises: repair them or lower a min.",
            hold="15m",
        ),
    ),
)

JOBS: Final = Group(
    "fairlead-job",
    "Jobs",
    (),
    (
        Alert(
            "JobPendingLong",
            (
                f"fairlead_job_queue_wait_seconds > {WAIT_SECONDS} and {_JOB_LABELS} "
                f'fairlead_job_status{{status=~"pending|queuing"}} == 1'
            ),
            "info",
            f"{_JOB} has waited for {{{{ $value | humanizeDuration }}}}",
            (
                f"{_JOB} has not run for more than an hour. `arena get` with `--explain` shows "
                "what it waits for."
            ),
            (
                "A job has waited for more than an hour and waits still: for quota, for room on a "
                "node, or for an image."
            ),
            (
                "$ arena get JOB -n NAMESPACE --explain",
                "$ kubectl -n NAMESPACE get events --sort-by=.lastTimestamp",
            ),
            "Follow the explanation: it names the quota, the node or the image.",
        ),
        Alert(
            "GpuPodPendingLong",
            f"fairlead_gpu_pod_queue_wait_seconds > {WAIT_SECONDS} and on (namespace_name, "
            'pod_name) fairlead_gpu_pod_info{phase="Pending",node_name="",'
            'owner_kind=~"|ReplicaSet|StatefulSet|DaemonSet"} == 1',
            "info",
            (
                "Pod {{ $labels.namespace_name }}/{{ $labels.pod_name }} has waited for a GPU for "
                "{{ $value | humanizeDuration }}"
            ),
            "Pod {{ $labels.namespace_name }}/{{ $labels.pod_name }} has had no node for more "
            "than an hour. `fairlead why` shows what it"
            " waits for.",
            "A pod that requests a GPU and belongs to no job has waited for more than an hour "
            "and still waits: for quota, or for room on a"
            " node.",
            (
                "$ fairlead why NAMESPACE/POD",
                "$ kubectl -n NAMESPACE get events --sort-by=.lastTimestamp",
            ),
            "Follow the explanation: it names the quota or the node.",
        ),
        Alert(
            "JobFailed",
            (
                f"max by ({_JOB_KEY}) ({_FAILED}) unless {_JOB_LABELS} ({_FAILED_BEFORE} unless "
                f"{_JOB_LABELS} {_LIVED})"
            ),
            "info",
            f"{_JOB} failed",
            f"{_JOB} failed within the last ten minutes. `arena logs` shows its last lines.",
            "A job ended in failure. The alert ends by itself after ten minutes. An exporter "
            "that restarts, or hands over to another,"
            " does not repeat it; one that was away for more than an hour reports all failed "
            "jobs that still exist once more.",
            ("$ arena get JOB -n NAMESPACE", "$ arena logs JOB -n NAMESPACE --tail 50"),
            (
                "Its owner reads the log. If many jobs of one node fail at once, check that "
                "node's GPUs."
            ),
        ),
    ),
)

GROUPS: Final = (CARDS, CONTAINERS, EXPORTERS, QUOTA, JOBS, USAGE)

_OF_A_CARD: Final = tuple(alert.name for alert in CARDS.alerts)
_CARD: Final = ("node_name", "uuid")
_OF_NO_NODE: Final = ("GpuNodeNotReady", "ClusterExporterMissing")
"""The source itself, and what holds nothing back and is held back by nothing."""

INHIBITIONS: Final = (
    Inhibition(
        "A node that is not ready is one alert.",
        ("GpuNodeNotReady",),
        (
            *_OF_A_CARD,
            *(
                alert.name
                for alert in (*EXPORTERS.alerts, *CONTAINERS.alerts)
                if alert.name not in _OF_NO_NODE
            ),
        ),
        ("node_name",),
    ),
    Inhibition(
        "Without a driver nothing is known of any card of the node.",
        ("ExporterMissing",),
        (
            "GpuDown",
            "GpuUnhealthy",
            "GpuRecoveryNeeded",
            "ExporterCollectorFailing",
            "ExporterStale",
            "PodMapStale",
        ),
        ("node_name",),
    ),
    Inhibition(
        (
            "The driver's recovery action is the cause; the other alerts of the card are effects "
            "of the same fault."
        ),
        ("GpuXidCritical",),
        tuple(name for name in _OF_A_CARD if name != "GpuXidCritical"),
        _CARD,
    ),
    Inhibition(
        "Of a card that does not answer nothing else is news.",
        ("GpuDown",),
        tuple(name for name in _OF_A_CARD if name not in ("GpuXidCritical", "GpuDown")),
        _CARD,
    ),
    Inhibition(
        "The same, of what names cards by their index.",
        ("GpuDown",),
        ("ExporterCollectorFailing", "ExporterStale"),
        ("node_name", "gpu"),
    ),
    Inhibition(
        "What is wrong stands before that the card takes no work.",
        ("GpuRecoveryNeeded", "GpuEccUncorrected", "GpuRowRemapFailed"),
        ("GpuUnhealthy", "GpuXidWarning", "GpuRowRemapPending", "GpuPagesPending"),
        _CARD,
    ),
    Inhibition(
        "A card that is slowed down by heat is hot.", ("GpuThermalThrottle",), ("GpuHot",), _CARD
    ),
    Inhibition(
        "Who is over the limit is near it.",
        ("ContainerOverGrant",),
        ("ContainerNearLimit",),
        ("node_name", "uuid", "namespace_name", "pod_name", "container_name"),
    ),
)
