"""How the console writes jobs: with the code of the commands, which `run/` hands to it.

The console knows no flag. A form is what a verb's parser accepts, and a body becomes the words of a
command line, so that page and command cannot differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from fairlead.console.pages.envelope import FieldFault
from fairlead.console.pages.writing.jobs import JobClone, JobForm, JobSubmission
from fairlead.kinds.parts.job_spec import JobSpec
from fairlead.kinds.parts.kind import CreatedKind
from fairlead.kinds.serving.spec import ServingSpec
from fairlead.kinds.submission import AnySubmission, Served
from fairlead.model.actions import Manifest


class WrittenJob(Struct, frozen=True):
    """A job, cron or serving job that was read from a body. `spec`: one of the submission's kind.
    `line`: the equal command line.
    """

    submission: AnySubmission
    spec: JobSpec | ServingSpec
    line: str


class JobForms(Protocol):
    """The kinds of jobs that can be submitted, and their flags."""

    def forms(self) -> Sequence[JobForm]:
        """One per type, `is_served` undecided."""
        ...

    def kind_of(self, type_: str) -> CreatedKind | None:
        """What a form of this type creates; None = there is no form of it."""
        ...

    def read(self, asked: JobSubmission, *, is_trial: bool) -> WrittenJob | list[FieldFault]:
        """The job, or all that is wrong with the body. `is_trial`: no keys are made for it."""
        ...

    def objects(self, job: WrittenJob, served: Served) -> list[Manifest]:
        """The job's objects in the order of creation, as this cluster takes them.

        Raises UserError for pods that no API server accepts.
        """
        ...

    def cloned(self, type_: str, job: Manifest) -> JobClone:
        """A body that makes a job like this one. `job`: without secret values."""
        ...
