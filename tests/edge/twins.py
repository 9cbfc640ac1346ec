"""The two Kubernetes clients behind one interface, so that the same test suite covers both."""

from __future__ import annotations

import asyncio
import random
from typing import Any

from fairlead.edge.connection.connection import Connection
from fairlead.edge.connection.credentials import Credentials, Issued
from fairlead.edge.kube.api_page import ItemReader
from fairlead.edge.kube.kube_api import KubeApi
from fairlead.edge.kube.kube_blocking import KubeBlocking
from fairlead.edge.kube.resource import NODES, PODS
from fairlead.model.node import Node
from fairlead.model.pod import Pod
from fairlead.wire.kube.objects import NODE_FORM, POD_FORM


def pod_reader() -> ItemReader[Pod]:
    return ItemReader(PODS, POD_FORM)


def node_reader() -> ItemReader[Node]:
    return ItemReader(NODES, NODE_FORM)


def fixed(authorization: str | None = None) -> Credentials:
    issued = Issued(authorization=authorization)
    return Credentials(lambda: issued, is_renewable=False)


def connection_to(url: str, **parts: Any) -> Connection:
    return Connection(url, parts.pop("credentials", None) or fixed(), **parts)


class Twin:
    """One client. `call` runs one of its methods; `waits`: the seconds it slept between tries."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.waits: list[float] = []
        self.requests_total = 0

    def call(self, method: str, *arguments: Any, **named: Any) -> Any:
        raise NotImplementedError


class AsyncTwin(Twin):
    speaks_protobuf = True

    def call(self, method: str, *arguments: Any, **named: Any) -> Any:
        async def sleep(seconds: float) -> None:
            self.waits.append(seconds)

        async def run() -> Any:
            async with KubeApi(self.connection, rng=random.Random(1), sleep=sleep) as api:
                api.conversation.speaks_protobuf = self.speaks_protobuf
                try:
                    return await getattr(api, method)(*arguments, **named)
                finally:
                    self.requests_total += api.requests_total

        return asyncio.run(run())


class BlockingTwin(Twin):
    def call(self, method: str, *arguments: Any, **named: Any) -> Any:
        with KubeBlocking(self.connection, rng=random.Random(1), sleep=self.waits.append) as api:
            try:
                return getattr(api, method)(*arguments, **named)
            finally:
                self.requests_total += api.requests_total


class JsonTwin(AsyncTwin):
    """A client after its API server has once sent broken protobuf."""

    speaks_protobuf = False


TWINS = {"async": AsyncTwin, "blocking": BlockingTwin}
REAL_TWINS = {**TWINS, "async in JSON": JsonTwin}
"""For a server that has both forms."""
