"""The password of an external database, as the console of the installation reads it.

It goes into the Secret and nowhere else: not into the audit, a record, an answer or a log.

Specification: docs/spec/console.md#writing-components.
"""

from __future__ import annotations

import asyncio
from typing import Final

from msgspec import Struct

from fairlead.console.http.writing.frame import Blocked, PlannedWrite, Written
from fairlead.console.pages.data.components import StoreChecked, StoreOrder
from fairlead.console.pages.envelope import FieldFault
from fairlead.console.pages.writing.preview import Effect
from fairlead.errors import OutsideError, UserError
from fairlead.model.actions import Manifest, ObjectRef
from fairlead.model.records.audit import AuditTarget
from fairlead.ports import InstallationPlans, OperationCluster, StoreQuestions
from fairlead.settings import STORE_PASSWORD_KEY

MANAGER: Final = "fairlead-store"
"""Of the one key; other keys of the Secret are the operator's."""


class StorePasswords(Struct, frozen=True):
    """`cluster`: writes the Secret."""

    stores: StoreQuestions
    installation: InstallationPlans
    cluster: OperationCluster

    async def plan(self, order: StoreOrder) -> PlannedWrite:
        """Only a database that answers gets a Secret. What does not is a fault of the form."""
        url = order.url.strip()
        try:
            secret = await asyncio.to_thread(self.installation.console_secret)
        except UserError as error:
            return _blocked(Blocked(error.what, error.hint))
        look = await self.stores.look(url, order.password)
        faults = []
        if not look.is_good:
            hint = f": {look.hint}" if look.hint else ""
            faults.append(FieldFault("url", "store", f"{look.sentence}{hint}"))

        async def act() -> Written:
            if order.password:
                await self._write(secret, order.password)
            return Written(StoreChecked(True, look.sentence, look.hint, store_settings(url)))

        effects = [Effect("update", "Secret", secret.namespace, secret.name)]
        return PlannedWrite(
            target=AuditTarget("Secret", secret.namespace, secret.name),
            act=act,
            summary=f"set {STORE_PASSWORD_KEY}" if order.password else "no password",
            faults=faults,
            effects=effects if order.password else [],
        )

    async def _write(self, secret: ObjectRef, password: str) -> None:
        """Raises OutsideError without the password in it: a refusal may repeat it."""
        manifest: Manifest = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": secret.name, "namespace": secret.namespace},
            "stringData": {STORE_PASSWORD_KEY: password},
        }
        try:
            await self.cluster.apply(manifest, "secrets", is_forced=True, manager=MANAGER)
        except OutsideError as error:
            error.what = error.what.replace(password, "…")
            error.hint = error.hint.replace(password, "…")
            error.args = (error.what,)
            raise


def store_settings(url: str) -> list[str]:
    """Values of the installation that name the database."""
    return [f"store.url={url}"]


def _blocked(blocked: Blocked) -> PlannedWrite:
    async def never() -> Written:
        raise NotImplementedError

    return PlannedWrite(target=AuditTarget("Secret", "", ""), act=never, blocked=blocked)
