"""A console with a ledger of two and a half days: what four pods held, two jobs that were deleted,
and the jobs of a cluster that stands still.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Final

from msgspec import structs
from tests.browser.people_pages import MemoryTrail
from tests.browser.still_console import served
from tests.console.clusters import EPOCH, living_cluster
from tests.console.people_parts import member, team
from tests.console.sign_in_parts import FakeSignInApi, Parts
from tests.console.worlds import still_world
from tests.usage.memory_ledger import MemoryLedger
from tests.usage.small_ledger import DAY, Life, fill, price

from fairlead.model.people.rows import BoundRole, GroupStatus, UserRole
from fairlead.model.usage.ledger import JobRecord, LedgerBatch, UsedBy
from fairlead.wire.usage.manifests import kept_manifest

NOW: Final = round(EPOCH * 1000)
START: Final = NOW // DAY * DAY - 2 * DAY
HOURS: Final = (NOW - START) // 3_600_000
LIVES: Final = (
    # namespace, user, leaf, job, pod, node, from hour, to hour
    Life("team-a", "ann", "root.a", "old", "old-0", "gpu-1", 6, 42, gpus=4, cores=16),
    Life("team-a", "ann", "root.a", "early", "early-0", "gpu-1", 0, 4, gpus=1, cores=2),
    Life("team-c", "bob", "root.b", "", "notebook", "gpu-1", 50, None, gpus=2, cores=8, idle=1000),
    Life("team-a", "", "root.a", "", "etl", "cpu-1", 0, 50, cores=8),
)
"""GPU-hours: ann 144 + 4, bob 2 × (`HOURS` - 50); the notebook does nothing."""
OBJECT: Final = b'{"apiVersion":"kubeflow.org/v2beta1","kind":"MPIJob","metadata":{"name":"old"}}'
MANIFEST: Final = kept_manifest("3f", OBJECT)
EARLIER: Final = JobRecord(
    "uid-earlier",
    UsedBy("team-a", "ann", "root.a"),
    "bert",
    "pytorchjob",
    created_at=START + 3_600_000,
    deleted_at=START + 2 * 3_600_000,
    manifest=MANIFEST,
)
"""It had the name of a job that exists."""


async def filled(with_price: bool = True) -> MemoryLedger:
    """`with_price`: 40 EUR per node-hour of A100 nodes, 50 at list price."""
    ledger = MemoryLedger()
    epoch = await fill(
        ledger,
        LIVES,
        start=START,
        hours=HOURS,
        folds=[(START, START + DAY), (START + DAY, START + 2 * DAY)],
    )
    records = [structs.replace(each, manifest=MANIFEST) for each in ledger.jobs.values()]
    await ledger.write_ledger(epoch, LedgerBatch(NOW, jobs=(*records, EARLIER)))
    if with_price:
        cost = price(40_000_000, START, list_node_hour=50_000_000, entered_by="anna")
        await ledger.add_price(cost)
    return ledger


@contextmanager
def usage_console(ledger: MemoryLedger | None) -> Iterator[str]:
    """Anna is an administrator, Bob a researcher of team-c."""
    bound = BoundRole("bob:team-c:fairlead-researcher", "team-c", "fairlead-researcher")
    shared = BoundRole("bob:clusterRole:x", "", "fairlead-researcher-cluster")
    bob = member("bob", "b")
    status = structs.replace(bob.status, namespaces=("team-c",), bindings=(bound, shared))
    bob = structs.replace(bob, status=status)
    group = structs.replace(team("b"), status=GroupStatus("root.b", ("team-c",)))
    users = (member("anna", role=UserRole.ADMIN), bob)
    desk = Parts(FakeSignInApi(users, (group,)), records=MemoryTrail()).desk()
    with served(still_world(living_cluster()), desk, ledger=ledger) as address:
        yield address


def ledger_of(with_price: bool = True) -> MemoryLedger:
    """In a thread: the browser's own event loop runs in this one."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(lambda: asyncio.run(filled(with_price))).result()
