"""The jobs and pods that mount claims, of a snapshot that is at most a few seconds old."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from fairlead.kinds.instances import instances_of
from fairlead.model.pod import Pod
from fairlead.model.snapshot import ClusterSnapshot
from fairlead.ports import Cluster
from fairlead.rules.data.mounted import ClaimUser, ClaimUsers, claim_users, pod_user
from fairlead.rules.pods.owner import named_owner

AGAIN_SECONDS: Final = 3.0
"""Shortest pause between two looks: in a large cluster some pod changes all the time, and with
each other value all rows are made anew.
"""


class MountedClaims:
    """`now()` is the same value as before while no other job or pod mounts a claim. `monotonic`:
    this machine's clock.
    """

    def __init__(self, cluster: Cluster, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._cluster = cluster
        self._monotonic = monotonic
        self._due_at = float("-inf")
        self._of: ClusterSnapshot | None = None
        self._found = ClaimUsers()

    def now(self) -> ClaimUsers | None:
        """None while pods have not been read."""
        if not self._cluster.is_ready:
            return None
        if self._monotonic() < self._due_at:
            return self._found
        snapshot = self._cluster.snapshot()
        if snapshot is not self._of:
            found = _users_in(snapshot)
            self._of, self._found = snapshot, self._found if found == self._found else found
        self._due_at = self._monotonic() + AGAIN_SECONDS
        return self._found


def _users_in(snapshot: ClusterSnapshot) -> ClaimUsers:
    mounting = [pod for pod in snapshot.pods if pod.claims]
    spaces = {pod.namespace for pod in mounting}
    jobs: dict[str, ClaimUser] = {}
    for job in snapshot.jobs:
        if job.namespace in spaces:
            user = ClaimUser(job.kind, job.name, f"{job.type}/{job.name}")
            jobs |= {pod.key: user for pod in instances_of(job, snapshot).pods}
    workloads = {each.uid: each for each in snapshot.workloads}

    def owner_of(pod: Pod) -> ClaimUser:
        if (job := jobs.get(pod.key)) is not None:
            return job
        owner = named_owner(pod, workloads)
        return pod_user(pod.name) if owner is None else ClaimUser(owner.kind, owner.name)

    return claim_users(mounting, owner_of)
