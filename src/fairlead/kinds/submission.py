"""A job of some kind on its way into a cluster: which version is written, and which objects are made."""

from __future__ import annotations

from collections.abc import Collection

from msgspec import Struct

from fairlead.kinds.parts.job_companions import companions, prerequisites
from fairlead.kinds.parts.job_spec import JobSpec
from fairlead.kinds.parts.kind import JobKind
from fairlead.model.actions import Manifest


class Served(Struct, frozen=True):
    """What a cluster says before a job is made. None where it does not.

    `spec_fields` are those of the schema of a version; `has_priority`: whether the priority class exists.
    """

    versions: tuple[str, ...] = ()
    spec_fields: frozenset[str] | None = None
    user: str = ""
    has_priority: bool | None = None


class Submission(Struct, frozen=True):
    """`instead`: what a job becomes where a cluster serves no version of its kind."""

    kind: JobKind
    instead: Submission | None = None

    def version(self, served: Served) -> str | None:
        """The best version that the cluster serves; None when it serves none that we can write."""
        return next((each for each in self.kind.CREATED_VERSIONS if each in served.versions), None)

    def objects(self, spec: JobSpec, version: str, spec_fields: Collection[str] | None = None) -> list[Manifest]:
        """What the job needs, the job, and what comes with it, in the order in which they are created."""
        job = self.kind.manifest(spec, version, spec_fields)
        before = prerequisites(spec, self.kind.TYPE, self.kind.KIND)
        return [*before, job, *companions(spec, self.kind.TYPE, self.kind.KIND, self.kind.chief_labels(spec))]
