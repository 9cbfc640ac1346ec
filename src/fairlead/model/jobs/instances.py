"""A job together with its pods, as its kind found them: the argument of rules about jobs."""

from __future__ import annotations

from msgspec import Struct

from fairlead.model.jobs.job import Job
from fairlead.model.pod import Pod


class JobInstances(Struct, frozen=True, gc=False):
    """`pods` by name; `roles[i]` is the role word of `pods[i]`, "" when it has none.

    `chief`: the pod whose fate is the job's.
    """

    job: Job
    pods: tuple[Pod, ...] = ()
    roles: tuple[str, ...] = ()
    chief: Pod | None = None
