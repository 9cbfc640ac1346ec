"""What every job kind answers, with the same names in each module: a kind is a plain module that satisfies `JobKind`.

Nothing outside this room knows a kind by name; readers loop over `registry.KINDS` or ask `registry.kind_of(job)`.
"""

from __future__ import annotations

from typing import Any, Final, Protocol

from fairlead.model.jobs.job import Job
from fairlead.model.pod import Pod, PodPhase
from fairlead.model.snapshot import ClusterSnapshot
from fairlead.wire import names


class JobKind(Protocol):
    """`VERSIONS`: served versions we can read, best first. `WIRE`: the struct an item of a list decodes to.

    `WORDS`: other words of `arena -T` for it, the long one first. `POD_LABELS`: every pod of such a job has one of them, with the job's
    name as its value, or else, made by an operator of earlier years, one of `OLDER_POD_LABELS`.
    """

    @property
    def TYPE(self) -> str: ...
    @property
    def KIND(self) -> str: ...
    @property
    def GROUP(self) -> str: ...
    @property
    def PLURAL(self) -> str: ...
    @property
    def VERSIONS(self) -> tuple[str, ...]: ...
    @property
    def TITLE(self) -> str: ...
    @property
    def WORDS(self) -> tuple[str, str]: ...
    @property
    def POD_LABELS(self) -> tuple[str, ...]: ...
    @property
    def OLDER_POD_LABELS(self) -> tuple[str, ...]: ...
    @property
    def WIRE(self) -> type[Any]: ...

    def parse(self, wire: Any, version: str) -> Job: ...

    def role_of(self, pod: Pod) -> str: ...

    def is_member(self, pod: Pod, job: Job) -> bool: ...

    def pods_of(self, job: Job, snapshot: ClusterSnapshot) -> list[Pod]: ...

    def pod_selectors(self, job: Job) -> tuple[str, ...]: ...

    def chief_of(self, job: Job, pods: list[Pod]) -> Pod | None: ...


_AMBIGUOUS: Final = ("jobs",)
"""Plurals that Kubernetes' own resources have, too."""


def source_of(kind: JobKind) -> str:
    """The name of a snapshot's source for this kind: its plural, with the group where that alone could mean something else."""
    return label_of(kind) if kind.PLURAL in _AMBIGUOUS else kind.PLURAL


def label_of(kind: JobKind) -> str:
    """`mpijobs.kubeflow.org`: as the API server's own messages name the kind, and commands name what they skipped (arena contract §6)."""
    return f"{kind.PLURAL}.{kind.GROUP}"


def select_pods(job: Job, snapshot: ClusterSnapshot, operators: tuple[str, ...], older_labels: tuple[str, ...]) -> list[Pod]:
    """The job's pods by name: owned by it, or labelled with its name by one of `operators` (a launcher's owner is a batch Job).

    A pod that another owner of the same kind controls is never taken, so two jobs of one name in a row do not mix.
    """
    candidates = list(snapshot.pods_owned_by(job.uid))
    for label in (names.LABEL_JOB_NAME, *older_labels):
        candidates += snapshot.pods_labelled(job.namespace, label, job.name)
    members = {pod.key: pod for pod in candidates if is_labelled_member(pod, job, operators, older_labels)}
    return [members[key] for key in sorted(members)]


def label_selectors(job: Job) -> tuple[str, ...]:
    """Label selectors that find the pods which `select_pods` takes, and perhaps a few more."""
    return (f"{names.LABEL_JOB_NAME}={job.name}",)


def is_labelled_member(pod: Pod, job: Job, operators: tuple[str, ...], older_labels: tuple[str, ...]) -> bool:
    """Owner uid first; then the labels that the operators write on every pod."""
    for owner in pod.owners:
        if owner.kind == job.kind:
            return owner.uid == job.uid if job.uid else owner.name == job.name
    if pod.namespace != job.namespace or first_label(pod, names.LABEL_JOB_NAME, *older_labels) != job.name:
        return False
    operator = pod.labels.get(names.LABEL_OPERATOR, "")
    return not operator or operator in operators


def select_named_pods(job: Job, snapshot: ClusterSnapshot, label: str) -> list[Pod]:
    """The job's pods where nothing but `label`, with the job's name, tells of it."""
    found = snapshot.pods_labelled(job.namespace, label, job.name)
    return sorted((pod for pod in found if is_named_member(pod, job, label)), key=lambda pod: pod.key)


def is_named_member(pod: Pod, job: Job, label: str) -> bool:
    """By label and, where an object of the job's kind owns the pod, by its uid: two jobs of one name in a row do not mix."""
    if pod.namespace != job.namespace or pod.labels.get(label) != job.name:
        return False
    owners = {owner.uid for owner in pod.owners if owner.kind == job.kind}
    return not owners or not job.uid or job.uid in owners


def first_label(pod: Pod, *labels: str) -> str:
    """The value of the first of these labels that the pod has; "" without any."""
    return next((pod.labels[label] for label in labels if label in pod.labels), "")


def newest_not_pending(pods: list[Pod]) -> Pod | None:
    """Of several candidates for chief: the newest that is past Pending, else the newest (arena contract 4)."""
    ordered = sorted(pods, key=lambda pod: (pod.phase != PodPhase.PENDING, pod.created_at or 0.0, pod.name))
    return ordered[-1] if ordered else None
