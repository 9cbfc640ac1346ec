"""The form of the list of serving jobs: models that answer requests, one row per version."""

from __future__ import annotations

from fairlead.console.pages.envelope import Json, ListAnswer, Timestamp
from fairlead.console.pages.jobs import Waiting


class ServingPod(Json, frozen=True):
    """One pod. `gpus` are cards' worth, fractions on shared ones; 0 of a pod that holds none.

    `ready`, `containers`: of its containers, how many are ready, and how many there are.
    """

    name: str
    status: str
    node: str
    ready: int
    containers: int
    restarts: int
    gpus: float
    created_at: Timestamp | None


class ServingJob(Json, frozen=True):
    """`type` as `arena serve list` prints it; `status`: Ready where as many pods are available as
    desired.

    `waiting`: what keeps a job that is not ready. `address` is "" where it has none. `ports`: how
    the model is asked, as `RESTFUL:8501`. `gpus`: what its pods hold.
    """

    namespace: str
    name: str
    type: str
    version: str
    status: str
    waiting: Waiting | None
    desired: int
    available: int
    address: str
    ports: list[str]
    gpus: float
    user: str
    created_at: Timestamp | None
    instances: list[ServingPod]


class ServingList(ListAnswer, frozen=True):
    items: list[ServingJob]
