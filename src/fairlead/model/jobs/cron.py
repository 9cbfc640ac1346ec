"""A schedule that creates training jobs (a Cron of KubeDL), and the jobs that it has created."""

from __future__ import annotations

from msgspec import Struct

from fairlead.model.moment import Moment


class CronRun(Struct, frozen=True, gc=False):
    """One job that a cron created.

    `status`: the last condition of it that the controller recorded; `api_version`: of the job's
    kind.
    """

    name: str
    api_version: str = ""
    kind: str = ""
    status: str = ""
    created_at: Moment | None = None
    finished_at: Moment | None = None


class Cron(Struct, frozen=True, gc=False):
    """`kind`: of the jobs that it creates. It creates none after `deadline`."""

    namespace: str
    name: str
    uid: str = ""
    kind: str = ""
    schedule: str = ""
    concurrency: str = ""
    is_suspended: bool = False
    deadline: Moment | None = None
    history_limit: int = 0
    created_at: Moment | None = None
    scheduled_at: Moment | None = None
    runs: tuple[CronRun, ...] = ()
