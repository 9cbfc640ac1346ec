"""Pages of a GPU exporter, and pods that ask for them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

from fairlead.edge.prometheus.exporter_pages import ExporterPages


@contextlib.asynccontextmanager
async def running(pages: ExporterPages) -> AsyncIterator[ExporterPages]:
    task = asyncio.create_task(pages.run())
    try:
        yield pages
        assert not task.done(), task.exception()
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


def native_page(node: str, uuid: str, used_mib: int) -> str:
    labels = f'{{node_name="{node}",gpu="0",uuid="{uuid}",model="T4"}}'
    values = {"up": 1, "memory_used_bytes": used_mib << 20, "memory_total_bytes": 15360 << 20}
    return "".join(f"fairlead_gpu_{name}{labels} {value}\n" for name, value in values.items())
