"""A cluster behind a scripted API server, as commands query it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tests.edge.scripted import Reply, ScriptedServer

from fairlead.edge.connection.connection import Connection
from fairlead.edge.connection.credentials import Credentials, Issued
from fairlead.edge.kube.kube_blocking import KubeBlocking


@contextmanager
def cluster(**script: list[Reply]) -> Iterator[tuple[ScriptedServer, KubeBlocking]]:
    with ScriptedServer({**script}) as server:
        connection = Connection(
            server=server.url, credentials=Credentials(lambda: Issued(), is_renewable=False)
        )
        with KubeBlocking(connection) as api:
            yield server, api
