"""The protocol `JobKind`: the names that the module of every job kind defines, and the part of it
that creating an object needs.

Other code refers to no kind by name: it loops over `registry.KINDS` or calls
`registry.kind_of(job)`. Read-only commands load all kinds, so functions that submit import what
only submitting needs (specs, hashes).
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


class CreatedKind(Protocol):
    """A kind of object that is created.

    `CREATED_VERSIONS`: versions that are written; best first. `READS_SCHEMA`: whether fields of one
    version differ between operators, so that the served schema must be read before one is written.
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
    def CREATED_VERSIONS(self) -> tuple[str, ...]: ...
    @property
    def READS_SCHEMA(self) -> bool: ...


class SubmittedKind(CreatedKind, Protocol):
    """A kind of object that is made of a `JobSpec`."""

    def requested_gpus(self, spec: JobSpec) -> int: ...

    def chief_labels(self, spec: JobSpec) -> dict[str, str]: ...

    def manifest(
        self, spec: JobSpec, version: str, spec_fields: Collection[str] | None = None
    ) -> Manifest:
        """`spec_fields`: the fields of `spec` in the served schema; None = unknown."""
        ...


class JobKind(SubmittedKind, Protocol):
    """One kind of job.

    `VERSIONS`: served versions that can be read, best first.

    `WIRE`: the struct that a list item is decoded to. `WORDS`: other words of `arena -T` for the
    kind, the long one first. `POD_LABELS`: every pod of such a job has one of these labels with the
    job's name, or, if an older operator created it, one of `OLDER_POD_LABELS`.
    """

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
"""Plurals that resources of Kubernetes itself have too."""


def source_of(kind: CreatedKind) -> str:
    """The name of a snapshot's source for this kind: its plural, with the group if ambiguous."""
    return label_of(kind) if kind.PLURAL in _AMBIGUOUS else kind.PLURAL


def label_of(kind: CreatedKind) -> str:
    """The kind as `mpijobs.kubeflow.org`, which commands print for skipped kinds."""
    return f"{kind.PLURAL}.{kind.GROUP}"


class LabelledPods(Struct, frozen=True):
    """Finds the pods of a job by name.

    `operators` label every pod with the job's name, or with `older_labels`.
    """

    operators: tuple[str, ...]
    older_labels: tuple[str, ...]

    def is_member(self, pod: Pod, job: Job) -> bool:
        """Whether the pod belongs to the job: by owner uid, else by the operators' labels."""
        for owner in pod.owners:
            if owner.kind == job.kind:
                return owner.uid == job.uid if job.uid else owner.name == job.name
        if (
            pod.namespace != job.namespace
            or first_label(pod, names.LABEL_JOB_NAME, *self.older_labels) != job.name
        ):
            return False
        operator = pod.labels.get(names.LABEL_OPERATOR, "")
        return not operator or operator in self.operators

    def pods_of(self, job: Job, snapshot: ClusterSnapshot) -> list[Pod]:
        """The job's pods by name: owned by it, or labelled with its name.

        A launcher's owner is a batch Job.

        Pods controlled by another object of the same kind are excluded, so that successive jobs
        with one name stay apart.
        """
        candidates = list(snapshot.pods_owned_by(job.uid))
        for label in (names.LABEL_JOB_NAME, *self.older_labels):
            candidates += snapshot.pods_labelled(job.namespace, label, job.name)
        members = {pod.key: pod for pod in candidates if self.is_member(pod, job)}
        return [members[key] for key in sorted(members)]

    def selectors(self, job: Job) -> tuple[str, ...]:
        """Label selectors that match the pods of `pods_of`, and possibly a few others."""
        return (f"{names.LABEL_JOB_NAME}={job.name}",)


class NamedPods(Struct, frozen=True):
    """Finds the pods of a job whose only mark is `label` with the job's name."""

    label: str

    def is_member(self, pod: Pod, job: Job) -> bool:
        """Whether the pod is the job's.

        By label and, if an object of the job's kind owns the pod, by its uid, so that jobs stay
        apart.
        """
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
    """The value of the first of these labels that the pod has; "" = it has none."""
    return next((pod.labels[label] for label in labels if label in pod.labels), "")


def newest_not_pending(pods: list[Pod]) -> Pod | None:
    """The chief among several candidates: the newest that is past Pending, else the newest.

    See docs/spec/arena-cli.md#pods-of-a-job.
    """
    ordered = sorted(
        pods, key=lambda pod: (pod.phase != PodPhase.PENDING, pod.created_at or 0.0, pod.name)
    )
    return ordered[-1] if ordered else None
