"""A training job of any kind: the roles that it asks for, and its controller's conditions.

`kinds/` turns objects into jobs; nothing above it refers to a kind by name. The status is not
stored: it follows from conditions, or from the controller's status word, and from pods
(`rules/jobs/status`), so every page and command shows the same word.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct

from fairlead.model.moment import Moment
from fairlead.model.node import Condition
from fairlead.model.pod import Owner
from fairlead.model.resources import NOTHING, Amounts


class JobStatus(StrEnum):
    """The status words that rules know.

    Some controllers write others, which are shown unchanged.
    """

    PENDING = "PENDING"
    RUNNING = "RUNNING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    SUSPENDED = "SUSPENDED"
    QUEUING = "QUEUING"
    RESTARTING = "RESTARTING"
    SCALING = "SCALING"


class Role(Struct, frozen=True, gc=False):
    """One role of a job, such as `worker`: the number of its pods, and the resources of one pod.

    `limits` and `requests` include init containers, by the larger of both. `least` and `most`: the
    bounds for scaling; None = not given.
    """

    name: str
    replicas: int
    limits: Amounts = NOTHING
    requests: Amounts = NOTHING
    least: int | None = None
    most: int | None = None


class Job(Struct, frozen=True, gc=False):
    """`type` is arena's word (`mpijob`); `kind` and `api_version` are Kubernetes'.

    `annotations`: only keys that Fairlead reads. `word`: arena's status, for controllers that write
    one word instead of conditions. `lead`: the label (key, value) of the pod without which such a
    job does not run yet, whatever its word is. `least`: the number of pods that must run together,
    if the job has one. `late`: roles whose pods are created only after the others run; a role that
    is not in `roles` appears in no table. `owner`: its controller, such as a Cron. `can_suspend`:
    whether its controller can suspend this job, if it can suspend jobs of this kind at all.
    """

    type: str
    kind: str
    api_version: str
    namespace: str
    name: str
    uid: str = ""
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    roles: tuple[Role, ...] = ()
    conditions: tuple[Condition, ...] = ()
    word: str = ""
    lead: tuple[str, str] | None = None
    suspended: bool = False
    priority_class: str = ""
    created_at: Moment | None = None
    started_at: Moment | None = None
    finished_at: Moment | None = None
    deleted_at: Moment | None = None
    least: int | None = None
    late: tuple[Role, ...] = ()
    owner: Owner | None = None
    can_suspend: bool = True

    @property
    def key(self) -> tuple[str, str, str]:
        return (self.namespace, self.type, self.name)
