"""Requests to open a WebSocket, to a server that has them and to one that has none."""

from __future__ import annotations

from tests.apps.every_server import TOKEN, running

UPGRADE = (
    b"Host: localhost\r\nAuthorization: Bearer %s\r\nConnection: upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
) % TOKEN.encode()


async def test_another_method_with_a_body_that_does_not_come() -> None:
    async with running("api server") as stranger:
        answer = await stranger.say(b"POST /api HTTP/1.1\r\n%sContent-Length: 5\r\n\r\n" % UPGRADE)
    assert answer.split()[1] == b"400"


async def test_behind_an_answer_that_goes_on() -> None:
    """The client is disconnected, and the answer ends with it."""
    async with running("api server") as stranger:
        watch = b"GET /api/v1/pods?watch=1 HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s"
        answer = await stranger.say(
            watch % TOKEN.encode() + b"\r\n\r\nGET /api HTTP/1.1\r\n%s\r\n" % UPGRADE
        )
        assert b"101" not in answer
        assert b"200 OK" in await stranger.ask(b"/version")


async def test_after_an_answer() -> None:
    async with running("api server") as stranger:
        answer = await stranger.say(
            b"GET /version HTTP/1.1\r\nHost: localhost\r\n\r\nGET /version HTTP/1.1\r\n%s\r\n"
            % UPGRADE
        )
    assert answer.count(b"HTTP/1.1 200") in (0, 2)


async def test_a_server_without_them_answers_in_http() -> None:
    async with running("gpu exporter") as stranger:
        asked = UPGRADE.replace(b": upgrade", b": upgrade, close")
        answer = await stranger.say(b"GET /healthz HTTP/1.1\r\n%s\r\n" % asked)
    assert b" 200 " in answer and b"101" not in answer.split(b"\r\n")[0]
