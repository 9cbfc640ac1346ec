"""Jobs that the quota controller holds back, and the patches that let them run.

A job is suspended as a whole, or, if it is a batch Job, has a lower `parallelism` than its owner
gave it. Annotations record both (docs/spec/quota.md); marks that no longer apply change nothing.
"""

from __future__ import annotations

from typing import Any, Final

from fairlead.model.actions import Manifest, ObjectRef, PatchObject, object_ref
from fairlead.model.keys import (
    ANNOTATION_LOWERED,
    ANNOTATION_PARALLELISM,
    ANNOTATION_SUSPENDED_FOR,
    ANNOTATION_SUSPENDED_PRIORITY,
)
from fairlead.rules.quota.jobs.turning import RUN_POLICY_KINDS

HELD_KINDS: Final = (
    ObjectRef("batch/v1", "Job", ""),
    ObjectRef("kubeflow.org/v1", "TFJob", ""),
    ObjectRef("kubeflow.org/v1", "PyTorchJob", ""),
    ObjectRef("kubeflow.org/v2beta1", "MPIJob", ""),
    ObjectRef("kubeflow.org/v1", "MPIJob", ""),
    ObjectRef("ray.io/v1", "RayJob", ""),
)
"""Kinds that the quota controller suspends."""
_MARKS: Final = (
    ANNOTATION_SUSPENDED_FOR,
    ANNOTATION_SUSPENDED_PRIORITY,
    ANNOTATION_PARALLELISM,
    ANNOTATION_LOWERED,
)


def release_of(job: Manifest) -> PatchObject | None:
    """The patch that lets the job run as its owner wrote it; None if Fairlead does not hold it.

    >>> job = {"apiVersion": "batch/v1", "kind": "Job", "spec": {"parallelism": 1},
    ...     "metadata": {"name": "a", "namespace": "team", "annotations":
    ...         {"fairlead.io/parallelism": "4", "fairlead.io/lowered-parallelism": "1"}}}
    >>> release_of(job).patch["spec"]
    {'parallelism': 4}
    """
    marks = job["metadata"].get("annotations") or {}
    spec: dict[str, Any] = job.get("spec") or {}
    policy = (spec.get("runPolicy") or {}) if job["kind"] in RUN_POLICY_KINDS else spec
    change: dict[str, Any] = {}
    if policy.get("suspend") and marks.get(ANNOTATION_SUSPENDED_FOR):
        go_on = {"suspend": False}
        change = {"runPolicy": go_on} if job["kind"] in RUN_POLICY_KINDS else go_on
    own, lowered = marks.get(ANNOTATION_PARALLELISM), marks.get(ANNOTATION_LOWERED)
    if own and own.isdecimal() and lowered == str(spec.get("parallelism")):
        change = {**change, "parallelism": int(own)}
    if not change:
        return None
    gone = {name: None for name in _MARKS if name in marks}
    return PatchObject(object_ref(job), {"metadata": {"annotations": gone}, "spec": change})
