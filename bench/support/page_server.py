"""Serves pages of GPU exporters for many nodes: each node has an address of its own on loopback.

    python -m bench.support.page_server PAGE UUIDS PORT

`PAGE`: the page of one node with eight cards. `UUIDS`: JSON, the GPUs of each node by its name, in
the order of addresses. Every address of 127.0.0.0/8 leads here. `/read` is the number of pages that
were read.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
from contextlib import suppress
from pathlib import Path


def address_of(number: int) -> str:
    """The address of a node's pod.

    >>> address_of(300)
    '127.64.1.45'
    """
    return f"127.64.{number // 255}.{number % 255}"


def _number(address: str) -> int:
    _, _, high, low = address.split(".")
    return int(high) * 255 + int(low)


async def serve(page: str, uuids: dict[str, list[str]], port: int) -> None:
    """Until it is cancelled."""
    names = list(uuids)
    (node,) = set(re.findall(r'node_name="([^"]+)"', page))
    cards = sorted(set(re.findall(r"GPU-[0-9a-f-]+", page)))
    pieces = re.split("|".join(map(re.escape, [node, *cards])), page)
    marks = [
        -1 if mark == node else cards.index(mark)
        for mark in re.findall("|".join(map(re.escape, [node, *cards])), page)
    ]
    read = 0

    def page_of(number: int) -> bytes:
        name = names[number]
        of_node = uuids[name]
        parts = [pieces[0]]
        for mark, piece in zip(marks, pieces[1:], strict=True):
            parts += (name if mark < 0 else of_node[mark], piece)
        return "".join(parts).encode()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal read
        address = writer.get_extra_info("sockname")[0]
        body = page_of(_number(address)) if address.startswith("127.64.") else b""
        with suppress(OSError, asyncio.IncompleteReadError):
            while head := await reader.readuntil(b"\r\n\r\n"):
                is_count = head.startswith(b"GET /read ")
                read += not is_count
                sent = str(read).encode() if is_count else body
                writer.write(
                    b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n"
                    % len(sent)
                    + sent
                )
        writer.close()

    server = await asyncio.start_server(answer, "0.0.0.0", port, backlog=1024)
    await server.serve_forever()


if __name__ == "__main__":
    import uvloop

    _, page_file, uuid_file, listen = sys.argv
    uvloop.run(
        serve(
            Path(page_file).read_text(encoding="utf-8"),
            json.loads(Path(uuid_file).read_text(encoding="utf-8")),
            int(listen),
        )
    )
