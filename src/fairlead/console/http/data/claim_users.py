"""The pods that mount claims, of the newest snapshot."""

from __future__ import annotations

from fairlead.model.snapshot import ClusterSnapshot
from fairlead.ports import Cluster
from fairlead.rules.data.mounted import ClaimUsers, pods_by_claim


class MountedClaims:
    """`now()` is the same value as before while no pod mounts another claim."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._of: ClusterSnapshot | None = None
        self._found: ClaimUsers = {}

    def now(self) -> ClaimUsers | None:
        """None while pods have not been read."""
        if not self._cluster.is_ready:
            return None
        snapshot = self._cluster.snapshot()
        if snapshot is not self._of:
            found = pods_by_claim(snapshot.pods)
            self._of, self._found = snapshot, self._found if found == self._found else found
        return self._found
