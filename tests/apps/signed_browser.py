"""A browser that signs in to a console, without JavaScript."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http.cookies import SimpleCookie
from typing import Any

from tests.apps.running_console import Page, console
from tests.console.clusters import living_cluster
from tests.console.sign_in_parts import Parts
from tests.console.worlds import still_world

from fairlead.console.pages.endpoints import BASE


class Browser:
    """A client that keeps its cookies, whatever their flags are."""

    def __init__(self, page: Page, prefix: str = "", **headers: str) -> None:
        self.page, self.prefix, self.headers = page, prefix, headers
        self.cookies: dict[str, str] = {}
        self.set: dict[str, Any] = {}

    async def send(
        self, path: str, method: str = "GET", body: Any = None, **headers: str
    ) -> tuple[int, Any]:
        sent = {
            **self.headers,
            **{name.replace("_", "-"): value for name, value in headers.items()},
        }
        if self.cookies:
            sent["Cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        more: dict[str, Any] = {"method": method, "headers": sent, "allow_redirects": False}
        if body is not None:
            more["data"] = body if isinstance(body, bytes) else json.dumps(body)
            sent.setdefault("Content-Type", "application/json")
        status, answered, data = await self.page.get(f"{self.prefix}{BASE}{path}", **more)
        for line in answered.getall("Set-Cookie", ()):
            for name, morsel in SimpleCookie(line).items():
                self.set[name] = morsel
                if morsel["max-age"] == "0":
                    self.cookies.pop(name, None)
                else:
                    self.cookies[name] = morsel.value
        is_json = answered.get("Content-Type", "").startswith("application/json")
        return status, json.loads(data) if is_json else answered.get("Location", data)

    async def sign_in(self, secret: str, way: str = "token", **headers: str) -> tuple[int, Any]:
        return await self.send("/signin", "POST", {"way": way, "secret": secret}, **headers)

    async def signed_in(self, secret: str, way: str = "token") -> Browser:
        status, answer = await self.sign_in(secret, way)
        assert status == 200, answer
        return self

    async def me(self) -> Any:
        status, answer = await self.send("/me")
        assert status == 200, answer
        return answer

    async def code(self, path: str = "/me") -> str:
        """The code of the refusal, "" for an answer."""
        status, answer = await self.send(path)
        return "" if status == 200 else answer["code"]


@asynccontextmanager
async def served(parts: Parts, **more: Any) -> AsyncIterator[Page]:
    settings = more.pop("settings", None)
    base_path = f"/{settings.base_path}/" if settings else "/"
    desk = parts.desk(base_path=base_path, **more)
    async with console(still_world(living_cluster()), settings, desk=desk) as page:
        yield page
