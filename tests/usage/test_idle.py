"""Which GPUs are listed as idle, why, since when, and what they cost."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from msgspec.structs import replace
from tests.usage.memory_ledger import MemoryLedger
from tests.usage.small_ledger import ALICE, BOB, NOVEMBER, Life, fill, price

from fairlead.console.boards.usage.idle_rows import idle_table
from fairlead.console.pages.usage.tables import IdleList, IdleRow
from fairlead.model.usage.ledger import HOUR

NOW = NOVEMBER + 36 * HOUR + 1_000_000
"""In the second day, in which two GPUs are stranded. Bob's pod runs for six hours."""


def idle(*lives: Life, **words: str) -> IdleList:
    async def ask() -> IdleList:
        ledger = MemoryLedger()
        await fill(ledger, lives, hours=36)
        await ledger.add_price(price(32_000_000))
        return (await idle_table(ledger, words, NOW)).as_list(IdleList)

    return asyncio.run(ask())


def pods(rows: Sequence[IdleRow]) -> list[tuple[str, str, float]]:
    return [(row.reason, row.pod, row.gpus) for row in rows if row.pod]


def test_an_idle_pod_has_owner_time_and_cost() -> None:
    found = idle(ALICE, BOB)
    (row,) = [each for each in found.items if each.pod]
    assert (row.reason, row.user, row.leaf, row.namespace) == ("idle", "bob", "root.b", "team-b")
    assert (row.gpus, row.gpu_hours, row.since) == (2, 12, "2026-11-02T06:00:00Z")
    assert row.cost == "43.200000", "12 GPU-hours / 8 × 0.9 × 32"
    assert row.advice.text == "ask bob to end the pod, or to use its GPUs"


def test_a_pod_without_readings_is_unknown_and_never_idle() -> None:
    blind = replace(BOB, idle=0, unknown=1000)
    found = idle(ALICE, blind)
    assert pods(found.items) == [("unknown", "notebook", 2)]
    (row,) = [each for each in found.items if each.pod]
    assert "reports no GPU readings" in row.advice.text


def test_a_busy_pod_with_some_unknown_time_is_not_listed() -> None:
    assert pods(idle(ALICE, replace(BOB, idle=0, unknown=400)).items) == []


def test_a_pod_is_idle_for_the_cards_that_are() -> None:
    assert pods(idle(replace(BOB, gpus=4, idle=500)).items) == [("idle", "notebook", 2)]


def test_a_pod_that_has_ended_is_not_listed() -> None:
    assert pods(idle(replace(BOB, end=35)).items) == []


def test_stranded_gpus_name_who_holds_what_is_lacking() -> None:
    found = idle(ALICE, BOB)
    stranded = next(each for each in found.items if each.reason == "stranded")
    assert (stranded.node, stranded.gpus, stranded.holders) == ("gpu-1", 2, ["team-a/bert-0"])
    assert stranded.advice.text == (
        "move or shrink team-a/bert-0, which hold most of the cpu of gpu-1"
    )


def test_the_split_of_a_node_adds_up_to_its_gpu_money() -> None:
    found = idle(ALICE, BOB, period="24h")
    (node,) = found.nodes
    parts = ("used", "idle", "unknown", "free", "stranded", "broken")
    assert sum(getattr(node, f"{part}_gpu_hours") for part in parts) == node.gpu_hours == 8 * 24
    # From 12:00 of the first day: 12 hours with a broken GPU, 12 with two stranded ones.
    assert (node.broken_gpu_hours, node.stranded_gpu_hours) == (12, 24)
    assert (node.used_gpu_hours, node.idle_gpu_hours) == (4 * 24, 12)
    assert node.cost == "691.200000" and node.idle_cost == "43.200000"
    assert found.totals is not None and found.totals.cost == node.cost
