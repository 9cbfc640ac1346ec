"""Everything in one process and one event loop: several servers, the loops that feed them, one moment when all is up, one end.

What a newcomer gets wrong: nothing is announced before every server answers *and* the followed cluster has been read once, because
whoever reads the ready file asks at once. Stopping is cancelling: SIGTERM or Ctrl-C ends all of it within seconds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Final

from fairlead.apps.server import run_together
from fairlead.ports import Cluster

Loop = Coroutine[Any, Any, None]
ServerLoop = Callable[[asyncio.Event], Loop]
"""A server that is told which event to set once it accepts connections."""

_READY_LOOK_SECONDS: Final = 0.2


async def run_all(servers: Sequence[ServerLoop], loops: Sequence[Loop], *, cluster: Cluster | None, on_ready: Callable[[], None]) -> None:
    """Serve and run until SIGTERM, Ctrl-C or the first failure.

    `on_ready` is called once, when all servers accept connections and `cluster` (whose `run` is among the loops) has been read.
    """
    accepting = [asyncio.Event() for _ in servers]
    serving = [server(event) for server, event in zip(servers, accepting, strict=True)]
    await run_together(*serving, *loops, _announce(accepting, cluster, on_ready))


async def _announce(accepting: Sequence[asyncio.Event], cluster: Cluster | None, on_ready: Callable[[], None]) -> None:
    for event in accepting:
        await event.wait()
    while cluster is not None and not cluster.is_ready:
        await cluster.wait_changed(cluster.version, _READY_LOOK_SECONDS)
    on_ready()
