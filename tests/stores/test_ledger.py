"""The usage ledger in each engine: the same answers as the ledger in memory, whatever happens."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from msgspec.structs import asdict
from tests.stores.stored_ledger import PATIENT_SECONDS, emptied
from tests.usage.ledger_lives import BASE, DAY, Claim, Fold, Forget, lives, times, windows
from tests.usage.memory_ledger import MemoryLedger

from fairlead.edge.store.address import StoreAddress
from fairlead.edge.store.migrate import migrate
from fairlead.edge.store.sql_store import SqlStore
from fairlead.model.usage.ledger import LedgerBatch, LedgerClaim, StateKind
from fairlead.model.usage.prices import Price
from fairlead.ports import UsageLedger

EXAMPLES = {"sqlite": 40, "postgresql": 20, "mariadb": 20}


async def lived(ledger: UsageLedger, life: list[Any]) -> list[LedgerClaim]:
    """The claims."""
    epoch = (await ledger.claim_ledger("first", BASE)).epoch
    answers: list[LedgerClaim] = []
    for event in life:
        if isinstance(event, LedgerBatch):
            await ledger.write_ledger(epoch, event)
        elif isinstance(event, Fold):
            await ledger.fold_day(epoch, event.day, event.end)
        elif isinstance(event, Forget):
            await ledger.forget_ledger(epoch, event.records_before, event.days_before)
        elif isinstance(event, Price):
            await ledger.add_price(event)
        elif isinstance(event, Claim):
            claim = await ledger.claim_ledger("next", event.now)
            epoch = claim.epoch
            answers.append(claim)
    return answers


Question = tuple[str, Callable[[UsageLedger], Awaitable[object]]]


def questions(window: tuple[int, int], at: int) -> list[Question]:
    start, end = window
    found: list[Question] = [
        ("bounds", lambda each: each.ledger_bounds()),
        ("prices", lambda each: each.prices()),
        ("node days", lambda each: each.node_days(BASE, BASE + 9 * DAY)),
        ("node sums", lambda each: each.node_sums(start, end)),
        ("node intervals", lambda each: each.node_intervals(start, end)),
        ("pod hours", lambda each: each.pod_hours(start, end)),
        ("held hours", lambda each: each.held_hours(start, end)),
        ("pods by uid", lambda each: each.pod_intervals(start, end, None, "", ("p1", "absent"))),
        ("node hours", lambda each: each.node_hours(start, end)),
        ("states begun", lambda each: each.states_begun(start, end, (StateKind.POD,))),
        ("a job", lambda each: each.pod_intervals(start, end, None, "j1")),
        ("jobs of a name", lambda each: each.ledger_jobs(start, end, None, "bert")),
    ]
    for names in (None, (), ("ml",), ("ops", "ML", "absent")):
        found += [
            ("days", lambda each, names=names: each.usage_days(BASE, BASE + 9 * DAY, names)),
            ("sums", lambda each, names=names: each.usage_sums(start, end, names)),
            ("pods", lambda each, names=names: each.pod_intervals(start, end, names)),
            ("idle hours", lambda each, names=names: each.idle_hours(start, end, names)),
            ("jobs", lambda each, names=names: each.ledger_jobs(start, end, names)),
            ("states", lambda each, names=names: each.states_at(at, tuple(StateKind), names)),
            ("nodes", lambda each, names=names: each.states_at(at, (StateKind.NODE,), names)),
        ]
    return found


def test_the_ledger_answers_as_the_one_in_memory(engine: str, address: StoreAddress) -> None:
    migrate(address)

    @settings(
        max_examples=EXAMPLES[engine],
        deadline=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    @given(lives, st.lists(st.tuples(windows, times), min_size=1, max_size=3))
    def check(life: list[Any], asked: list[tuple[tuple[int, int], int]]) -> None:
        async def compare() -> None:
            store, oracle = SqlStore(address, PATIENT_SECONDS), MemoryLedger()
            try:
                claims = await lived(store.ledger, life), await lived(oracle, life)
                for claim, expected in zip(*claims, strict=True):
                    for field, value in asdict(expected).items():
                        assert getattr(claim, field) == value, field
                for window, at in asked:
                    for what, ask in questions(window, at):
                        expected = without_ids(await ask(oracle))
                        assert without_ids(await ask(store.ledger)) == expected, what
            finally:
                await store.close()

        emptied(address)
        asyncio.run(compare())

    check()


def without_ids(answer: Any) -> Any:
    """Prices get growing ids, which a store never uses again."""
    if answer and isinstance(answer, tuple) and isinstance(answer[0], Price):
        ids = [each.id for each in answer]
        assert ids == sorted(set(ids))
        return [(each.matcher, each.node_hour, each.list_node_hour, each.note) for each in answer]
    return answer
