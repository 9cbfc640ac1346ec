"""The first answer that a page requests: user, cluster, and what this server can do."""

from __future__ import annotations

from typing import Literal

from fairlead.console.pages.clock import ClockFace
from fairlead.console.pages.envelope import Json


class Person(Json, frozen=True):
    name: str
    role: str


class ClusterName(Json, frozen=True):
    """`version` is Fairlead's snapshot version, a number that grows with every change."""

    name: str
    world: Literal["simulated", "kubernetes"]
    version: str


class Features(Json, frozen=True):
    """`clock`: whether `/clock` moves this cluster's time.

    `history_seconds`: how far back charts reach; null where Prometheus answers, which alone knows.
    """

    prometheus: bool
    clock: bool
    history_seconds: int | None


class Me(Json, frozen=True):
    """`csrf` goes back in `X-Fairlead-Csrf` with every write. `version` is the server's program
    version.

    `build` is the build of the page that this server serves: a page of another build is outdated.
    """

    user: Person
    csrf: str
    cluster: ClusterName
    clock: ClockFace
    features: Features
    version: str
    build: str
