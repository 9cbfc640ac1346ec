"""Rows of a job, and its manifest."""

from __future__ import annotations

import json
from typing import Any, Final

from tests.usage.recording import T0

from fairlead.model.jobs.job import Job
from fairlead.wire.usage.manifests import FollowedJob, followed_job

JOBS: Final = "mpijobs"
JOB: Final = Job("mpijob", "MPIJob", "kubeflow.org/v2beta1", "ml", "bert", "uid-1", created_at=T0)


def row(job: Job = JOB, **spec: Any) -> FollowedJob:
    return followed_job(job, json.dumps({"spec": spec, "status": {"at": job.word}}).encode())
