"""The registered job kinds.

A new kind is a module like `training.mpijob` and an entry in this tuple.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from fairlead.kinds.parts.kind import JobKind
from fairlead.kinds.training import (
    deepspeedjob,
    etjob,
    mpijob,
    pytorchjob,
    rayjob,
    sparkjob,
    tfjob,
    volcanojob,
)
from fairlead.model.jobs.job import Job

KINDS: Final[tuple[JobKind, ...]] = (
    mpijob,
    tfjob,
    pytorchjob,
    rayjob,
    volcanojob,
    etjob,
    deepspeedjob,
    sparkjob,
)
_BY_TYPE: Final = {kind.TYPE: kind for kind in KINDS}


def kind_of(job: Job) -> JobKind:
    """The module of this job's kind; raises KeyError for an unregistered type."""
    return _BY_TYPE[job.type]


def kind_by_type(type_: str) -> JobKind | None:
    """The kind of an arena type word (`mpijob`), or None."""
    return _BY_TYPE.get(type_)


def one_per_resource(kinds: Iterable[JobKind]) -> tuple[JobKind, ...]:
    """The first of the kinds that share a resource: its parser returns the jobs of all of them."""
    found: dict[tuple[str, str], JobKind] = {}
    for kind in kinds:
        found.setdefault((kind.GROUP, kind.PLURAL), kind)
    return tuple(found.values())


_NOT_BUILT: Final = {"horovodjob": ("Horovod", "horovod")}
"""Types of arena without a module: their words are accepted, but no jobs of them are found."""
TYPE_WORDS: Final = {**{kind.TYPE: kind.WORDS for kind in KINDS}, **_NOT_BUILT}


def type_of_word(word: str) -> str | None:
    """The type for a word after `arena -T`, in any case; None for an unknown word.

    >>> type_of_word("TensorFlow"), type_of_word("et"), type_of_word("x")
    ('tfjob', 'etjob', None)
    """
    wanted = word.lower()
    return next(
        (
            type_
            for type_, words in TYPE_WORDS.items()
            if wanted in (type_, *(each.lower() for each in words))
        ),
        None,
    )
