"""Which kinds can be submitted, and what must be known of a cluster before?

A new kind is one module like `mpijob_manifest` and one word here.
"""

from __future__ import annotations

from collections.abc import Collection
from importlib import import_module
from typing import Any, Final, Protocol, cast

from msgspec import Struct

from fairlead.kinds.parts.job_companions import companions, prerequisites
from fairlead.kinds.parts.job_spec import JobSpec
from fairlead.kinds.parts.kind import JobKind

Manifest = dict[str, Any]


class JobManifest(Protocol):
    """What a module of manifests has. `CREATED_VERSIONS`: the versions it writes, best first.

    `READS_SCHEMA`: whether one version of it has different fields with different operators, so that the served schema must be read.
    """

    @property
    def CREATED_VERSIONS(self) -> tuple[str, ...]: ...

    @property
    def READS_SCHEMA(self) -> bool: ...

    def requested_gpus(self, spec: JobSpec) -> int: ...

    def chief_labels(self, spec: JobSpec) -> dict[str, str]: ...

    def manifest(self, spec: JobSpec, version: str, spec_fields: Collection[str] | None = None) -> Manifest: ...


class Served(Struct, frozen=True):
    """What a cluster says before a job is made. None where it does not: the schema's `spec_fields`, whether the priority class exists."""

    versions: tuple[str, ...] = ()
    spec_fields: frozenset[str] | None = None
    user: str = ""
    has_priority: bool | None = None


class Submission(Struct, frozen=True):
    """`instead`: what a job becomes where a cluster serves no version of its kind."""

    kind: JobKind
    manifests: JobManifest
    instead: Submission | None = None

    def version(self, served: Served) -> str | None:
        """The best version that the cluster serves; None when it serves none that we can write."""
        return next((each for each in self.manifests.CREATED_VERSIONS if each in served.versions), None)

    def objects(self, spec: JobSpec, version: str, spec_fields: Collection[str] | None = None) -> list[Manifest]:
        """What the job needs, the job, and what comes with it, in the order in which they are created."""
        job = self.manifests.manifest(spec, version, spec_fields)
        before = prerequisites(spec, self.kind.TYPE, self.kind.KIND)
        return [*before, job, *companions(spec, self.kind.TYPE, self.kind.KIND, self.manifests.chief_labels(spec))]


_TYPES: Final = ("mpijob", "tfjob", "pytorchjob", "rayjob", "volcanojob", "sparkjob", "etjob", "deepspeedjob", "cron")
_INSTEAD: Final = {"deepspeedjob": "mpijob"}  # a launcher that reaches its workers by ssh is all it needs


def submission_of(type_: str) -> Submission:
    """How a job of an arena type word is submitted. Only the modules of that one kind are loaded: a submit is over in a moment."""
    if type_ not in _TYPES:
        raise LookupError(f"jobs of type `{type_}` cannot be submitted; {', '.join(_TYPES)} can")
    kind, manifests = import_module(f"fairlead.kinds.training.{type_}"), import_module(f"fairlead.kinds.training.{type_}_manifest")
    instead = submission_of(_INSTEAD[type_]) if type_ in _INSTEAD else None
    return Submission(cast("JobKind", kind), cast("JobManifest", manifests), instead)
