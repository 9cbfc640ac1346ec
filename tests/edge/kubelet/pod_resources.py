"""A kubelet that serves the pod resources API (the devices of pods)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import grpc
from grpc import aio
from tests.edge.kubelet.wire_bytes import packed


def devices(resource: str, *ids: str) -> bytes:
    numa = packed((1, packed((1, 1))))
    return packed((1, resource), *((2, each) for each in ids), (3, numa))


def container(name: str, *held: bytes) -> bytes:
    return packed(
        (1, name),
        *((2, each) for each in held),
        (3, b"\x01\x02"),
        (4, packed((1, "memory"), (2, 4096))),
    )


@asynccontextmanager
async def answering(
    path: Path, answer: bytes, code: grpc.StatusCode | None = None, *, is_slow: bool = False
) -> AsyncIterator[None]:
    async def listed(_request: bytes, context: aio.ServicerContext[bytes, bytes]) -> bytes:
        if is_slow:
            await asyncio.Event().wait()
        if code is not None:
            await context.abort(code, "rejected by rate limit")
        return answer

    server = aio.server()
    handlers = {"List": grpc.unary_unary_rpc_method_handler(listed)}
    server.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler("v1.PodResourcesLister", handlers),)
    )
    server.add_insecure_port(f"unix:{path}")
    await server.start()
    try:
        yield
    finally:
        await server.stop(None)
