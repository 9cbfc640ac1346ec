"""Who is charged for a pod, and to which job it belongs (docs/spec/usage.md#pod-intervals)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Protocol

from fairlead.model.jobs.job import Job
from fairlead.model.keys import (
    ANNOTATION_USERNAME,
    LABEL_SERVING_NAME,
    LABEL_SERVING_TYPE,
    LABEL_USER,
)
from fairlead.model.pod import Pod
from fairlead.model.quota.rows import Workload
from fairlead.model.quota.tree import QuotaTree
from fairlead.model.usage.ledger import LedgerJob, UsedBy

_LONGEST_CHAIN: Final = 5
"""PodOwners above each other that are looked for, so that a circle ends."""


class JobMarks(Protocol):
    """How the kinds of jobs find their pods (`kinds/job_marks`)."""

    @property
    def labels(self) -> Sequence[str]:
        """Labels by which pods belong to a job."""
        ...

    def marks(self, job: Job) -> Sequence[str]:
        """`label=value`: each pod of the job has one of them, or is owned by the job."""
        ...

    def is_member(self, pod: Pod, job: Job) -> bool: ...


class PodOwners:
    """Jobs, owners of pods, and the leaves of namespaces, as they are now."""

    def __init__(self, marks: JobMarks) -> None:
        self.jobs: dict[str, Job] = {}
        self.workloads: dict[str, Workload] = {}
        self.leaves: Mapping[str, str] = {}
        self._marks = marks
        self._marked: dict[tuple[str, str], dict[str, None]] = {}

    def put_job(self, uid: str, job: Job | None) -> None:
        before = self.jobs.pop(uid, None)
        if before is not None:
            for key in self._keys(before):
                found = self._marked.get(key, {})
                found.pop(uid, None)
                if not found:
                    self._marked.pop(key, None)
        if job is not None:
            self.jobs[uid] = job
            for key in self._keys(job):
                self._marked.setdefault(key, {})[uid] = None

    def put_tree(self, tree: QuotaTree | None) -> set[str]:
        """Returns the namespaces that belong to another leaf now. A tree that cannot be read keeps
        the leaves that were known.
        """
        if tree is not None and tree.sound_root is None:
            return set()
        root = tree.sound_root if tree is not None else None
        before = self.leaves
        self.leaves = (
            {name: leaf.name for leaf in root.leaves() for name in leaf.namespaces} if root else {}
        )
        names = {*before, *self.leaves}
        return {name for name in names if before.get(name, "") != self.leaves.get(name, "")}

    def used_by(self, pod: Pod) -> UsedBy:
        return UsedBy(pod.namespace, user_of(pod), self.leaves.get(pod.namespace, ""))

    def used_by_job(self, job: Job) -> UsedBy:
        return UsedBy(job.namespace, user_of(job), self.leaves.get(job.namespace, ""))

    def job_of(self, pod: Pod) -> LedgerJob:
        """The training or serving job of a pod; all "" for none."""
        chain = tuple(self._chain(pod))
        for uid in chain:
            if (job := self.jobs.get(uid)) is not None:
                return LedgerJob(uid, job.name, job.type)
        for label in self._marks.labels:
            if (value := pod.labels.get(label)) is None:
                continue
            for uid in self._marked.get((pod.namespace, f"{label}={value}"), ()):
                job = self.jobs[uid]
                if self._marks.is_member(pod, job):
                    return LedgerJob(uid, job.name, job.type)
        name = pod.labels.get(LABEL_SERVING_NAME, "")
        if name and (type_ := pod.labels.get(LABEL_SERVING_TYPE, "")):
            return LedgerJob(chain[-1] if chain else "", name, type_)
        return LedgerJob()

    def _chain(self, pod: Pod) -> Iterator[str]:
        """The pod's controller, its controller, and so on, as far as they are known."""
        owner = pod.controller
        uid = owner.uid if owner is not None else ""
        for _ in range(_LONGEST_CHAIN):
            if not uid:
                return
            yield uid
            above = self.workloads.get(uid)
            uid = above.owner if above is not None else ""

    def _keys(self, job: Job) -> list[tuple[str, str]]:
        return [(job.namespace, mark) for mark in self._marks.marks(job)]


def user_of(row: Pod | Job) -> str:
    """The user's label, else the annotation of `arena submit`, else "".

    >>> user_of(Pod("a", "p", annotations={"arena.kubeflow.org/username": "bob"}))
    'bob'
    """
    return row.labels.get(LABEL_USER) or row.annotations.get(ANNOTATION_USERNAME, "")
