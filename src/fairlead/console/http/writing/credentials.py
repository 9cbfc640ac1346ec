"""Credentials of users: listed, issued on demand, revoked. A token stands in one answer only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from starlette.requests import Request

from fairlead.console.http.answers import Refused
from fairlead.console.http.issuing import NOTE_MAX, issue_recorded
from fairlead.console.http.subjects import subject_of
from fairlead.console.http.writing.frame import Blocked, PlannedWrite, Written, not_there
from fairlead.console.http.writing.people import PeoplePlans
from fairlead.console.http.writing.people_rows import credential_row
from fairlead.console.pages.envelope import FieldFault, exact_timestamp, timestamp
from fairlead.console.pages.writing.people import (
    CredentialList,
    CredentialOrder,
    IssuedKubeconfig,
    IssuedToken,
    UserKubeconfigOrder,
)
from fairlead.console.pages.writing.preview import Deleted, Effect
from fairlead.model.people.record import Credential
from fairlead.model.people.rows import User
from fairlead.model.records.audit import AuditTarget
from fairlead.ports import CredentialRecords
from fairlead.settings import USERS_NAMESPACE
from fairlead.wire.files.manifest_yaml import render_manifests
from fairlead.wire.people.credentials import render_kubeconfig

LEAST_SECONDS: Final = 600
MOST_SECONDS: Final = 30 * 86_400
MOST_VALID: Final = 50
"""Credentials of one user that are valid at a time: each is a Secret of the cluster."""


class CredentialPlans:
    """`now`: epoch seconds of the cluster. `console`: the address of this console, for kubeconfigs;
    "" = unknown.
    """

    def __init__(
        self,
        plans: PeoplePlans,
        records: CredentialRecords | None,
        now: Callable[[], float],
        console: str = "",
    ) -> None:
        self._plans = plans
        self._records = records
        self._now = now
        self._console = console

    async def listed(self, request: Request) -> CredentialList:
        user = await self._owner(request)
        found = await self._plans.people.credentials(user.name)
        now = self._now()
        return CredentialList(exact_timestamp(now), [credential_row(each, now) for each in found])

    async def issue_token(self, request: Request, order: CredentialOrder) -> PlannedWrite:
        user = await self._owner(request)

        async def act() -> Written:
            credential, token = await self._issue(request, user, order)
            body = IssuedToken(credential.name, token, timestamp(credential.expires_at) or "")
            return Written(body, 201, is_secret=True)

        return await self._planned(user, order, act, [])

    async def issue_kubeconfig(self, request: Request, order: UserKubeconfigOrder) -> PlannedWrite:
        user = await self._owner(request)
        mine, faults = user.status.namespaces, list[FieldFault]()
        if order.namespace and order.namespace not in mine and not user.is_admin:
            what = f"{user.name} has no rights in namespace `{order.namespace[:253]}`"
            faults.append(FieldFault("namespace", "no-right", what))
        namespace = order.namespace or (mine[0] if mine else "default")

        async def act() -> Written:
            server = await self._plans.people.address()
            credential, token = await self._issue(request, user, order)
            text = render_kubeconfig(user.name, {"token": token}, namespace, server, self._console)
            body = IssuedKubeconfig(
                id=credential.name,
                file_name=f"kubeconfig-{user.name}.yaml",
                kubeconfig=render_manifests([text]),
                server=server.url,
                expires_at=timestamp(credential.expires_at) or "",
            )
            return Written(body, 201, is_secret=True)

        return await self._planned(user, order, act, faults)

    async def revoke(self, request: Request, order: Any) -> PlannedWrite:
        user = await self._owner(request)
        name = request.path_params["token"]
        people = self._plans.people
        found = next(
            (each for each in await people.credentials(user.name) if each.name == name), None
        )
        if found is None:
            raise not_there("credential", name, "look at the list of the user's credentials")
        credential = found

        async def act() -> Written:
            await people.revoke(credential)
            if self._records is not None:
                await self._records.revoke_credentials(self._ms(), name=name)
            return Written(Deleted(name))

        return PlannedWrite(
            target=AuditTarget("Credential", USERS_NAMESPACE, name),
            act=act,
            summary=f"user: {user.name}",
            effects=[Effect("delete", "Secret", USERS_NAMESPACE, name)],
        )

    async def revoke_all(self, request: Request, order: Any) -> PlannedWrite:
        user = await self._owner(request)
        found = await self._plans.people.credentials(user.name)

        async def act() -> Written:
            await self._plans.people.revoke_all(user.name)
            if self._records is not None:
                await self._records.revoke_credentials(self._ms(), user=user.name)
            return Written(Deleted(user.name))

        return PlannedWrite(
            target=AuditTarget("User", USERS_NAMESPACE, user.name),
            act=act,
            summary=f"credentials: {len(found)}",
            effects=[
                *(Effect("delete", "Secret", USERS_NAMESPACE, each.name) for each in found),
                Effect("delete", "ServiceAccount", USERS_NAMESPACE, user.name),
            ],
        )

    # --- parts ------------------------------------------------------------------------------------

    async def _owner(self, request: Request) -> User:
        """The user of the path, or the subject itself."""
        named = request.path_params.get("id")
        name = subject_of(request).user if named is None else named
        record = await self._plans.record(request)
        if name in record.users:
            return record.users[name]
        if named is None:
            raise Refused(
                409,
                "you are no user of Fairlead, so no credential can be issued to you",
                "make a user for yourself, and sign in as that user",
                code="blocked",
            )
        raise not_there("user", name, "look at the list of users")

    async def _planned(
        self,
        user: User,
        order: CredentialOrder | UserKubeconfigOrder,
        act: Any,
        faults: list[FieldFault],
    ) -> PlannedWrite:
        seconds = order.lifetime_seconds
        if not LEAST_SECONDS <= seconds <= MOST_SECONDS:
            what = f"a token lives {LEAST_SECONDS} to {MOST_SECONDS} seconds, and not {seconds}"
            faults.append(FieldFault("lifetimeSeconds", "range", what))
        if len(order.note) > NOTE_MAX or not order.note.isprintable():
            what = f"a note has at most {NOTE_MAX} printable characters"
            faults.append(FieldFault("note", "length", what))
        blocked = None
        if not user.status.service_account or user.is_disabled or user.is_ending:
            why = "is disabled" if user.is_disabled else "has no ServiceAccount yet"
            blocked = Blocked(
                f"{user.name} {why}, so no token can be issued",
                "enable the user" if user.is_disabled else "wait until the user is ready",
            )
        now = self._now()
        valid = [
            each
            for each in await self._plans.people.credentials(user.name)
            if each.expires_at > now
        ]
        if blocked is None and len(valid) >= MOST_VALID:
            blocked = Blocked(
                f"{user.name} has {len(valid)} credentials that are valid; {MOST_VALID} at most",
                "revoke those that are not used",
            )
        return PlannedWrite(
            target=AuditTarget("User", USERS_NAMESPACE, user.name),
            act=act,
            summary=f"lifetime: {seconds} s",
            faults=faults,
            blocked=blocked,
            effects=[Effect("create", "Secret", USERS_NAMESPACE, f"{user.name}-…")],
        )

    async def _issue(
        self, request: Request, user: User, order: CredentialOrder | UserKubeconfigOrder
    ) -> tuple[Credential, str]:
        subject, seconds = subject_of(request), order.lifetime_seconds
        actor = subject.user or subject.name
        people = self._plans.people
        return await issue_recorded(people, self._records, user.name, seconds, order.note, actor)

    def _ms(self) -> int:
        return round(self._now() * 1000)
