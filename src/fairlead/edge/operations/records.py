"""The records of operations in one namespace (`ports.OperationRecords`)."""

from __future__ import annotations

import contextlib

from msgspec import structs

from fairlead.edge.connection.decoders import decoder_of
from fairlead.edge.kube.api_failure import SYSTEM, ApiFailure, Conflict
from fairlead.edge.kube.api_page import ItemReader
from fairlead.edge.kube.api_request import Selection, create_request, patch_request
from fairlead.edge.kube.kube_api import KubeApi
from fairlead.edge.kube.lease import KubeLease
from fairlead.edge.kube.resource import CONFIG_MAPS, NAMESPACES
from fairlead.errors import AlreadyExists, NotFound, OutsideError
from fairlead.model.actions import Manifest
from fairlead.model.installation import INSTALLATION_LABEL, SYSTEM_PART
from fairlead.model.operations.operation import Operation
from fairlead.wire.kube.forms import JsonForm
from fairlead.wire.names import LABEL_OPERATION
from fairlead.wire.operations.record import (
    STATE_KEY,
    WireRecord,
    lease_name,
    parse_record,
    record_name,
    render_record,
    render_state,
)


class KubeOperationRecords:
    """`namespace`: of the installation. Only administrators may write ConfigMaps there, so that no
    other user's ConfigMap is taken for a record. `makes_namespace`: the first record creates it,
    labelled as that of an installation.
    """

    def __init__(self, api: KubeApi, namespace: str, *, makes_namespace: bool = False) -> None:
        self._api = api
        self._namespace = namespace
        self._makes_namespace = makes_namespace

    async def create(self, operation: Operation) -> Operation:
        record = render_record(operation, self._namespace)
        try:
            made = await self._create(record)
        except ApiFailure as error:
            if error.reason == "AlreadyExists":
                raise AlreadyExists(error.system, error.message, error.hint) from error
            raise
        return _at(operation, made)

    async def _create(self, record: Manifest) -> WireRecord:
        try:
            return await self._create_map(record)
        except NotFound:
            if not self._makes_namespace:
                raise
        space = {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {
                "name": self._namespace,
                "labels": {INSTALLATION_LABEL: SYSTEM_PART},
            },
        }
        with contextlib.suppress(Conflict):  # made by another process meanwhile
            await self._api.create(NAMESPACES, space)
        return await self._create_map(record)

    async def _create_map(self, record: Manifest) -> WireRecord:
        request = create_request(CONFIG_MAPS, record, self._namespace)
        answer = await self._api.send(request)
        made: WireRecord = decoder_of(WireRecord).decode(answer.body)
        return made

    async def get(self, id: str) -> Operation | None:
        try:
            found = await self._api.get(CONFIG_MAPS, record_name(id), self._namespace, WireRecord)
        except NotFound:
            return None
        try:
            return parse_record(found)
        except ValueError as error:
            raise OutsideError(SYSTEM, f"the record cannot be read: {error}") from error

    async def list(self) -> tuple[Operation, ...]:
        reader = ItemReader(CONFIG_MAPS, JsonForm(WireRecord, parse_record))
        chosen = Selection(self._namespace, labels=LABEL_OPERATION)
        found = (await self._api.list_all(reader, chosen)).rows.values()
        return tuple(sorted(found, key=lambda each: (-each.created_at, each.id)))

    async def save(self, operation: Operation) -> Operation:
        patch = {
            "metadata": {"resourceVersion": operation.version},
            "data": {STATE_KEY: render_state(operation)},
        }
        name = record_name(operation.id)
        request = patch_request(CONFIG_MAPS, name, patch, self._namespace)
        try:
            answer = await self._api.send(request)
        except NotFound as error:
            what = f"the record of operation `{operation.id}` was deleted meanwhile"
            raise Conflict(what, status=404) from error
        return _at(operation, decoder_of(WireRecord).decode(answer.body))

    async def remove(self, id: str) -> None:
        try:
            await self._api.delete(CONFIG_MAPS, record_name(id), self._namespace)
        except NotFound:
            return

    def lease(self, subject: str) -> KubeLease:
        return KubeLease(self._api, self._namespace, lease_name(subject))


def _at(operation: Operation, record: WireRecord) -> Operation:
    return structs.replace(operation, version=record.metadata.resource_version or "")
