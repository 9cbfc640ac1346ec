"""The usage ledger of a cluster of several tenants."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from tests.console.clusters import EPOCH
from tests.console.tenants import Others
from tests.usage.memory_ledger import MemoryLedger
from tests.usage.small_ledger import DAY, Life, fill, price

_NOW: Final = round(EPOCH * 1000)
START: Final = _NOW // DAY * DAY - 2 * DAY
MONTH: Final = datetime.fromtimestamp(START / 1000, UTC).strftime("%Y-%m")
_HOURS: Final = (_NOW - START) // 3_600_000


async def fill_ledger(ledger: MemoryLedger, others: Others) -> None:
    """Bob's pods, and those of the others; two days are folded."""
    lives = [
        Life("team-a", "bob", "root.a.1", "bert", "bert-0", "gpu-1", 3, None, gpus=2, idle=500),
        *(
            Life(
                others.team,
                others.user,
                others.leaf,
                f"{others.team}-job-{number}",
                f"{others.team}-pod-{number}",
                "gpu-1",
                number + 1.5,
                None if number else 30,
                gpus=1,
                idle=1000,
            )
            for number in range(others.jobs + 1)
        ),
    ]
    folds = [(START, START + DAY), (START + DAY, START + 2 * DAY)]
    await fill(ledger, lives, start=START, hours=_HOURS, folds=folds)
    await ledger.add_price(price(40_000_000, START, entered_by="admin"))
