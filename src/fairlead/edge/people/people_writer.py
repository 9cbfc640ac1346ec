"""Users, groups and credentials for a service (`ports.People`): the command's calls, in threads."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from fairlead.edge.connection.connection import Connection
from fairlead.edge.kube.kube_blocking import KubeBlocking
from fairlead.edge.people.people_query import PeopleQuery
from fairlead.model.people.record import Credential, PeopleRecord, ServerAddress
from fairlead.model.people.rows import User, UserGroup


class KubePeople:
    """One cluster, with the rights of the process. `now`: epoch seconds. `server`: the API server
    as users reach it, "" = as this process does.
    """

    def __init__(self, connection: Connection, now: Callable[[], float], server: str = "") -> None:
        self._server = server
        self._api = KubeBlocking(connection)
        self._query = PeopleQuery(self._api, now)

    async def read(self) -> PeopleRecord:
        return await asyncio.to_thread(self._query.read)

    async def create_user(self, user: User) -> None:
        await asyncio.to_thread(self._query.create_user, user)

    async def change_user(self, before: User, after: User) -> None:
        await asyncio.to_thread(self._query.change_user, before, after)

    async def delete_user(self, user: User, *, is_forced: bool) -> None:
        await asyncio.to_thread(lambda: self._query.delete_user(user, is_forced=is_forced))

    async def create_group(self, group: UserGroup) -> None:
        await asyncio.to_thread(self._query.create_group, group)

    async def change_group(self, before: UserGroup, after: UserGroup) -> None:
        await asyncio.to_thread(self._query.change_group, before, after)

    async def delete_group(self, group: UserGroup) -> None:
        await asyncio.to_thread(self._query.delete_group, group)

    async def issue(
        self, user: str, seconds: int, note: str, issued_by: str
    ) -> tuple[Credential, str]:
        return await asyncio.to_thread(
            lambda: self._query.issue(user, seconds, note, issued_by=issued_by)
        )

    async def credentials(self, user: str = "") -> list[Credential]:
        return await asyncio.to_thread(self._query.credentials, user)

    async def revoke(self, credential: Credential) -> None:
        await asyncio.to_thread(self._query.revoke, credential)

    async def revoke_all(self, user: str) -> int:
        return await asyncio.to_thread(self._query.revoke_all, user)

    async def address(self) -> ServerAddress:
        return await asyncio.to_thread(self._query.address, self._server)

    async def close(self) -> None:
        await asyncio.to_thread(self._api.close)
