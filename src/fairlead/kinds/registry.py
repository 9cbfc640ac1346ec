"""The job kinds Fairlead knows. A new kind is one module like `mpijob` and one word in this tuple."""

from __future__ import annotations

from typing import Final

from fairlead.kinds import mpijob, pytorchjob, rayjob, tfjob
from fairlead.kinds.kind import JobKind
from fairlead.model.job import Job

KINDS: Final[tuple[JobKind, ...]] = (mpijob, tfjob, pytorchjob, rayjob)
_BY_TYPE: Final = {kind.TYPE: kind for kind in KINDS}


def kind_of(job: Job) -> JobKind:
    """The module that knows this job's kind; raises KeyError for a type no module registered."""
    return _BY_TYPE[job.type]


def kind_by_type(type_: str) -> JobKind | None:
    """The kind of an arena type word (`mpijob`), or None."""
    return _BY_TYPE.get(type_)
