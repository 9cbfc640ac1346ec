"""Claims and data sets for the page Datasets: read when it is opened, and again while it is open.

They are not followed: ten thousand claims that no page shows cost nothing. What was read is shown
at once; the next reading replaces it.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Coroutine, Mapping
from typing import Any, Final, TypeVar

from msgspec import Struct, structs

from fairlead.console.boards.data.dataset_rows import data_set_rows
from fairlead.console.boards.rows import RowSet
from fairlead.console.pages.data.datasets import DataSetRow
from fairlead.errors import OutsideError
from fairlead.model.actions import ObjectRef
from fairlead.model.jobs.acceleration import AccelerationFacts, DataUser
from fairlead.model.jobs.data_details import DataReasons, DataSetFacts
from fairlead.model.jobs.datasets import FoundData
from fairlead.ports import DataQuestions
from fairlead.rules.data.mounted import ClaimUsers

Answer = TypeVar("Answer")

READ_AGAIN_SECONDS: Final = 3.0
"""Shortest pause between two readings."""
WATCHED_SECONDS: Final = 60.0
"""How long data are read again after a page has asked for them."""
STALE_SECONDS: Final = 30.0
PATIENCE_SECONDS: Final = 10.0
_SHARE: Final = 10
"""A reading takes at most a tenth of the time: the pause is ten times as long."""
_VIEWS_MAX: Final = 256


_Made = tuple[tuple[Any, ...], "DataView"]


class DataView(Struct, frozen=True):
    """What one reach sees. `content`: changes when a row does. `at`: the cluster's time at which it
    was read, at most `STALE_SECONDS` earlier than it was read last. It does not depend on what
    others have: otherwise it would reveal that they changed something.
    """

    rows: RowSet[DataSetRow]
    content: tuple[DataSetRow, ...]
    at: float


class ReadData:
    """The data of one cluster. `monotonic`: this machine's clock. `patience`: how long a
    request waits, in seconds. `users`: the jobs and pods that mount claims, None = not known; while
    they do not change it returns the same value.
    """

    def __init__(
        self,
        questions: DataQuestions,
        monotonic: Callable[[], float] = time.monotonic,
        patience: float = PATIENCE_SECONDS,
        users: Callable[[], ClaimUsers | None] = lambda: None,
    ) -> None:
        self.questions = questions
        self._users = users
        self._patience = patience
        self._monotonic = monotonic
        self._asked_at = -WATCHED_SECONDS
        self._found: FoundData | None = None
        self._known = DataReasons()
        self._read_at = 0.0
        self._due_at = 0.0
        self._reading: asyncio.Task[None] | None = None
        self._is_dirty = False
        self._views: OrderedDict[frozenset[str] | None, _Made] = OrderedDict()
        self._making = asyncio.Lock()

    @property
    def is_stale(self) -> bool:
        return self._found is None or self._monotonic() - self._read_at > STALE_SECONDS

    @property
    def is_watched(self) -> bool:
        return self._monotonic() - self._asked_at < WATCHED_SECONDS

    @property
    def last(self) -> FoundData | None:
        """What was read last, without asking."""
        return self._found

    def wrote(self) -> None:
        """Something was written: the next page waits for a new reading."""
        self._is_dirty = True
        self._due_at = 0.0

    def mounted(self) -> ClaimUsers | None:
        """The jobs and pods that mount claims; None = not known."""
        return self._users()

    async def found(self) -> FoundData:
        """The data to show. Raises OutsideError if they cannot be read."""
        self._asked_at = self._monotonic()
        if self._found is None or self._is_dirty or self.is_stale:
            await self._renew()
        assert self._found is not None
        return self._found

    async def follow(self) -> bool:
        """Reads again if a page asked lately and it is time; whether something was read."""
        if not self.is_watched or self._monotonic() < self._due_at:
            return False
        try:
            await self._renew()
        except OutsideError:
            return False  # the next page that asks gets the reason
        return True

    async def users(self, namespace: str) -> list[DataUser]:
        """This and the following: read now. Raise TimeoutError after `patience`."""
        return await self._in_time(self.questions.users(namespace))

    async def details(self, namespace: str, name: str) -> DataSetFacts:
        return await self._in_time(self.questions.details(namespace, name))

    async def facts(self, namespace: str, claim: str, name: str) -> AccelerationFacts:
        return await self._in_time(self.questions.facts(namespace, claim, name))

    async def within(self, namespace: str) -> FoundData:
        """The data of one namespace, as they are now."""
        return await self._in_time(self.questions.read(namespace))

    async def leftovers(self, namespace: str, name: str) -> tuple[ObjectRef, ...]:
        return await self._in_time(self.questions.leftovers(namespace, name))

    async def has_secret(self, namespace: str, name: str) -> bool | None:
        return await self._in_time(self.questions.has_secret(namespace, name))

    async def _in_time(self, asked: Coroutine[Any, Any, Answer]) -> Answer:
        try:
            return await asyncio.wait_for(asked, self._patience)
        except TimeoutError:
            what = f"the API server did not answer within {self._patience:g} s"
            raise TimeoutError(what) from None

    async def view(
        self, namespaces: Collection[str] | None, operations: Mapping[str, str]
    ) -> DataView:
        """What a reader of these namespaces sees of the last reading; None = all of them."""
        assert self._found is not None
        key = None if namespaces is None else frozenset(namespaces)
        async with self._making:
            found, known, users = self._found, self._known, self._users()
            made_of, before = self._views.pop(key, ((), None))
            asked = (
                *(found.claims, found.data_sets, found.runtimes, known, users),
                tuple(operations.items()),
            )
            view = before
            if view is None or not _are_same(made_of, asked):
                rows = await asyncio.to_thread(data_set_rows, found, known, key, operations, users)
                view = _view(before, rows, found.taken_at)
            elif found.taken_at - view.at >= STALE_SECONDS:
                view = structs.replace(view, at=found.taken_at)
            self._views[key] = (asked, view)
            while len(self._views) > _VIEWS_MAX:
                self._views.popitem(last=False)
        return view

    async def _renew(self) -> None:
        """Joins a reading that is under way, unless something was written since it began."""
        if self._reading is not None and self._is_dirty:
            await asyncio.wait({self._reading}, timeout=self._patience)
        if self._reading is None or self._reading.done():
            self._is_dirty = False
            self._reading = asyncio.create_task(self._read())
        task = self._reading
        await asyncio.wait({task}, timeout=self._patience)
        if not task.done():
            if self._found is None:
                what = f"data could not be read within {self._patience:g} s"
                raise OutsideError("kubernetes", what, "the page asks again by itself")
            return
        try:
            task.result()
        except OutsideError:
            if self._found is None or self.is_stale:
                raise

    async def _read(self) -> None:
        began = self._monotonic()
        try:
            found = await self.questions.read()
            known = await self.questions.reasons(found)
            self._known = self._known if self._known == known else known
            self._found = _kept(self._found, found)
            self._read_at = self._monotonic()
        finally:
            pause = max(READ_AGAIN_SECONDS, _SHARE * (self._monotonic() - began))
            self._due_at = self._monotonic() + pause


def _view(before: DataView | None, rows: RowSet[DataSetRow], at: float) -> DataView:
    content = tuple(entry.row for entry in rows.entries)
    if before is not None and content == before.content and at - before.at < STALE_SECONDS:
        return before
    return DataView(rows, content, at)


def _are_same(one: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    """Whether both are of the same objects, and of the same operations."""
    return all(a is b for a, b in zip(one[:-1], other[:-1], strict=True)) and one[-1:] == other[-1:]


def _kept(before: FoundData | None, found: FoundData) -> FoundData:
    """The new reading with the parts of the one before that are equal, which are then known to be
    the same without a comparison.
    """
    if before is None:
        return found
    return structs.replace(
        found,
        claims=before.claims if before.claims == found.claims else found.claims,
        data_sets=before.data_sets if before.data_sets == found.data_sets else found.data_sets,
        runtimes=before.runtimes if before.runtimes == found.runtimes else found.runtimes,
    )
