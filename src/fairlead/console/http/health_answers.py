"""Health of the servers behind the console, read on request and cached for some seconds.

Every open page shows failures and therefore requests the health: so the servers are asked at most
once in `KEPT_SECONDS`, for any number of pages.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Final

from fairlead.console.boards.health import HealthFacts, LedgerLook
from fairlead.console.http.board_states import BoardStates
from fairlead.console.http.kept_answers import KeptAnswers
from fairlead.errors import StoreDown
from fairlead.model.dependency import DependencyLooks, ServerLook
from fairlead.model.records.rows import StoreFacts
from fairlead.model.usage.ledger import LedgerBounds
from fairlead.ports import Dependencies, Ports

KEPT_SECONDS: Final = 10.0
StoreQuestion = Callable[[], Awaitable[StoreFacts]]
LedgerQuestion = Callable[[], Awaitable[LedgerBounds]]
PATIENCE_SECONDS: Final = 5.0
"""A server that takes longer counts as one that does not answer, until it does."""


async def _look_at_ledger(ledger: LedgerQuestion) -> LedgerBounds | StoreDown:
    try:
        return await ledger()
    except StoreDown as error:
        return error


class HealthAnswers:
    """`clock` is this machine's, however fast a simulated cluster's runs."""

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, patience: float = PATIENCE_SECONDS
    ) -> None:
        self._clock = clock
        self._answers: KeptAnswers[str, DependencyLooks] = KeptAnswers(
            KEPT_SECONDS, patience, clock=clock
        )
        self._ledger: KeptAnswers[str, LedgerBounds | StoreDown] = KeptAnswers(
            KEPT_SECONDS, patience, clock=clock
        )
        self._store: KeptAnswers[str, ServerLook] = KeptAnswers(KEPT_SECONDS, patience, clock=clock)

    async def facts(
        self,
        world: Ports,
        board_states: BoardStates,
        history_seconds: float,
        base_path: str,
        store: StoreQuestion | None = None,
        ledger: LedgerQuestion | None = None,
    ) -> HealthFacts:
        """What the page is judged from. Before the caches are filled nodes are not known."""
        looks = (
            None if world.dependencies is None else await self.looks(world.dependencies, world.name)
        )
        if world.cluster.is_ready:
            board_state = await board_states.latest()
            snapshot, nodes = (
                board_state.snapshot,
                tuple(each for each in board_state.occupancy.nodes if each.gpus_total),
            )
        else:
            snapshot, nodes = world.cluster.snapshot().with_gpus((), world.gpus.source()), ()
        return HealthFacts(
            snapshot=snapshot,
            nodes=nodes,
            looks=looks,
            is_simulated=world.is_simulated,
            history_seconds=history_seconds,
            base_path=base_path,
            store=None if store is None else await self.store_look(store),
            ledger=None if ledger is None else await self.ledger_look(ledger, world),
        )

    async def ledger_look(self, ledger: LedgerQuestion, world: Ports) -> LedgerLook:
        """How old the newest record is, by the clock of the cluster; a simulated one may run
        faster, and its seconds count accordingly.
        """
        found = await self._ledger.of("ledger", lambda: _look_at_ledger(ledger))
        if found is None:
            return LedgerLook(failure=f"the store has not answered for {self._store.patience:g} s")
        if isinstance(found, StoreDown):
            return LedgerLook(failure=found.what)
        if not found.heartbeat or found.is_off:
            return LedgerLook(is_off=found.is_off)
        speed = max(1.0, float(getattr(world.clock, "speed", 1.0)))
        age = max(0.0, world.clock.now() - found.heartbeat / 1000) / speed
        return LedgerLook(age, len(found.gaps), holder=found.holder)

    async def store_look(self, store: StoreQuestion) -> ServerLook:
        """What the store answered lately."""
        found = await self._store.of("store", lambda: self._look_at_store(store))
        return found or ServerLook(
            "store", failure=f"the store has not answered for {self._store.patience:g} s"
        )

    async def _look_at_store(self, store: StoreQuestion) -> ServerLook:
        begun = self._clock()
        try:
            facts = await store()
        except StoreDown as error:
            return ServerLook("store", failure=error.what, hint=error.hint)
        version = f"{facts.engine} {facts.engine_version}"
        return ServerLook(facts.place, version, self._clock() - begun)

    async def looks(self, dependencies: Dependencies, name: str) -> DependencyLooks:
        """What they answered lately. `name`: the cluster's, where it does not answer in time."""
        found = await self._answers.of(name, dependencies.look)
        return found or DependencyLooks(
            ServerLook(name, failure=f"`{name}` has not answered for {self._answers.patience:g} s")
        )
