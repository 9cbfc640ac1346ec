"""Issues tokens for the console (`ports.CredentialIssuer`), in threads.

It does what `fairlead kubeconfig create` does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from fairlead.edge.connection.connection import Connection
from fairlead.edge.kube.kube_blocking import KubeBlocking
from fairlead.edge.people.people_query import PeopleQuery
from fairlead.model.people.record import Credential, ServerAddress


class KubeCredentials:
    """`server`: the API server's URL for users, "" = as this process reaches it, or in a pod as the
    cluster publishes it. `now`: epoch seconds of the API server.
    """

    def __init__(self, connection: Connection, now: Callable[[], float], server: str = "") -> None:
        self._query = PeopleQuery(KubeBlocking(connection), now)
        self._server = server

    async def issue(
        self, user: str, seconds: int, note: str, issued_by: str
    ) -> tuple[Credential, str]:
        return await asyncio.to_thread(self._query.issue, user, seconds, note, issued_by=issued_by)

    async def address(self) -> ServerAddress:
        return await asyncio.to_thread(self._query.address, self._server)
