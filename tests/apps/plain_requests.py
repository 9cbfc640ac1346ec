"""One request over a socket, and its answer."""

from __future__ import annotations

import asyncio
import socket

from tests.waiting import HANG_SECONDS


async def ask(sock: socket.socket, line: str) -> tuple[int, str]:
    reader, writer = await asyncio.open_connection(*sock.getsockname())
    writer.write(f"{line} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
    head, _, body = (await asyncio.wait_for(reader.read(), HANG_SECONDS)).partition(b"\r\n\r\n")
    writer.close()
    return int(head.split()[1]), body.decode()
