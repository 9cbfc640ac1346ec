"""Bodies and answers of writes to nodes and jobs."""

from __future__ import annotations

from fairlead.console.pages.envelope import Json


class NodeOrder(Json, frozen=True):
    """`schedulable`: false cordons the node: no new pod gets it; true uncordons it."""

    schedulable: bool


class NodeWritten(Json, frozen=True):
    name: str
    schedulable: bool


class JobOrder(Json, frozen=True):
    """`suspended`: true stops the pods of the job and keeps the job; false starts it again."""

    suspended: bool


class JobWritten(Json, frozen=True):
    namespace: str
    type: str
    name: str
    suspended: bool
