"""The pods that mount claims, of a snapshot that is at most a few seconds old."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from fairlead.model.snapshot import ClusterSnapshot
from fairlead.ports import Cluster
from fairlead.rules.data.mounted import ClaimUsers, pods_by_claim

AGAIN_SECONDS: Final = 3.0
"""Shortest pause between two looks: in a large cluster some pod changes all the time, and with
each other value all rows are made anew.
"""


class MountedClaims:
    """`now()` is the same value as before while no pod mounts another claim. `monotonic`: this
    machine's clock.
    """

    def __init__(self, cluster: Cluster, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._cluster = cluster
        self._monotonic = monotonic
        self._due_at = float("-inf")
        self._of: ClusterSnapshot | None = None
        self._found: ClaimUsers = {}

    def now(self) -> ClaimUsers | None:
        """None while pods have not been read."""
        if not self._cluster.is_ready:
            return None
        if self._monotonic() < self._due_at:
            return self._found
        snapshot = self._cluster.snapshot()
        if snapshot is not self._of:
            found = pods_by_claim(snapshot.pods)
            self._of, self._found = snapshot, self._found if found == self._found else found
        self._due_at = self._monotonic() + AGAIN_SECONDS
        return self._found
