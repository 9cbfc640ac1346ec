"""A console over a simulated world whose time a user moves."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from tests.apps.running_console import Page, console
from tests.console.clusters import living_cluster
from tests.console.worlds import still_world
from tests.sim.small_world import small_world

from fairlead.console.pages.endpoints import BASE
from fairlead_sim.world.driver import Driver


class Wall:
    """Real time plus the seconds that a test adds."""

    passed = 0.0

    def now(self) -> float:
        return time.monotonic() + self.passed


class Moved:
    """A console over a driven world, and the requests by which its page moves time."""

    def __init__(self, page: Page, driver: Driver, wall: Wall, csrf: str) -> None:
        self.page, self.driver, self.wall = page, driver, wall
        self.headers = {
            "X-Fairlead-Csrf": csrf,
            "Content-Type": "application/json",
            "Origin": page.url,
            "Sec-Fetch-Site": "same-origin",
        }

    async def order(self, body: Any, **headers: str) -> tuple[int, Any]:
        sent = {key: value for key, value in (self.headers | headers).items() if value}
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        status, _, answer = await self.page.get(
            f"{BASE}/clock", method="POST", data=data, headers=sent
        )
        return status, json.loads(answer)


@asynccontextmanager
async def moved(*, is_running: bool = False) -> AsyncIterator[Moved]:
    wall = Wall()
    driver = Driver(small_world(), 1.0, wall.now)
    task = asyncio.create_task(driver.run()) if is_running else None
    try:
        async with console(
            msgspec.structs.replace(still_world(living_cluster()), timekeeper=driver)
        ) as page:
            yield Moved(page, driver, wall, (await page.json("/me"))["csrf"])
    finally:
        if task is not None:
            task.cancel()
