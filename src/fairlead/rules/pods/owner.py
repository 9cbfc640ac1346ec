"""The owner of a pod that a user knows.

It is the Deployment, not the ReplicaSet that it created; the CronJob, not its Job of today.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from fairlead.model.pod import Owner, Pod
from fairlead.model.quota.rows import Workload

_HASH: Final = "pod-template-hash"
_SCHEDULED: Final = re.compile(r"(?P<name>.+)-(?P<minute>\d{8,9})")
"""A CronJob names a Job by its own name and the minute, since the epoch, for which the Job was due.
"""
_LATE_SECONDS: Final = 7 * 86_400.0
"""`_LATE_SECONDS`: how much later the Job may still create a pod, after a failure or a pause."""
_CLOCK_SECONDS: Final = 120.0
"""`_CLOCK_SECONDS`: allowed difference between the clocks of the writers of the two times."""
_NO_WORKLOADS: Final[Mapping[str, Workload]] = {}


def named_owner(pod: Pod, workloads: Mapping[str, Workload] = _NO_WORKLOADS) -> Owner | None:
    """The controller of the pod, or what created that controller; None = a person created the pod.

    `workloads`: by uid, as far as they were read. For a Job that is not among them its name is
    used: it ends with a minute shortly before the pod was created, which a date or number that a
    person writes does not. A Deployment names its ReplicaSets by its own name and the hash in their
    pods' label.

    >>> owners = (Owner("ReplicaSet", "web-5d", "uid", controller=True),)
    >>> owner = named_owner(Pod("a", "web-5d-x", labels={"pod-template-hash": "5d"}, owners=owners))
    >>> owner.kind, owner.name
    ('Deployment', 'web')
    """
    owner = pod.controller
    if owner is None:
        return None
    if owner.kind == "Job":
        name = _schedule_of(owner, pod, workloads)
        return (
            Owner("CronJob", name, "", controller=True, api_version="batch/v1") if name else owner
        )
    suffix = f"-{pod.labels.get(_HASH, '')}"
    if owner.kind == "ReplicaSet" and len(suffix) > 1 and owner.name.endswith(suffix):
        return Owner(
            "Deployment",
            owner.name.removesuffix(suffix),
            "",
            controller=True,
            api_version="apps/v1",
        )
    return owner


def _schedule_of(job: Owner, pod: Pod, workloads: Mapping[str, Workload]) -> str:
    """The CronJob's name; "" = the Job was not created by one."""
    known, found = workloads.get(job.uid), _SCHEDULED.fullmatch(job.name)
    if known is not None:
        if known.owner_kind != "CronJob":
            return ""
        maker = workloads.get(known.owner)
        return maker.name if maker is not None else found["name"] if found else ""
    if found is None or pod.created_at is None:
        return ""
    late = pod.created_at - 60 * int(found["minute"])
    return found["name"] if -_CLOCK_SECONDS <= late <= _LATE_SECONDS else ""
