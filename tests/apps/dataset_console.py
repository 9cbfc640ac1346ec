"""A console for data sets, whose writes and audit a test reads."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from msgspec import structs
from tests.apps.audited_console import AuditedConsole, two_administrators
from tests.apps.running_console import Page, console
from tests.apps.tree_writes import FakeWrites
from tests.console.clusters import cluster, gpu_node
from tests.console.data_parts import MemoryObjects, MemoryRecords, StillData, claim
from tests.console.sign_in_parts import Parts
from tests.console.worlds import still_world

from fairlead.edge.store.address import store_address
from fairlead.edge.store.opened import open_store
from fairlead.model.pod import Pod

ACCELERATION = "/volumes/a-ns/raw/acceleration"


class Sent(AuditedConsole):
    """A console with Anna and Olga, administrators, and Bob, a researcher of `a-ns`."""

    def __init__(self, page: Page, store: Any, **parts: Any) -> None:
        super().__init__(page, store)
        self.data: StillData = parts["data"]
        self.records: MemoryRecords = parts["records"]
        self.objects: MemoryObjects = parts["objects"]
        self.writes: FakeWrites = parts["writes"]


@asynccontextmanager
async def sent(
    tmp_path: Any,
    data: StillData | None = None,
    records: MemoryRecords | None = None,
    *,
    carries_out: bool = False,
    pods: Sequence[Pod] = (),
) -> AsyncIterator[Sent]:
    """`carries_out`: operations are carried out, too, by the console's own loop."""
    data = data or StillData(claim("raw"), claim("other", "b-ns"))
    records, objects, writes = records or MemoryRecords(), MemoryObjects(), FakeWrites()
    store = await open_store(store_address(f"sqlite:///{tmp_path}/store.sqlite"))
    desk = Parts(two_administrators()).desk(records=store, history=store)
    world = structs.replace(
        still_world(cluster([gpu_node()], pods)),
        data=data,
        operations=records,
        operated=objects if carries_out else None,
        writes=writes,
    )
    async with console(world, desk=desk) as page:
        yield Sent(page, store, data=data, records=records, objects=objects, writes=writes)
    await store.close()
