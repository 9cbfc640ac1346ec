"""A saved snapshot as a world: `--snapshot FILE` of servers, such as a bug report in the console.

Its time does not pass: the clock returns the time of the snapshot, so that ages are right.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from fairlead.errors import UserError
from fairlead.model.actions import Action, Outcome, Result
from fairlead.model.devices.gpu import GpuReading
from fairlead.model.snapshot import GPU_TELEMETRY, ClusterSnapshot
from fairlead.model.source import Source, SourceState
from fairlead.ports import Ports
from fairlead.wire.files.snapshot_file import SavedSnapshot


def replayed_world(saved: SavedSnapshot, name: str) -> Ports:
    """Cluster, GPU readings and clock as they were. `name`: of the file."""
    stood = _FixedCluster(saved.snapshot, saved.snapshot.taken_at or saved.saved_at)
    return Ports(cluster=stood, gpus=stood, clock=stood, name=f"snapshot {name} of {saved.cluster}")


class _FixedCluster:
    """Implements `Cluster`, `GpuReadings` and `Clock` with one instant."""

    def __init__(self, snapshot: ClusterSnapshot, at: float) -> None:
        self._snapshot = snapshot
        self._at = at

    async def run(self) -> None:
        return

    @property
    def version(self) -> int:
        return self._snapshot.version

    @property
    def is_ready(self) -> bool:
        return True

    def snapshot(self) -> ClusterSnapshot:
        return self._snapshot

    async def wait_changed(self, since: int, seconds: float) -> int:
        if since == self.version:
            await asyncio.sleep(seconds)
        return self.version

    async def apply(self, action: Action, left: Callable[[], float] | None = None) -> Outcome:
        refused = UserError("a saved snapshot cannot be changed", "name the cluster itself")
        return Outcome(Result.REFUSED, refused.what, failure=refused)

    def latest(self) -> tuple[GpuReading, ...]:
        return self._snapshot.gpus

    def source(self) -> Source:
        return self._snapshot.sources.get(GPU_TELEMETRY) or Source(
            GPU_TELEMETRY, SourceState.OFF, "the snapshot has no GPU values"
        )

    def tally(self) -> None:
        return

    def now(self) -> float:
        return self._at
