"""The pods that mount claims: looked for now and then, and the same value while nothing changes."""

from __future__ import annotations

from typing import Any

from tests.console.clusters import cluster

from fairlead.console.http.data.claim_users import AGAIN_SECONDS, MountedClaims
from fairlead.model.pod import Pod
from fairlead.model.snapshot import ClusterSnapshot


class Cluster:
    """Of which a test decides what there is."""

    def __init__(self) -> None:
        self.is_ready = False
        self.taken = cluster()
        self.looks = 0

    def snapshot(self) -> ClusterSnapshot:
        self.looks += 1
        return self.taken


def test_users_are_known_when_pods_are_and_change_with_them_alone() -> None:
    now, source = 0.0, Cluster()
    known: Any = source
    claims = MountedClaims(known, lambda: now)
    assert claims.now() is None and source.looks == 0
    source.is_ready = True
    source.taken = cluster(pods=[Pod("a", "one", claims=("raw",))])
    first = claims.now()
    assert first == {("a", "raw"): ("one",)}

    source.taken = cluster(pods=[Pod("a", "one", claims=("raw",)), Pod("a", "other")])
    now = AGAIN_SECONDS - 0.1
    assert claims.now() is first and source.looks == 1
    now = AGAIN_SECONDS
    assert claims.now() is first and source.looks == 2
    source.taken = cluster(pods=[Pod("a", "two", claims=("raw", "logs"))])
    now = 2 * AGAIN_SECONDS
    assert claims.now() == {("a", "raw"): ("two",), ("a", "logs"): ("two",)}
