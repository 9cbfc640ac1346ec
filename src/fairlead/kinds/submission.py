"""Submitting a job of any kind: which version is written, and which objects are created."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Protocol

from msgspec import Struct

from fairlead.kinds.parts.job_companions import companions, prerequisites
from fairlead.kinds.parts.job_spec import JobSpec
from fairlead.kinds.parts.kind import CreatedKind, SubmittedKind
from fairlead.model.actions import Manifest


class Served(Struct, frozen=True):
    """What a cluster serves, read before a job is created. None = unknown.

    `spec_fields`: fields of the schema of a version; `has_priority`: whether the priority class
    exists.
    """

    versions: tuple[str, ...] = ()
    spec_fields: frozenset[str] | None = None
    user: str = ""
    has_priority: bool | None = None


class AnySubmission(Protocol):
    """How objects of one kind, and those beside them, are created: of a job, a cron, a serving job.

    `kind`: of the main object. `instead`: the submission to use if the cluster serves no version of
    it.
    """

    @property
    def kind(self) -> CreatedKind: ...
    @property
    def instead(self) -> AnySubmission | None: ...

    def version(self, served: Served) -> str | None:
        """The best version that the cluster serves and Fairlead can write; None = there is none."""
        ...

    def objects(
        self, spec: Any, version: str, spec_fields: Collection[str] | None = None
    ) -> list[Manifest]:
        """In the order of creation. `spec`: of this kind."""
        ...


class Submission(Struct, frozen=True):
    """See `AnySubmission`; of what is made of a `JobSpec`."""

    kind: SubmittedKind
    instead: Submission | None = None

    def version(self, served: Served) -> str | None:
        return next((each for each in self.kind.CREATED_VERSIONS if each in served.versions), None)

    def objects(
        self, spec: JobSpec, version: str, spec_fields: Collection[str] | None = None
    ) -> list[Manifest]:
        """The job's prerequisites, the job, and its companions, in the order of creation."""
        job = self.kind.manifest(spec, version, spec_fields)
        before = prerequisites(spec, self.kind.TYPE, self.kind.KIND)
        return [
            *before,
            job,
            *companions(spec, self.kind.TYPE, self.kind.KIND, self.kind.chief_labels(spec)),
        ]
