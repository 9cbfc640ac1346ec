"""The watchdog, which reports containers that exceed their share of GPU memory:
docs/spec/gpu-sharing.md#watchdog.
"""

from __future__ import annotations

import math
from typing import Any

import pytest
from msgspec import structs

from fairlead.rules.devices.watchdog import (
    MemoryUse,
    MemoryWatchdog,
    OverGrant,
    OverGrantPolicy,
)

REPORT, EVICT, OFF = OverGrantPolicy


def use(used: float, granted: float = 4308, **more: Any) -> MemoryUse:
    return structs.replace(MemoryUse("ns", "p", "u", "c", "GPU-a", used, granted), **more)


def looks(watchdog: MemoryWatchdog, policy: OverGrantPolicy, *used: float) -> list[list[OverGrant]]:
    return [watchdog.look([use(each)], policy) for each in used]


@pytest.mark.parametrize(
    ("used", "is_over"),
    [(0, False), (4308, False), (4948, False), (4948.5, True), (9000, True), (math.nan, False)],
)
def test_over_is_above_grant_and_allowance(used: float, is_over: bool) -> None:
    assert bool(MemoryWatchdog().look([use(used)], REPORT)) is is_over


@pytest.mark.parametrize("processes", [1, 2, 5])
def test_each_process_has_its_context(processes: int) -> None:
    most = 4308 + 640 * processes
    assert not MemoryWatchdog().look([use(most, processes=processes)], REPORT)
    assert MemoryWatchdog().look([use(most + 1, processes=processes)], REPORT)


def test_an_event_has_both_numbers_once_while_it_lasts() -> None:
    found = looks(MemoryWatchdog(), REPORT, 5000, 5100, 4000, 5200)
    assert [[each.is_new for each in period] for period in found] == [[True], [False], [], [True]]
    assert found[0][0].sentence == "container c uses 5000 MiB of GPU GPU-a, its grant is 4308 MiB"
    assert found[0][0].over_bytes == (5000 - 4308) * 1024 * 1024


def test_eviction_comes_after_three_periods_in_a_row() -> None:
    found = looks(MemoryWatchdog(), EVICT, 5000, 5000, 4000, 5000, 5000, 5000, 5000)
    assert [[(each.periods, each.is_to_evict) for each in period] for period in found] == [
        [(1, False)],
        [(2, False)],
        [],
        [(1, False)],
        [(2, False)],
        [(3, True)],
        [(4, True)],
    ]


def test_report_never_evicts_and_off_reports_nothing_and_forgets() -> None:
    watchdog = MemoryWatchdog()
    assert not any(
        each.is_to_evict for period in looks(watchdog, REPORT, *[5000] * 5) for each in period
    )
    assert looks(watchdog, OFF, 5000) == [[]]
    assert looks(watchdog, EVICT, 5000)[0][0].periods == 1


def test_each_container_and_card_is_counted_by_itself() -> None:
    watchdog = MemoryWatchdog()
    watchdog.look([use(5000)], EVICT)
    found = watchdog.look(
        [use(5000), use(5000, container="d"), use(5000, uuid="GPU-b"), use(5000, pod_uid="v")],
        EVICT,
    )
    assert [each.periods for each in found] == [2, 1, 1, 1]


def test_a_container_that_was_granted_nothing_is_over_with_all_it_has() -> None:
    [found] = MemoryWatchdog().look([use(700, granted=0)], REPORT)
    assert found.over_bytes == 700 * 1024 * 1024


def test_a_container_that_is_gone_starts_anew() -> None:
    watchdog = MemoryWatchdog()
    watchdog.look([use(5000)], EVICT)
    watchdog.look([], EVICT)
    assert watchdog.look([use(5000)], EVICT)[0].periods == 1
