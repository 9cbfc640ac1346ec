"""The records of operations in one namespace (`ports.OperationRecords`)."""

from __future__ import annotations

import contextlib
import logging
from typing import Final

from msgspec import Struct, structs

from fairlead.edge.connection.decoders import decoder_of
from fairlead.edge.kube.api_failure import SYSTEM, ApiFailure, Conflict
from fairlead.edge.kube.api_page import ItemReader
from fairlead.edge.kube.api_request import (
    Selection,
    create_request,
    metadata_list_request,
    patch_request,
)
from fairlead.edge.kube.kube_api import KubeApi
from fairlead.edge.kube.lease import KubeLease
from fairlead.edge.kube.resource import CONFIG_MAPS, NAMESPACES
from fairlead.errors import AlreadyExists, NotFound, OutsideError
from fairlead.model.actions import Manifest
from fairlead.model.installation import INSTALLATION_LABEL, SYSTEM_PART
from fairlead.model.operations.operation import Operation
from fairlead.wire.kube.forms import JsonForm
from fairlead.wire.kube.objects import WireNamed
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

_READ_SINGLY: Final = 8
"""If more records changed since the last list, all are read at once."""
_log = logging.getLogger(__name__)


class _Names(Struct):
    items: list[WireNamed]


class KubeOperationRecords:
    """`namespace`: of the installation. Only administrators may write ConfigMaps there, so that no
    other user's ConfigMap is taken for a record. `makes_namespace`: the first record creates it,
    labelled as that of an installation.
    """

    def __init__(self, api: KubeApi, namespace: str, *, makes_namespace: bool = False) -> None:
        self._api = api
        self._namespace = namespace
        self._makes_namespace = makes_namespace
        self._listed: dict[str, tuple[str, Operation | None]] = {}

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
        chosen = Selection(self._namespace, labels=LABEL_OPERATION)
        if not self._listed or not await self._renewed(chosen):
            reader = ItemReader(CONFIG_MAPS, JsonForm(WireRecord, parse_record))
            rows = (await self._api.list_all(reader, chosen)).rows.values()
            self._listed = {record_name(each.id): (each.version, each) for each in rows}
        found = (each for _, each in self._listed.values() if each is not None)
        return tuple(sorted(found, key=lambda each: (-each.created_at, each.id)))

    async def _renewed(self, chosen: Selection) -> bool:
        """Reads what changed since the last list: plans are large, and a server lists every two
        seconds. False if that is too much.
        """
        answer = await self._api.send(metadata_list_request(CONFIG_MAPS, chosen))
        page = decoder_of(_Names).decode(answer.body)
        versions = {each.metadata.name or "": each.metadata.resource_version for each in page.items}
        kept = {name: self._listed[name] for name in versions if name in self._listed}
        changed = [
            name for name, version in versions.items() if kept.get(name, ("",))[0] != version
        ]
        if len(changed) > _READ_SINGLY:
            return False
        for name in changed:
            kept.pop(name, None)
            try:
                found = await self._api.get(CONFIG_MAPS, name, self._namespace, WireRecord)
            except NotFound:
                continue
            kept[name] = (found.metadata.resource_version or "", _parsed(found))
        self._listed = kept
        return True

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


def _parsed(record: WireRecord) -> Operation | None:
    """None for one that is no record."""
    try:
        return parse_record(record)
    except ValueError as error:
        _log.warning("ConfigMap %s is no record of an operation: %s", record.metadata.name, error)
        return None


def _at(operation: Operation, record: WireRecord) -> Operation:
    return structs.replace(operation, version=record.metadata.resource_version or "")
