"""The records of operations of a cluster whose installation is found at the first question.

A server must start while the API server is away.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from fairlead.edge.kube.kube_api import KubeApi
from fairlead.edge.kube.lease import KubeLease
from fairlead.edge.operations.records import KubeOperationRecords
from fairlead.model.operations.operation import Operation


class FoundOperationRecords:
    """`ports.OperationRecords`. `find`: the namespace of the records; it asks the API server, and
    raises OutsideError. `makes_namespace`: see KubeOperationRecords.
    """

    def __init__(
        self, api: KubeApi, find: Callable[[], str], *, makes_namespace: bool = False
    ) -> None:
        self._api = api
        self._find = find
        self._makes_namespace = makes_namespace
        self._found: KubeOperationRecords | None = None

    async def create(self, operation: Operation) -> Operation:
        return await (await self._records()).create(operation)

    async def get(self, id: str) -> Operation | None:
        return await (await self._records()).get(id)

    async def list(self) -> tuple[Operation, ...]:
        return await (await self._records()).list()

    async def save(self, operation: Operation) -> Operation:
        return await (await self._records()).save(operation)

    async def remove(self, id: str) -> None:
        await (await self._records()).remove(id)

    def lease(self, subject: str) -> KubeLease:
        assert self._found is not None  # the operation was read before
        return self._found.lease(subject)

    async def _records(self) -> KubeOperationRecords:
        if self._found is None:
            namespace = await asyncio.to_thread(self._find)
            self._found = KubeOperationRecords(
                self._api, namespace, makes_namespace=self._makes_namespace
            )
        return self._found
