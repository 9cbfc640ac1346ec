"""A training job, whatever its kind: the roles it asks for and the conditions its controller wrote.

`kinds/` turns objects into jobs; nothing above it knows a kind by name. The state is not stored here: it
follows from conditions, or from the controller's one word, and from pods (`rules/jobs/status`), so that every
page and command says the same word.
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
    """The words that rules know. Some controllers write others, which are shown as they are."""

    PENDING = "PENDING"
    RUNNING = "RUNNING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    SUSPENDED = "SUSPENDED"
    QUEUING = "QUEUING"
    RESTARTING = "RESTARTING"
    SCALING = "SCALING"


class Role(Struct, frozen=True, gc=False):
    """One role of a job, e.g. `worker`: how many pods, and what one of them may use.

    `limits` and `requests` follow the larger-of rule of init containers. `least` and `most`: how far it may
    be scaled; None where nobody says.
    """

    name: str
    replicas: int
    limits: Amounts = NOTHING
    requests: Amounts = NOTHING
    least: int | None = None
    most: int | None = None


class Job(Struct, frozen=True, gc=False):
    """`type` is arena's word (`mpijob`); `kind` and `api_version` are Kubernetes'.

    `annotations`: only keys that Fairlead reads. `word`: the status as arena says it, where a controller
    writes one word instead of conditions. `lead`: the label (key, value) of the pod without which such a job
    does not run yet, whatever the word says. `least`: so many of its pods run together or not at all, where
    it says so. `late`: roles whose pods are made only after the others run; a role that `roles` do not have
    stands in no table. `owner`: its controller, such as a Cron. `can_suspend`: whether its controller lets
    it be suspended, where its kind can be at all.
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
