"""What every job kind answers, with the same names in each module: a kind is a plain module that satisfies
`JobKind`.

Readers know no kind by name: they loop over `registry.KINDS` or ask `registry.kind_of(job)`. Read-only verbs
load all kinds, so what only submitting needs (specs, hashes) is loaded by the functions that need it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol

from msgspec import Struct

from fairlead.model.jobs.job import Job
from fairlead.model.pod import Pod, PodPhase
from fairlead.model.snapshot import ClusterSnapshot
from fairlead.wire import names

if TYPE_CHECKING:
    from collections.abc import Collection

    from fairlead.kinds.parts.job_spec import JobSpec
    from fairlead.model.actions import Manifest


class JobKind(Protocol):
    """`VERSIONS`: served versions we can read, `CREATED_VERSIONS` those we write, both best first.

    `WIRE`: the struct an item of a list decodes to. `WORDS`: other words of `arena -T` for it, the long one
    first. `POD_LABELS`: every pod of such a job has one of them, with the job's name as its value, or else,
    made by an operator of earlier years, one of `OLDER_POD_LABELS`. `READS_SCHEMA`: whether one version of it
    has different fields with different operators, so that the served schema must be read before one is
    written.
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
    def CREATED_VERSIONS(self) -> tuple[str, ...]: ...
    @property
    def READS_SCHEMA(self) -> bool: ...
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

    def requested_gpus(self, spec: JobSpec) -> int: ...

    def chief_labels(self, spec: JobSpec) -> dict[str, str]: ...

    def manifest(self, spec: JobSpec, version: str, spec_fields: Collection[str] | None = None) -> Manifest:
        """`spec_fields`: what the served schema has in `spec`; None where nobody knows."""
        ...


_AMBIGUOUS: Final = ("jobs",)
"""Plurals that Kubernetes' own resources have, too."""


def source_of(kind: JobKind) -> str:
    """The name of a snapshot's source for this kind: its plural, with the group where it is ambiguous."""
    return label_of(kind) if kind.PLURAL in _AMBIGUOUS else kind.PLURAL


def label_of(kind: JobKind) -> str:
    """`mpijobs.kubeflow.org`: as the API server names the kind, and commands what they skipped."""
    return f"{kind.PLURAL}.{kind.GROUP}"


class LabelledPods(Struct, frozen=True):
    """How the pods of a job are found where `operators` write its name on each, or in `older_labels`."""

    operators: tuple[str, ...]
    older_labels: tuple[str, ...]

    def is_member(self, pod: Pod, job: Job) -> bool:
        """Owner uid first; then the labels that the operators write on every pod."""
        for owner in pod.owners:
            if owner.kind == job.kind:
                return owner.uid == job.uid if job.uid else owner.name == job.name
        if pod.namespace != job.namespace or first_label(pod, names.LABEL_JOB_NAME, *self.older_labels) != job.name:
            return False
        operator = pod.labels.get(names.LABEL_OPERATOR, "")
        return not operator or operator in self.operators

    def pods_of(self, job: Job, snapshot: ClusterSnapshot) -> list[Pod]:
        """By name: owned by the job, or labelled with its name (a launcher's owner is a batch Job).

        A pod that another owner of the same kind controls is never taken, so two jobs of one name in a row do
        not mix.
        """
        candidates = list(snapshot.pods_owned_by(job.uid))
        for label in (names.LABEL_JOB_NAME, *self.older_labels):
            candidates += snapshot.pods_labelled(job.namespace, label, job.name)
        members = {pod.key: pod for pod in candidates if self.is_member(pod, job)}
        return [members[key] for key in sorted(members)]

    def selectors(self, job: Job) -> tuple[str, ...]:
        """They find the pods which `pods_of` takes, and perhaps a few more."""
        return (f"{names.LABEL_JOB_NAME}={job.name}",)


class NamedPods(Struct, frozen=True):
    """How the pods of a job are found where nothing but `label`, with the job's name, tells of it."""

    label: str

    def is_member(self, pod: Pod, job: Job) -> bool:
        """By label and, where an object of the job's kind owns the pod, by its uid: no two jobs mix."""
        if pod.namespace != job.namespace or pod.labels.get(self.label) != job.name:
            return False
        owners = {owner.uid for owner in pod.owners if owner.kind == job.kind}
        return not owners or not job.uid or job.uid in owners

    def pods_of(self, job: Job, snapshot: ClusterSnapshot) -> list[Pod]:
        found = snapshot.pods_labelled(job.namespace, self.label, job.name)
        return sorted((pod for pod in found if self.is_member(pod, job)), key=lambda pod: pod.key)

    def selectors(self, job: Job) -> tuple[str, ...]:
        return (f"{self.label}={job.name}",)


def first_label(pod: Pod, *labels: str) -> str:
    """The value of the first of these labels that the pod has; "" without any."""
    return next((pod.labels[label] for label in labels if label in pod.labels), "")


def newest_not_pending(pods: list[Pod]) -> Pod | None:
    """Of several candidates for chief: the newest that is past Pending, else the newest.

    See docs/spec/arena-cli.md#pods-of-a-job.
    """
    ordered = sorted(pods, key=lambda pod: (pod.phase != PodPhase.PENDING, pod.created_at or 0.0, pod.name))
    return ordered[-1] if ordered else None
