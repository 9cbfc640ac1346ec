"""Whose a pod is, in the word that a person used: the Deployment, not the ReplicaSet that it made.

The CronJob, not today's Job of it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from fairlead.model.pod import Owner, Pod
from fairlead.model.quota.rows import Workload

_HASH: Final = "pod-template-hash"
_SCHEDULED: Final = re.compile(r"(?P<name>.+)-(?P<minute>\d{8,9})")
"""A CronJob calls a Job by its own name and the minute, since the epoch, for which it was due."""
_LATE_SECONDS: Final = 7 * 86_400.0
"""So long after that minute a pod of the Job may still be made: anew after a failure, or after a pause."""
_CLOCK_SECONDS: Final = 120.0
"""So far may the clocks of those who write the two times be apart."""
_NOBODY: Final[Mapping[str, Workload]] = {}


def named_owner(pod: Pod, workloads: Mapping[str, Workload] = _NOBODY) -> Owner | None:
    """The controller of the pod, or what made that; None = nobody made it but a person.

    `workloads`: by uid, as far as they were read. Of a Job that is not among them the name tells: its last
    digits are a minute shortly before the pod was made, and no date or number that a person would write.
    A Deployment calls its ReplicaSets by its own name and the hash that their pods bear as a label.

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
        return Owner("CronJob", name, "", controller=True, api_version="batch/v1") if name else owner
    suffix = f"-{pod.labels.get(_HASH, '')}"
    if owner.kind == "ReplicaSet" and len(suffix) > 1 and owner.name.endswith(suffix):
        return Owner("Deployment", owner.name.removesuffix(suffix), "", controller=True, api_version="apps/v1")
    return owner


def _schedule_of(job: Owner, pod: Pod, workloads: Mapping[str, Workload]) -> str:
    """The CronJob's name; "" = none made the Job."""
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
