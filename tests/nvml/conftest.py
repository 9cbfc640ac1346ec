"""Fixtures: a driver on the stub library, closed after the test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

import pytest
from tests.nvml.stub import StubState, build_stub

from fairlead.edge.nvml.cards import shown_card
from fairlead.edge.nvml.driver import NvmlDriver
from fairlead.edge.nvml.library import close_library, open_library
from fairlead.edge.nvml.mps import MpsPlaces
from fairlead.edge.nvml.readings import CardReader


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_stub(tmp_path_factory.mktemp("nvml"))


@pytest.fixture(scope="session")
def old_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_stub(tmp_path_factory.mktemp("old-nvml"), is_old=True)


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StubState:
    """Two healthy cards."""
    monkeypatch.setenv("STUB_NVML", str(tmp_path))
    return StubState(tmp_path)


class Seconds:
    """A clock that moves only when a test moves it."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Seconds:
    return Seconds()


@pytest.fixture
def driver_on(
    state: StubState, tmp_path: Path, clock: Seconds
) -> Iterator[Callable[[Path], NvmlDriver]]:
    """Creates a driver on this library."""
    made: list[NvmlDriver] = []

    def make(path: Path) -> NvmlDriver:
        places = MpsPlaces(tmp_path / "mps", tmp_path / "proc")
        made.append(NvmlDriver(str(path), tmp_path / "cgroup", places, clock))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.fixture
def driver(driver_on: Callable[[Path], NvmlDriver], library: Path) -> NvmlDriver:
    return driver_on(library)


class ReaderOn(Protocol):
    """Creates a reader of a card; the first reader's library serves all."""

    def __call__(self, card: int, *wanted: str, library: Path | None = None) -> CardReader: ...


@pytest.fixture
def reader_on(state: StubState, clock: Seconds, library: Path) -> Iterator[ReaderOn]:
    """The clock of processes shows 1000 s when the test's clock shows 0."""
    made: list[CardReader] = []
    usual = library

    def make(card: int, *wanted: str, library: Path | None = None) -> CardReader:
        if not made:
            open_library(str(library or usual))
        made.append(
            CardReader(shown_card(card), clock, frozenset(wanted), lambda: 1000.0 + clock.now)
        )
        return made[-1]

    yield make
    for each in made:
        each.close()
    if made:
        close_library()
