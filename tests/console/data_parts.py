"""Claims, data sets and operations of a cluster that a test changes by hand."""

from __future__ import annotations

import asyncio
import itertools
import secrets
from typing import Any

from msgspec import structs
from tests.console.clusters import EPOCH, gpu_node

from fairlead.errors import AlreadyExists, ChangedMeanwhile
from fairlead.model.actions import Manifest, ObjectRef, object_ref
from fairlead.model.jobs.acceleration import AccelerationFacts, DataUser
from fairlead.model.jobs.data_details import DataLoad, DataReasons, DataSetFacts
from fairlead.model.jobs.datasets import (
    Claim,
    ControllerState,
    DataMount,
    DataRuntime,
    DataSet,
    FoundData,
)
from fairlead.model.operations.operation import Operation
from fairlead.model.records.rows import OperationRow
from fairlead.ports import LeaseRecord


def claim(name: str, namespace: str = "a-ns", **more: Any) -> Claim:
    """A bound claim of 10 GiB that many nodes may mount."""
    given = {
        "access_modes": ("ReadWriteMany",),
        "phase": "Bound",
        "volume": f"pv-{name}",
        "size": 10 << 30,
        "created_at": EPOCH - 600,
        **more,
    }
    return Claim(namespace, name, **given)


def data_set(name: str, of: str, namespace: str = "a-ns", **more: Any) -> DataSet:
    """A bound data set of Fluid over a claim."""
    given = {"phase": "Bound", "created_at": EPOCH - 300, "uid": f"uid-{name}", **more}
    return DataSet(namespace, name, (DataMount(f"pvc://{of}", of, "/", True),), **given)


def runtime(name: str, namespace: str = "a-ns", **more: Any) -> DataRuntime:
    return DataRuntime("AlluxioRuntime", namespace, name, 2, 2, **more)


class StillData:
    """`ports.DataQuestions` of what a test gives it. `failure`: what every read raises. `reads`:
    how many lists were read.
    """

    def __init__(self, *rows: Claim | DataSet | DataRuntime, has_fluid: bool = True) -> None:
        self.rows: list[Any] = list(rows)
        self.pods: list[DataUser] = []
        self.sources: dict[str, Any] = {}
        self.has_fluid = has_fluid
        self.loads: list[DataLoad] = []
        self.known = DataReasons()
        self.failure: Exception | None = None
        self.reads = 0
        self.facts_more: dict[str, Any] = {}
        self.secrets: dict[str, bool | None] = {}

    def _of(self, kind: type, namespace: str) -> tuple[Any, ...]:
        return tuple(
            each
            for each in self.rows
            if isinstance(each, kind) and namespace in ("", each.namespace)
        )

    async def read(self, namespace: str = "") -> FoundData:
        await asyncio.sleep(0)
        self.reads += 1
        if self.failure is not None:
            raise self.failure
        kinds = (self._of(kind, namespace) for kind in (Claim, DataSet, DataRuntime))
        return FoundData(*kinds, EPOCH, self.sources, has_fluid=self.has_fluid)

    async def users(self, namespace: str) -> list[DataUser]:
        return [each for each in self.pods if each.namespace == namespace]

    async def reasons(self, found: FoundData) -> DataReasons:
        return self.known

    async def details(self, namespace: str, name: str) -> DataSetFacts:
        users = tuple(each for each in self.pods if each.namespace == namespace)
        known = DataReasons(controllers=(), users=users)
        return DataSetFacts(await self.read(namespace), known, tuple(self.loads), ())

    async def leftovers(self, namespace: str, name: str) -> tuple[ObjectRef, ...]:
        return (ObjectRef("v1", "PersistentVolume", f"{namespace}-{name}"),)

    async def has_secret(self, namespace: str, name: str) -> bool | None:
        return self.secrets.get(f"{namespace}/{name}", False)

    async def facts(self, namespace: str, claim: str, name: str) -> AccelerationFacts:
        found = await self.read(namespace)
        given = {
            "claim": next((each for each in found.claims if each.name == claim), None),
            "claims": found.claims,
            "data_sets": found.data_sets,
            "runtimes": found.runtimes,
            "nodes": (gpu_node("gpu-1"), gpu_node("gpu-2")),
            "has_kinds": self.has_fluid,
            "controllers": CONTROLLERS if self.has_fluid else (),
            "csi_nodes": frozenset(("gpu-1", "gpu-2")),
            "has_volume": False,
            "has_release": False,
            **self.facts_more,
        }
        return AccelerationFacts(**given)


CONTROLLERS = (
    ControllerState("dataset-controller", 1, 1),
    ControllerState("alluxioruntime-controller"),
)


class MemoryRecords:
    """`ports.OperationRecords` in memory, with the versions and Leases of an API server."""

    def __init__(self, *operations: Operation) -> None:
        self._versions = itertools.count(1)
        self.by_id: dict[str, Operation] = {}
        self.leases: dict[str, LeaseRecord] = {}
        self.failure: Exception | None = None
        for each in operations:
            self._put(each)

    def _put(self, operation: Operation) -> Operation:
        made = structs.replace(operation, version=str(next(self._versions)))
        self.by_id[made.id] = made
        return made

    async def create(self, operation: Operation) -> Operation:
        self._fail()
        if operation.id in self.by_id:
            raise AlreadyExists("kubernetes", f"operation `{operation.id}` exists")
        return self._put(operation)

    async def get(self, id: str) -> Operation | None:
        self._fail()
        return self.by_id.get(id)

    async def list(self) -> tuple[Operation, ...]:
        self._fail()
        found = sorted(self.by_id.values(), key=lambda each: (-each.created_at, each.id))
        return tuple(found)

    async def save(self, operation: Operation) -> Operation:
        self._fail()
        found = self.by_id.get(operation.id)
        if found is None or found.version != operation.version:
            raise ChangedMeanwhile("kubernetes", "the object has been modified")
        return self._put(operation)

    async def remove(self, id: str) -> None:
        self.by_id.pop(id, None)

    def lease(self, subject: str) -> MemoryLease:
        return MemoryLease(self, subject)

    def _fail(self) -> None:
        if self.failure is not None:
            raise self.failure


class MemoryHistory:
    """`ports.OperationHistory` in memory."""

    def __init__(self, *rows: OperationRow) -> None:
        self.rows = sorted(rows, key=lambda each: (each.created_at, each.id), reverse=True)

    async def keep_operation(self, row: OperationRow) -> None:
        self.rows.insert(0, row)

    async def operation_rows(
        self, size: int, before: tuple[int, str] | None = None
    ) -> tuple[OperationRow, ...]:
        rows = [each for each in self.rows if not before or (each.created_at, each.id) < before]
        return tuple(rows[:size])

    async def kept_operation(self, id: str) -> OperationRow | None:
        return next((each for each in self.rows if each.id == id), None)

    async def forget_operations(self, before: int) -> int:
        return 0


class MemoryLease:
    def __init__(self, records: MemoryRecords, subject: str) -> None:
        self._records, self._subject = records, subject

    async def get_lease(self) -> LeaseRecord | None:
        return self._records.leases.get(self._subject)

    async def put_lease(self, record: LeaseRecord) -> LeaseRecord | None:
        before = self._records.leases.get(self._subject)
        if record.version != (before.version if before else ""):
            return None
        made = structs.replace(
            record,
            version=str(next(self._records._versions)),
            renewed=record.renewed or secrets.token_hex(4),
        )
        self._records.leases[self._subject] = made
        return made


class MemoryObjects:
    """`ports.OperationCluster`: objects by title. A data set becomes Bound when it is read for the
    third time after its runtime was made; what is removed is gone at once.
    """

    def __init__(self) -> None:
        self.objects: dict[str, Manifest] = {}
        self.calls: list[str] = []
        self.data: StillData | None = None
        self._looks = 0

    async def get(self, target: ObjectRef) -> Manifest | None:
        self.calls.append(f"get {target.title}")
        found = self.objects.get(target.title)
        if found is not None and found["kind"] == "Dataset":
            self._looks += 1
            if self._looks >= 3:
                found["status"] = {"phase": "Bound"}
        return found

    async def create(self, manifest: Manifest, plural: str = "") -> Manifest:
        title = object_ref(manifest).title
        self.calls.append(f"create {title}")
        if title in self.objects:
            raise AlreadyExists("kubernetes", f"{title} exists")
        meta = {**manifest["metadata"], "uid": f"uid-{title}", "resourceVersion": "1"}
        self.objects[title] = {**manifest, "metadata": meta}
        return self.objects[title]

    async def apply(
        self, manifest: Manifest, plural: str = "", *, is_forced: bool = False, manager: str = ""
    ) -> Manifest:
        title = object_ref(manifest).title
        self.calls.append(f"apply {title}")
        self.objects[title] = manifest
        return manifest

    async def remove(self, target: ObjectRef) -> None:
        self.calls.append(f"remove {target.title}")
        self.objects.pop(target.title, None)

    async def pods_of(self, target: ObjectRef) -> tuple[Manifest, ...]:
        return ()

    async def newest_warning(self, target: ObjectRef) -> str:
        return ""
