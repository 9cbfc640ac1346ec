"""What is known of one data set beside its own object."""

from __future__ import annotations

from msgspec import Struct

from fairlead.model.event import Event
from fairlead.model.jobs.acceleration import DataUser
from fairlead.model.jobs.datasets import ControllerState, FoundData
from fairlead.model.moment import Moment


class DataLoad(Struct, frozen=True):
    """A preheat: a DataLoad of Fluid. `data_set`: in its namespace. `phase`: `Pending`,
    `Executing`, `Complete`, `Failed`; "" before Fluid has seen it. `schedule`: in the format of
    cron; "" = once. `duration`: Fluid's own text. `message`: of a condition that is of a fault.
    `operation`: the id of the operation that made it; "" = another program did.
    """

    namespace: str
    name: str
    data_set: str
    phase: str = ""
    paths: tuple[str, ...] = ()
    schedule: str = ""
    created_at: Moment | None = None
    duration: str = ""
    message: str = ""
    operation: str = ""

    @property
    def is_ended(self) -> bool:
        return self.phase in ("Complete", "Failed")


class DataReasons(Struct, frozen=True):
    """What explains why a data set does not begin or end; None = it was not or may not be read.

    `controllers`: all Deployments of Fluid. `users`: pods that mount claims and have not ended, of
    the namespaces where a data set ends.
    """

    controllers: tuple[ControllerState, ...] | None = None
    users: tuple[DataUser, ...] | None = None


class DataSetFacts(Struct, frozen=True):
    """All that is read for one data set; None = it may not be read.

    `found`: data of its namespace. `loads`: preheats of the namespace. `warnings`: Events of type
    Warning about objects of its name, the newest first.
    """

    found: FoundData
    reasons: DataReasons = DataReasons()
    loads: tuple[DataLoad, ...] | None = None
    warnings: tuple[Event, ...] | None = None


class Preheat(Struct, frozen=True):
    """Files of a data set, to be read into its cache. `paths`: in the data set, absolute.
    `replicas`: copies of each file, each on another worker. `schedule`: in the format of cron; "" =
    once.
    """

    namespace: str
    data_set: str
    paths: tuple[str, ...] = ("/",)
    replicas: int = 1
    schedule: str = ""
