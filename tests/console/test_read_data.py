"""When claims and data sets are read: for a page, again while it is open, and never for none."""

from __future__ import annotations

import asyncio

import pytest
from tests.console.data_parts import StillData, claim

from fairlead.console.http.data.read_data import (
    READ_AGAIN_SECONDS,
    STALE_SECONDS,
    WATCHED_SECONDS,
    ReadData,
)
from fairlead.errors import OutsideError
from fairlead.model.jobs.data_details import DataSetFacts
from fairlead.model.jobs.datasets import FoundData


class HandClock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


class HangingData(StillData):
    """Answers nothing while it `hangs`."""

    hangs = True

    async def read(self, namespace: str = "") -> FoundData:
        if self.hangs:
            await asyncio.Event().wait()
        return await super().read(namespace)

    async def details(self, namespace: str, name: str) -> DataSetFacts:
        await asyncio.Event().wait()
        raise AssertionError


async def test_data_are_read_again_while_a_page_shows_them() -> None:
    clock, source = HandClock(), StillData(claim("raw"))
    data = ReadData(source, clock)
    assert not await data.follow() and source.reads == 0, "no page has asked"
    await data.found()
    await data.found()
    assert source.reads == 1, "what was read is shown"
    assert not await data.follow()
    clock.now += READ_AGAIN_SECONDS
    assert await data.follow() and source.reads == 2
    clock.now += WATCHED_SECONDS
    assert not await data.follow() and source.reads == 2, "the page is closed"
    await data.found()
    assert source.reads == 3, "data of a minute ago are not shown"


async def test_what_was_written_is_read_before_it_is_shown() -> None:
    clock, source = HandClock(), StillData(claim("raw"))
    data = ReadData(source, clock)
    await data.found()
    source.rows.append(claim("new"))
    assert len((await data.found()).claims) == 1
    data.wrote()
    assert len((await data.found()).claims) == 2


async def test_a_view_is_made_anew_only_for_those_who_see_a_change() -> None:
    clock, source = HandClock(), StillData(claim("raw"), claim("other", "b-ns"))
    data = ReadData(source, clock)
    await data.found()
    own, all_ = await data.view({"a-ns"}, {}), await data.view(None, {})
    source.rows.append(claim("new", "b-ns"))
    data.wrote()
    await data.found()
    assert await data.view({"a-ns"}, {}) is own
    assert len((await data.view(None, {})).content) == len(all_.content) + 1


async def test_an_api_server_that_hangs_keeps_no_request() -> None:
    clock, source = HandClock(), HangingData(claim("raw"))
    data = ReadData(source, clock, patience=0.02)
    with pytest.raises(OutsideError):
        await data.found()
    with pytest.raises(TimeoutError, match=r"within 0\.02 s"):
        await data.details("a-ns", "raw")
    source.hangs = False
    data = ReadData(source, clock, patience=0.02)
    before = await data.found()
    source.hangs = True
    clock.now += STALE_SECONDS + 1
    assert data.is_stale
    assert await data.found() is before, "the last good reading stays, and is stale"
