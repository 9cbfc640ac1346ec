"""Runs only the API server of a kept world, for tests that kill it: `python kept_server.py DIR
READY_FILE SEED`.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

from fairlead.apps.server import bind_socket, serve
from fairlead.run.initial_worlds import scenario_world
from fairlead.run.kept_world import open_world
from fairlead_sim.api.saved import saved_first
from fairlead_sim.api.server import ApiServer
from fairlead_sim.world.driver import Driver


async def run(directory: Path, ready_file: Path, seed: int) -> None:
    kept = open_world(directory, scenario_world("empty"), seed)
    driver = Driver(kept.world, speed=20.0)
    app = ApiServer(
        kept.world.cluster, kept.world.clock, [kept.credentials.token], catch_up=driver.catch_up
    )
    sock, ready = bind_socket("127.0.0.1", 0), asyncio.Event()
    serving = asyncio.create_task(serve(saved_first(app, kept.save), sock=sock, ready=ready))
    await ready.wait()
    reported = {
        "port": sock.getsockname()[1],
        "token": kept.credentials.token,
        "version": kept.world.cluster.resource_version,
    }
    ready_file.with_suffix(".part").write_text(json.dumps(reported))
    ready_file.with_suffix(".part").replace(ready_file)
    await asyncio.gather(serving, driver.run(), kept.run())


if __name__ == "__main__":
    asyncio.run(run(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])))
