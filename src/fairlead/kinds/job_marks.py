"""How pods find the training job to which they belong, for all kinds together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from fairlead.kinds.registry import KINDS, kind_by_type
from fairlead.model.jobs.job import Job
from fairlead.model.pod import Pod


class AllJobMarks:
    """`rules.usage.recording.owners.JobMarks` of all registered kinds."""

    labels: Sequence[str]

    def __init__(self) -> None:
        found: dict[str, None] = {}
        for kind in KINDS:
            found |= dict.fromkeys((*kind.POD_LABELS, *kind.OLDER_POD_LABELS))
            example = Job(kind.TYPE, kind.KIND, "v1", "n", "j", labels=_ANY)
            found |= {each.partition("=")[0]: None for each in kind.pod_selectors(example)}
        self.labels = tuple(found)

    def marks(self, job: Job) -> Sequence[str]:
        kind = kind_by_type(job.type)
        if kind is None:
            return ()
        labels = (*kind.POD_LABELS, *kind.OLDER_POD_LABELS)
        return (*kind.pod_selectors(job), *(f"{label}={job.name}" for label in labels))

    def is_member(self, pod: Pod, job: Job) -> bool:
        kind = kind_by_type(job.type)
        return kind is not None and kind.is_member(pod, job)


class _Any(dict[str, str]):
    """Has every label, so that a kind names each label that it may select by."""

    def get(self, key: str, default: object = None) -> str:
        return "x"


_ANY: Final = _Any()
