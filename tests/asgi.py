"""Sends one request to a server's ASGI callable, without a socket."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from tests.waiting import HANG_SECONDS

TOKEN = "a-token"


async def ask(
    app: Any,
    method: str,
    path: str,
    body: bytes = b"",
    headers: dict[str, str] | None = None,
    token: str = TOKEN,
) -> tuple[int, Any]:
    """Returns (status, decoded JSON or text)."""
    target, _, query = path.partition("?")
    given = {"authorization": f"Bearer {token}", "host": "laptop", **(headers or {})}
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "https",
        "path": target,
        "raw_path": target.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": [(key.encode(), value.encode()) for key, value in given.items()],
    }
    messages: list[Any] = []
    sent = iter([{"type": "http.request", "body": body, "more_body": False}])

    async def receive() -> Any:
        message = next(sent, None)
        if message is None:
            await asyncio.Event().wait()
        return message

    async def send(message: Any) -> None:
        messages.append(message)

    await asyncio.wait_for(app(scope, receive, send), HANG_SECONDS)
    raw = b"".join(message.get("body", b"") for message in messages[1:])
    try:
        return messages[0]["status"], json.loads(raw)
    except ValueError:
        return messages[0]["status"], raw.decode()
