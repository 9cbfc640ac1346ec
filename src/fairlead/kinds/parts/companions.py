"""Finds the objects that were created with a job and have no owner reference to it.

It looks for the labels and names that Fairlead writes.

`job_companions` writes them. Jobs of different kinds may have the same name, so every search
includes the label `app`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct

from fairlead.model.jobs.job import Job
from fairlead.wire import names

_FILES: Final = ("ConfigMap",)
_BOARD: Final = ("Deployment", "Service")
_KEYS: Final = ("Secret",)
_WITH_KEYS: Final = frozenset(("etjob", "deepspeedjob"))


class Companions(Struct, frozen=True):
    """Objects of these `kinds` that match `selector` and whose names begin with `name`."""

    kinds: tuple[str, ...]
    selector: str
    name: str

    def has(self, kind: str, name: str) -> bool:
        """Whether Fairlead gives an object of this kind this name.

        >>> companions = Companions((), "", "j")
        >>> [companions.has("ConfigMap", name) for name in ("j-0123456789abcde", "j-mine")]
        [True, False]
        """
        suffix = {"ConfigMap": "-[0-9a-f]{15}", "Secret": ""}.get(kind, "-tensorboard")
        return re.fullmatch(re.escape(self.name) + suffix, name) is not None


def beside_job(job: Job) -> Companions:
    """Whether Fairlead wrote the job, and whether it has a TensorBoard.

    Both from the job's own labels and annotations.
    """
    is_from_fairlead = job.labels.get("heritage") == "fairlead"
    board = _BOARD if job.annotations.get(names.ANNOTATION_TENSORBOARD) else ()
    keys = _KEYS if job.type in _WITH_KEYS else ()
    return Companions(
        (*_FILES, *board, *keys) if is_from_fairlead else (),
        _selector(job.name, (job.type,)),
        job.name,
    )


def of_gone_job(name: str, types: Sequence[str]) -> Companions:
    """All companions that a job of one of these arena types may have had."""
    keys = _KEYS if _WITH_KEYS & set(types) else ()
    return Companions((*_FILES, *_BOARD, *keys), _selector(name, types), name)


def beside_cron(name: str) -> Companions:
    return Companions(_FILES, _selector(name, ("cron",)), name)


def beside_serving(release: str, selector: str, labels: Mapping[str, str]) -> Companions:
    """`selector` finds the serving job's own objects; its Services need no search here."""
    is_from_fairlead = labels.get("heritage") == "fairlead"
    return Companions(
        _FILES if is_from_fairlead else (),
        f"{selector},heritage=fairlead,release={release}",
        release,
    )


def _selector(release: str, types: Sequence[str]) -> str:
    return f"heritage=fairlead,release={release},app in ({','.join(sorted(types))})"
