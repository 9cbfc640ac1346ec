"""A job with its pods, found by the job's kind: the argument of rules about jobs."""

from __future__ import annotations

from msgspec import Struct

from fairlead.model.jobs.job import Job
from fairlead.model.pod import Pod


class JobInstances(Struct, frozen=True, gc=False):
    """`pods` by name; `roles[i]` is the role of `pods[i]`, "" when it has none.

    `chief`: the pod whose result is the job's result.
    """

    job: Job
    pods: tuple[Pod, ...] = ()
    roles: tuple[str, ...] = ()
    chief: Pod | None = None
