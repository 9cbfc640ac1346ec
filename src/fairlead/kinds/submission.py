"""Submitting a job of any kind: which version is written, and which objects are created."""

from __future__ import annotations

from collections.abc import Collection

from msgspec import Struct

from fairlead.kinds.parts.job_companions import companions, prerequisites
from fairlead.kinds.parts.job_spec import JobSpec
from fairlead.kinds.parts.kind import SubmittedKind
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


class Submission(Struct, frozen=True):
    """`instead`: the submission to use if the cluster serves no version of the kind."""

    kind: SubmittedKind
    instead: Submission | None = None

    def version(self, served: Served) -> str | None:
        """The best version that the cluster serves and Fairlead can write; None = there is none."""
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
