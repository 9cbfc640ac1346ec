"""The guard around every request: a body without a Content-Length is limited while it is read."""

from __future__ import annotations

import argparse
import re

import pytest
from starlette.types import Message

from fairlead.cli.servers import console as console_command
from fairlead.console.http.answers import Refused
from fairlead.console.http.guard import BODY_MAX, HOST_HINT, limited


def stream_of(*sizes: int):  # type: ignore[no-untyped-def]
    chunks = [{"type": "http.request", "body": b"x" * size, "more_body": True} for size in sizes]

    async def receive() -> Message:
        return chunks.pop(0)

    return receive


async def test_a_body_of_the_largest_size_is_read() -> None:
    receive = limited(stream_of(BODY_MAX // 2, BODY_MAX // 2))
    assert len((await receive())["body"]) + len((await receive())["body"]) == BODY_MAX


async def test_a_body_is_refused_as_soon_as_it_is_too_large() -> None:
    receive = limited(stream_of(BODY_MAX, 1))
    await receive()
    with pytest.raises(Refused) as refused:
        await receive()
    assert refused.value.status == 413


def test_the_refusal_of_a_host_names_a_command_and_a_flag_that_exist() -> None:
    ((command, flag, value),) = re.findall(r"`fairlead (\w+) (--[\w-]+) (\w+)`", HOST_HINT)
    parser = argparse.ArgumentParser(allow_abbrev=False)
    console_command.add_arguments(parser)
    assert command == console_command.NAME
    assert parser.parse_args([flag, value]).allowed_host == [value]
