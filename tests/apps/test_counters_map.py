"""Counters from a ConfigMap: the file until the ConfigMap exists, its newest content while it
exists, the last good content afterwards.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.waiting import until

from fairlead.apps.configuration.counters_file import CountersFile
from fairlead.apps.configuration.counters_map import CountersMap
from fairlead.errors import Forbidden, OutsideError, UserError

GOOD, OTHER = "DCGM_FI_DEV_GPU_UTIL, gauge, Busy.\n", "DCGM_FI_DEV_FB_USED, gauge, Used.\n"


class Map:
    """The text of the ConfigMap; an exception stands for an error of the API server."""

    def __init__(self, says: str | Exception | None) -> None:
        self.says = says

    async def read_text(self) -> str | None:
        if isinstance(self.says, Exception):
            raise self.says
        return self.says


def made(says: str | Exception | None, tmp_path: Path) -> tuple[Map, CountersMap]:
    (tmp_path / "counters.csv").write_text("DCGM_FI_DEV_GPU_TEMP, gauge, Hot.\n")
    source = Map(says)
    return source, CountersMap(
        source,
        "monitoring:counters",
        CountersFile(str(tmp_path / "counters.csv")),
        look_seconds=0.01,
    )


async def shown(counters: CountersMap) -> tuple[list[str], bool]:
    await counters.look()
    counters.reload_if_changed()
    return [each.name for each in counters.counters.counters], counters.reload_succeeded


@pytest.mark.parametrize(
    "says",
    [
        None,
        Forbidden("kubernetes", "may not get"),
        OutsideError("kubernetes", "no answer"),
        "nonsense\n",
        "",
    ],
)
async def test_the_file_counts_until_the_map_can_be_read(
    says: str | Exception | None, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    source, counters = made(says, tmp_path)
    for _ in range(3):
        assert await shown(counters) == (["DCGM_FI_DEV_GPU_TEMP"], False)
    assert (
        len(
            [
                each
                for each in caplog.records
                if "the counters file counts until then" in each.getMessage()
            ]
        )
        == 1
    )
    (tmp_path / "counters.csv").write_text("DCGM_FI_DEV_MEM_CLOCK, gauge, Fast.\n")
    assert (await shown(counters))[0] == ["DCGM_FI_DEV_MEM_CLOCK"], "and is itself read again"
    source.says = GOOD
    assert await shown(counters) == (["DCGM_FI_DEV_GPU_UTIL"], True)


@pytest.mark.parametrize("says", [None, OutsideError("kubernetes", "no answer"), "nonsense\n"])
async def test_what_it_reported_last_stays(
    says: str | Exception | None, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    source, counters = made(GOOD, tmp_path)
    assert await shown(counters) == (["DCGM_FI_DEV_GPU_UTIL"], True)
    source.says = says
    for _ in range(3):
        assert await shown(counters) == (["DCGM_FI_DEV_GPU_UTIL"], False)
    assert (
        len([each for each in caplog.records if "counters stay as they were" in each.getMessage()])
        == 1
    )
    source.says = GOOD
    assert await shown(counters) == (["DCGM_FI_DEV_GPU_UTIL"], True)
    source.says = OTHER
    assert await shown(counters) == (["DCGM_FI_DEV_FB_USED"], True)


async def test_a_change_is_news_and_nothing_else_is(tmp_path: Path) -> None:
    source, counters = made(GOOD, tmp_path)
    received: list[int] = []
    following = asyncio.create_task(counters.follow(lambda: received.append(1)))

    async def reported(count: int) -> bool:
        return len(received) == count

    try:
        await until(lambda: reported(1))
        source.says = OTHER
        await until(lambda: reported(2))
        source.says = None
        await until(lambda: reported(3))
        assert not await counters.look()
    finally:
        following.cancel()


async def test_a_request_does_not_wait(tmp_path: Path) -> None:
    source, _ = made(GOOD, tmp_path)
    counters = CountersMap(source, "monitoring:counters", CountersFile(), look_seconds=3600)
    received: list[str | None] = []
    following = asyncio.create_task(counters.follow(lambda: received.append(str(source.says))))

    async def reported(count: int) -> bool:
        return len(received) == count

    try:
        await until(lambda: reported(1))
        source.says = OTHER
        counters.ask_now()
        await until(lambda: reported(2))
    finally:
        following.cancel()


async def test_strictly_read_a_bad_row_of_the_map_is_reported(tmp_path: Path) -> None:
    _, counters = made(GOOD + "nonsense\n", tmp_path)
    await counters.look()
    with pytest.raises(UserError, match="ConfigMap `monitoring:counters` line 2"):
        counters.read_strictly()
